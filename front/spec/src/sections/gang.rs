//! The keys of a gang.

use super::task::WORK;
use super::{COUNT, U32};
use crate::shape::Shape::{Choice, Duration, List, TaskName, Text};
use crate::shape::{Keys, Words, keys, words};

// Words of `class`.
const PERIODIC: Words = 1 << 0;
const RESERVATION: Words = 1 << 1;

pub(super) static GANG: Keys = keys! {
    by "class";
    /// Its members, which are tasks of this file: periodic ones or reservations, on different CPUs,
    /// of one class, with the same times and one phase. In place of `on` and the constraint.
    "members": List(&TaskName), ["left", "right"];
    /// The nodes on which it has a member each: "cpu.NAME" or "scheduler.NAME". A member is a task
    /// with the name of the gang, a dot, and the name of its node.
    "on": List(&Text), ["cpu.0", "cpu.1"];
    /// The kind of work of each member.
    "class": words! {
        /// one call per release, at phase + k · period
        "periodic";
        /// an endless body, guaranteed a slice in every period
        "reservation";
    }, "periodic";
    /// Distance between releases, or replenishments.
    "period": Duration, "10ms", exactly(PERIODIC | RESERVATION);
    /// Worst-case execution time of a job of each member; also its budget.
    "wcet": Duration, "2ms", only(PERIODIC);
    /// Work guaranteed to each member in each period.
    "slice": Duration, "2ms", exactly(RESERVATION);
    /// From arrival to absolute deadline; the period when absent.
    "deadline": Duration, "10ms", only(PERIODIC);
    /// First arrival of all members, after the start of the run.
    "phase": Duration, "0s", only(PERIODIC | RESERVATION);
    /// A larger number is more urgent. Needed under fixed priority.
    "priority": U32, 1, only(PERIODIC | RESERVATION);
    /// The rank in overload: a larger number is kept longer.
    "importance": U32, 1, only(PERIODIC | RESERVATION);
    /// The rule for a release that finds the job before unfinished; "queue" when absent.
    "late": words! {
        /// it waits, with at most `backlog` others
        "queue";
        /// it is dropped and counted
        "skip";
    }, "queue", only(PERIODIC);
    /// Most releases that wait when late ones queue, 64 when absent.
    "backlog": COUNT, 64, only(PERIODIC);
    /// The rule for a job that has used its budget and is not done; "throttle" when absent.
    "on-overrun": words! {
        /// the rest continues at the next replenishment
        "throttle";
        /// the rest continues below all real-time work
        "demote";
        /// the job ends at its next scheduling point
        "stop";
        /// the body is told, then as throttle
        "signal";
    }, "throttle", only(PERIODIC);
    /// The work of a job of each member; its budget when absent.
    "work": Choice(&WORK), { burn = "1ms" }, only(PERIODIC | RESERVATION);
    /// Work at several instants of each period, in place of `wcet`, with a barrier behind each: all
    /// members end one superstep before any begins the next.
    "supersteps": List(&Choice(&SUPERSTEP)),
        [{ at = "0s", name = "compute", wcet = "1ms" }, { at = "5ms", name = "write", wcet = "1ms" }];
};

static SUPERSTEP: [Keys; 2] = [
    keys! {
        /// Its beginning, counted from the arrival of the gang.
        "at": Duration, "5ms", needed;
        /// Its name, which stands in the names of its tasks.
        "name": Text, "compute", needed;
        /// Worst-case execution time of each member; also its budget.
        "wcet": Duration, "1ms", needed;
        /// The work of each member; its budget when absent.
        "work": Choice(&WORK), { burn = "1ms" };
    },
    keys! {
        /// Its members, which are tasks of this file. Barriers are their `after` and `follows`.
        "members": List(&TaskName), ["left", "right"], needed;
        /// Its name.
        "name": Text, "compute", needed;
    },
];
