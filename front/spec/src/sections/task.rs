//! The keys of a task.

use super::resource::USE;
use super::scheduler::SLOTS;
use super::{COUNT, U32};
use crate::shape::Shape::{Choice, Duration, List, Table, TaskName, Text, Yes};
use crate::shape::{Keys, Words, keys, words};

// Words of `class`.
const PERIODIC: Words = 1 << 0;
const SPORADIC: Words = 1 << 1;
const RESERVATION: Words = 1 << 2;
const ONCE: Words = 1 << 3;
const APERIODIC: Words = 1 << 4;
/// Classes whose jobs complete.
const JOBS: Words = PERIODIC | SPORADIC | ONCE;
/// Classes whose jobs are released again and again and complete.
const RECURRING: Words = PERIODIC | SPORADIC;

pub(super) static TASK: Keys = keys! {
    by "class";
    /// The kind of work.
    "class": words! {
        /// one call per release, at phase + k · period
        "periodic";
        /// one call per arrival, never closer than min-separation
        "sporadic";
        /// an endless body, guaranteed a slice in every period
        "reservation";
        /// one body, its size of work by its deadline, afterwards aperiodic
        "once";
        /// a body without deadline
        "aperiodic";
    }, "periodic", needed;
    /// The node that orders it: the CPU "cpu.NAME", or "scheduler.NAME".
    "on": Text, "cpu.0", needed;
    SLOTS;
    /// Distance between releases, or replenishments.
    "period": Duration, "10ms", exactly(PERIODIC | RESERVATION);
    /// Smallest distance between releases; earlier arrivals wait.
    "min-separation": Duration, "10ms", exactly(SPORADIC);
    /// Worst-case execution time of a job; also its budget.
    "wcet": Duration, "2ms", exactly(RECURRING);
    /// Work guaranteed in each period.
    "slice": Duration, "2ms", exactly(RESERVATION);
    /// Work guaranteed by the deadline.
    "size": Duration, "2ms", exactly(ONCE);
    /// From arrival to absolute deadline; the period when absent from a periodic task.
    "deadline": Duration, "10ms", only(JOBS), needed_by(SPORADIC | ONCE);
    /// First arrival after the start of the run.
    "phase": Duration, "0s", needed_by(ONCE);
    /// A larger number is more urgent. Needed under fixed priority; orders once tasks after
    /// their deadline and aperiodic tasks under every policy.
    "priority": U32, 1, needed_by(ONCE | APERIODIC);
    /// The rank in overload: a larger number is kept longer.
    "importance": U32, 1;
    /// A release follows its arrival by at most this.
    "jitter": Duration, "100us", only(RECURRING);
    /// Where arrivals come from; every min-separation when absent.
    "arrivals": Choice(&ARRIVALS), { every = "10ms" }, only(SPORADIC);
    /// The rule for a release that finds the job before unfinished; "queue" when absent.
    "late": words! {
        /// it waits, with at most `backlog` others
        "queue";
        /// it is dropped and counted
        "skip";
    }, "queue", only(RECURRING);
    /// Most releases that wait when late ones queue, 64 when absent; others are counted as
    /// lost.
    "backlog": COUNT, 64, only(RECURRING);
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
    }, "throttle", only(RECURRING);
    /// The longest a job suspends itself in total.
    "max-suspension": Duration, "1ms", only(JOBS);
    /// How often a job suspends itself at most; 1 when absent.
    "suspensions": COUNT, 1, only(JOBS);
    /// The longest stretch of a job that lets nobody preempt it.
    "non-preemptive": Duration, "50us";
    /// The critical sections of a job, in the order in which it enters them.
    "uses": List(&Table(&USE)), [{ resource = "bus", for = "1ms" }], only(RECURRING);
    /// A job released at r starts when every job of these released at or before r completed.
    "after": List(&TaskName), ["other"], only(JOBS);
    /// A job released at r starts when every job of these released before r completed.
    "follows": List(&TaskName), ["other"], only(JOBS);
    /// The kind of thread that carries its body; "light" when absent.
    "thread": words! {
        /// a thread of the scheduler's own, which switches in nanoseconds
        "light";
        /// a kernel thread in its place: it may wait in the kernel, start threads, call anything
        "kernel-backed";
    }, "kernel-backed", only(RESERVATION | APERIODIC);
    /// The idle time of its CPU, for a program or a kernel thread; "share" when absent.
    "idle": words! {
        /// the kernel runs it between its turns, too, when nobody else wants the CPU
        "share";
        /// none: the idle CPU stays awake, but for what it gives back to the machine
        "keep";
    }, "keep", only(RESERVATION | APERIODIC);
    /// The work of a job; its budget when absent.
    "work": Choice(&WORK), { burn = "1ms" };
};

pub(super) static ARRIVALS: [Keys; 4] = [
    keys! {
        /// One arrival every span, from the phase on.
        "every": Duration, "10ms", needed;
    },
    keys! {
        /// Seeded random gaps with this mean, uniform from min-separation to twice the mean
        /// less min-separation.
        "random": Duration, "15ms", needed;
    },
    keys! {
        /// These instants of the run, in order.
        "at": List(&Duration), ["1ms"], needed;
    },
    keys! {
        /// The program itself announces arrivals.
        "external": Yes, true, needed;
    },
];

pub(super) static WORK: [Keys; 4] = [
    keys! {
        /// Burns this much executed processor time.
        "burn": Duration, "1ms", needed;
    },
    keys! {
        /// The name of a C function in the library.
        "call": Text, "symbol", needed;
        /// The path of the shared object, relative to the folder of this file.
        "library": Text, "libx.so", needed;
    },
    keys! {
        /// The name under which a program or a linked workload registered it.
        "function": Text, "name", needed;
    },
    keys! {
        /// A whole program and its arguments, run in place of the thread: reservations and
        /// aperiodic tasks. A name with a slash is relative to the folder of this file.
        "command": List(&Text), ["program", "argument"], needed;
    },
];
