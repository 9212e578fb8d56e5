//! One node's response bounds, each by the test that belongs to its policy
//!
//! # Assumptions
//! 1. Those of the test named by each [`Basis`].

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

use punctual_model::PolicyKind;

use crate::busy_window::Worst;
use crate::case::{Case, Contender, Who};
use crate::error::{AnalysisError, Checked, in_range};
use crate::fixed_point::Effort;
use crate::supply::Supply;
use crate::{edf, fixed_priority, round_robin, spuri};

/// Steps for one task's response, or one CPU's processor demand: some ten milliseconds. A set that
/// needs more has a utilization within a few millionths of 1.
pub(crate) const STEPS: u64 = 3_000_000;
/// Steps for all EDF responses of one CPU, after which its deadlines have to do as bounds.
const SPURI_STEPS: u64 = 10 * STEPS;
/// Steps for one question about a whole system, with all rounds of its precedence: about a second.
pub(crate) const QUESTION_STEPS: u64 = 100 * STEPS;

/// The steps of one question: all bounds of a system, all its refusals, or one yes or no.
pub(crate) const fn question() -> Effort {
    Effort::new(QUESTION_STEPS)
}

/// Where a bound comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Basis {
    /// The worst job of the busy window.
    Job(Worst),
    /// The length of the longest busy window of the node.
    Window(u64),
    /// All deadlines are met; the response itself would take too long to compute.
    Feasible,
}

/// A bound on the response of one task, from arrival to completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bound {
    pub(crate) response: u64,
    pub(crate) basis: Basis,
}

impl Bound {
    fn of_job(worst: Worst) -> Bound {
        Bound {
            response: worst.response,
            basis: Basis::Job(worst),
        }
    }

    fn of_feasible(contender: &Contender) -> Bound {
        Bound {
            response: contender.deadline,
            basis: Basis::Feasible,
        }
    }

    /// A bound from the longest busy window, for jobs with this jitter.
    pub(crate) fn of_window(window: u64, jitter: u64) -> Checked<Bound> {
        let response = in_range(window.checked_add(jitter), "response")?;
        Ok(Bound {
            response,
            basis: Basis::Window(window),
        })
    }
}

/// The bounds of all contenders of a node, in their order; `None`: nothing bounds the response.
pub(crate) fn of_node(case: &Case, effort: &Effort) -> Checked<Vec<Option<Bound>>> {
    if case.supply == Supply::Nothing {
        return Ok(vec![None; case.contenders.len()]);
    }
    match case.policy {
        // The turns of a child under a policy that does not preempt are nobody's to foresee.
        PolicyKind::Fifo if has_children(case) => everybody(case, effort),
        PolicyKind::Fifo if case.contenders.iter().any(|c| c.waiting > 0) => {
            everybody(case, effort)
        }
        PolicyKind::Fifo | PolicyKind::FixedPriority { .. } => (0..case.contenders.len())
            .map(|place| of_ranked(case, place, effort))
            .collect(),
        PolicyKind::EarliestDeadlineFirst => of_deadlines(case, effort),
        PolicyKind::RoundRobin { .. } | PolicyKind::Tdm { .. } => everybody(case, effort),
    }
}

fn has_children(case: &Case) -> bool {
    let is_server = |c: &Contender| matches!(c.who, Who::Server(_));
    !case.guests.is_empty() || case.contenders.iter().any(is_server)
}

/// Fixed priority and FIFO. When the whole window is too long but a miss comes early, the refusal
/// is certain and only the bound stays unknown.
fn of_ranked(case: &Case, place: usize, effort: &Effort) -> Checked<Option<Bound>> {
    let found = fixed_priority::bound_response_time(case, place, None, &mut effort.meter(STEPS));
    match found {
        Err(AnalysisError::TooLong { what }) => {
            let deadline = case.contenders[place].deadline;
            let mut meter = effort.meter(STEPS);
            match fixed_priority::bound_response_time(case, place, Some(deadline), &mut meter) {
                Ok(Some(worst)) if worst.response > deadline => Ok(None),
                _ => Err(AnalysisError::TooLong { what }),
            }
        }
        found => Ok(found?.map(Bound::of_job)),
    }
}

/// Earliest deadline first. A feasible node's deadlines are bounds themselves: they count where the
/// window is too long for Spuri's search, and where that knows less (it counts the work of a
/// constant-bandwidth server in coarse portions).
fn of_deadlines(case: &Case, effort: &Effort) -> Checked<Vec<Option<Bound>>> {
    if case.load() == Ordering::Greater {
        return Ok(vec![None; case.contenders.len()]);
    }
    let mut meter = effort.meter(SPURI_STEPS);
    let window = match spuri::window(case, &mut meter) {
        Ok(window) => window,
        Err(AnalysisError::TooLong { .. } | AnalysisError::Overflow { .. }) => None,
        Err(other) => return Err(other),
    };
    let mut bounds = Vec::with_capacity(case.contenders.len());
    for (place, contender) in case.contenders.iter().enumerate() {
        let found = match window {
            // A constant-bandwidth server is only known to keep its deadlines.
            Some(window) if !contender.flow.is_fluid => {
                spuri::bound_response_time(case, place, window, &mut meter)
            }
            _ => Ok(None),
        };
        bounds.push(match found {
            Ok(worst) => worst.map(Bound::of_job),
            Err(AnalysisError::TooLong { .. }) => None,
            Err(other) => return Err(other),
        });
    }
    let late = |(c, bound): (&Contender, &Option<Bound>)| {
        bound.is_none_or(|bound| bound.response > c.deadline)
    };
    let mut all = case.contenders.iter().zip(&bounds);
    if !all.any(late) {
        return Ok(bounds);
    }
    let feasible = match is_feasible(case, effort) {
        Err(AnalysisError::TooLong { .. }) if bounds.iter().all(Option::is_some) => false,
        found => found?,
    };
    if feasible {
        for (contender, bound) in case.contenders.iter().zip(&mut bounds) {
            if late((contender, bound)) {
                *bound = Some(Bound::of_feasible(contender));
            }
        }
    }
    Ok(bounds)
}

/// The bounds where a yes or no will do, as for [`of_node`]: EDF alone has a faster way to it.
pub(crate) fn in_time(case: &Case, effort: &Effort) -> Checked<Vec<Option<Bound>>> {
    let feasible = is_feasible(case, effort)?;
    let bound = |c: &Contender| feasible.then(|| Bound::of_feasible(c));
    Ok(case.contenders.iter().map(bound).collect())
}

fn is_feasible(case: &Case, effort: &Effort) -> Checked<bool> {
    Ok(edf::find_excess(case, &mut effort.meter(STEPS))?.is_none())
}

/// Any order that never idles.
pub(crate) fn everybody(case: &Case, effort: &Effort) -> Checked<Vec<Option<Bound>>> {
    if case.supply == Supply::Nothing {
        return Ok(vec![None; case.contenders.len()]);
    }
    let window = round_robin::bound_everybody(case, &mut effort.meter(STEPS))?;
    let bound = |jitter| window.map(|w| Bound::of_window(w, jitter)).transpose();
    case.contenders
        .iter()
        .map(|c| bound(c.own_jitter()))
        .collect()
}
