//! Earliest deadline first: the worst response of each task
//!
//! A task's worst response is not found where all tasks are released together: its job arrives at
//! some offset of a busy window that the others begin.
//!
//! # Assumptions
//! 1. As in [`crate::edf`]; equal deadlines count against the task (the tie-break by arrival can
//!    only shorten its response).
//! 2. The arrivals of the task can take any offset to those of the others. With arrivals by the
//!    clock not every offset occurs, and the bound may not be reached.
//! 3. A job that is one section runs through once it has started: only what arrives up to its start
//!    goes before it.
//!
//! Sources: Spuri, INRIA report 2873, 1996, Theorem 5 and §5 (jitter, blocking); George, Rivierre
//! and Spuri, INRIA report 2966, 1996 (jobs that nobody preempts); Bozhko and
//! Brandenburg, ECRTS 2020 (Prosa, `results/edf/rta/`).

use alloc::vec::Vec;

use crate::busy_window::{Blocker, Interfering, Query, Until, Urgency, Urgent, Worst, longest};
use crate::entity::{Entity, Who};
use crate::error::Checked;
use crate::fixed_point::SearchSteps;
use crate::node::Node;
use crate::units::{Span, TICK, UNIT, signed};

/// How much later than the own arrival (from the own jitter on) an interfering task may arrive.
fn shift(own: &Entity, other: &Entity) -> i128 {
    let lead = signed(own.deadline) - signed(own.own_jitter());
    lead - (signed(other.deadline) - signed(other.requests.jitter))
}

/// The offsets at which a job with a later deadline may be in a section.
fn blockers(node: &Node, own: &Entity) -> Vec<Blocker> {
    let tasks = node
        .entities
        .iter()
        .filter(|c| c.who != own.who && c.section > UNIT);
    // From `until` on a job of that task counts as an interfering task.
    let blocker = |c: &Entity| Blocker::of(c.who, c.section, -shift(own, c));
    let mut blockers: Vec<Blocker> = tasks.map(blocker).collect();
    if let Some((task, section)) = node.background {
        blockers.push(Blocker::of(Who::Task(task), section, i128::MAX));
    }
    blockers
}

/// How far offsets have to be searched: to the end of the longest busy window, or one hyperperiod
/// (an offset one hyperperiod later finds at most as much before it, one hyperperiod later).
pub(crate) fn window(node: &Node, search_steps: &mut SearchSteps<'_>) -> Checked<Option<Span>> {
    // Single jobs become urgent enough once, at a difference of deadlines.
    let once = node.all_entities().any(|c| c.requests.separation.is_none());
    let latest = |c: &Entity| c.deadline.saturating_add(c.requests.jitter);
    let first = if once {
        node.all_entities().map(latest).max().unwrap_or_default()
    } else {
        Span::ZERO
    };
    let hyper = node.hyperperiod().and_then(|h| {
        h.checked_add(first)?
            .checked_add(TICK)?
            .checked_add(node.supply.delay())
    });
    let found = longest(node, hyper.unwrap_or(Span::MAX), search_steps)?;
    Ok(found.or(hyper))
}

/// Everything else of the node, which goes before the entity at `place` by its deadlines.
pub(crate) fn interfering(node: &Node, place: usize) -> impl Iterator<Item = Interfering<'_>> {
    let own = &node.entities[place];
    let others = node.all_entities().filter(move |c| c.who != own.who);
    others.map(move |other| Interfering {
        entity: other,
        urgent: Urgent::Deadline {
            shift: shift(own, other),
        },
    })
}

/// The query for the entity at `place` in a busy window of length `window`.
pub(crate) fn query(node: &Node, place: usize, window: Span) -> Query<'_> {
    let own = &node.entities[place];
    Query {
        own,
        interfering: interfering(node, place).collect(),
        reserved: &node.reserved,
        supply: &node.supply,
        blockers: blockers(node, own),
        node,
        urgency: Urgency::Deadline(signed(own.deadline) - signed(own.own_jitter())),
        runs_through: own.whole,
        until: Until::Offset(window),
        enough: None,
    }
}

/// The worst response of the entity at `place`. The utilization is at most 1.
/// O(deadlines in the window · iterations · tasks).
pub(crate) fn bound_response_time(
    node: &Node,
    place: usize,
    window: Span,
    search_steps: &mut SearchSteps<'_>,
) -> Checked<Option<Worst>> {
    query(node, place, window).worst(search_steps)
}
