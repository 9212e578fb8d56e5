//! The keys of the machine.

use crate::shape::Shape::{Duration, List, Percentage, Table, Text};
use crate::shape::{Keys, keys, words};

pub(super) static MACHINE: Keys = keys! {
    /// One switch from thread to thread; each job pays two, in and out.
    "switch": Duration, "1us";
    /// One timer entry; each release pays one, or a sixteenth if it falls on one of another task.
    "timer": Duration, "1us";
    /// One timer entry for the end of a budget that was not used up; each job pays one.
    "budget-timer": Duration, "1us";
    /// One preemption by signal; each job causes at most one, and pays it.
    "preemption": Duration, "4us";
    /// Caches to fill again after a preemption; each job pays one.
    "cache-delay": Duration, "10us";
    /// The clocks of any two CPUs never differ by more.
    "clock-error": Duration, "1us";
    /// Time that the machine takes from everybody, unasked.
    "missing-time": Table(&MISSING_TIME), { budget = "50us", period = "10ms" };
    /// Upper limits on what is admitted on each CPU.
    "limits": Table(&LIMITS), { utilization = "99%" };
    /// Supply set aside above all tasks on each CPU.
    "reserve": List(&Table(&RESERVE)), [{ name = "fair-server", budget = "600us", period = "10ms" }];
    /// Named values for keys that are absent. A given limit replaces the default one; a given
    /// reserve replaces the default one of its name and joins the others.
    "defaults": words! {
        /// a limit of 99 %, and reserves sporadic and aperiodic of 10us in 100us each
        "nautilus";
    }, "nautilus";
};

static MISSING_TIME: Keys = keys! {
    /// At most this is taken in any window of `period`.
    "budget": Duration, "50us", needed;
    /// Smallest distance between the starts of two takings.
    "period": Duration, "10ms", needed;
};

static LIMITS: Keys = keys! {
    /// Everything with a guarantee together, reserves included.
    "utilization": Percentage, "99%", needed;
};

static RESERVE: Keys = keys! {
    /// The name under which explanations show it.
    "name": Text, "fair-server", needed;
    /// Supply taken per period.
    "budget": Duration, "600us", needed;
    /// Smallest distance between the starts of two takings.
    "period": Duration, "10ms", needed;
};
