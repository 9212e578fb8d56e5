//! The keys of a policy, which CPUs and schedulers share, and those of a CPU.

use super::U32;
use crate::shape::Shape::{Duration, Flag};
use crate::shape::{Key, Keys, Words, key, keys, words};

// Words of `policy`.
const ROUND_ROBIN: Words = 1 << 1;
const FIXED_PRIORITY: Words = 1 << 2;
const TDM: Words = 1 << 4;

pub(super) const POLICY: Key = key! {
    /// Which thread runs next.
    "policy": words! {
        /// first come, first served; nobody is preempted
        "fifo";
        /// everybody in turn, for at most a timeslice
        "round-robin";
        /// the highest priority first
        "fixed-priority";
        /// the earliest absolute deadline first
        "edf";
        /// each in its own slots of a frame that repeats
        "tdm";
        /// segments of groups, each at the instant of the plan; background work in between
        "planned";
    }, "fixed-priority", needed;
};

pub(super) const TIMESLICE: Key = key! {
    /// The longest turn; "10ms" when absent.
    "timeslice": Duration, "10ms", only(ROUND_ROBIN);
};

pub(super) const PREEMPTIVE: Key = key! {
    /// Whether a more urgent job takes the CPU from a running one; true when absent.
    "preemptive": Flag, false, only(FIXED_PRIORITY);
};

pub(super) const FRAME: Key = key! {
    /// The length in which the slots repeat. All frames start with the run.
    "frame": Duration, "10ms", exactly(TDM);
};

pub(super) const SCHEDULING_TIME: Key = key! {
    /// Nobody's time between two slots, always the same, in which the next is prepared; "0s"
    /// when absent.
    "scheduling-time": Duration, "20us", only(TDM);
};

pub(super) static CPU: Keys = keys! {
    by "policy";
    POLICY;
    /// The number of the host CPU to run on. A CPU whose name is a number is that host CPU
    /// unless this says otherwise; any other CPU without it exists in virtual time only.
    "host": U32, 1;
    TIMESLICE;
    PREEMPTIVE;
    FRAME;
    SCHEDULING_TIME;
};
