//! The claims of a certificate: every number on the way from the system to its verdict

use serde::{Deserialize, Serialize};

use crate::system::{System, is_zero};

/// The version of the format.
pub const FORMAT: u32 = 2;

/// A system, what is claimed of it, and a digest that ties both together.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// [`FORMAT`].
    pub format: u32,
    /// Of the system, as [`crate::digest`] makes it.
    pub digest: String,
    /// The system.
    pub system: System,
    /// The numbers that follow from it.
    pub claims: Claims,
}

/// Admitted, with all that proves it; or refused, with a situation that shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Claims {
    /// Every deadline and requirement holds.
    Admitted {
        /// Every node with work on it: the CPUs' own first, then the schedulers.
        nodes: Vec<NodeClaim>,
        /// Tasks whose releases fall on those of another, which pays the timer entry.
        led: Vec<LedClaim>,
        /// Every requirement, in the order of the file.
        required: Vec<RequiredClaim>,
        /// Predecessors that need not go first, in the order of the file.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        waits: Vec<WaitClaim>,
        /// Every gang, in the order of the file.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gangs: Vec<GangClaim>,
    },
    /// More is due on a CPU by an instant than it can supply.
    Overdue(DemandClaim),
    /// A job of a task is late when all that may delay it is released together.
    Late(LateClaim),
}

/// A task whose releases fall on those of another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedClaim {
    /// The task.
    pub task: String,
    /// The task that pays the timer entry of their common instants.
    pub leader: String,
    /// The price of a release beside it, in nanoseconds.
    pub entry: u64,
    /// Whether its jobs pay for a preemption and the caches behind it.
    pub preempts: bool,
}

/// A predecessor that need not go first. Its successor waits for the bound and the clocks, less the
/// distance: for nothing, if it is surely done by then.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitClaim {
    /// The task that would wait.
    pub task: String,
    /// Its predecessor.
    pub predecessor: String,
    /// The response bound of the predecessor, in nanoseconds.
    pub bound: u64,
    /// The difference between the clocks of both CPUs, at most.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clocks: u64,
    /// From an arrival of the predecessor to the next one of the task that waits for it, at least.
    pub distance: u64,
}

/// A gang: how far apart its members start, and which barriers time replaces.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GangClaim {
    /// Its name in the file.
    pub gang: String,
    /// In the order of their instants.
    pub supersteps: Vec<SkewClaim>,
    /// Behind each superstep, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub barriers: Vec<BarrierClaim>,
}

/// The skew of a superstep: the greatest difference between the starts of two members.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkewClaim {
    /// The superstep.
    pub superstep: String,
    /// Of each member, from its arrival: none starts later. In nanoseconds.
    pub latest: Vec<u64>,
    /// All CPUs have the same work before their members, and nothing delays one of them alone.
    pub alike: bool,
    /// The bound in nanoseconds, the clock error included.
    pub skew: u64,
}

/// The barrier between a superstep and the next one; times from the arrival of the gang.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BarrierClaim {
    /// The superstep that is waited for.
    pub before: String,
    /// The one that would wait.
    pub next: String,
    /// No member of the first one ends later, on its own clock.
    pub end: u64,
    /// The clocks of two members never differ by more.
    pub clocks: u64,
    /// When the next one begins.
    pub begins: u64,
    /// Time alone keeps both apart: end and clocks are not later than the beginning.
    pub left_out: bool,
}

/// One scheduler, or a CPU's own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeClaim {
    /// Its place in the file: `cpu.0`, `scheduler.x`.
    pub node: String,
    /// Its tasks and the servers below it, in the order of the file.
    pub entities: Vec<EntityClaim>,
    /// Under EDF: the instants at which demand is compared with supply, backwards.
    pub points: Vec<Point>,
}

/// A task or a server, on its node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntityClaim {
    /// Its name in the file.
    pub name: String,
    /// The cost of one job in nanoseconds, overheads included.
    pub cost: u64,
    /// The longest stretch in which it lets nobody preempt.
    pub section: u64,
    /// How long it waits for predecessors after its arrival, at most, in nanoseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiting: u64,
    /// The jobs that may be the worst: each completes by then. Empty: the bound follows from the
    /// whole node (its deadline under EDF, the busy window in turn).
    pub jobs: Vec<JobClaim>,
    /// From arrival to completion, at most.
    pub bound: u64,
    /// The longest response that deadline and requirements allow, in nanoseconds.
    pub allowed: u64,
}

/// A job of a busy window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobClaim {
    /// Its release, from the start of the window.
    pub offset: u64,
    /// It is done by then, from the start of the window.
    pub completion: u64,
}

/// An instant of the processor-demand test.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// The instant.
    pub at: u64,
    /// Work due by then, and the section that may have begun before.
    pub demand: u64,
    /// When the supply has surely done it: not later than `at`.
    pub done: u64,
}

/// A requirement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequiredClaim {
    /// The bound on what is required.
    pub bound: u64,
    /// At most this.
    pub within: u64,
}

/// See [`Claims::Overdue`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DemandClaim {
    /// The CPU's name.
    pub cpu: String,
    /// The instant, from the common release on.
    pub at: u64,
    /// Work due by then.
    pub demand: u64,
    /// Work that can be done by then.
    pub supply: u64,
}

/// See [`Claims::Late`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LateClaim {
    /// The task's name.
    pub task: String,
    /// Its release, from the common release on.
    pub offset: u64,
    /// From its arrival to its completion.
    pub response: u64,
    /// The longest response that deadline and requirements allow, in nanoseconds.
    pub allowed: u64,
}
