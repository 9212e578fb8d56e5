//! Schedulers below a CPU's own: a tree in which each parent grants supply to its children.

use alloc::string::String;
use alloc::vec::Vec;

use crate::id::{CpuId, SchedulerId};
use crate::priority::Priority;
use crate::time::{Frequency, Ns, Span, Ticks, Work};

/// Most levels of schedulers below a CPU's own. Every decision walks down once, so the depth bounds
/// its cost (Composite paper §2.1 limits it for the same reason).
pub const MAX_DEPTH: usize = 8;

/// A node of the tree below a CPU's own policy, which is the root.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scheduler {
    /// Unique among the schedulers of a system.
    pub name: String,
    /// The CPU at the root of its tree.
    pub cpu: CpuId,
    /// The scheduler that grants it supply; `None`: the CPU's own.
    pub parent: Option<SchedulerId>,
    /// How it orders its tasks and children.
    pub policy: PolicyKind<Ns>,
    /// Urgency among what its parent orders.
    pub priority: Priority,
    /// The supply that its parent gives it.
    pub supply: Supply,
    /// The place and the time of its decisions.
    pub trust: Trust,
    /// Most threads that its subtree may have at any one time; `None`: no limit of its own.
    pub quota: Option<u32>,
    /// It is a slice of its parent's supply in these hands, and no scheduler.
    pub receiver: Option<Receiver>,
    /// The policy for its threads when it decides on its own supply and does not.
    pub fallback: Option<Fallback>,
    /// Its own code in a shared object, when it decides on its own supply by that.
    pub code: Option<PolicyCode>,
}

/// The hands that a slice of a scheduler's supply was given into: by name, as in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receiver {
    /// The scheduler in whose care the threads are that execute on the slice; `None`: the CPU's
    /// own.
    pub scheduler: Option<String>,
    /// The one task that executes on it; `None`: all tasks of the scheduler.
    pub task: Option<String>,
}

/// A policy in a shared object: the C function that makes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyCode {
    /// The path of the object, relative to the folder of the file.
    pub library: String,
    /// The name of the function.
    pub symbol: String,
}

/// The policy that takes the place of a scheduler's own code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fallback {
    /// How it orders the threads.
    pub policy: PolicyKind<Ns>,
    /// How many periods of its supply the code may let pass without a lawful answer.
    pub after: u32,
}

impl Fallback {
    /// `after` of a file that does not say it.
    pub const AFTER: u32 = 3;
}

/// The supply that a parent gives a child.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Supply {
    /// The processor, whenever the child is the most urgent: no budget of its own.
    Shared,
    /// A budget per period.
    Server(Server<Ns>),
    /// Fixed places in the frame of a parent that divides time (CompOSe's application slots).
    Slots(Vec<Slot<Ns>>),
}

/// A budget of processor time that comes again, and when it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Server<U = Ticks> {
    /// The rule by which budget comes, stays and goes.
    pub kind: ServerKind,
    /// Work granted in each period.
    pub budget: Work<U>,
    /// Distance between replenishments.
    pub period: Span<U>,
}

/// The kinds of servers, by the rule for their budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerKind {
    /// Full at each period start if something is pending then; budget without work is lost.
    Polling,
    /// Full at each period start, and kept to the end of the period (Strosnider 1995).
    Deferrable,
    /// Used budget comes back one period after its use began (Sprunt 1989).
    Sporadic,
    /// A deadline that moves with the use of the budget; throttled until it when exhausted (Abeni
    /// and Buttazzo 1998, the hard variant).
    ConstantBandwidth,
    /// Full at each period start; passes whether used or not (Shin and Lee 2003).
    PeriodicResource,
}

impl ServerKind {
    /// All of them, for readers of files.
    pub const ALL: [ServerKind; 5] = [
        ServerKind::Polling,
        ServerKind::Deferrable,
        ServerKind::Sporadic,
        ServerKind::ConstantBandwidth,
        ServerKind::PeriodicResource,
    ];

    /// The word for this kind in files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            ServerKind::Polling => "polling",
            ServerKind::Deferrable => "deferrable",
            ServerKind::Sporadic => "sporadic",
            ServerKind::ConstantBandwidth => "constant-bandwidth",
            ServerKind::PeriodicResource => "periodic-resource",
        }
    }
}

impl Server<Ns> {
    /// The same server in ticks of a platform. Its budget is rounded up, so that work of the same
    /// length in the file still fits.
    pub fn in_ticks(self, frequency: Frequency) -> Server {
        Server {
            kind: self.kind,
            budget: self.budget.ticks_up(frequency),
            period: self.period.ticks_nearest(frequency),
        }
    }
}

/// An interval of each frame of a policy that divides time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot<U = Ticks> {
    /// Its start, from the start of the frame.
    pub at: Span<U>,
    /// Its length.
    pub length: Span<U>,
}

/// Whether a scheduler's code is believed to decide quickly and lawfully.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Trust {
    /// It decides inside an entry of the core (CompOSe's OS time).
    #[default]
    Inline,
    /// It decides on its own supply, and its answers are checked (application time).
    OwnTime,
}

impl Trust {
    /// The word in files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Trust::Inline => "inline",
            Trust::OwnTime => "own-time",
        }
    }
}

/// The built-in policies of one CPU, in one unit of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PolicyKind<U = Ticks> {
    /// First come, first served; nobody is preempted.
    Fifo,
    /// Everybody in turn, for at most a timeslice.
    RoundRobin {
        /// Longest turn.
        timeslice: Span<U>,
    },
    /// The highest priority first.
    FixedPriority {
        /// Whether a running job can be preempted.
        preemptive: bool,
    },
    /// The earliest absolute deadline first (eager: work runs as soon as it can).
    EarliestDeadlineFirst,
    /// Each owner in its own slots of a frame that repeats; time that an owner leaves idle stays
    /// idle.
    Tdm {
        /// Length of the frame.
        frame: Span<U>,
        /// Constant time between two slots, in which the core decides.
        scheduling: Span<U>,
    },
    /// The segments of groups, each at the instant of the plan; idle time in between is left to
    /// background work.
    Planned,
}

impl<U> PolicyKind<U> {
    /// The word for this policy in files and messages.
    pub const fn name(&self) -> &'static str {
        match self {
            PolicyKind::Fifo => "fifo",
            PolicyKind::RoundRobin { .. } => "round-robin",
            PolicyKind::FixedPriority { .. } => "fixed-priority",
            PolicyKind::EarliestDeadlineFirst => "edf",
            PolicyKind::Tdm { .. } => "tdm",
            PolicyKind::Planned => "planned",
        }
    }

    /// Whether the choice follows from the ready tasks alone: turns and begun jobs do not count.
    pub const fn knows_no_past(&self) -> bool {
        matches!(
            self,
            PolicyKind::EarliestDeadlineFirst | PolicyKind::FixedPriority { preemptive: true }
        )
    }

    /// The order in which it hands on what its tasks share.
    pub(crate) const fn waits_by(&self) -> &'static str {
        match self {
            PolicyKind::FixedPriority { .. } => "by priority",
            PolicyKind::EarliestDeadlineFirst => "by deadline",
            PolicyKind::Fifo
            | PolicyKind::RoundRobin { .. }
            | PolicyKind::Tdm { .. }
            | PolicyKind::Planned => "in the order of arrival",
        }
    }
}

impl PolicyKind<Ns> {
    /// The same policy in ticks of a platform: a repeating span is rounded to the nearest, so that
    /// it keeps its rate.
    pub fn in_ticks(self, frequency: Frequency) -> PolicyKind {
        match self {
            PolicyKind::Fifo => PolicyKind::Fifo,
            PolicyKind::RoundRobin { timeslice } => PolicyKind::RoundRobin {
                timeslice: timeslice.ticks_up(frequency),
            },
            PolicyKind::FixedPriority { preemptive } => PolicyKind::FixedPriority { preemptive },
            PolicyKind::EarliestDeadlineFirst => PolicyKind::EarliestDeadlineFirst,
            PolicyKind::Tdm { frame, scheduling } => PolicyKind::Tdm {
                frame: frame.ticks_nearest(frequency),
                scheduling: scheduling.ticks_nearest(frequency),
            },
            PolicyKind::Planned => PolicyKind::Planned,
        }
    }
}
