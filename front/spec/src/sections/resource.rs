//! The keys of a resource, and of the sections in which jobs hold one.

use crate::shape::Shape::{Duration, ResourceName};
use crate::shape::{Keys, keys, words};

pub(super) static RESOURCE: Keys = keys! {
    /// The protocol that keeps the wait for it short; "inheritance" when absent.
    "protocol": words! {
        /// the holder is as urgent as the most urgent job that waits for it
        "inheritance";
        /// the holder is as urgent as the most urgent task that uses it
        "immediate-ceiling";
        /// no job starts unless it could lock everything it may need
        "srp";
        /// the holder is not preempted by its siblings
        "non-preemptive";
        /// across CPUs: first come, first served, waiting without preemption
        "spin";
        /// across CPUs: for segments of groups only, whose plan says who uses it when
        "planned";
    }, "inheritance";
    /// The rule for a holder whose server runs out of budget; "overrun" when absent.
    "at-budget-end": words! {
        /// it finishes its section; the next budget pays
        "overrun";
        /// a section that does not fit into what is left is not begun
        "check-first";
    }, "overrun";
};

pub(super) static USE: Keys = keys! {
    /// The resource that is locked.
    "resource": ResourceName, "bus", needed;
    /// Longest execution while it is locked, inner sections included.
    "for": Duration, "1ms", needed;
    /// Alone or with other readers; "exclusive" when absent.
    "mode": words! {
        /// alone
        "exclusive";
        /// together with others that lock it so
        "shared";
    }, "exclusive";
    /// The resource in whose section, written before, this one is nested.
    "inside": ResourceName, "other";
};
