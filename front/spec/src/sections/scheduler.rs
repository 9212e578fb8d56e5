//! The keys of a scheduler below a CPU, and of what its parent grants it.

use super::policy::{FRAME, POLICY, PREEMPTIVE, SCHEDULING_TIME, TIMESLICE};
use super::{COUNT, U32};
use crate::shape::Shape::{Duration, List, Table, Text};
use crate::shape::{Key, Keys, key, keys, words};

pub(super) static SCHEDULER: Keys = keys! {
    by "policy";
    /// The parent that grants it supply: "cpu.NAME", or "scheduler.NAME" at most 8 levels deep.
    "on": Text, "cpu.0", needed;
    POLICY;
    TIMESLICE;
    PREEMPTIVE;
    FRAME;
    SCHEDULING_TIME;
    /// Its urgency among what its parent orders; a larger number is more urgent. Needed below
    /// fixed priority.
    "priority": U32, 1;
    /// A budget that its parent grants it again and again; without it and without slots it runs
    /// whenever it is the most urgent. Needed below edf.
    "server": Table(&SERVER), { kind = "deferrable", budget = "2ms", period = "10ms" };
    SLOTS;
    /// Whether the core decides for it, or its own code on its own time; "inline" when absent.
    "trust": words! {
        /// it decides inside the core, in nobody's budget
        "inline";
        /// it decides on its own supply, and its answers are checked
        "own-time";
    }, "inline";
    CODE_TABLE;
    /// The policy for its tasks when it decides on its own supply and does not; none when absent.
    "fallback": Table(&FALLBACK), { policy = "fixed-priority", after = 3 };
    /// Slices of its supply in other hands. They come with it and go with it, where a change starts
    /// and stops it.
    "delegate": List(&Table(&DELEGATE)),
        [{ to = "scheduler.audio", slice = "1ms", every = "10ms", priority = 5 }];
    /// Most threads that it and the schedulers below it may have; no limit when absent.
    "quota": COUNT, 8;
};

pub(super) const CODE_TABLE: Key = key! {
    /// Its own code, for the order that `policy` names: a policy in C; needs "own-time".
    "code": Table(&CODE), { library = "libx.so", symbol = "mine" };
};

pub(super) const SERVER_TABLE: Key = key! {
    /// The server from then on.
    "server": Table(&SERVER), { kind = "deferrable", budget = "2ms", period = "10ms" }, needed;
};

pub(super) const SLOTS: Key = key! {
    /// Its places in the frame; needed below tdm, and nowhere else.
    "slots": List(&Table(&SLOT)), [{ at = "0ms", length = "4ms" }];
};

static CODE: Keys = keys! {
    /// The path of the shared object, relative to the folder of this file.
    "library": Text, "libx.so", needed;
    /// The name of the function that makes the policy.
    "symbol": Text, "mine", needed;
};

static DELEGATE: Keys = keys! {
    TO;
    SLICE;
    EVERY;
    SLICE_PRIORITY;
};

pub(super) const TO: Key = key! {
    /// The receiver: "task.NAME", which executes on the slice from then on, or "scheduler.NAME",
    /// whose own tasks all do.
    "to": Text, "scheduler.audio", needed;
};

pub(super) const SLICE: Key = key! {
    /// Work that they may execute.
    "slice": Duration, "1ms", needed;
};

pub(super) const EVERY: Key = key! {
    /// Distance at which the slice comes again.
    "every": Duration, "10ms", needed;
};

pub(super) const SLICE_PRIORITY: Key = key! {
    /// Its urgency among what the giver orders; needed where that is by fixed priority.
    "priority": U32, 5;
};

static FALLBACK: Keys = keys! {
    /// Which task runs next, from then on.
    "policy": words! {
        /// first come, first served; nobody is preempted
        "fifo";
        /// everybody in turn, for at most 10 ms
        "round-robin";
        /// the highest priority first
        "fixed-priority";
        /// the earliest absolute deadline first
        "edf";
    }, "fixed-priority", needed;
    /// How many periods of its supply it may let pass without a lawful answer; 3 when absent.
    "after": COUNT, 3;
};

static SERVER: Keys = keys! {
    /// The rule by which budget comes, stays and goes.
    "kind": words! {
        /// full at each period start if something is pending then; budget without work is lost
        "polling";
        /// full at each period start, and kept to the end of the period
        "deferrable";
        /// used budget comes back one period after its use began
        "sporadic";
        /// a deadline that moves with the use of the budget; throttled until it when exhausted
        "constant-bandwidth";
        /// full at each period start; passes whether used or not
        "periodic-resource";
    }, "deferrable", needed;
    /// Work granted in each period.
    "budget": Duration, "2ms", needed;
    /// Distance between replenishments.
    "period": Duration, "10ms", needed;
};

static SLOT: Keys = keys! {
    /// Its start, from the start of the frame.
    "at": Duration, "0ms", needed;
    /// Its length.
    "length": Duration, "4ms", needed;
};
