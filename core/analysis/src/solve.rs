//! The general solver: the bounds of all nodes, with the waiting that precedence causes
//!
//! Bounds of one node are release jitter of others, so all nodes are bounded in rounds until the
//! jitters no longer grow. Where no precedence delays anybody there is one round.
//!
//! # Assumptions
//! 1. Those of the tests, of the tree, and of [`crate::precedence`].

use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{CpuId, System, TaskId};

use crate::bounds::{self, Bound};
use crate::error::{AnalysisError, Checked};
use crate::fixed_point::StepBudget;
use crate::node::{FromParent, Node};
use crate::precedence::Edge;
use crate::tree::{Solved, Walk};
use crate::units::Span;

/// Waiting longer than this many of the system's longest deadlines or periods is taken to have no
/// bound: it is refused in any case, and the search for its end would be long.
const MAX_WAITING: u64 = 64;
/// Rounds of the iteration over all CPUs; each lengthens some waiting, or ends it.
const MAX_ROUNDS: usize = 256;

/// Every node with its bounds, with the waiting that precedence causes.
#[derive(Clone, Debug)]
pub(crate) struct Solution {
    /// The nodes of the CPUs of the query, parents before children.
    pub(crate) nodes: Vec<Solved>,
    /// By task; `None`: not real-time, or nothing bounds it.
    pub(crate) bounds: Vec<Option<Bound>>,
    /// By task: how much precedence adds to its jitter; `None`: nothing bounds it.
    pub(crate) waiting: Vec<Option<Span>>,
    /// [`Options::hopeless`] holds of some node; then others may be missing.
    pub(crate) is_hopeless: bool,
}

impl Solution {
    /// The bound on the response of a task.
    pub(crate) fn response(&self, task: TaskId) -> Option<Span> {
        let bound = self.bounds.get(task.index()).copied().flatten();
        bound.map(|b| b.response)
    }
}

/// Which nodes to bound, how far, and with how many steps.
pub(crate) struct Options<'a> {
    /// Which CPUs; they must be closed under precedence.
    pub(crate) cpus: &'a dyn Fn(CpuId) -> bool,
    /// The bounds grow from round to round: as soon as this holds of some they are returned as they
    /// are. It must hold of larger ones as well.
    pub(crate) hopeless: &'a dyn Fn(&Solved) -> bool,
    /// By place: the longest response allowed, where it is enough to know of a node whether its
    /// responses are within it.
    pub(crate) allowed: &'a dyn Fn(&Node) -> Option<Vec<Span>>,
    /// The steps left for it.
    pub(crate) step_budget: &'a StepBudget,
}

impl<'a> Options<'a> {
    /// All bounds of all CPUs.
    pub(crate) fn all(step_budget: &'a StepBudget) -> Options<'a> {
        Options {
            cpus: &|_| true,
            hopeless: &|_| false,
            allowed: &|_| None,
            step_budget,
        }
    }
}

/// Bounds all tasks of the CPUs of the query. O(rounds · cost of the tests), one round when
/// all precedence is consistent; limited by the step budget.
pub(crate) fn solve(system: &System, edges: &[Edge], options: &Options<'_>) -> Checked<Solution> {
    let mut known = Waiting::none(system.tasks.len());
    // What was known a round ago, if it was less.
    let mut before: Option<Waiting> = None;
    let mut rounds = 0;
    let times = system.tasks.iter().flat_map(|t| {
        [t.class.relative_deadline(), t.class.min_separation()]
            .into_iter()
            .flatten()
    });
    let limit = times.max().unwrap_or_default().saturating_mul(MAX_WAITING);
    loop {
        let found = match (one_round(system, edges, &known, options), before.take()) {
            // Jitters that grew until the search found no end have none.
            (Err(AnalysisError::TooLong { .. } | AnalysisError::Overflow { .. }), Some(before)) => {
                known.give_up_growing(&before);
                continue;
            }
            (found, _) => found?,
        };
        let next = known.after_round(edges, &found.bounds);
        let Some(next) = next.filter(|_| !found.is_hopeless) else {
            return Ok(Solution {
                waiting: known.all,
                ..found
            });
        };
        let less = core::mem::replace(&mut known, next);
        rounds += 1;
        if rounds > MAX_ROUNDS || known.longest() > limit {
            known.give_up_growing(&less);
        } else {
            before = Some(less);
        }
    }
}

/// The jitter that precedence adds to each task; `None`: nothing bounds it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Waiting {
    /// Waiting for any predecessor.
    all: Vec<Option<Span>>,
    /// Waiting for other CPUs only, directly or through predecessors on the own CPU.
    outside: Vec<Option<Span>>,
}

impl Waiting {
    fn none(tasks: usize) -> Waiting {
        Waiting {
            all: vec![Some(Span::ZERO); tasks],
            outside: vec![Some(Span::ZERO); tasks],
        }
    }

    fn give_up_growing(&mut self, before: &Waiting) {
        give_up(&mut self.all, &before.all);
        give_up(&mut self.outside, &before.outside);
    }

    fn longest(&self) -> Span {
        self.all
            .iter()
            .chain(&self.outside)
            .flatten()
            .copied()
            .max()
            .unwrap_or_default()
    }

    /// With these bounds; `None`: nothing grows.
    fn after_round(&self, edges: &[Edge], bounds: &[Option<Bound>]) -> Option<Waiting> {
        if edges.is_empty() {
            return None;
        }
        let response = |task: TaskId| bounds[task.index()].map(|b| b.response);
        let next = Waiting {
            all: next_waiting(edges, &self.all, |e| !e.consistent, response),
            outside: next_waiting(edges, &self.outside, |e| !e.inside, response),
        };
        (next != *self).then_some(next)
    }
}

/// Waiting that still grows after so many rounds is taken to have no bound.
fn give_up(next: &mut [Option<Span>], before: &[Option<Span>]) {
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
    before: &[Option<Span>],
    waits: impl Fn(&Edge) -> bool,
    response: impl Fn(TaskId) -> Option<Span>,
) -> Vec<Option<Span>> {
    let mut next = before.to_vec();
    for edge in edges {
        let until = if waits(edge) {
            response(edge.from)
        } else {
            before[edge.from.index()].and_then(|wait| wait.checked_add(edge.jitter))
        };
        let until = until.and_then(|r| r.checked_add(edge.clocks));
        let longest = until.map(|r| r.saturating_sub(edge.distance));
        let slot = &mut next[edge.to.index()];
        *slot = match (*slot, longest) {
            (Some(known), Some(new)) => Some(known.max(new)),
            _ => None,
        };
    }
    next
}

fn one_round(
    system: &System,
    edges: &[Edge],
    known: &Waiting,
    options: &Options<'_>,
) -> Checked<Solution> {
    // What waits for ever, or does not wait at all, is seen node by node.
    let waits = |node: &Node, list: &[Option<Span>], test: fn(&Option<Span>) -> bool| {
        let tasks = node.all_entities().filter_map(|c| c.who.task());
        tasks.into_iter().any(|task| test(&list[task.index()]))
    };
    let test = |node: &Node| -> Checked<Vec<Option<Bound>>> {
        let mut found = if waits(node, &known.all, Option::is_none) {
            vec![None; node.entities.len()]
        } else {
            bounds::of_node(
                node,
                (options.allowed)(node).as_deref(),
                options.step_budget,
            )?
        };
        // Also before anybody is known to wait: bounds must not shrink from round to round.
        let inside = !waits(node, &known.outside, Option::is_none)
            && has_inside_waiting(system, edges, node);
        if inside {
            let node = with_waiting(system, node, &known.outside)?;
            for (mine, window) in found
                .iter_mut()
                .zip(bounds::in_any_order(&node, options.step_budget)?)
            {
                *mine = smaller(*mine, window);
            }
        }
        Ok(found)
    };
    let mut solution = Solution {
        nodes: Vec::new(),
        bounds: vec![None; system.tasks.len()],
        waiting: Vec::new(),
        is_hopeless: false,
    };
    for (index, _) in (0_u16..)
        .zip(&system.cpus)
        .filter(|&(i, _)| (options.cpus)(CpuId(i)))
    {
        let walk = Walk {
            system,
            cpu: CpuId(index),
            waiting: &known.all,
            bounds: &test,
            hopeless: options.hopeless,
            step_budget: options.step_budget,
        };
        let from = solution.nodes.len();
        solution.is_hopeless = walk.solve(&mut solution.nodes)?;
        for solved in &solution.nodes[from..] {
            for (entity, bound) in solved.node.entities.iter().zip(&solved.bounds) {
                if let Some(task) = entity.who.task() {
                    solution.bounds[task.index()] = *bound;
                }
            }
        }
        if solution.is_hopeless {
            break;
        }
    }
    Ok(solution)
}

/// The same node, its tasks waiting for so long.
fn with_waiting(system: &System, node: &Node, waiting: &[Option<Span>]) -> Checked<Node> {
    let from_parent = FromParent {
        supply: node.supply.clone(),
        reserved: node.reserved.clone(),
        background: node.background,
        held_above: node.held_above,
    };
    let mut changed = Node::build(system, (node.cpu, node.scheduler), from_parent, waiting)?;
    let servers = node.entities.iter().filter(|c| c.who.task().is_none());
    // What is held in the background is in there already.
    changed.held_above = node.held_above;
    changed.entities.extend(servers.cloned());
    changed.unserved.clone_from(&node.unserved);
    Ok(changed)
}

fn has_inside_waiting(system: &System, edges: &[Edge], node: &Node) -> bool {
    let here = |task: TaskId| {
        let task = system.tasks.get(task.index());
        task.is_some_and(|t| t.cpu == node.cpu && t.scheduler == node.scheduler)
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
