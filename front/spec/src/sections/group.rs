//! The keys of planned groups, and of how they are planned.

use super::task::{ARRIVALS, WORK};
use super::{COUNT, U32};
use crate::shape::Shape::{Choice, Duration, Flag, Integer, List, ResourceName, Table, Text};
use crate::shape::{Keys, Words, keys, words};

// Words of `request`.
const ONCE: Words = 1 << 0;
const PERIODIC: Words = 1 << 1;
const ON_LINE: Words = 1 << 2;
const SPAWNED: Words = 1 << 3;

pub(super) static GROUP: Keys = keys! {
    by "request";
    /// The source of its arrivals. `release` and `deadline` count from each arrival.
    "request": words! {
        /// it arrives once, and is planned before the run
        "once";
        /// it arrives at each multiple of its period, and is planned before the run
        "periodic";
        /// it arrives while the system runs, is planned then, and may be refused
        "on-line";
        /// a segment of another group spawns it; it arrives with that group
        "spawned";
    }, "once", needed;
    /// Its arrival; "0s" when absent.
    "at": Duration, "0s", only(ONCE);
    /// Distance between arrivals, the first of which is the start of the run.
    "period": Duration, "100ms", exactly(PERIODIC);
    /// Where requests come from.
    "arrivals": Choice(&ARRIVALS), { random = "100ms" }, exactly(ON_LINE);
    /// Smallest distance between two requests, an earlier one waits; "0s" when absent.
    "min-separation": Duration, "10ms", only(ON_LINE);
    /// First arrival of a source that has a rate; "0s" when absent.
    "phase": Duration, "0s", only(ON_LINE);
    /// No segment starts before; "0s" when absent.
    "release": Duration, "0s";
    /// All segments have ended by then; the period when absent from a periodic group.
    "deadline": Duration, "100ms", needed_by(ONCE | ON_LINE | SPAWNED);
    /// Its value: with `overload = "shed"` groups with a smaller number are removed for it.
    "importance": U32, 1;
    /// The rule for a segment that has used its wcet and is not done; "throttle" when absent.
    "on-overrun": words! {
        /// the rest waits for a budget that does not come: the group ends there
        "throttle";
        /// the rest continues below all real-time work
        "demote";
        /// the segment ends at its next scheduling point
        "stop";
        /// the body is told, then as throttle
        "signal";
    }, "throttle";
    /// Threads that have a home or a process; the others need not be listed.
    "threads": List(&Table(&THREAD)), [{ name = "main", home = "cpu.0", process = "robot" }];
    /// Its segments, those of a thread in the order in which it executes them.
    "segments": List(&Table(&SEGMENT)), [{ name = "compute", wcet = "10ms" }], needed;
};

static THREAD: Keys = keys! {
    /// Its name, as in `thread` of its segments.
    "name": Text, "main", needed;
    /// The address space that it belongs to; one of its own when absent.
    "process": Text, "robot";
    /// The CPU near which the memory of its process is: "cpu.NAME".
    "home": Text, "cpu.0";
};

static SEGMENT: Keys = keys! {
    /// Its name within the group.
    "name": Text, "compute", needed;
    /// The thread that executes it; one for all segments that say nothing.
    "thread": Text, "main";
    /// Worst-case execution time; also its budget.
    "wcet": Duration, "10ms", needed;
    /// The same away from its thread's home; the wcet when absent.
    "wcet-away": Duration, "12ms";
    /// Planned resources that it has from its start to its end.
    "uses": List(&Table(&USE)), [{ resource = "table", mode = "exclusive" }];
    /// Segments of its group that end before it starts, beside the one of its thread before it.
    "after": List(&Text), ["other"];
    /// Groups that it spawns at its end.
    "spawns": Choice(&SPAWN), { dependent = "child" };
    /// Groups that it kills at its end.
    "kills": List(&Text), ["other-group"];
    /// Longest execution of the handler that takes its place when its group is killed before it.
    "cleanup": Duration, "1ms";
    /// The work of its body; its wcet when absent.
    "work": Choice(&WORK), { burn = "5ms" };
};

static USE: Keys = keys! {
    /// A resource with `protocol = "planned"`.
    "resource": ResourceName, "table", needed;
    /// Alone or with others; "exclusive" when absent.
    "mode": words! {
        /// alone
        "exclusive";
        /// together with others that use it so
        "shared";
    }, "exclusive";
};

static SPAWN: [Keys; 2] = [
    keys! {
        /// A group that is planned with this one, and executes if this one does.
        "dependent": Text, "child", needed;
    },
    keys! {
        /// Groups of which the first that is granted executes.
        "independent": List(&Text), ["child"], needed;
        /// The longest wait for each answer, which is part of the segment's planned length; "0s",
        /// when absent: it asks and goes on.
        "max-wait": Duration, "1ms";
    },
];

pub(super) static PLANNING: Keys = keys! {
    /// Which segment is planned next: the one with the least value, of the deadline d, the earliest
    /// start s and the wcet c; "deadline-and-start" when absent.
    "heuristic": words! {
        /// the release
        "first-come";
        /// c
        "shortest";
        /// d
        "deadline";
        /// s
        "start";
        /// d - (s + c)
        "laxity";
        /// d + factor · c
        "deadline-and-work";
        /// d + factor · s
        "deadline-and-start";
    }, "deadline-and-start";
    /// The weight of the second term of a heuristic that has two; 4 when absent.
    "factor": COUNT, 4;
    /// How many segments are looked at for each place in the plan; when absent all, and on line as
    /// many as the time allows.
    "window": COUNT, 7;
    /// How often a place is taken back before a plan is given up; 100 when absent.
    "backtracks": Integer { least: 0, most: u64::MAX }, 100;
    /// A request on line is answered so long after it, at the latest; "0s" when absent.
    "within": Duration, "1ms";
    /// Part of `within` that is kept in reserve; "0s" when absent.
    "margin": Duration, "100us";
    /// The cost of looking at one segment, from which follows how many are looked at in the time
    /// allowed; "0s" when absent: any number.
    "evaluation": Duration, "100ns";
    /// The cost of each segment of a plan beside that: it is sorted, placed and taken over; 24
    /// evaluations when absent.
    "segment": Duration, "2us";
    /// The rule for a request that does not fit; "keep" when absent.
    "overload": words! {
        /// it is refused: nobody who is guaranteed is removed
        "keep";
        /// less important groups that have not started are removed, if it fits then
        "shed";
    }, "keep";
    /// The CPU for a segment that could execute on several; "earliest" when absent.
    "locality": words! {
        /// at home if it starts no later there
        "earliest";
        /// at home, also if it starts later there
        "only-local";
    }, "earliest";
    /// Whether a segment of the process that a CPU executed last is preferred; false when absent.
    "within-process": Flag, true;
    /// The cost of a switch from one process to another, for each segment; "0s" when absent.
    "process-switch": Duration, "20us";
    /// The cost of setting a thread's place back after a kill; "0s" when absent.
    "reset": Duration, "5us";
};
