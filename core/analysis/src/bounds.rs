//! One node's response bounds, each by the test that belongs to its policy
//!
//! # Assumptions
//! 1. Those of the test named by each [`Basis`].

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

use punctual_model::PolicyKind;

use crate::busy_window::{Query, Worst};
use crate::entity::{Entity, Who};
use crate::error::{AnalysisError, Checked, in_range};
use crate::fixed_point::StepBudget;
use crate::levels::{self, Known};
use crate::node::Node;
use crate::supply::Supply;
use crate::units::Span;
use crate::{edf, fixed_priority, round_robin, spuri, upper_bound};

/// Steps for one task's response, or one CPU's processor demand: some ten milliseconds. A set that
/// needs more has a utilization within a few millionths of 1.
pub(crate) const STEPS: u64 = 3_000_000;
/// Steps for all EDF responses of one CPU, after which its deadlines have to do as bounds.
const SPURI_STEPS: u64 = 10 * STEPS;
/// Steps for one query about a whole system, with all rounds of its precedence: about a second.
pub(crate) const QUERY_STEPS: u64 = 100 * STEPS;

/// The steps of one query: all bounds of a system, all its refusals, or one yes or no.
pub(crate) const fn query() -> StepBudget {
    StepBudget::new(QUERY_STEPS)
}

/// Where a bound comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Basis {
    /// The worst job of the busy window.
    Job(Worst),
    /// The length of the longest busy window of the node.
    Window(Span),
    /// It is within this; the response itself is not computed.
    Feasible,
    /// The closed upper bound under fixed priorities: the response would take too long to search.
    Closed,
}

/// A bound on the response of one task, from arrival to completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bound {
    pub(crate) response: Span,
    pub(crate) basis: Basis,
}

impl Bound {
    fn of_job(worst: Worst) -> Bound {
        Bound {
            response: worst.response,
            basis: Basis::Job(worst),
        }
    }

    /// A limit that is kept, the response itself being unknown.
    fn within(response: Span) -> Bound {
        Bound {
            response,
            basis: Basis::Feasible,
        }
    }

    /// The closed upper bound.
    pub(crate) fn closed(response: Span) -> Bound {
        Bound {
            response,
            basis: Basis::Closed,
        }
    }

    /// A bound from the longest busy window, for jobs with this jitter.
    pub(crate) fn of_window(window: Span, jitter: Span) -> Checked<Bound> {
        let response = in_range(window.checked_add(jitter), "response")?;
        Ok(Bound {
            response,
            basis: Basis::Window(window),
        })
    }
}

/// The bounds of all entities of a node, in their order; `None`: nothing bounds the response.
///
/// With `allowed` only whether each is within it: then a bound may be any value that tells, and
/// some are `None` where one is late.
pub(crate) fn of_node(
    node: &Node,
    allowed: Option<&[Span]>,
    step_budget: &StepBudget,
) -> Checked<Vec<Option<Bound>>> {
    // An overload is late somewhere: for a yes or no its first miss need not be looked for.
    let refused = allowed.is_some() && node.load() == Ordering::Greater;
    if refused || node.supply == Supply::Nothing {
        return Ok(vec![None; node.entities.len()]);
    }
    match node.policy {
        // The turns of a child under a policy that does not preempt are nobody's to foresee.
        PolicyKind::Fifo if has_children(node) => in_any_order(node, step_budget),
        PolicyKind::Fifo if node.entities.iter().any(|c| !c.waiting.is_zero()) => {
            in_any_order(node, step_budget)
        }
        PolicyKind::Fifo | PolicyKind::FixedPriority { .. } => of_ranks(node, allowed, step_budget),
        PolicyKind::EarliestDeadlineFirst => match allowed {
            Some(allowed) if edf::decides(node) => of_demand(node, allowed, step_budget),
            _ => of_deadlines(node, step_budget),
        },
        PolicyKind::RoundRobin { .. } | PolicyKind::Tdm { .. } | PolicyKind::Planned => {
            in_any_order(node, step_budget)
        }
    }
}

/// The query whose answer the bound of the entity at `place` is.
pub(crate) fn query_of(node: &Node, place: usize) -> Query<'_> {
    match node.policy {
        PolicyKind::EarliestDeadlineFirst => spuri::query(node, place, Span::ZERO),
        _ => fixed_priority::query(node, place, None),
    }
}

fn has_children(node: &Node) -> bool {
    let is_server = |c: &Entity| matches!(c.who, Who::Server(_));
    !node.unserved.is_empty() || node.entities.iter().any(is_server)
}

/// Fixed priority and FIFO.
fn of_ranks(
    node: &Node,
    allowed: Option<&[Span]>,
    step_budget: &StepBudget,
) -> Checked<Vec<Option<Bound>>> {
    let count = node.entities.len();
    let Some(allowed) = allowed else {
        return all_of_ranks(node, step_budget);
    };
    let shown = upper_bound::in_time(node, allowed);
    let known = match shown.iter().all(|&shown| shown) {
        true => Vec::new(),
        false => levels::responses(node, Some(allowed), step_budget, STEPS),
    };
    let mut bounds = vec![None; count];
    let deadline = |place: usize| node.entities[place].deadline;
    let late =
        |(place, known): (usize, &Known)| levels::is_late(*known, allowed[place], deadline(place));
    if known.iter().enumerate().any(late) {
        return Ok(bounds);
    }
    for (place, bound) in bounds.iter_mut().enumerate() {
        let enough = allowed[place];
        let found = match (shown[place], known.get(place)) {
            (true, _) => Some(Bound::within(enough)),
            (false, Some(Known::Response(worst))) => worst.map(Bound::of_job),
            (false, _) => {
                let mut search_steps = step_budget.search_steps(STEPS);
                fixed_priority::bound_response_time(node, place, Some(enough), &mut search_steps)?
                    .map(Bound::of_job)
            }
        };
        *bound = found;
        if found.is_none_or(|b| b.response > enough) {
            break;
        }
    }
    Ok(bounds)
}

/// All bounds under fixed priority and FIFO. From the first search on that takes too long, the
/// closed upper bound does where it is within the deadline.
fn all_of_ranks(node: &Node, step_budget: &StepBudget) -> Checked<Vec<Option<Bound>>> {
    let known = levels::responses(node, None, step_budget, STEPS);
    let deadline = |place: usize| node.entities[place].deadline;
    // With a refusal that is certain, bounds that take too long to search stay unknown.
    let mut all = known.iter().enumerate();
    let is_refused = all.any(|(p, known)| levels::is_late(*known, deadline(p), deadline(p)));
    let mut closed: Vec<Option<Span>> = Vec::new();
    let mut bounds = Vec::with_capacity(known.len());
    for (place, known) in known.into_iter().enumerate() {
        let within = |closed: &[Option<Span>]| {
            let response = closed.get(place).copied().flatten();
            response
                .filter(|&r| r <= deadline(place))
                .map(Bound::closed)
        };
        if let Known::Response(worst) = known {
            bounds.push(worst.map(Bound::of_job));
            continue;
        }
        if let Some(bound) = within(&closed) {
            bounds.push(Some(bound));
            continue;
        }
        bounds.push(match of_ranked(node, place, step_budget) {
            Err(AnalysisError::TooLong { what }) => {
                if closed.is_empty() {
                    closed = upper_bound::responses(node);
                }
                match within(&closed) {
                    None if !is_refused => return Err(AnalysisError::TooLong { what }),
                    bound => bound,
                }
            }
            found => found?,
        });
    }
    Ok(bounds)
}

/// When the whole window is too long but a miss comes early, the refusal is certain and only the
/// bound stays unknown.
fn of_ranked(node: &Node, place: usize, step_budget: &StepBudget) -> Checked<Option<Bound>> {
    let found = fixed_priority::bound_response_time(
        node,
        place,
        None,
        &mut step_budget.search_steps(STEPS),
    );
    match found {
        Err(AnalysisError::TooLong { what }) => {
            let deadline = node.entities[place].deadline;
            let mut search_steps = step_budget.search_steps(STEPS);
            match fixed_priority::bound_response_time(
                node,
                place,
                Some(deadline),
                &mut search_steps,
            ) {
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
fn of_deadlines(node: &Node, step_budget: &StepBudget) -> Checked<Vec<Option<Bound>>> {
    if node.load() == Ordering::Greater {
        return Ok(vec![None; node.entities.len()]);
    }
    let mut search_steps = step_budget.search_steps(SPURI_STEPS);
    let window = match spuri::window(node, &mut search_steps) {
        Ok(window) => window,
        Err(AnalysisError::TooLong { .. } | AnalysisError::Overflow { .. }) => None,
        Err(other) => return Err(other),
    };
    let mut bounds = Vec::with_capacity(node.entities.len());
    for (place, entity) in node.entities.iter().enumerate() {
        let found = match window {
            // A constant-bandwidth server is only known to keep its deadlines.
            Some(window) if !entity.requests.is_fluid && !search_steps.are_spent() => {
                spuri::bound_response_time(node, place, window, &mut search_steps)
            }
            _ => Ok(None),
        };
        bounds.push(match found {
            Ok(worst) => worst.map(Bound::of_job),
            Err(AnalysisError::TooLong { .. }) => None,
            Err(other) => return Err(other),
        });
    }
    let late = |(c, bound): (&Entity, &Option<Bound>)| {
        bound.is_none_or(|bound| bound.response > c.deadline)
    };
    let mut all = node.entities.iter().zip(&bounds);
    if !all.any(late) {
        return Ok(bounds);
    }
    let feasible = match is_feasible(node, step_budget) {
        Err(AnalysisError::TooLong { .. }) if bounds.iter().all(Option::is_some) => false,
        found => found?,
    };
    if feasible {
        for (entity, bound) in node.entities.iter().zip(&mut bounds) {
            if late((entity, bound)) {
                *bound = Some(Bound::within(entity.deadline));
            }
        }
    }
    Ok(bounds)
}

/// Earliest deadline first, where the demand tells whether deadlines are kept: a response is looked
/// for only where less than the deadline is allowed.
fn of_demand(
    node: &Node,
    allowed: &[Span],
    step_budget: &StepBudget,
) -> Checked<Vec<Option<Bound>>> {
    let mut bounds = vec![None; node.entities.len()];
    if !is_feasible(node, step_budget)? {
        return Ok(bounds);
    }
    let mut search_steps = step_budget.search_steps(STEPS);
    for (place, (entity, bound)) in node.entities.iter().zip(&mut bounds).enumerate() {
        if allowed[place] >= entity.deadline {
            *bound = Some(Bound::within(entity.deadline));
            continue;
        }
        let Some(window) = spuri::window(node, &mut search_steps)? else {
            break;
        };
        let worst = spuri::bound_response_time(node, place, window, &mut search_steps)?;
        *bound = worst.map(Bound::of_job);
        if bound.is_none_or(|b| b.response > allowed[place]) {
            break;
        }
    }
    Ok(bounds)
}

fn is_feasible(node: &Node, step_budget: &StepBudget) -> Checked<bool> {
    Ok(edf::find_excess(node, &mut step_budget.search_steps(STEPS))?.is_none())
}

/// Any order that never idles.
pub(crate) fn in_any_order(node: &Node, step_budget: &StepBudget) -> Checked<Vec<Option<Bound>>> {
    if node.supply == Supply::Nothing {
        return Ok(vec![None; node.entities.len()]);
    }
    let window = round_robin::bound_any_order(node, &mut step_budget.search_steps(STEPS))?;
    let bound = |jitter| window.map(|w| Bound::of_window(w, jitter)).transpose();
    node.entities
        .iter()
        .map(|c| bound(c.own_jitter()))
        .collect()
}
