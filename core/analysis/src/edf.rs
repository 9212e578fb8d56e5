//! Earliest deadline first: feasibility by processor demand, searched quickly (QPA)
//!
//! # Assumptions
//! 1. The earliest absolute deadline first; deadlines count from the arrival.
//! 2. A section that lets nobody preempt stands anywhere in its job; it blocks deadlines at or
//!    before t when its own deadline can be later than t, for at most its length − 1.
//! 3. A constant-bandwidth server that wakes up with a rest of its budget may get that rest late
//!    where the supply has holes or sections block; full budgets come by their deadlines.
//! 4. Relative deadlines are arbitrary. Demand reserved for the machine comes before all tasks.
//!
//! Sources: Baruah, Mok and Rosier 1990 (processor demand). Zhang and Burns 2009, Theorems 3 and 4
//! (QPA), and 2013 (with blocking: here one search per step of the blocking function). Spuri 1996
//! (release jitter); George, Rivierre and Spuri 1996 (non-preemptive sections).

use alloc::vec::Vec;
use core::cmp::Ordering;

use punctual_model::PolicyKind;

use crate::busy_window;
use crate::demand::RequestBound;
use crate::entity::Entity;
use crate::error::{AnalysisError, Checked, in_range};
use crate::fixed_point::{SearchSteps, least_fixed_point};
use crate::node::Node;
use crate::supply::Supply;
use crate::units::{Span, TICK, UNIT, Work, border, signed};

const WHAT: &str = "processor demand";
/// How many deadlines are tried one by one for the earliest witness of an overload.
const SCANNED_DEADLINES: usize = 20_000;
/// Steps spent on the busy period before the closed formula is used instead.
const BUSY_PERIOD_STEPS: u64 = 1_000_000;

/// More is demanded by an instant than can be supplied until then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Excess {
    pub(crate) at: Span,
    pub(crate) demand: Work,
    pub(crate) supply: Work,
}

/// Work with deadlines up to `at` when everything is released at 0.
pub(crate) fn demand(node: &Node, at: Span) -> Checked<Work> {
    node.all_entities().try_fold(Work::ZERO, |sum, c| {
        in_range(
            sum.checked_add(c.requests.demand_bound(at, c.deadline)?),
            WHAT,
        )
    })
}

/// Up to which deadlines a section of this task can block. A job in its section at -1 has completed
/// all earlier ones of its task, so none of its task is due by then: it would be demand instead.
fn blocks_until(entity: &Entity) -> Span {
    entity.deadline.saturating_sub(entity.requests.jitter)
}

/// The longest section whose task can have a later deadline than `at`, less one tick. Under other
/// policies nothing is claimed of blocking: there the demand only tells an overload.
pub(crate) fn blocking(node: &Node, at: Span) -> Work {
    if node.policy != PolicyKind::EarliestDeadlineFirst {
        return Work::ZERO;
    }
    let sections = node
        .entities
        .iter()
        .filter(|c| blocks_until(c) > at)
        .map(|c| c.section);
    let background = node.background.map(|(_, section)| section);
    sections
        .chain(background)
        .max()
        .unwrap_or_default()
        .saturating_sub(UNIT)
}

/// The blocking by critical sections here and above, for deadlines up to `at`.
fn locked(node: &Node, at: Span) -> Checked<Work> {
    if node.policy != PolicyKind::EarliestDeadlineFirst {
        return Ok(Work::ZERO);
    }
    let locks = node.blocking(-signed(at), None)?.total;
    in_range(locks.checked_add(node.held_above), WHAT)
}

/// When `work` is done at worst, if everything takes as much as it may; `None`: after `limit`.
fn done_by(
    node: &Node,
    work: Work,
    limit: Span,
    search_steps: &mut SearchSteps<'_>,
) -> Checked<Option<Span>> {
    if node.reserved.is_empty() && node.supply == Supply::Dedicated {
        search_steps.spend(1, WHAT)?;
        return Ok(Some(work.as_span()).filter(|&done| done <= limit));
    }
    node.supply.longest(|phase| {
        let time = |work| Ok(node.supply.time_in(phase, work)?.unwrap_or(Span::MAX));
        least_fixed_point(time(work)?, limit, |t| {
            search_steps.spend(node.reserved.len() + 1, WHAT)?;
            time(busy_window::add_reserved(&node.reserved, work, t)?)
        })
    })
}

/// The excess at `at`, if there is one.
fn excess(
    node: &Node,
    at: Span,
    search_steps: &mut SearchSteps<'_>,
) -> Checked<Result<Span, Excess>> {
    search_steps.spend(node.entities.len(), WHAT)?;
    let demand = demand(node, at)?;
    if demand.is_zero() {
        return Ok(Ok(Span::ZERO));
    }
    let blocking = in_range(blocking(node, at).checked_add(locked(node, at)?), WHAT)?;
    let demand = in_range(demand.checked_add(blocking), WHAT)?;
    match done_by(node, demand, at, search_steps)? {
        Some(done) => Ok(Ok(done)),
        None => Ok(Err(Excess {
            at,
            demand,
            supply: supply(node, at, search_steps)?,
        })),
    }
}

/// The work that is surely done in [0, `at`], whatever is reserved: bisection.
fn supply(node: &Node, at: Span, search_steps: &mut SearchSteps<'_>) -> Checked<Work> {
    let too_much = at.as_work().saturating_add(UNIT);
    border(too_much, Work::ZERO, |work| {
        Ok(done_by(node, work, at, search_steps)?.is_some())
    })
}

/// Whether the supply has no holes: then what is demanded in any portions, which grows no faster
/// than time, is worst at the deadlines of the others and at its own first full budget.
fn is_whole(node: &Node) -> bool {
    node.reserved.is_empty() && node.supply == Supply::Dedicated
}

/// Whether a constant-bandwidth server keeps every deadline here, also those of what is left of a
/// budget when it wakes up; else only those of full budgets.
pub(crate) fn keeps_short_deadlines(node: &Node) -> bool {
    let sections = node.entities.iter().any(|c| c.section > UNIT) || node.background.is_some();
    let locks = !node.locks.is_empty() || !node.held_above.is_zero();
    is_whole(node) && !sections && !locks && node.unserved.is_empty()
}

/// Whether the demand decides here. Work that waits for others, and a budget that may be kept, come
/// late for others only. Their own deadlines count from where they would have come, which the
/// responses tell apart and the demand does not.
pub(crate) fn decides(node: &Node) -> bool {
    let edf = node.policy == PolicyKind::EarliestDeadlineFirst;
    edf && node
        .entities
        .iter()
        .all(|c| c.waiting.is_zero() && c.kept.is_zero())
}

/// The first instant that counts: no whole job is due before it.
fn first_deadline(node: &Node) -> Span {
    let first = node.entities.iter().map(blocks_until).min();
    first.unwrap_or_default()
}

/// The latest deadline before `before`. Where the supply has holes, every
/// instant is a deadline of a fluid stream, from the first deadline of a whole job on. Before that
/// only a rest of a budget is late.
fn last_deadline(node: &Node, before: Span) -> Option<Span> {
    let whole = is_whole(node);
    let first = first_deadline(node);
    let last = |c: &Entity| match c.requests.is_fluid {
        true if whole => Some(c.deadline).filter(|&at| at < before),
        true => before.checked_sub(TICK).filter(|&at| at >= first),
        false => c.requests.last_deadline(before, c.deadline),
    };
    node.entities.iter().filter_map(last).max()
}

/// A miss that some legal arrivals cause, or `None`: every deadline is met. The test is necessary
/// and sufficient for sporadic arrivals. O(steps · tasks); few steps in practice.
pub(crate) fn find_excess(
    node: &Node,
    search_steps: &mut SearchSteps<'_>,
) -> Checked<Option<Excess>> {
    if node.entities.is_empty() {
        return Ok(None);
    }
    if node.load() == Ordering::Greater {
        return find_overload(node, search_steps).map(Some);
    }
    let Some(horizon) = horizon(node, search_steps)? else {
        return Ok(None);
    };
    // Blocking changes only where a deadline of a task with a section is passed.
    let mut steps: Vec<Span> = Vec::new();
    steps.extend(
        node.entities
            .iter()
            .filter(|c| c.section > UNIT)
            .map(blocks_until),
    );
    if node.has_locks() {
        steps.extend(node.locks.deadlines());
    }
    steps.retain(|&d| d < horizon);
    steps.sort_unstable();
    steps.dedup();
    let mut end = horizon;
    while let Some(found) = search_below(node, end, steps.last().copied(), search_steps)? {
        match found {
            Below::Excess(excess) => return Ok(Some(excess)),
            Below::Step(step) => {
                end = step;
                steps.pop();
            }
        }
    }
    Ok(None)
}

enum Below {
    Excess(Excess),
    /// Nothing between this step of the blocking function and the end.
    Step(Span),
}

/// QPA downwards from the last deadline before `end`, while the blocking stays the same: a demand
/// h(t) that is done by s < t leaves no excess anywhere in [s, t].
fn search_below(
    node: &Node,
    end: Span,
    step: Option<Span>,
    search_steps: &mut SearchSteps<'_>,
) -> Checked<Option<Below>> {
    let floor = step.unwrap_or_default().max(first_deadline(node));
    let mut at = last_deadline(node, end);
    while let Some(t) = at {
        if t < floor {
            break;
        }
        let done = match excess(node, t, search_steps)? {
            Err(excess) => return Ok(Some(Below::Excess(excess))),
            Ok(done) => done,
        };
        if done.is_zero() {
            return Ok(None);
        }
        at = if done < t {
            Some(done)
        } else {
            last_deadline(node, t)
        };
    }
    Ok(step.map(Below::Step))
}

/// Beyond which instant nothing new can happen: the smaller of the longest busy period and the
/// bound of the linear demand; one hyperperiod and the largest deadline at a utilization of 1.
/// `None` when there is nothing to search.
fn horizon(node: &Node, search_steps: &SearchSteps<'_>) -> Checked<Option<Span>> {
    let Some(latest) = node.entities.iter().map(|c| c.deadline).max() else {
        return Ok(None);
    };
    let hyper = node.hyperperiod();
    let repeats = hyper
        .and_then(|h| h.checked_add(latest))
        .and_then(|h| h.checked_add(node.supply.delay())?.checked_add(TICK));
    let linear = linear_horizon(node);
    let limit = match node.load() {
        Ordering::Less => Span::MAX,
        _ => hyper.map_or(Span::MAX, |h| h.saturating_add(node.supply.delay())),
    };
    let mut trial = search_steps.apart(BUSY_PERIOD_STEPS);
    let busy = match busy_window::longest(node, limit, &mut trial) {
        Ok(busy) => busy.and_then(|b| b.checked_add(TICK)),
        Err(AnalysisError::TooLong { .. } | AnalysisError::Overflow { .. }) => None,
        Err(other) => return Err(other),
    };
    let found = [busy, linear, repeats].into_iter().flatten().min();
    found.map(Some).ok_or(AnalysisError::TooLong {
        what: "horizon of the processor demand",
    })
}

/// With U < 1 (what the supply lacks included), demand exceeds supply only before (Σ Uᵢ·max(0, Tᵢ +
/// Jᵢ − Dᵢ) + reserved + blocking) / (1 − U). Rounded up; `None` when U is too close to 1. O(n).
fn linear_horizon(node: &Node) -> Option<Span> {
    const ONE: u128 = 1 << 40;
    let mut utilization = 0_u128;
    let mut constant = 0_u128;
    let mut add = |requests: &RequestBound, lead: i128| -> Option<()> {
        let cost = u128::from(requests.cost.as_ns());
        let Some(t) = requests.separation.map(|t| u128::from(t.as_ns())) else {
            constant += cost;
            return Some(());
        };
        constant += u128::from(requests.once.as_ns());
        utilization += (cost * ONE).div_ceil(t);
        let lead = u128::try_from(lead.max(0)).ok()?;
        constant = constant.checked_add(cost.checked_mul(lead)?.div_ceil(t))?;
        Some(())
    };
    let latest = |r: &RequestBound| signed(r.separation.unwrap_or_default()) + signed(r.jitter);
    for c in node.all_entities() {
        add(&c.requests, latest(&c.requests) - signed(c.deadline))?;
    }
    for t in &node.reserved {
        add(&t.requests, latest(&t.requests))?;
    }
    for blocking in [
        blocking(node, Span::ZERO),
        node.held_above,
        node.locks.at_most(),
    ] {
        constant += u128::from(blocking.as_ns());
    }
    if let Some(missing) = node.supply.missing() {
        // What is missing in t is at most its share of t, and what is supplied in the delay.
        utilization +=
            (u128::from(missing.numerator) * ONE).div_ceil(u128::from(missing.denominator));
        constant += u128::from(node.supply.delay().as_ns());
    }
    let spare = ONE.checked_sub(utilization).filter(|&spare| spare > 0)?;
    let horizon = u64::try_from(constant.checked_mul(ONE)?.div_ceil(spare)).ok()?;
    Span::from_ns(horizon).checked_add(TICK)
}

/// The utilization is above 1: the earliest of the first deadlines with an excess, else one that
/// must have it.
pub(crate) fn find_overload(node: &Node, search_steps: &mut SearchSteps<'_>) -> Checked<Excess> {
    let mut at = None;
    for _ in 0..SCANNED_DEADLINES {
        let Some(next) = next_deadline(node, at)? else {
            break;
        };
        if let Err(excess) = excess(node, next, search_steps)? {
            return Ok(excess);
        }
        at = Some(next);
    }
    // Demand grows by U per tick, supply by 1: doubling the instant finds an excess.
    let mut at = at.unwrap_or(TICK);
    loop {
        if let Err(excess) = excess(node, at, search_steps)? {
            return Ok(excess);
        }
        at = in_range(at.checked_mul(2), "the first excess of an overload")?;
    }
}

/// The earliest deadline after `after`.
fn next_deadline(node: &Node, after: Option<Span>) -> Checked<Option<Span>> {
    let mut next: Option<Span> = None;
    for c in node.all_entities() {
        let jobs = match after {
            None => 0,
            Some(after) => c.requests.deadlines_until(after, c.deadline)?,
        };
        let arrival = match (jobs, c.requests.separation) {
            (0, _) => Some(Span::ZERO),
            (_, None) => None,
            (jobs, Some(t)) => Some(in_range(t.checked_mul(jobs), WHAT)?),
        };
        if let Some(arrival) = arrival {
            let deadline = in_range(arrival.checked_add(c.deadline), WHAT)?;
            let deadline = deadline.saturating_sub(c.requests.jitter);
            next = Some(next.map_or(deadline, |n| n.min(deadline)));
        }
    }
    Ok(next)
}
