//! Precedence: which waiting costs nothing, and how long the rest lasts
//!
//! # Assumptions
//! 1. A job of b starts when every job of a that arrived at or before it (`after`), or strictly
//!    before it (`follows`), has completed. `kern` changes neither priorities nor deadlines.
//! 2. *Consistent* precedence costs nothing: in one node, when every job that b waits for goes
//!    before it anyway. Fixed priority: a has the higher priority, or an equal one and stands
//!    earlier in the file (or is followed). FIFO: likewise. EDF: no deadline of a that b waits for
//!    is later than b's (Chetto, Silly and Bouchentouf 1990, the condition under which their
//!    modified deadlines are the given ones; for all pairs of jobs of different rates as in
//!    Forget et al., RTAS 2010).
//!    A predecessor that is released late by its own jitter keeps its successor waiting as long.
//! 3. Any other precedence is release jitter: b is ready R(a) − δ after its arrival, where δ is the
//!    least distance from the arrival of a job of a to that of a job of b that waits for it. R and
//!    the jitters are the least solution of their equations (holistic analysis: Tindell and Clark
//!    1994). This is sufficient only; where R(a) ≤ δ nothing waits, and nothing is lost.
//! 4. In one node a waiting job leaves its predecessor to run, so the longest busy window bounds
//!    every response as well; the smaller bound counts.

use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{CpuId, PolicyKind, Span, System, Task, TaskId};

use crate::bounds::{self, Bound};
use crate::case::{Case, Grant, policy_of};
use crate::error::{AnalysisError, Checked};
use crate::fixed_point::Effort;
use crate::tree::{Solved, Walk};
use crate::utilization::gcd;

/// Waiting longer than this many of the system's longest deadlines or periods is taken to have no
/// bound: it is refused in any case, and the search for its end would be long.
const MAX_WAITING: u64 = 64;
/// Rounds of the iteration over all CPUs; each lengthens some waiting, or ends it.
const MAX_ROUNDS: usize = 256;

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
    pub(crate) distance: u64,
    /// Release jitter of `from`.
    pub(crate) jitter: u64,
}

impl Edge {
    /// Whether anybody can wait because of it, given that nobody waits otherwise.
    pub(crate) fn can_delay(&self) -> bool {
        !self.consistent || self.jitter > 0
    }
}

/// All edges of a system. O(tasks + edges).
pub(crate) fn edges(system: &System) -> Vec<Edge> {
    let mut edges = Vec::new();
    for (task, id) in system.tasks.iter().zip(0_u32..) {
        let after = task.after.iter().map(|&from| (from, false));
        let follows = task.follows.iter().map(|&from| (from, true));
        for (from, strictly) in after.chain(follows) {
            if let Some(source) = system.tasks.get(from.index()) {
                edges.push(edge(system, (source, from), (task, TaskId(id)), strictly));
            }
        }
    }
    edges
}

fn edge(system: &System, a: (&Task, TaskId), b: (&Task, TaskId), strictly: bool) -> Edge {
    // Background work is not part of the busy window, so waiting for it is waiting outside; and
    // each task of a node that divides time has a window of its own.
    let policy = policy_of(system, b.0.cpu, b.0.scheduler).ok();
    let divided = matches!(policy, Some(PolicyKind::Tdm { .. }));
    let together = a.0.cpu == b.0.cpu && a.0.scheduler == b.0.scheduler && !divided;
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
            Some(PolicyKind::RoundRobin { .. } | PolicyKind::Tdm { .. }) => true,
            None => false,
        };
    let distance = distance(a.0, b.0, strictly);
    Edge {
        from: a.1,
        to: b.1,
        consistent,
        inside,
        distance,
        jitter: a.0.jitter.as_ns(),
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
fn distance(a: &Task, b: &Task, strictly: bool) -> u64 {
    let by_clock = |task: &Task| task.class.arrives_by_clock() && task.jitter.is_zero();
    let period = |task: &Task| task.class.min_separation().map_or(0, Span::as_ns);
    let common = gcd(period(a), period(b));
    if !(by_clock(a) && by_clock(b)) || common == 0 {
        return u64::from(strictly);
    }
    let phases = i128::from(b.phase.as_ns()) - i128::from(a.phase.as_ns());
    let rest = u64::try_from(phases.rem_euclid(i128::from(common))).unwrap_or(0);
    if strictly && rest == 0 { common } else { rest }
}

/// Every node's case and bounds, with the waiting that precedence causes.
#[derive(Clone, Debug)]
pub(crate) struct Solution {
    /// The nodes of the CPUs that were asked for, parents before children.
    pub(crate) nodes: Vec<Solved>,
    /// By task; `None`: not real-time, or nothing bounds it.
    pub(crate) bounds: Vec<Option<Bound>>,
    /// By task: how much precedence adds to its jitter; `None`: nothing bounds it.
    pub(crate) waiting: Vec<Option<u64>>,
}

/// What is asked of the nodes of a system.
pub(crate) struct Ask<'a> {
    /// Which CPUs; they must be closed under precedence.
    pub(crate) cpus: &'a dyn Fn(CpuId) -> bool,
    /// The bounds grow from round to round: as soon as this holds of some they are returned as they
    /// are. It must hold of larger ones as well.
    pub(crate) hopeless: &'a dyn Fn(&Solved) -> bool,
    /// Whether it is enough to know that the contenders of a node keep their deadlines.
    pub(crate) in_time: &'a dyn Fn(&Case) -> bool,
    /// The steps left for it.
    pub(crate) effort: &'a Effort,
}

impl<'a> Ask<'a> {
    /// All bounds of all CPUs.
    pub(crate) fn all(effort: &'a Effort) -> Ask<'a> {
        Ask {
            cpus: &|_| true,
            hopeless: &|_| false,
            in_time: &|_| false,
            effort,
        }
    }
}

/// Bounds all tasks of the CPUs that are asked about. O(rounds · cost of the tests), one round when
/// all precedence is consistent; limited by the effort.
pub(crate) fn solve(system: &System, edges: &[Edge], ask: &Ask<'_>) -> Checked<Solution> {
    let mut known = Waiting::none(system.tasks.len());
    let mut before = known.clone();
    let mut rounds = 0;
    let times = system.tasks.iter().flat_map(|t| {
        [t.class.relative_deadline(), t.class.min_separation()]
            .into_iter()
            .flatten()
    });
    let limit = times
        .max()
        .map_or(0, Span::as_ns)
        .saturating_mul(MAX_WAITING);
    loop {
        let found = match one_round(system, edges, &known, ask) {
            // Jitters that grew until the search found no end have none.
            Err(AnalysisError::TooLong { .. } | AnalysisError::Overflow { .. })
                if known != before =>
            {
                known.give_up_growing(&before);
                before = known.clone();
                continue;
            }
            found => found?,
        };
        let next = known.after_round(edges, &found.1);
        let lost = found.0.iter().any(ask.hopeless);
        if next == known || lost {
            let (nodes, bounds) = found;
            return Ok(Solution {
                nodes,
                bounds,
                waiting: known.all,
            });
        }
        before = known;
        known = next;
        rounds += 1;
        if rounds > MAX_ROUNDS || known.longest() > limit {
            known.give_up_growing(&before);
            before = known.clone();
        }
    }
}

/// What precedence adds to the jitter of each task; `None`: nothing bounds it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Waiting {
    /// Waiting for everybody.
    all: Vec<Option<u64>>,
    /// Waiting for other CPUs only, directly or through predecessors on the own CPU.
    outside: Vec<Option<u64>>,
}

impl Waiting {
    fn none(tasks: usize) -> Waiting {
        Waiting {
            all: vec![Some(0); tasks],
            outside: vec![Some(0); tasks],
        }
    }

    fn give_up_growing(&mut self, before: &Waiting) {
        give_up(&mut self.all, &before.all);
        give_up(&mut self.outside, &before.outside);
    }

    fn longest(&self) -> u64 {
        self.all
            .iter()
            .chain(&self.outside)
            .flatten()
            .copied()
            .max()
            .unwrap_or(0)
    }

    fn after_round(&self, edges: &[Edge], bounds: &[Option<Bound>]) -> Waiting {
        let response = |task: TaskId| bounds[task.index()].map(|b| b.response);
        Waiting {
            all: next_waiting(edges, &self.all, |e| !e.consistent, response),
            outside: next_waiting(edges, &self.outside, |e| !e.inside, response),
        }
    }
}

/// What still grows after so many rounds is taken to have no bound.
fn give_up(next: &mut [Option<u64>], before: &[Option<u64>]) {
    for (next, before) in next.iter_mut().zip(before) {
        if next != before {
            *next = None;
        }
    }
}

/// The waiting of each task: R(a) − δ over edges that make it `wait`; over the others until a is
/// ready to go first, its own jitter and waiting − δ. Never less than before, so that the iteration
/// ends.
fn next_waiting(
    edges: &[Edge],
    before: &[Option<u64>],
    waits: impl Fn(&Edge) -> bool,
    response: impl Fn(TaskId) -> Option<u64>,
) -> Vec<Option<u64>> {
    let mut next = before.to_vec();
    for edge in edges {
        let until = if waits(edge) {
            response(edge.from)
        } else {
            before[edge.from.index()].and_then(|wait| wait.checked_add(edge.jitter))
        };
        let longest = until.map(|r| r.saturating_sub(edge.distance));
        let slot = &mut next[edge.to.index()];
        *slot = match (*slot, longest) {
            (Some(known), Some(new)) => Some(known.max(new)),
            _ => None,
        };
    }
    next
}

type Round = (Vec<Solved>, Vec<Option<Bound>>);

fn one_round(system: &System, edges: &[Edge], known: &Waiting, ask: &Ask<'_>) -> Checked<Round> {
    let lengths = |list: &[Option<u64>]| list.iter().map(|w| w.unwrap_or(0)).collect::<Vec<_>>();
    let (jitters, outer) = (lengths(&known.all), lengths(&known.outside));
    // What waits for ever, or does not wait at all, is seen node by node.
    let waits = |case: &Case, list: &[Option<u64>], test: fn(&Option<u64>) -> bool| {
        let tasks = case.everybody().filter_map(|c| c.who.task());
        tasks.into_iter().any(|task| test(&list[task.index()]))
    };
    let test = |case: &Case| -> Checked<Vec<Option<Bound>>> {
        let mut found = if waits(case, &known.all, Option::is_none) {
            vec![None; case.contenders.len()]
        } else if (ask.in_time)(case) {
            return bounds::in_time(case, ask.effort);
        } else {
            bounds::of_node(case, ask.effort)?
        };
        // Also before anybody is known to wait: bounds must not shrink from round to round.
        let inside = !waits(case, &known.outside, Option::is_none)
            && has_inside_waiting(system, edges, case);
        if inside {
            let case = with_waiting(system, case, &outer)?;
            for (mine, window) in found.iter_mut().zip(bounds::everybody(&case, ask.effort)?) {
                *mine = smaller(*mine, window);
            }
        }
        Ok(found)
    };
    let mut nodes = Vec::new();
    let mut bounds = vec![None; system.tasks.len()];
    for (index, _) in (0_u16..)
        .zip(&system.cpus)
        .filter(|&(i, _)| (ask.cpus)(CpuId(i)))
    {
        let walk = Walk {
            system,
            cpu: CpuId(index),
            waiting: &jitters,
            bounds: &test,
            hopeless: ask.hopeless,
            effort: ask.effort,
        };
        for solved in walk.solve()? {
            for (contender, bound) in solved.case.contenders.iter().zip(&solved.bounds) {
                if let Some(task) = contender.who.task() {
                    bounds[task.index()] = *bound;
                }
            }
            nodes.push(solved);
        }
    }
    Ok((nodes, bounds))
}

/// The same case, its tasks waiting for so long.
fn with_waiting(system: &System, case: &Case, waiting: &[u64]) -> Checked<Case> {
    let grant = Grant {
        supply: case.supply.clone(),
        takings: case.takings.clone(),
        background: case.background,
        held_above: case.held_above,
    };
    let mut changed = Case::build(system, (case.cpu, case.node), grant, waiting)?;
    let servers = case.contenders.iter().filter(|c| c.who.task().is_none());
    // What is held in the background is in there already.
    changed.held_above = case.held_above;
    changed.contenders.extend(servers.cloned());
    changed.guests.clone_from(&case.guests);
    Ok(changed)
}

fn has_inside_waiting(system: &System, edges: &[Edge], case: &Case) -> bool {
    let here = |task: TaskId| {
        let task = system.tasks.get(task.index());
        task.is_some_and(|t| t.cpu == case.cpu && t.scheduler == case.node)
    };
    edges
        .iter()
        .any(|e| e.inside && !e.consistent && here(e.to))
}

fn smaller(a: Option<Bound>, b: Option<Bound>) -> Option<Bound> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.response < a.response { b } else { a }),
        (a, b) => a.or(b),
    }
}
