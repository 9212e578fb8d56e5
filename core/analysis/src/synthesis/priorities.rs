//! Priorities by Audsley's assignment: from the lowest level up, whoever can stand it
//!
//! The lowest level goes to any entity of the node that is on time there while all others are more
//! urgent; then the next level to any of the rest. If nobody can stand a level, no order works.
//!
//! # Assumptions
//! 1. The response of an entity depends on *which* others are more urgent, not on their order, and
//!    grows when more of them are: so a failure is final (Davis and Burns 2011, the conditions of
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

use punctual_model::{CpuId, PolicyKind, Priority, SchedulerId, Supply, System, TaskId};

use super::judge::is_below;
use super::{NoSuggestion, Search, Setting, Suggestion, as_it_is, judge};
use crate::admit::is_admitted;
use crate::precedence::{self, Edge};
use crate::units::Span;

/// Most entities of a node; n² / 2 analyses of the whole system may be needed.
const MAX_ENTITIES: usize = 128;

/// What a node orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Entity {
    Task(TaskId),
    Scheduler(SchedulerId),
}

/// A scheduler or a CPU's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Node {
    Cpu(CpuId),
    Scheduler(SchedulerId),
}

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
    if !is_admitted(&changed)? {
        let what = "with priorities that keep every task of these nodes on time it is refused";
        return Err(judge::still_refused(&changed, what));
    }
    Ok(Suggestion {
        changes: changes(system, &changed),
        system: changed,
        ground: "Audsley's assignment: it finds an order whenever there is one that this analysis \
                 admits"
            .to_string(),
    })
}

/// The nodes under fixed priority, parents before children.
fn nodes(system: &System) -> Vec<Node> {
    let by_priority = |policy| matches!(policy, PolicyKind::FixedPriority { .. });
    let cpus = (0_u16..).zip(&system.cpus);
    let cpus = cpus.filter(|(_, cpu)| by_priority(cpu.policy));
    let mut nodes: Vec<Node> = cpus.map(|(id, _)| Node::Cpu(CpuId(id))).collect();
    let schedulers = (0_u16..).zip(&system.schedulers);
    let schedulers = schedulers.filter(|(_, s)| by_priority(s.policy));
    let mut inner: Vec<SchedulerId> = schedulers.map(|(id, _)| SchedulerId(id)).collect();
    inner.sort_by_key(|&id| (depth(system, id), id));
    nodes.extend(inner.into_iter().map(Node::Scheduler));
    nodes.retain(|&node| entities(system, node).len() > 1);
    nodes
}

fn depth(system: &System, id: SchedulerId) -> usize {
    let mut depth = 0;
    let mut at = Some(id);
    while let Some(scheduler) = at.and_then(|id| system.schedulers.get(id.index())) {
        depth += 1;
        at = scheduler.parent;
        if depth > system.schedulers.len() {
            break;
        }
    }
    depth
}

/// The real-time tasks and the children of a node, the shortest deadline last.
fn entities(system: &System, node: Node) -> Vec<Entity> {
    let on = |cpu: CpuId, scheduler: Option<SchedulerId>| match node {
        Node::Cpu(id) => cpu == id && scheduler.is_none(),
        Node::Scheduler(id) => scheduler == Some(id),
    };
    let tasks = system.tasks.iter().zip(0_u32..);
    let tasks = tasks.filter(|(t, _)| t.class.is_real_time() && on(t.cpu, t.scheduler));
    let mut found: Vec<Entity> = tasks.map(|(_, id)| Entity::Task(TaskId(id))).collect();
    let children = system.schedulers.iter().zip(0_u16..);
    let children = children.filter(|(s, _)| on(s.cpu, s.parent));
    found.extend(children.map(|(_, id)| Entity::Scheduler(SchedulerId(id))));
    found.sort_by_key(|&entity| core::cmp::Reverse(deadline(system, entity)));
    found
}

/// How soon an entity wants to be served: by it candidates are tried, so that the first guess is
/// the deadline-monotonic order.
fn deadline(system: &System, entity: Entity) -> Span {
    match entity {
        Entity::Task(id) => {
            let task = system.tasks.get(id.index());
            let deadline = task.and_then(|t| t.class.relative_deadline());
            deadline.unwrap_or_default()
        }
        Entity::Scheduler(id) => {
            let below = system
                .tasks
                .iter()
                .filter(|t| is_below(system, t.scheduler, id));
            let deadlines = below.filter_map(|t| t.class.relative_deadline());
            deadlines.min().unwrap_or(Span::MAX)
        }
    }
}

fn set(system: &mut System, entity: Entity, level: u32) {
    let priority = Priority::new(level);
    match entity {
        Entity::Task(id) => system.tasks[id.index()].priority = priority,
        Entity::Scheduler(id) => system.schedulers[id.index()].priority = priority,
    }
}

/// Gives every entity of `node` a level of its own.
fn order(system: &mut System, node: Node, alone: bool) -> Search<()> {
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

fn is_on_time(system: &System, entity: Entity) -> Search<bool> {
    let late = judge::late(system)?;
    Ok(match entity {
        Entity::Task(id) => !late.tasks[id.index()],
        Entity::Scheduler(id) => {
            let is_server = matches!(system.schedulers[id.index()].supply, Supply::Server(_));
            let below = system.tasks.iter().zip(&late.tasks);
            let mut below = below.filter(|(task, _)| is_below(system, task.scheduler, id));
            below.all(|(_, late)| !late) && !(is_server && late.servers[id.index()])
        }
    })
}

/// Whether one of `rest` waits for this task, which then has to be the more urgent.
fn precedes_one_of(system: &System, entity: Entity, rest: &[Entity]) -> bool {
    let Entity::Task(from) = entity else {
        return false;
    };
    rest.iter().any(|&other| match other {
        Entity::Task(to) => {
            let task = &system.tasks[to.index()];
            to != from && (task.after.contains(&from) || task.follows.contains(&from))
        }
        Entity::Scheduler(_) => false,
    })
}

/// Assumption 2.
fn refuse_outside_waiting(system: &System, entities: &[Entity]) -> Search<()> {
    let here = |task: TaskId| entities.contains(&Entity::Task(task));
    let edges = precedence::edges(system);
    let outside = |e: &&Edge| here(e.to) != here(e.from) && e.can_delay();
    let Some(edge) = edges.iter().find(outside) else {
        return Ok(());
    };
    let task = |id: TaskId| system.tasks[id.index()].name.as_str();
    Err(NoSuggestion::Reason(format!(
        "Audsley's assignment does not apply: {} waits for {}, which another CPU or scheduler \
         orders, so a response depends on the order of others and not only on who they are",
        task(edge.to),
        task(edge.from)
    )))
}

fn nobody(system: &System, node: Node, rest: &[Entity], alone: bool) -> NoSuggestion {
    let names = rest.iter().map(|&entity| match entity {
        Entity::Task(id) => system.tasks[id.index()].name.as_str(),
        Entity::Scheduler(id) => system.schedulers[id.index()].name.as_str(),
    });
    let names: Vec<&str> = names.collect();
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

fn name(system: &System, node: Node) -> String {
    match node {
        Node::Cpu(id) => format!("cpu.{}", system.cpus[id.index()].name),
        Node::Scheduler(id) => format!("scheduler.{}", system.schedulers[id.index()].name),
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
