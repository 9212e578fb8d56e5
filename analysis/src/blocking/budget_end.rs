//! Sections and budgets: what a holder does when its server's budget ends, and what that costs
//!
//! * *Overrun* with payback (Davis and Burns 2006, §4.2): a holder goes on to the end of its section,
//!   at most its declared length beyond the budget; the next budget is so much shorter. Beside the
//!   server, that is one more section once in a busy window; below it, so much of the supply was
//!   used up before the window began.
//! * *Check first* (SIRAP: Behnam, Shin, Nolte and Nolin 2007): a section that does not fit waits for
//!   the next budget with its task. What is left of the old one is of no use to it: less than the
//!   section, each time, as if the job had computed meanwhile.
//!
//! # Assumptions
//! 1. When a budget ends, every task below may be in one section, and each goes on to its end.
//! 2. A task that waits for a budget leaves the rest of the old one to others of its node; counting
//!    it as computation is safe as for any suspension, for what passes is supply of that node.

use punctual_model::{AtBudgetEnd, SchedulerId, Supply, System, Task, Use};

use crate::error::{Checked, in_range};

const WHAT: &str = "sections at the end of a budget";

fn rule(system: &System, section: &Use) -> Option<AtBudgetEnd> {
    let resource = system.resources.get(section.resource.index());
    resource.map(|r| r.at_budget_end)
}

/// Schedulers above a task, from its own up.
fn above<'a>(system: &'a System, task: &Task) -> impl Iterator<Item = SchedulerId> + 'a {
    let parent = |id: &SchedulerId| system.schedulers.get(id.index()).and_then(|s| s.parent);
    let most = system.schedulers.len();
    core::iter::successors(task.scheduler, parent).take(most)
}

/// Most that a server may give beyond its budget. O(tasks · sections · depth).
pub(crate) fn overrun(system: &System, server: SchedulerId) -> Checked<u64> {
    if system.resources.is_empty() {
        return Ok(0);
    }
    let below = system
        .tasks
        .iter()
        .filter(|t| !t.uses.is_empty() && above(system, t).any(|id| id == server));
    let mut sum = 0_u64;
    for task in below {
        let sections = task.uses.iter();
        let goes_on = sections.filter(|s| rule(system, s) == Some(AtBudgetEnd::Overrun));
        let longest = goes_on.map(|s| s.length.ticks()).max().unwrap_or(0);
        sum = in_range(sum.checked_add(longest), WHAT)?;
    }
    Ok(sum)
}

/// What a job of this task may wait for budgets that its sections fit into. O(sections · depth).
pub(crate) fn fitting(system: &System, task: &Task) -> Checked<u64> {
    let has_server = |id: SchedulerId| {
        let found = system.schedulers.get(id.index());
        found.is_some_and(|s| matches!(s.supply, Supply::Server(_)))
    };
    if task.uses.is_empty() || !above(system, task).any(has_server) {
        return Ok(0);
    }
    let sections = task.uses.iter();
    let checked = sections.filter(|s| rule(system, s) == Some(AtBudgetEnd::CheckFirst));
    let sum = checked.map(|s| u128::from(s.length.ticks())).sum::<u128>();
    in_range(u64::try_from(sum).ok(), WHAT)
}
