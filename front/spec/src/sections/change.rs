//! The keys of a change while the system runs.

use super::U32;
use super::policy::{PREEMPTIVE, TIMESLICE};
use super::scheduler::{CODE_TABLE, EVERY, SERVER_TABLE, SLICE, SLICE_PRIORITY, TO};
use crate::shape::Shape::{Duration, List, Table, TaskName, Text};
use crate::shape::{Key, Keys, key, keys, words};

pub(super) static CHANGE: Keys = keys! {
    /// Not before this instant of the run. The analysis says what it waits for beyond that.
    "at": Duration, "2s", needed;
    /// Parts that come, on their declared terms: "task.NAME" or "scheduler.NAME". Until its first
    /// start a part is not there.
    "start": List(&Text), ["task.name"];
    /// Parts that go. A task completes the jobs that it has; a scheduler must have nothing in its
    /// care any more.
    "stop": List(&Text), ["task.name"];
    /// Tasks that another scheduler of their CPU orders from then on.
    "move": List(&Table(&MOVE)), [{ task = "name", to = "scheduler.name" }];
    /// Tasks that get other constraints; the others stay.
    "constraint": List(&Table(&CONSTRAINT)), [{ task = "name", wcet = "1ms" }];
    /// Schedulers that get another server.
    "supply": List(&Table(&SUPPLY)),
        [{ scheduler = "name", server = { kind = "deferrable", budget = "2ms", period = "10ms" } }];
    /// Schedulers, or CPUs, that order by another policy from then on.
    "policy": List(&Table(&REORDER)), [{ of = "scheduler.name", policy = "edf" }];
    /// Slices of a scheduler's supply that go into other hands.
    "delegate": List(&Table(&DELEGATE)),
        [{ from = "scheduler.name", to = "task.name", slice = "1ms", every = "10ms", priority = 5 }];
    /// Slices that their giver takes back: tasks go on in their own scheduler.
    "take-back": List(&Table(&TAKE_BACK)), [{ from = "scheduler.name", to = "task.name" }];
    /// Budget that a scheduler gives a sibling, until the end of its own period. Such a change does
    /// nothing else.
    "transfer": Table(&TRANSFER),
        { from = "scheduler.name", to = "scheduler.other", budget = "1ms" };
};

static TRANSFER: Keys = keys! {
    /// The lender: "scheduler.NAME", with a deferrable server.
    "from": Text, "scheduler.name", needed;
    /// The borrower: "scheduler.NAME", with a server, which the same scheduler orders.
    "to": Text, "scheduler.other", needed;
    /// How much. It is done once the lender has that much left.
    "budget": Duration, "1ms", needed;
};

const FROM: Key = key! {
    /// The giver: "scheduler.NAME", with a server of its own.
    "from": Text, "scheduler.name", needed;
};

static DELEGATE: Keys = keys! {
    FROM;
    TO;
    SLICE;
    EVERY;
    SLICE_PRIORITY;
};

static TAKE_BACK: Keys = keys! {
    FROM;
    /// The receiver, as it was named when the slice was delegated.
    "to": Text, "task.name", needed;
};

const TASK: Key = key! {
    /// The task.
    "task": TaskName, "name", needed;
};

static MOVE: Keys = keys! {
    TASK;
    /// Its new home: "scheduler.NAME", or "cpu.NAME" for the CPU's own.
    "to": Text, "scheduler.name", needed;
};

static CONSTRAINT: Keys = keys! {
    TASK;
    /// Of a periodic task or a reservation. A deadline that was the period stays so.
    "period": Duration, "10ms";
    /// Of a sporadic task.
    "min-separation": Duration, "10ms";
    /// Of a periodic or sporadic task.
    "wcet": Duration, "1ms";
    /// Of a reservation.
    "slice": Duration, "1ms";
    /// From arrival to absolute deadline.
    "deadline": Duration, "10ms";
    /// Its urgency under fixed priority.
    "priority": U32, 1;
};

static REORDER: Keys = keys! {
    by "policy";
    /// The scheduler as "scheduler.NAME", or "cpu.NAME" for the CPU's own.
    "of": Text, "scheduler.name", needed;
    /// Which thread runs next, from then on. No table of slots comes or goes.
    "policy": words! {
        /// first come, first served; nobody is preempted
        "fifo";
        /// everybody in turn, for at most a timeslice
        "round-robin";
        /// the highest priority first
        "fixed-priority";
        /// the earliest absolute deadline first
        "edf";
    }, "edf", needed;
    TIMESLICE;
    PREEMPTIVE;
    CODE_TABLE;
};

static SUPPLY: Keys = keys! {
    /// The scheduler, which has a server.
    "scheduler": Text, "name", needed;
    SERVER_TABLE;
};
