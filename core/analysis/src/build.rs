//! From a system to its nodes: the entities of one with their costs, locks and background work
//!
//! # Assumptions
//! 1. Those of [`crate::node`], of `overhead` and of `blocking`.

use alloc::format;
use alloc::vec::Vec;

use punctual_model::{Class, Ns, PolicyKind, System, Task, TaskId};

use crate::blocking::{self, Locks};
use crate::demand::RequestBound;
use crate::entity::{Arrival, Entity, Who};
use crate::error::{Checked, in_range, invalid};
use crate::lookup::{NodeId, policy_of, tasks_of};
use crate::node::{FromParent, Node, note_background};
use crate::overhead;
use crate::together;
use crate::units::Span;

impl Node {
    /// Collects the tasks of one node; `waiting[task]` is what precedence adds to a task's jitter.
    /// The tree adds servers, and work of children without one. O(tasks), O(tasks²) when tasks
    /// suspend themselves.
    pub(crate) fn build(
        system: &System,
        (cpu, scheduler): NodeId,
        from_parent: FromParent,
        waiting: &[Option<Span>],
    ) -> Checked<Node> {
        let policy = policy_of(system, (cpu, scheduler))?;
        let mut node = Node {
            cpu,
            scheduler,
            is_whole: true,
            policy,
            supply: from_parent.supply,
            entities: Vec::new(),
            unserved: Vec::new(),
            reserved: from_parent.reserved,
            background: from_parent.background,
            held_above: from_parent.held_above,
            locks: Locks::of_node(system, (cpu, scheduler), policy, waiting),
        };
        let behind = together::behind(system)?;
        for (id, task) in tasks_of(system, (cpu, scheduler)) {
            if !matches!(task.class, Class::Aperiodic) {
                let waiting = waiting
                    .get(id.index())
                    .copied()
                    .flatten()
                    .unwrap_or_default();
                node.entities.push(entity(
                    system,
                    policy,
                    (id, task, behind[id.index()]),
                    waiting,
                )?);
            }
            if matches!(task.class, Class::Aperiodic | Class::Once { .. }) {
                note_background(&mut node.background, id, task.non_preemptive);
            }
        }
        let held = blocking::held_in_background(system, (cpu, scheduler), policy)?;
        let held = node.held_above.checked_add(held);
        node.held_above = in_range(held, "blocking")?;
        overhead::add_suspensions(&mut node, system)?;
        Ok(node)
    }
}

fn entity(
    system: &System,
    policy: PolicyKind<Ns>,
    (id, task, is_behind): (TaskId, &Task, bool),
    waiting: Span,
) -> Checked<Entity> {
    let (Some(deadline), Some(budget)) = (task.class.relative_deadline(), task.class.budget())
    else {
        return Err(invalid(&format!("`{}` has no deadline", task.name)));
    };
    let separation = task.class.min_separation();
    if separation == Some(Span::ZERO) {
        return Err(invalid(&format!("`{}` arrives every 0s", task.name)));
    }
    let cost = overhead::cost(system, policy, (task, is_behind), budget)?;
    let runs_through = match policy {
        PolicyKind::Fifo | PolicyKind::FixedPriority { preemptive: false } => true,
        PolicyKind::RoundRobin { .. } => false,
        _ => task.non_preemptive >= budget,
    };
    let whole = runs_through && task.max_suspension.is_zero();
    let section = if runs_through {
        cost.computing()?
    } else {
        task.non_preemptive.min(budget)
    };
    let released = in_range(task.phase.checked_add(task.jitter), "phase and jitter")?;
    let jitter = in_range(task.jitter.checked_add(waiting), "jitter and waiting")?;
    Ok(Entity {
        who: Who::Task(id),
        kept: Span::ZERO,
        requests: RequestBound {
            once: together::overrun(system, task),
            ..RequestBound::of_jobs(separation, cost.total()?, jitter)
        },
        deadline,
        priority: task.priority.number(),
        section,
        whole,
        arrival: match task.class {
            Class::Sporadic { .. } | Class::Aperiodic => Arrival::Free,
            Class::Once { .. } => Arrival::Once(released),
            Class::Periodic { .. } | Class::Reservation { .. } => Arrival::Clock(released),
        },
        cost,
        waiting,
    })
}
