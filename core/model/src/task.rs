//! A task: where its jobs come from, what they need, and what happens when they need more.

use alloc::string::String;
use alloc::vec::Vec;

use crate::arrival::Arrivals;
use crate::id::{CpuId, SchedulerId, TaskId};
use crate::priority::{Importance, Priority};
use crate::resource::Use;
use crate::scheduler::Slot;
use crate::time::{Instant, Ns, Span, Ticks, Unit, Work};

/// A recurring source of jobs with timing parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// Unique among the tasks of a system.
    pub name: String,
    /// The CPU that it is placed on.
    pub cpu: CpuId,
    /// The scheduler that orders it; `None`: the CPU's own.
    pub scheduler: Option<SchedulerId>,
    /// Its places in the frame, when its scheduler divides time; else empty.
    pub slots: Vec<Slot<Ns>>,
    /// The kind of work and its parameters.
    pub class: Class<Ns>,
    /// The deadline of a periodic task is written in the file although it equals the period: a
    /// longer period leaves it where it is.
    pub own_deadline: bool,
    /// Urgency under fixed priority; urgency among background work for `Once` and `Aperiodic`.
    pub priority: Priority,
    /// The value of its work in overload: the least important is shed first.
    pub importance: Importance,
    /// First arrival, after the start of the run.
    pub phase: Span<Ns>,
    /// A release follows its arrival by at most this.
    pub jitter: Span<Ns>,
    /// What becomes of a release that finds the job before unfinished.
    pub late: Late,
    /// The rule for a job that exhausts its budget.
    pub on_overrun: OnOverrun,
    /// The longest a job suspends itself in total; zero: never.
    pub max_suspension: Span<Ns>,
    /// How often a job suspends itself at most (0 with a zero `max_suspension`, else at least 1).
    pub suspensions: u32,
    /// The longest stretch of a job that lets nobody preempt it.
    pub non_preemptive: Work<Ns>,
    /// The critical sections of a job, in the order in which it enters them; nested ones follow the
    /// one that they are inside.
    pub uses: Vec<Use>,
    /// A job released at r starts when every job of these released at or before r has completed.
    pub after: Vec<TaskId>,
    /// A job released at r starts when every job of these released strictly before r has completed.
    pub follows: Vec<TaskId>,
    /// Where the arrivals of a sporadic task come from (ignored for the other classes).
    pub arrivals: Arrivals,
    /// The work of a job; `None`: it burns its wcet.
    pub work: Option<WorkSource>,
    /// Its body runs on a kernel thread of its own, which may do anything, in place of its light
    /// thread. For bodies that never end a job.
    pub kernel_backed: bool,
    /// The idle time of its CPU, where its body runs outside of a light thread.
    pub idle: IdleTime,
}

/// The kinds of work, each with the parameters that it cannot do without, in one unit of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class<U = Ticks> {
    /// One call of the body per release, at phase + k·period.
    Periodic {
        /// Distance between releases.
        period: Span<U>,
        /// Worst-case execution time of one job; also its budget.
        wcet: Work<U>,
        /// From arrival to absolute deadline.
        relative_deadline: Span<U>,
    },
    /// One call of the body per arrival, never closer than `min_separation`.
    Sporadic {
        /// Smallest distance between releases; earlier arrivals wait.
        min_separation: Span<U>,
        /// Worst-case execution time of one job; also its budget.
        wcet: Work<U>,
        /// From release to absolute deadline.
        relative_deadline: Span<U>,
    },
    /// An endless body that is guaranteed `slice` in every `period` (Nautilus' periodic thread).
    Reservation {
        /// Distance between replenishments.
        period: Span<U>,
        /// Work guaranteed in each period.
        slice: Work<U>,
    },
    /// One body: `size` of work by the deadline, afterwards aperiodic (Nautilus' sporadic thread).
    Once {
        /// Work guaranteed by the deadline.
        size: Work<U>,
        /// From the arrival (at the phase) to the absolute deadline.
        relative_deadline: Span<U>,
    },
    /// A body without deadline; runs when no real-time work wants to.
    Aperiodic,
}

/// What becomes of a release that finds the job before unfinished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Late {
    /// It waits, with at most `backlog` others; beyond that it is counted as lost.
    Queue {
        /// Most releases that wait.
        backlog: u32,
    },
    /// It is dropped and counted.
    Skip,
}

impl Default for Late {
    fn default() -> Self {
        Late::Queue { backlog: 64 }
    }
}

impl Late {
    /// Jobs that are unfinished at once, at most: further releases are dropped.
    pub fn places(self) -> u64 {
        match self {
            Late::Skip => 1,
            Late::Queue { backlog } => u64::from(backlog) + 1,
        }
    }
}

/// The overrun rule for a job that has used its budget and is not done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnOverrun {
    /// The rest of the job continues at its next replenishment.
    #[default]
    Throttle,
    /// The rest of the job continues below all real-time work.
    Demote,
    /// The job ends at its next scheduling point; until there it continues below all real-time
    /// work.
    Stop,
    /// The body is told, then as `Throttle`.
    Signal,
}

/// The use of time that nobody has a claim to, where the work of a task is a program or a kernel
/// thread: the kernel can run those between their turns, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IdleTime {
    /// They have it with everybody else on the machine.
    #[default]
    Share,
    /// The scheduler keeps it: the idle CPU stays awake and lets nobody on, but for what it gives
    /// back to the machine.
    Keep,
}

/// The work of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WorkSource {
    /// Burns this much executed processor time.
    Burn(Work<Ns>),
    /// Calls a symbol of a shared object (C ABI).
    Call {
        /// Name of the function.
        symbol: String,
        /// Path of the shared object, relative to the file that names it.
        library: String,
    },
    /// Calls a function that a program or a linked workload registered under this name.
    Function(String),
    /// A whole program, started before the run and ended after it: its name and arguments. It
    /// runs in place of a thread that never ends.
    Command(Vec<String>),
}

impl<U: Unit> Class<U> {
    /// The word for this class in files and messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Class::Periodic { .. } => "periodic",
            Class::Sporadic { .. } => "sporadic",
            Class::Reservation { .. } => "reservation",
            Class::Once { .. } => "once",
            Class::Aperiodic => "aperiodic",
        }
    }

    /// Work that one job is guaranteed (its budget); `None` without a budget.
    pub const fn budget(&self) -> Option<Work<U>> {
        let mut class = *self;
        match class.budget_mut() {
            Some(budget) => Some(*budget),
            None => None,
        }
    }

    /// The same, to be changed.
    pub const fn budget_mut(&mut self) -> Option<&mut Work<U>> {
        match self {
            Class::Periodic { wcet, .. } | Class::Sporadic { wcet, .. } => Some(wcet),
            Class::Reservation { slice, .. } => Some(slice),
            Class::Once { size, .. } => Some(size),
            Class::Aperiodic => None,
        }
    }

    /// From arrival to absolute deadline; `None` without a deadline. A reservation's is its period.
    pub const fn relative_deadline(&self) -> Option<Span<U>> {
        let mut class = *self;
        match (class.relative_deadline_mut(), self) {
            (Some(deadline), _) => Some(*deadline),
            (None, Class::Reservation { period, .. }) => Some(*period),
            (None, _) => None,
        }
    }

    /// The same, to be changed; `None` where it follows from the period.
    pub const fn relative_deadline_mut(&mut self) -> Option<&mut Span<U>> {
        match self {
            Class::Periodic {
                relative_deadline: at,
                ..
            }
            | Class::Sporadic {
                relative_deadline: at,
                ..
            }
            | Class::Once {
                relative_deadline: at,
                ..
            } => Some(at),
            Class::Reservation { .. } | Class::Aperiodic => None,
        }
    }

    /// Smallest distance between two arrivals; `None` for work that arrives once.
    pub const fn min_separation(&self) -> Option<Span<U>> {
        match *self {
            Class::Periodic { period, .. } | Class::Reservation { period, .. } => Some(period),
            Class::Sporadic { min_separation, .. } => Some(min_separation),
            Class::Once { .. } | Class::Aperiodic => None,
        }
    }

    /// Whether arrivals follow from the parameters alone, at phase + k·period.
    pub const fn arrives_by_clock(&self) -> bool {
        matches!(self, Class::Periodic { .. } | Class::Reservation { .. })
    }

    /// Whether the body is called once per job; else it is one body for the thread's whole life.
    pub const fn runs_per_job(&self) -> bool {
        matches!(self, Class::Periodic { .. } | Class::Sporadic { .. })
    }

    /// Whether jobs of this class have a deadline.
    pub const fn is_real_time(&self) -> bool {
        !matches!(self, Class::Aperiodic)
    }
}

impl Class<Ns> {
    /// The same class in ticks of a platform: `time` converts spans and `demand` work.
    pub fn convert(
        self,
        time: impl Fn(Span<Ns>) -> Span,
        demand: impl Fn(Work<Ns>) -> Work,
    ) -> Class {
        match self {
            Class::Periodic {
                period,
                wcet,
                relative_deadline,
            } => Class::Periodic {
                period: time(period),
                wcet: demand(wcet),
                relative_deadline: time(relative_deadline),
            },
            Class::Sporadic {
                min_separation,
                wcet,
                relative_deadline,
            } => Class::Sporadic {
                min_separation: time(min_separation),
                wcet: demand(wcet),
                relative_deadline: time(relative_deadline),
            },
            Class::Reservation { period, slice } => Class::Reservation {
                period: time(period),
                slice: demand(slice),
            },
            Class::Once {
                size,
                relative_deadline,
            } => Class::Once {
                size: demand(size),
                relative_deadline: time(relative_deadline),
            },
            Class::Aperiodic => Class::Aperiodic,
        }
    }
}

impl Task {
    /// How often a job suspends itself at most.
    pub fn most_suspensions(&self) -> u32 {
        match self.max_suspension.is_zero() {
            true => 0,
            false => self.suspensions.max(1),
        }
    }

    /// A task of this name, CPU and class, everything else at its default.
    pub fn new(name: impl Into<String>, cpu: CpuId, class: Class<Ns>) -> Task {
        Task {
            name: name.into(),
            cpu,
            scheduler: None,
            slots: Vec::new(),
            class,
            own_deadline: false,
            priority: Priority::LOWEST,
            importance: Importance::default(),
            phase: Span::ZERO,
            jitter: Span::ZERO,
            late: Late::default(),
            on_overrun: OnOverrun::default(),
            max_suspension: Span::ZERO,
            suspensions: 0,
            non_preemptive: Work::ZERO,
            uses: Vec::new(),
            after: Vec::new(),
            follows: Vec::new(),
            arrivals: Arrivals::External,
            work: None,
            kernel_backed: false,
            idle: IdleTime::default(),
        }
    }

    /// How many jobs arrive at or before `at`, for tasks that arrive by the clock or once.
    /// O(1). `None` for sporadic and aperiodic tasks, whose arrivals are not known beforehand.
    pub fn arrivals_until(&self, at: Instant<Ns>) -> Option<u64> {
        let first = Instant::ZERO.checked_add(self.phase)?;
        let since_first = at.checked_since(first);
        match self.class {
            Class::Periodic { period, .. } | Class::Reservation { period, .. } => {
                Some(since_first.map_or(0, |s| s / period + 1))
            }
            Class::Once { .. } => Some(u64::from(since_first.is_some())),
            Class::Sporadic { .. } | Class::Aperiodic => None,
        }
    }
}
