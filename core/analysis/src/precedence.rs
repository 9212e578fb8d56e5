//! Precedence: which waiting costs nothing, and how long the rest lasts
//!
//! # Assumptions
//! 1. A job of b starts when every job of a that arrived at or before it (`after`), or strictly
//!    before it (`follows`), has completed. `kern` changes neither priorities nor deadlines.
//! 2. *Consistent* precedence costs nothing: in one node, when every job that b waits for goes
//!    before it anyway. Fixed priority: a has the higher priority, or an equal one and stands
//!    earlier in the file (or is followed). FIFO: likewise. EDF: no deadline of a that b waits for
//!    is later than b's. (Chetto, Silly and Bouchentouf 1990, the condition under which their
//!    modified deadlines are the given ones; for all pairs of jobs of different rates as in
//!    Forget et al., RTAS 2010).
//!    A predecessor that is released late by its own jitter keeps its successor waiting as long.
//! 3. Any other precedence is release jitter: b is ready R(a) − δ after its arrival. δ is the
//!    least distance from the arrival of a job of a to that of a job of b that waits for it. R and
//!    the jitters are the least solution of their equations (holistic analysis: Tindell and Clark
//!    1994). This is sufficient only; where R(a) ≤ δ nothing waits, and nothing is lost.
//!    From one CPU to another the clock error is added: a may arrive later by so much.
//! 4. In one node a waiting job leaves its predecessor to run, so the longest busy window bounds
//!    every response as well; the smaller bound counts.

use alloc::vec::Vec;

use punctual_model::{PolicyKind, System, Task, TaskId};

use crate::lookup::{node_of, policy_of, tasks};
use crate::units::{Span, TICK, signed};
use crate::utilization::gcd;

/// `to` waits for jobs of `from`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Edge {
    pub(crate) from: TaskId,
    pub(crate) to: TaskId,
    /// The jobs waited for go first anyway.
    pub(crate) consistent: bool,
    /// In the busy window of the same node.
    pub(crate) inside: bool,
    /// Least distance of the arrivals.
    pub(crate) distance: Span,
    /// Release jitter of `from`.
    pub(crate) jitter: Span,
    /// The clock of `from` may be behind by so much.
    pub(crate) clocks: Span,
}

impl Edge {
    /// Whether anybody can wait because of it, given that nobody waits otherwise.
    pub(crate) fn can_delay(&self) -> bool {
        !self.consistent || !self.jitter.is_zero()
    }
}

/// All edges of a system. O(tasks + edges).
pub(crate) fn edges(system: &System) -> Vec<Edge> {
    let mut edges = Vec::new();
    for (id, task) in tasks(system) {
        let after = task.after.iter().map(|&from| (from, false));
        let follows = task.follows.iter().map(|&from| (from, true));
        for (from, strictly) in after.chain(follows) {
            if let Some(source) = system.tasks.get(from.index()) {
                edges.push(edge(system, (source, from), (task, id), strictly));
            }
        }
    }
    edges
}

fn edge(system: &System, a: (&Task, TaskId), b: (&Task, TaskId), strictly: bool) -> Edge {
    // Background work is not part of the busy window, so waiting for it is waiting outside; and
    // each task of a node that divides time has a window of its own.
    let policy = policy_of(system, node_of(b.0)).ok();
    let divided = matches!(policy, Some(PolicyKind::Tdm { .. }));
    let together = node_of(a.0) == node_of(b.0) && !divided;
    let inside = together && a.0.class.is_real_time();
    let first_in_tie = strictly || a.1 < b.1;
    let consistent = inside
        && match policy {
            Some(PolicyKind::Fifo) => first_in_tie,
            Some(PolicyKind::FixedPriority { .. }) => {
                a.0.priority.is_higher_than(b.0.priority)
                    || (a.0.priority == b.0.priority && first_in_tie)
            }
            Some(PolicyKind::EarliestDeadlineFirst) => ordered_deadlines(a.0, b.0),
            // No order: the bound of round robin needs none (assumption 4).
            Some(PolicyKind::RoundRobin { .. } | PolicyKind::Tdm { .. } | PolicyKind::Planned) => {
                true
            }
            None => false,
        };
    let distance = distance(a.0, b.0, strictly);
    Edge {
        from: a.1,
        to: b.1,
        consistent,
        inside,
        distance,
        jitter: a.0.jitter,
        clocks: match a.0.cpu == b.0.cpu {
            true => Span::ZERO,
            false => system.machine.clock_error,
        },
    }
}

/// No job of `a` that arrives up to the release of one of `b` has a later deadline.
fn ordered_deadlines(a: &Task, b: &Task) -> bool {
    match (a.class.relative_deadline(), b.class.relative_deadline()) {
        (Some(a), Some(d)) => a.checked_add(b.jitter).is_some_and(|a| a <= d),
        _ => false,
    }
}

/// The least distance from an arrival of `a` to that of a job of `b` that waits for it.
fn distance(a: &Task, b: &Task, strictly: bool) -> Span {
    let by_clock = |task: &Task| task.class.arrives_by_clock() && task.jitter.is_zero();
    let period = |task: &Task| task.class.min_separation().unwrap_or_default();
    let common = gcd(period(a), period(b));
    if !(by_clock(a) && by_clock(b)) || common.is_zero() {
        return if strictly { TICK } else { Span::ZERO };
    }
    let phases = signed(b.phase) - signed(a.phase);
    let rest = u64::try_from(phases.rem_euclid(signed(common))).map_or(Span::ZERO, Span::from_ns);
    if strictly && rest.is_zero() {
        common
    } else {
        rest
    }
}
