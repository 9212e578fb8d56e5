//! The keys of what is required beyond the deadlines.

use crate::shape::Shape::{Duration, List, Table, TaskName, Text};
use crate::shape::{Key, Keys, key, keys};

pub(super) static REQUIRE: Keys = keys! {
    /// Longest responses, from arrival to completion.
    "response": List(&Table(&RESPONSE)), [{ task = "name", within = "8ms" }];
    /// Longest times from the arrival of a job of the first task to the completion of the first
    /// job of the last one that has seen its effect.
    "chain": List(&Table(&CHAIN)), [{ tasks = ["first", "last"], within = "30ms" }];
    /// Largest differences between the responses of a task.
    "jitter": List(&Table(&JITTER)), [{ task = "name", within = "1ms" }];
    /// Longest periods of graphs: an iteration at least so often.
    "throughput": List(&Table(&THROUGHPUT)), [{ graph = "name", every = "40ms" }];
    /// Longest times from the start of an iteration's period to its last output.
    "latency": List(&Table(&LATENCY)), [{ graph = "name", within = "80ms" }];
};

const TASK: Key = key! {
    /// The task.
    "task": TaskName, "name", needed;
};

static RESPONSE: Keys = keys! {
    TASK;
    /// The longest response allowed.
    "within": Duration, "8ms", needed;
};

const GRAPH: Key = key! {
    /// The graph.
    "graph": Text, "name", needed;
};

static THROUGHPUT: Keys = keys! {
    GRAPH;
    /// The longest period of an iteration.
    "every": Duration, "40ms", needed;
};

static LATENCY: Keys = keys! {
    GRAPH;
    /// The longest time allowed. Periods are those that `throughput` requires, or else the
    /// shortest that the graph can keep.
    "within": Duration, "80ms", needed;
};

static CHAIN: Keys = keys! {
    /// At least two, each handing on to the next.
    "tasks": List(&TaskName), ["first", "last"], needed;
    /// The longest time allowed.
    "within": Duration, "30ms", needed;
};

static JITTER: Keys = keys! {
    TASK;
    /// The largest difference allowed.
    "within": Duration, "1ms", needed;
};
