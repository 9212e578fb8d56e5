//! How far one wcet may grow before the system is refused
//!
//! # Assumptions
//! 1. The tests are sustainable in execution times: a longer wcet never helps (Baruah and Burns
//!    2006), so bisection finds the border.
//! 2. The members of a gang have one wcet, which grows for all of them.
//!
//! Source: sensitivity analysis as in Punnekkat, Davis and Burns 1997.

use punctual_model::{System, TaskId};

use crate::component::Component;
use crate::error::Checked;
use crate::lookup::in_step;
use crate::precedence::Edge;
use crate::trials::Trials;
use crate::units::border;
use crate::verdict::Slack;

/// The slack of one task of an admitted system; `None` for aperiodic work.
/// O(log(deadline / wcet · 1000)) decisions.
///
/// # Errors
/// [`AnalysisError::TooLong`](crate::error::AnalysisError::TooLong) when no trials are left.
pub(crate) fn of(
    system: &System,
    edges: &[Edge],
    component: &Component,
    trials: &Trials,
    task: TaskId,
) -> Checked<Option<Slack>> {
    let class = &system.tasks[task.index()].class;
    let (Some(wcet), Some(deadline)) = (class.budget(), class.relative_deadline()) else {
        return Ok(None);
    };
    if wcet.is_zero() {
        return Ok(None);
    }
    // A job longer than its deadline is late by itself.
    let most = u128::from(deadline.as_ns()) * 1000 / u128::from(wcet.as_ns());
    let refused = u64::try_from(most).unwrap_or(u64::MAX).saturating_sub(1000) + 1;
    let mut changed = system.clone();
    let most = border(refused, 0, |tenths| {
        let Some(grown) = Slack(tenths).grown(wcet) else {
            return Ok(false);
        };
        for member in in_step(system, task) {
            if let Some(budget) = changed.tasks[member.index()].class.budget_mut() {
                *budget = grown;
            }
        }
        trials.admit(&changed, edges, component)
    });
    most.map(|tenths| Some(Slack(tenths)))
}
