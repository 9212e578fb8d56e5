//! The ones who took time from a run.

use std::fmt;

use punctual_kern::Taker;
use punctual_model::{Instant, readable};

use crate::behavior::Behavior;
use crate::log::Log;

/// Stolen time by the one that took it, in nanoseconds. The platform did not tell of the rest.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TakenBy {
    /// The kernel ran other threads, or had stopped the process.
    pub kernel_ns: u64,
    /// A hypervisor, interrupts, firmware.
    pub below_ns: u64,
    /// Slices that were given back and did not end as planned.
    pub late_slices_ns: u64,
}

impl TakenBy {
    pub(super) fn during(log: &Log, behavior: &Behavior, from: Instant, to: Instant) -> TakenBy {
        let taken = |taker| log.ns(behavior.taken_during(from, to, taker).ticks());
        TakenBy {
            kernel_ns: taken(Taker::Kernel),
            below_ns: taken(Taker::Below),
            late_slices_ns: taken(Taker::LateSlice),
        }
    }
}

/// `kernel 1.2ms, below 30us`; nothing if nobody is known.
impl fmt::Display for TakenBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("kernel", self.kernel_ns),
            ("below", self.below_ns),
            ("late slices", self.late_slices_ns),
        ];
        let known = parts.into_iter().filter(|(_, ns)| *ns > 0);
        for (at, (name, ns)) in known.enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{name} {}", readable(ns))?;
        }
        Ok(())
    }
}
