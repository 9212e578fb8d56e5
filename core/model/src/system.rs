//! A system: CPUs with policies, schedulers and tasks on them, and what is required of them.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::change::Change;
use crate::gang::Gang;
use crate::graph::Graph;
use crate::group::{Group, Planning};
use crate::id::{ActorId, CpuId, GraphId, GroupId, ResourceId, SchedulerId, TaskId};
use crate::machine::Machine;
use crate::resource::Resource;
use crate::scheduler::{PolicyKind, Scheduler};
use crate::task::Task;
use crate::time::{Ns, Span};

/// Everything that admission, simulation and execution need to know.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct System {
    /// In the order of the file.
    pub cpus: Vec<Cpu>,
    /// The schedulers below the CPUs' own, in the order of the file.
    pub schedulers: Vec<Scheduler>,
    /// In the order of the file.
    pub resources: Vec<Resource>,
    /// In the order of the file, which is the last tie-break.
    pub tasks: Vec<Task>,
    /// Nobody knows how the first arrivals lie to each other: tasks join while it runs. Else their
    /// phases count from one start.
    pub free_phases: bool,
    /// Overheads, limits, reserves.
    pub machine: Machine,
    /// Requirements beyond the deadlines.
    pub requirements: Vec<Requirement>,
    /// How to run it, unless the command line says otherwise.
    pub run: RunOptions,
    /// The changes while it runs, in the order of time ([`crate::Stage`]).
    pub changes: Vec<Change>,
    /// The streaming applications, in the order of the file.
    pub graphs: Vec<Graph>,
    /// The gangs, in the order of the file.
    pub gangs: Vec<Gang>,
    /// The planned groups, in the order of the file.
    pub groups: Vec<Group>,
    /// How they are planned.
    pub planning: Planning,
}

impl System {
    /// The scheduler with this name.
    pub fn scheduler_named(&self, name: &str) -> Option<SchedulerId> {
        let mut named = (0..).map(SchedulerId).zip(&self.schedulers);
        named.find(|(_, s)| s.name == name).map(|(id, _)| id)
    }

    /// The scheduler that has a task in its care; `None`: the CPU's own. A task that executes on a
    /// slice of another's supply stays in the care of the one that holds the slice.
    pub fn care_of(&self, task: &Task) -> Option<SchedulerId> {
        let home = task.scheduler?;
        match self.schedulers.get(home.index())?.receiver.as_ref() {
            Some(receiver) => self.scheduler_named(receiver.scheduler.as_deref()?),
            None => Some(home),
        }
    }
}

/// One CPU and its policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cpu {
    /// Its name in the file (`0` for `[cpu.0]`).
    pub name: String,
    /// The number of the host CPU it runs on; `None`: only virtual time can run it.
    pub host: Option<u32>,
    /// Which thread runs next.
    pub policy: PolicyKind<Ns>,
}

/// Something required beyond the deadlines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Requirement {
    /// Every job of `task` completes within `within` of its arrival.
    Response {
        /// The task.
        task: TaskId,
        /// The longest response allowed.
        within: Span<Ns>,
    },
    /// From the arrival of a job of the first task to the completion of the first job of the last
    /// one that has seen its effect, each task handing on to the next.
    Chain {
        /// At least two.
        tasks: Vec<TaskId>,
        /// The longest time allowed.
        within: Span<Ns>,
    },
    /// The responses of `task` differ by at most `within`.
    Jitter {
        /// The task.
        task: TaskId,
        /// The largest difference allowed.
        within: Span<Ns>,
    },
}

impl Requirement {
    /// The tasks that it is about; of a chain in its order.
    pub fn tasks(&self) -> &[TaskId] {
        match self {
            Requirement::Response { task, .. } | Requirement::Jitter { task, .. } => {
                core::slice::from_ref(task)
            }
            Requirement::Chain { tasks, .. } => tasks,
        }
    }

    /// The most that it allows.
    pub fn within(&self) -> Span<Ns> {
        match self {
            Requirement::Response { within, .. }
            | Requirement::Jitter { within, .. }
            | Requirement::Chain { within, .. } => *within,
        }
    }

    /// Its kind, as files and logs name it.
    pub const fn name(&self) -> &'static str {
        match self {
            Requirement::Response { .. } => "response",
            Requirement::Chain { .. } => "chain",
            Requirement::Jitter { .. } => "jitter",
        }
    }
}

/// The `[run]` section.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RunOptions {
    /// Releases in [0, this) are covered.
    pub duration: Option<Span<Ns>>,
    /// Seed of everything drawn at random.
    pub seed: Option<u64>,
}

/// A mistake that makes a system meaningless, and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelError {
    /// Where.
    pub fault: Fault,
    /// The mistake in words, with the values.
    pub message: String,
    /// How to mend it.
    pub help: String,
}

/// The place of a [`ModelError`]: readers of files map it to a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The system as a whole.
    System,
    /// A parameter of a CPU, by its key in the file.
    Cpu(CpuId, &'static str),
    /// A parameter of a scheduler, by its key in the file.
    Scheduler(SchedulerId, &'static str),
    /// A slot of a scheduler, by its place among them.
    SchedulerSlot(SchedulerId, usize),
    /// A parameter of a resource, by its key in the file.
    Resource(ResourceId, &'static str),
    /// A parameter of a task, by its key in the file.
    Task(TaskId, &'static str),
    /// A slot of a task, by its place among them.
    TaskSlot(TaskId, usize),
    /// A critical section of a task, by its place in `uses`.
    Use(TaskId, usize),
    /// The `[machine]` section, by key.
    Machine(&'static str),
    /// An element of a task's `after` or `follows`.
    Precedence {
        /// The task that waits.
        task: TaskId,
        /// `after` or `follows`.
        key: &'static str,
        /// Which element of that list.
        index: usize,
    },
    /// The reserve with this index.
    Reserve(usize),
    /// The requirement with this index.
    Requirement(usize),
    /// The `[run]` section, by key.
    Run(&'static str),
    /// A parameter of the change with this index, by its key in the file.
    Change(usize, &'static str),
    /// A step of the change with this index.
    ChangeStep(usize, usize),
    /// A parameter of a graph, by its key in the file.
    Graph(GraphId, &'static str),
    /// A parameter of an actor, by its key in the file.
    Actor(GraphId, ActorId, &'static str),
    /// A parameter of a FIFO, by its place among those of its graph and its key in the file.
    Fifo(GraphId, usize, &'static str),
    /// A static order of a graph, by its place among them.
    Order(GraphId, usize),
    /// A parameter of a gang, by its place among them and its key in the file.
    Gang(usize, &'static str),
    /// A superstep of a gang, by its place in it.
    Superstep(usize, usize),
    /// A parameter of a group, by its key in the file.
    Group(GroupId, &'static str),
    /// A parameter of a group's thread, by its place in it and its key in the file.
    GroupThread(GroupId, usize, &'static str),
    /// A parameter of a group's segment, by its place in it and its key in the file.
    Segment(GroupId, usize, &'static str),
    /// The `[planning]` section, by key.
    Planning(&'static str),
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.help)
    }
}

impl core::error::Error for ModelError {}
