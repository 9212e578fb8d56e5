//! One node as the tests see it: streams of jobs with every overhead inside, and what goes above
//!
//! A node is a CPU's own policy or a scheduler below it. Its entities are its tasks and the
//! servers among its children. A child without a server is *unserved*: its jobs run
//! here at the child's priority, and are judged in a node of their own, where everything more
//! urgent is taken from them.
//!
//! # Assumptions
//! 1. Real-time work runs before background work, whatever its priority (`kern` does so); the
//!    non-preemptive sections of background work block every task.
//! 2. A job that overruns is stopped by its budget, so `wcet` is a promise that is kept.
//! 3. A reservation's body is always ready; its jobs are its slices.

use alloc::vec::Vec;
use core::cmp::Ordering;

use punctual_model::{CpuId, Ns, PolicyKind, SchedulerId, TaskId};

use crate::blocking::{Blocking, Locks};
use crate::entity::{Entity, Reserved, Unserved, Who};
use crate::error::Checked;
use crate::supply::Supply;
use crate::units::{Span, UNIT, Work};
use crate::utilization::{Ratio, compare_with_one, hyperperiod};

/// The part of a node that comes from above.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FromParent {
    pub(crate) supply: Supply,
    pub(crate) reserved: Vec<Reserved>,
    /// Longest section that may block every task here: of background work, or of a less urgent task
    /// of a node above without a server between.
    pub(crate) background: Option<(TaskId, Work)>,
    /// Sections of resources shared above, as long as they may block every task here.
    pub(crate) held_above: Work,
}

impl FromParent {
    /// A supply of its own, and nothing else from above.
    pub(crate) fn of(supply: Supply) -> FromParent {
        FromParent {
            supply,
            reserved: Vec::new(),
            background: None,
            held_above: Work::ZERO,
        }
    }
}

/// One node with everything that its tests need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Node {
    pub(crate) cpu: CpuId,
    /// The scheduler; `None`: the CPU's own.
    pub(crate) scheduler: Option<SchedulerId>,
    /// It stands for the node; else for one task of a node that divides time, alone in its slots.
    pub(crate) is_whole: bool,
    pub(crate) policy: PolicyKind<Ns>,
    pub(crate) supply: Supply,
    /// In the order of the file, tasks first.
    pub(crate) entities: Vec<Entity>,
    pub(crate) unserved: Vec<Unserved>,
    pub(crate) reserved: Vec<Reserved>,
    /// Longest section that may block every task, and whose it is: see [`FromParent`].
    pub(crate) background: Option<(TaskId, Work)>,
    /// See [`FromParent`].
    pub(crate) held_above: Work,
    /// Critical sections that count in this node.
    pub(crate) locks: Locks,
}

impl Node {
    /// Whether less urgent holders can keep more urgent work waiting: where nobody is preempted
    /// they do not, and where turns decide the busy window counts the work of all.
    pub(crate) fn has_locks(&self) -> bool {
        let ordered = matches!(
            self.policy,
            PolicyKind::EarliestDeadlineFirst | PolicyKind::FixedPriority { preemptive: true }
        );
        ordered && !self.locks.is_empty()
    }

    /// Whether anything here keeps more urgent work waiting because it cannot be preempted.
    pub(crate) fn has_sections(&self) -> bool {
        self.background.is_some() || self.entities.iter().any(|c| c.section > UNIT)
    }

    /// The blocking of work of this urgency by locks.
    pub(crate) fn blocking(&self, urgency: i128, own: Option<Who>) -> Checked<Blocking<'_>> {
        if self.has_locks() {
            self.locks.blocking(urgency, own)
        } else {
            Ok(Blocking::default())
        }
    }

    /// All work that the node orders: tasks, servers, work of children without a server.
    pub(crate) fn all_entities(&self) -> impl Iterator<Item = &Entity> + Clone {
        let unserved = self.unserved.iter().map(|g| &g.entity);
        self.entities.iter().chain(unserved)
    }

    /// The shares of all entities.
    pub(crate) fn entity_ratios(&self) -> impl Iterator<Item = Ratio> + Clone {
        self.all_entities().filter_map(|c| c.requests.ratio())
    }

    /// The shares of all entities and of what is reserved. Of a node that divides time its slots:
    /// that is inside of them.
    pub(crate) fn ratios(&self) -> impl Iterator<Item = Ratio> + Clone {
        let reserved = match self.policy {
            PolicyKind::Tdm { .. } => &[],
            _ => &self.reserved[..],
        };
        let reserved = reserved.iter().filter_map(|t| t.requests.ratio());
        self.entity_ratios().chain(reserved)
    }

    /// The same, and the share of the processor that this node does not get.
    pub(crate) fn ratios_with_missing(&self) -> impl Iterator<Item = Ratio> + Clone {
        self.ratios().chain(self.supply.missing())
    }

    /// Whether it stands for a whole CPU.
    pub(crate) fn is_cpu(&self) -> bool {
        self.scheduler.is_none() && self.is_whole
    }

    /// Least common multiple of all separations, the supply's included; `None` beyond 64 bits.
    pub(crate) fn hyperperiod(&self) -> Option<Span> {
        let tasks = self.all_entities().filter_map(|c| c.requests.separation);
        let reserved = self.reserved.iter().filter_map(|t| t.requests.separation);
        hyperperiod(tasks.chain(reserved).chain(self.supply.period()))
    }

    /// How the utilization compares with all that the node gets.
    pub(crate) fn load(&self) -> Ordering {
        compare_with_one(self.ratios_with_missing())
    }
}

/// Remembers the longest section.
pub(crate) fn note_background(known: &mut Option<(TaskId, Work)>, id: TaskId, section: Work) {
    if section > known.map_or(UNIT, |(_, longest)| longest) {
        *known = Some((id, section));
    }
}
