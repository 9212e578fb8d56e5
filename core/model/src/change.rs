//! Changes of a running system: parts come, go, move and get other terms.
//!
//! Every task and every scheduler that ever exists is declared like any other, so numbers, tables
//! and stacks are the same for the whole run. A part that a change starts before any stops it is
//! absent until then. [`crate::Stage`] follows which parts are there, and on which terms.

use alloc::string::String;
use alloc::vec::Vec;

use crate::id::{CpuId, SchedulerId, TaskId};
use crate::priority::Priority;
use crate::scheduler::{PolicyCode, PolicyKind, Scheduler, Server};
use crate::task::{Class, Task};
use crate::time::{Instant, Ns, Span, Work};

/// Something that happens to a running system at one instant: whole, or not at all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Unique among the changes of a system.
    pub name: String,
    /// Not before this instant of the run. The analysis says what it waits for beyond that.
    pub at: Instant<Ns>,
    /// Its parts, in any order: [`Change::in_order`] has the order in which it is done.
    pub steps: Vec<Step>,
}

/// One part of a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// A scheduler comes, on its declared terms; or a slice is delegated, on which all tasks of its
    /// receiver execute from then on, or the one that it is for.
    Join(SchedulerId),
    /// A scheduler gets another server.
    Supply(SchedulerId, Server<Ns>),
    /// A scheduler orders by another policy; one that decides on its own supply by this code, or
    /// where there is none by the policy itself.
    Reorder(SchedulerId, PolicyKind<Ns>, Option<PolicyCode>),
    /// A CPU orders by another policy what stands at the root of its tree.
    ReorderCpu(CpuId, PolicyKind<Ns>),
    /// A task gets other constraints.
    Constrain(TaskId, Terms),
    /// Another scheduler of its CPU orders the task; `None`: the CPU's own.
    Move(TaskId, Option<SchedulerId>),
    /// A scheduler transfers budget to a sibling, until its own period ends. Its change does
    /// nothing else, and later ones wait for that end.
    Transfer {
        /// Its lender, with a deferrable server.
        from: SchedulerId,
        /// Its borrower, with any server.
        to: SchedulerId,
        /// How much.
        budget: Work<Ns>,
    },
    /// The task releases no more jobs; those that it has are completed.
    Stop(TaskId),
    /// The task comes, on its declared terms; its phase counts from here.
    Start(TaskId),
    /// A scheduler goes, which has no tasks and no children any more; or a slice is taken back, and
    /// its tasks execute on the supply of their own scheduler again.
    Leave(SchedulerId),
}

/// The constraints that change; the others stay.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Terms {
    /// The period, or the smallest separation. A deadline that was equal to it stays so.
    pub separation: Option<Span<Ns>>,
    /// The wcet, or the slice.
    pub budget: Option<Work<Ns>>,
    /// The relative deadline.
    pub relative_deadline: Option<Span<Ns>>,
    /// The priority.
    pub priority: Option<Priority>,
}

/// The part of a system that a step is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Subject {
    /// A task.
    Task(TaskId),
    /// A scheduler.
    Scheduler(SchedulerId),
    /// The own scheduler of a CPU.
    Cpu(CpuId),
}

/// Why a step means nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// Which step of its change.
    pub step: usize,
    /// The mistake in words.
    pub message: String,
    /// How to mend it.
    pub help: String,
}

impl Step {
    /// The part that it is about.
    pub fn subject(&self) -> Subject {
        match *self {
            Step::Join(id)
            | Step::Supply(id, _)
            | Step::Reorder(id, ..)
            | Step::Transfer { from: id, .. }
            | Step::Leave(id) => Subject::Scheduler(id),
            Step::ReorderCpu(id, _) => Subject::Cpu(id),
            Step::Constrain(id, _) | Step::Move(id, _) | Step::Stop(id) | Step::Start(id) => {
                Subject::Task(id)
            }
        }
    }

    /// Slices go first, so that nothing else waits for them; schedulers come next and go last.
    fn rank(&self, schedulers: &[Scheduler]) -> u8 {
        let is_slice = |id: SchedulerId| {
            let slice = schedulers.get(id.index());
            slice.is_some_and(|s| s.receiver.is_some())
        };
        match *self {
            Step::Leave(id) if is_slice(id) => 0,
            Step::Join(id) if !is_slice(id) => 1,
            Step::Supply(..) => 2,
            Step::Reorder(..) | Step::ReorderCpu(..) => 3,
            Step::Constrain(..) => 4,
            Step::Join(_) => 5,
            Step::Move(..) => 6,
            Step::Stop(_) => 7,
            Step::Start(_) => 8,
            Step::Leave(_) => 9,
            Step::Transfer { .. } => 10,
        }
    }
}

impl Change {
    /// The places of its steps in the order in which they are done. Slices are taken back;
    /// schedulers come, parents first; supplies, policies, constraints; slices are delegated. Then
    /// tasks move, stop, start; schedulers go, children first; budget is transferred.
    /// `schedulers` are those of the system. O(n log n · depth).
    pub fn in_order(&self, schedulers: &[Scheduler]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.steps.len()).collect();
        order.sort_by_cached_key(|&at| {
            let step = &self.steps[at];
            let depth = match *step {
                Step::Join(id) => depth(schedulers, id),
                Step::Leave(id) => usize::MAX - depth(schedulers, id),
                _ => 0,
            };
            (step.rank(schedulers), depth)
        });
        order
    }
}

fn depth(schedulers: &[Scheduler], id: SchedulerId) -> usize {
    let parent = |id: &SchedulerId| schedulers.get(id.index())?.parent;
    let up = core::iter::successors(Some(id), parent);
    up.take(schedulers.len()).count()
}

impl Terms {
    /// The class with what changes; nothing else of it does.
    pub fn of_class(&self, class: Class<Ns>) -> Class<Ns> {
        let mut class = class;
        let implicit = class.relative_deadline() == class.min_separation();
        if let (
            Some(new),
            Class::Periodic { period: old, .. }
            | Class::Sporadic {
                min_separation: old,
                ..
            }
            | Class::Reservation { period: old, .. },
        ) = (self.separation, &mut class)
        {
            *old = new;
        }
        let follows = self.separation.filter(|_| implicit);
        if let (Some(new), Some(old)) = (
            self.relative_deadline.or(follows),
            class.relative_deadline_mut(),
        ) {
            *old = new;
        }
        if let (Some(new), Some(old)) = (self.budget, class.budget_mut()) {
            *old = new;
        }
        class
    }

    pub(crate) fn of_task(&self, task: &Task) -> Task {
        Task {
            class: self.of_class(task.class),
            priority: self.priority.unwrap_or(task.priority),
            ..task.clone()
        }
    }
}
