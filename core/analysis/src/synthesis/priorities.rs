//! Priorities by Audsley's assignment: from the lowest level up, any entity that is on time there
//!
//! The lowest level goes to any entity of the node that is on time there while all others are more
//! urgent; then the next level to any of the rest. If nobody can stand a level, no order works.
//!
//! # Assumptions
//! 1. The response of an entity depends on *which* others are more urgent, not on their order, and
//!    grows when more of them are. So a failure is final (Davis and Burns 2011, the conditions of
//!    OPA-compatibility). The response analysis here satisfies them, with jitter, suspension,
//!    sections and ceilings.
//! 2. A precedence within the node orders its two tasks: the predecessor is the more urgent.
//!    Precedence from outside the node violates 1 when waiting for it can delay, and is refused.
//! 3. Nodes are assigned one after the other, from the roots down. For trees the result is
//!    admitted, but a failure is not final: it may lie in the order of another node.
//!
//! Sources: Audsley 1991 and 2001; Davis and Burns 2011, Theorem 1 and §3.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use punctual_model::{CpuId, PolicyKind, Priority, Supply, System, TaskId};

use super::{NoSuggestion, Search, Setting, Suggestion, as_it_is, judge, suggested};
use crate::admit::is_admitted;
use crate::entity::Who;
use crate::lookup::{
    NodeId, ancestors, children, is_below, policy_of, schedulers, task_name, tasks_of,
};
use crate::precedence::{self, Edge};
use crate::units::Span;

/// Most entities of a node; n² / 2 analyses of the whole system may be needed.
const MAX_ENTITIES: usize = 128;

/// A priority for everything under fixed priority. O(n²) analyses for n entities of a node.
pub(crate) fn assign(system: &System) -> Search<Suggestion> {
    if is_admitted(system)? {
        return Ok(as_it_is(system));
    }
    let nodes = nodes(system);
    if nodes.is_empty() {
        let reason = "no CPU and no scheduler here orders by fixed priority".to_string();
        return Err(NoSuggestion::Reason(reason));
    }
    let mut changed = system.clone();
    for &node in &nodes {
        order(&mut changed, node, nodes.len() == 1)?;
    }
    let changes = changes(system, &changed);
    let ground = "Audsley's assignment: it finds an order whenever there is one that this analysis \
                  admits";
    let but = "with priorities that keep every task of these nodes on time it is refused";
    suggested(changed, changes, ground, but)
}

/// The nodes under fixed priority, parents before children.
fn nodes(system: &System) -> Vec<NodeId> {
    let cpus = (0_u16..).map(CpuId).take(system.cpus.len());
    let roots = cpus.map(|cpu| (cpu, None));
    let inner = schedulers(system).map(|(id, scheduler)| (scheduler.cpu, Some(id)));
    let mut nodes: Vec<NodeId> = roots.chain(inner).collect();
    nodes.retain(|&node| {
        let policy = policy_of(system, node);
        matches!(policy, Ok(PolicyKind::FixedPriority { .. })) && entities(system, node).len() > 1
    });
    // The sort is stable: nodes of one depth stay in the order of the file.
    nodes.sort_by_key(|&(_, scheduler)| ancestors(system, scheduler).count());
    nodes
}

/// The real-time tasks and the children of a node, the shortest deadline last.
fn entities(system: &System, node: NodeId) -> Vec<Who> {
    let tasks = tasks_of(system, node).filter(|(_, task)| task.class.is_real_time());
    let tasks = tasks.map(|(id, _)| Who::Task(id));
    let children = children(system, node).map(|(id, _)| Who::Server(id));
    let mut found: Vec<Who> = tasks.chain(children).collect();
    found.sort_by_key(|&entity| core::cmp::Reverse(deadline(system, entity)));
    found
}

/// How soon an entity wants to be served: by it candidates are tried, so that the first guess is
/// the deadline-monotonic order.
fn deadline(system: &System, entity: Who) -> Span {
    match entity {
        Who::Task(id) => {
            let task = system.tasks.get(id.index());
            let deadline = task.and_then(|t| t.class.relative_deadline());
            deadline.unwrap_or_default()
        }
        Who::Server(id) => {
            let below = system
                .tasks
                .iter()
                .filter(|t| is_below(system, t.scheduler, id));
            let deadlines = below.filter_map(|t| t.class.relative_deadline());
            deadlines.min().unwrap_or(Span::MAX)
        }
    }
}

fn set(system: &mut System, entity: Who, level: u32) {
    let priority = Priority::new(level);
    match entity {
        Who::Task(id) => system.tasks[id.index()].priority = priority,
        Who::Server(id) => system.schedulers[id.index()].priority = priority,
    }
}

/// Gives every entity of `node` a level of its own.
fn order(system: &mut System, node: NodeId, alone: bool) -> Search<()> {
    let mut rest = entities(system, node);
    if rest.len() > MAX_ENTITIES {
        let reason = format!(
            "{} has more than {MAX_ENTITIES} entities",
            name(system, node)
        );
        return Err(NoSuggestion::Reason(reason));
    }
    refuse_outside_waiting(system, &rest)?;
    let mut level = 1;
    while !rest.is_empty() {
        for &entity in &rest {
            set(system, entity, level + 1);
        }
        let mut found = None;
        for (place, &entity) in rest.iter().enumerate() {
            if precedes_one_of(system, entity, &rest) {
                continue;
            }
            set(system, entity, level);
            if is_on_time(system, entity)? {
                found = Some(place);
                break;
            }
            set(system, entity, level + 1);
        }
        let Some(place) = found else {
            return Err(nobody(system, node, &rest, alone));
        };
        rest.remove(place);
        level += 1;
    }
    Ok(())
}

fn is_on_time(system: &System, entity: Who) -> Search<bool> {
    let late = judge::late(system)?;
    Ok(match entity {
        Who::Task(id) => !late.tasks[id.index()],
        Who::Server(id) => {
            let is_server = matches!(system.schedulers[id.index()].supply, Supply::Server(_));
            let below = system.tasks.iter().zip(&late.tasks);
            let mut below = below.filter(|(task, _)| is_below(system, task.scheduler, id));
            below.all(|(_, late)| !late) && !(is_server && late.servers[id.index()])
        }
    })
}

/// Whether one of `rest` waits for this task, which then has to be the more urgent.
fn precedes_one_of(system: &System, entity: Who, rest: &[Who]) -> bool {
    let Who::Task(from) = entity else {
        return false;
    };
    rest.iter().any(|&other| match other {
        Who::Task(to) => {
            let task = &system.tasks[to.index()];
            to != from && (task.after.contains(&from) || task.follows.contains(&from))
        }
        Who::Server(_) => false,
    })
}

/// Assumption 2.
fn refuse_outside_waiting(system: &System, entities: &[Who]) -> Search<()> {
    let here = |task: TaskId| entities.contains(&Who::Task(task));
    let edges = precedence::edges(system);
    let outside = |e: &&Edge| here(e.to) != here(e.from) && e.can_delay();
    let Some(edge) = edges.iter().find(outside) else {
        return Ok(());
    };
    Err(NoSuggestion::Reason(format!(
        "Audsley's assignment does not apply: {} waits for {}, which another CPU or scheduler \
         orders, so a response depends on the order of others and not only on who they are",
        task_name(system, edge.to),
        task_name(system, edge.from)
    )))
}

fn nobody(system: &System, node: NodeId, rest: &[Who], alone: bool) -> NoSuggestion {
    let names: Vec<&str> = rest.iter().map(|entity| entity.name(system)).collect();
    let certain = if alone {
        "no order with a priority for each is admitted"
    } else {
        "no order was found"
    };
    NoSuggestion::Reason(format!(
        "{certain} on {}: none of {} is on time as the least urgent of them",
        name(system, node),
        names.join(", ")
    ))
}

fn name(system: &System, (cpu, scheduler): NodeId) -> String {
    match scheduler {
        None => format!("cpu.{}", system.cpus[cpu.index()].name),
        Some(id) => Who::Server(id).key(system),
    }
}

fn changes(before: &System, after: &System) -> Vec<Setting> {
    let setting = |kind: &str, name: &str, from: Priority, to: Priority| {
        (from != to).then(|| Setting {
            parameter: format!("{kind}.{name}.priority"),
            from: from.number().to_string(),
            to: to.number().to_string(),
        })
    };
    let schedulers = before.schedulers.iter().zip(&after.schedulers);
    let schedulers =
        schedulers.filter_map(|(a, b)| setting("scheduler", &a.name, a.priority, b.priority));
    let tasks = before.tasks.iter().zip(&after.tasks);
    let tasks = tasks.filter_map(|(a, b)| setting("task", &a.name, a.priority, b.priority));
    schedulers.chain(tasks).collect()
}
