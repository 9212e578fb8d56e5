//! The keys of a graph: its actors, its FIFOs, and the orders of their firings.

use super::task::WORK;
use super::{COUNT, U32};
use crate::shape::Shape::{Choice, Cycle, Duration, Flag, List, Table, Text};
use crate::shape::{Keys, keys, words};

pub(super) static GRAPH: Keys = keys! {
    /// `false`: its actors are tasks that run to completion, and nothing is promised of them.
    /// `true` when absent.
    "real-time": Flag, true;
    /// Its actors. An actor fires once at a time.
    "actors": List(&Table(&ACTOR)), [{ name = "read", on = "cpu.0", wcet = "2ms" }], needed;
    /// Its FIFOs.
    "fifos": List(&Table(&FIFO)), [{ name = "samples", from = "read", to = "filter" }];
    /// How the actors of a tile take turns; where absent, by round robin, in own time.
    "orders": List(&Table(&ORDER)), [{ on = "cpu.0", firings = ["read", "filter"] }];
    /// The time that copies between memories take, by a copy engine of its own on each tile; where
    /// absent, the wcets contain it.
    "copies": Table(&COPIES), { latency = "2us", bytes-per-us = 400 };
};

static COPIES: Keys = keys! {
    /// From the request to the first byte of each FIFO's copy; 0 when absent.
    "latency": Duration, "2us";
    /// Bytes that are copied in a microsecond.
    "bytes-per-us": COUNT, 400, needed;
};

static ACTOR: Keys = keys! {
    /// Its name.
    "name": Text, "read", needed;
    /// Its tile: the CPU "cpu.NAME", or "scheduler.NAME" with slots. Nothing else executes there.
    "on": Text, "cpu.0", needed;
    /// Longest execution of a firing; a list has one for each phase.
    "wcet": Cycle(&Duration), "2ms", needed;
    /// The work of a firing; its wcet when absent.
    "work": Choice(&WORK), { burn = "1ms" };
    /// Its output depends on its data: a firing hands on up to `produce` tokens, and nothing is
    /// promised of the graph. `false` when absent.
    "varies": Flag, false;
    /// Its rounds, where the graph is not real-time: it reads its inputs one after the other,
    /// works, and writes its outputs.
    "times": COUNT, 100;
    /// Bytes that a firing reads from a memory tile beside its tokens, at its claim; 0 when absent.
    "reads-shm": U32, 4096;
    /// Bytes that it writes there, at its release; 0 when absent.
    "writes-shm": U32, 1024;
};

static FIFO: Keys = keys! {
    /// Its name.
    "name": Text, "samples", needed;
    /// The actor that writes it.
    "from": Text, "read", needed;
    /// The actor that reads it; the writer itself for what it keeps between its firings.
    "to": Text, "filter", needed;
    /// Tokens that a firing of the writer adds; 1 when absent, a list has one for each phase.
    "produce": Cycle(&U32), 1;
    /// Tokens that a firing of the reader removes, in the same way.
    "consume": Cycle(&U32), 1;
    /// Tokens that are in it before anything fires; 0 when absent.
    "initial": U32, 0;
    /// Most tokens that it holds; no limit when absent.
    "capacity": COUNT, 8;
    /// Bytes of a token; 0 when absent.
    "token-size": U32, 64;
    /// The memory that holds its tokens; "consumer" when absent.
    "place": words! {
        /// that of the tile of its writer
        "producer";
        /// that of the tile of its reader
        "consumer";
        /// that of a memory tile, which executes nobody
        "memory";
    }, "consumer";
};

static ORDER: Keys = keys! {
    /// The tile.
    "on": Text, "cpu.0", needed;
    /// When the application decides; "own-time" when absent.
    "when": words! {
        /// after each firing, on the application's own time
        "own-time";
        /// once per slot, at its start; the rest of the slot after a firing stays empty
        "between-slots";
        /// the core does: each actor is a thread of it, and takes turns with the others
        "inline";
    }, "own-time";
    /// The rule; "static-order" where `firings` are given, else "round-robin".
    "by": words! {
        /// the next actor that may fire, after the one that ran last
        "round-robin";
        /// the order of `firings`; in own time
        "static-order";
        /// each slot belongs to one of `firings`, in turn, or stays empty; between slots
        "tdm";
    }, "static-order";
    /// The firings of one iteration on it, in the order in which they begin; under "tdm" the
    /// owners of the slots.
    "firings": List(&Text), ["read", "filter"];
    /// A firing that the end of a slot has preempted, between slots; "continues" when absent,
    /// "passed-over" under "tdm".
    "preempted": words! {
        /// it goes on before anybody else begins
        "continues";
        /// it waits for its turn
        "passed-over";
    }, "continues";
};
