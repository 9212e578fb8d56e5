//! The system that a certificate is about, whole: everything that its numbers follow from
//!
//! Plain integers in nanoseconds; places in lists count from 0. Unknown keys are refused, so that
//! nothing in a certificate goes unread.

use serde::{Deserialize, Serialize};

/// Everything that the verdict depends on.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// In the order of the file.
    pub cpus: Vec<Cpu>,
    /// In the order of the file.
    pub schedulers: Vec<Scheduler>,
    /// In the order of the file, which is the last tie-break.
    pub tasks: Vec<Task>,
    /// In the order of the file.
    pub resources: Vec<Resource>,
    /// In the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gangs: Vec<Gang>,
    /// Overheads and what is taken above all tasks.
    pub machine: Machine,
    /// The requirements beyond the deadlines.
    pub required: Vec<Required>,
}

/// A CPU.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Its name in the file.
    pub name: String,
    /// How it orders what is on it.
    pub policy: Policy,
}

/// How a node orders what is on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Policy {
    /// First come, first served, without preemption.
    Fifo,
    /// In turn.
    RoundRobin {
        /// Longest turn.
        timeslice: u64,
    },
    /// The highest priority first.
    FixedPriority {
        /// Whether a running job can be preempted.
        preemptive: bool,
    },
    /// The earliest deadline first.
    Edf,
    /// Each owner in its slots of a frame.
    Tdm {
        /// Length of the frame.
        frame: u64,
    },
    /// The segments of groups, each at the instant of the plan.
    Planned,
}

/// A scheduler below a CPU's own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheduler {
    /// Its name in the file.
    pub name: String,
    /// The CPU at the root of its tree.
    pub cpu: usize,
    /// The scheduler above; none: the CPU's own.
    pub parent: Option<usize>,
    /// How it orders what is on it.
    pub policy: Policy,
    /// Among its siblings.
    pub priority: u32,
    /// Its supply.
    pub supply: Supply,
}

/// The supply of a scheduler from the one above.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Supply {
    /// The processor at its priority.
    Shared,
    /// A budget per period.
    Server {
        /// The word of the file.
        kind: String,
        /// Work per period.
        budget: u64,
        /// Distance of replenishments.
        period: u64,
    },
    /// Places in the frame.
    Slots(Vec<Slot>),
}

/// A place in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slot {
    /// From the start of the frame.
    pub at: u64,
    /// Its length.
    pub length: u64,
}

/// A task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Its name in the file.
    pub name: String,
    /// Its CPU.
    pub cpu: usize,
    /// Its scheduler; none: the CPU's own.
    pub scheduler: Option<usize>,
    /// Its places in the frame of a node that divides time.
    pub slots: Vec<Slot>,
    /// The word of the file for its class.
    pub class: String,
    /// Period or smallest separation; none: it arrives once, or has no jobs.
    pub separation: Option<u64>,
    /// Work of one job; none: it has no jobs.
    pub wcet: Option<u64>,
    /// From arrival to deadline; none: it has none.
    pub deadline: Option<u64>,
    /// Larger is more urgent.
    pub priority: u32,
    /// First arrival, from the common start.
    pub phase: u64,
    /// Release after arrival, at most.
    pub jitter: u64,
    /// Most unfinished jobs before an arrival is dropped.
    pub places: u64,
    /// Longest suspension of one job, in total.
    pub suspension: u64,
    /// How often it suspends itself.
    pub suspensions: u32,
    /// Longest stretch without preemption.
    pub section: u64,
    /// The work that every job surely executes, in nanoseconds.
    pub shortest: u64,
    /// The critical sections of a job, in the order in which it enters them.
    pub uses: Vec<Use>,
    /// Waits for jobs that arrived at or before its own.
    pub after: Vec<usize>,
    /// Waits for jobs that arrived strictly before its own.
    pub follows: Vec<usize>,
}

/// Something that jobs lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// Its name in the file.
    pub name: String,
    /// The word of the file for its protocol.
    pub protocol: String,
}

/// A critical section.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Use {
    /// The resource that is locked.
    pub resource: usize,
    /// Longest execution while it is, inner sections included.
    pub length: u64,
    /// The resource whose section it is nested in.
    pub inside: Option<usize>,
}

/// Tasks on several CPUs that arrive at one instant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gang {
    /// Its name in the file.
    pub name: String,
    /// In the order of their instants within the period.
    pub supersteps: Vec<Superstep>,
}

/// Work that all members of a gang begin together.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Superstep {
    /// The gang's name, and its own if it has one.
    pub name: String,
    /// Its tasks, each on a CPU of its own.
    pub members: Vec<usize>,
}

/// The overheads of the machine, in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// One switch.
    pub switch: u64,
    /// One timer entry.
    pub timer: u64,
    /// One timer entry for the end of a budget.
    pub budget_timer: u64,
    /// One preemption.
    pub preemption: u64,
    /// Caches to fill again after one.
    pub cache_delay: u64,
    /// Upper limit of the utilization in parts per million.
    pub limit_ppm: u64,
    /// The clocks of two CPUs never differ by more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clock_error: u64,
    /// Reserves and missing time.
    #[serde(rename = "takings")]
    pub reserves: Vec<Reserve>,
}

impl Machine {
    /// Whether a switch, a timer or a preemption has a price.
    pub(crate) fn has_prices(&self) -> bool {
        let prices = [
            self.switch,
            self.timer,
            self.budget_timer,
            self.preemption,
            self.cache_delay,
        ];
        prices.iter().any(|&price| price > 0)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// At most `budget` in any window of `period`, above all tasks, on every CPU.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    /// Its name in the file.
    pub name: String,
    /// Most that it takes, in nanoseconds.
    pub budget: u64,
    /// The window in which it takes so much, in nanoseconds.
    pub period: u64,
}

/// Something required beyond the deadlines.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Required {
    /// A response.
    Response {
        /// The task.
        task: usize,
        /// At most.
        within: u64,
    },
    /// A chain from end to end.
    Chain {
        /// Along it.
        tasks: Vec<usize>,
        /// At most.
        within: u64,
    },
    /// A difference of responses.
    Jitter {
        /// The task.
        task: usize,
        /// At most.
        within: u64,
    },
}
