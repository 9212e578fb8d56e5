//! Entities of a node: tasks, servers, work from below; and demand that is reserved before all
//!
//! # Assumptions
//! 1. None of its own: it is data of [`crate::node`].

use alloc::format;
use alloc::string::String;

use punctual_model::{SchedulerId, System, TaskId};

use crate::demand::{Cost, RequestBound};
use crate::units::{Span, Work};

/// The task or the child whose jobs they are. Tasks stand before schedulers where nothing else
/// decides, as in `kern`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Who {
    /// A task of the node.
    Task(TaskId),
    /// A child of the node; among the entities of a node, one with a server.
    Server(SchedulerId),
}

impl Who {
    /// The task, if it is one.
    pub(crate) fn task(self) -> Option<TaskId> {
        match self {
            Who::Task(task) => Some(task),
            Who::Server(_) => None,
        }
    }

    /// Its place in the file, such as `task.planner`.
    pub(crate) fn key(self, system: &System) -> String {
        let kind = match self {
            Who::Task(_) => "task",
            Who::Server(_) => "scheduler",
        };
        format!("{kind}.{}", self.name(system))
    }

    /// The name in the file.
    pub(crate) fn name(self, system: &System) -> &str {
        let found = match self {
            Who::Task(task) => system.tasks.get(task.index()).map(|t| &t.name),
            Who::Server(server) => system.schedulers.get(server.index()).map(|s| &s.name),
        };
        found.map_or("?", String::as_str)
    }
}

/// Why a task's jobs may meet the critical instant, or may not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// Any arrivals with the separation are legal: every alignment happens.
    Free,
    /// By the clock, first released (at the latest) at this instant.
    Clock(Span),
    /// Once, released (at the latest) at this instant.
    Once(Span),
}

/// A real-time task of this node, or a server below it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entity {
    pub(crate) who: Who,
    pub(crate) requests: RequestBound,
    /// Part of `requests.jitter` that only others feel: a budget may be kept for so long.
    pub(crate) kept: Span,
    /// From arrival to deadline.
    pub(crate) deadline: Span,
    pub(crate) priority: u32,
    /// Longest stretch that lets nobody preempt it, its overheads included; zero: none.
    pub(crate) section: Work,
    /// The section is the whole job: once started it runs to its end.
    pub(crate) whole: bool,
    pub(crate) arrival: Arrival,
    /// The parts of `requests.cost`.
    pub(crate) cost: Cost,
    /// Part of `requests.jitter` that comes from waiting for predecessors.
    pub(crate) waiting: Span,
}

impl Entity {
    /// The jitter of its own releases.
    pub(crate) fn own_jitter(&self) -> Span {
        self.requests.jitter.saturating_sub(self.kept)
    }
}

/// Work of a child without a budget of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unserved {
    /// The child of this node through which it comes.
    pub(crate) child: SchedulerId,
    /// With the priority of the child.
    pub(crate) entity: Entity,
}

/// Supply taken from all tasks of a node: a reserve, missing time, timer entries, what is more
/// urgent above, or time outside of the slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Reserved {
    pub(crate) name: String,
    pub(crate) requests: RequestBound,
    pub(crate) source: Source,
}

impl Reserved {
    /// A demand of the machine.
    pub(crate) fn of_machine(name: String, requests: RequestBound) -> Reserved {
        Reserved {
            name,
            requests,
            source: Source::Machine,
        }
    }
}

/// The origin of reserved demand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// The machine, at any time.
    Machine,
    /// A task's jobs, which arrive like this.
    Work(Arrival),
    /// A server, which may take less than its budget.
    Budget,
}
