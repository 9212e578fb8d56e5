//! The ones who took time from a run.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use punctual_kern::Taker;
use punctual_model::{Instant, readable};

use crate::behavior::Behavior;
use crate::log::Log;

/// Stolen time by the one that took it, in nanoseconds. The platform did not tell of the rest.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TakenBy {
    /// The kernel ran other threads, or had stopped the process.
    pub kernel_ns: u64,
    /// A hypervisor, interrupts, firmware.
    pub below_ns: u64,
    /// Slices that were given back and did not end as planned.
    pub late_slices_ns: u64,
    /// Of the kernel's part, the threads that had most, most first; empty where the kernel did not
    /// tell.
    pub threads: Vec<ThreadShare>,
}

/// The part of a thread of the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ThreadShare {
    /// Its name; threads of one name count together.
    pub name: String,
    /// How much.
    pub taken_ns: u64,
}

const KERNEL: &str = "kernel";
/// So many threads are named.
const MOST_NAMED: usize = 4;

impl TakenBy {
    /// The time that was taken from CPU `cpu` in [`from`, `to`). O(gaps + threads that took time).
    pub(super) fn during(
        log: &Log,
        (cpu, behavior): (usize, &Behavior),
        (from, to): (Instant, Instant),
    ) -> TakenBy {
        let taken = |taker| log.ns(behavior.taken_during(from, to, taker).ticks());
        TakenBy {
            kernel_ns: taken(Taker::Kernel),
            below_ns: taken(Taker::Below),
            late_slices_ns: taken(Taker::LateSlice),
            threads: threads(log, cpu, (from, to)),
        }
    }
}

fn threads(log: &Log, cpu: usize, (from, to): (Instant, Instant)) -> Vec<ThreadShare> {
    let takers = log
        .cpus
        .get(cpu)
        .map_or(&[][..], |cpu| &cpu.counters.takers);
    let mut by_name = BTreeMap::<&str, u64>::new();
    for taker in takers.iter().filter(|t| t.at > from && t.at <= to) {
        let taken_ns = by_name.entry(&taker.name).or_default();
        *taken_ns = taken_ns.saturating_add(taker.ns);
    }
    let share = |(name, taken_ns): (&str, u64)| ThreadShare {
        name: name.into(),
        taken_ns,
    };
    let mut shares: Vec<ThreadShare> = by_name.into_iter().map(share).collect();
    shares.sort_by_key(|share| Reverse(share.taken_ns));
    shares.truncate(MOST_NAMED);
    shares
}

/// `kernel 1.2ms (`sh` 1.1ms), below 30us`; nothing if nobody is known. Without a name it says that
/// the kernel did not tell any.
impl fmt::Display for TakenBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (KERNEL, self.kernel_ns),
            ("below", self.below_ns),
            ("late slices", self.late_slices_ns),
        ];
        let known = parts.into_iter().filter(|(_, ns)| *ns > 0);
        for (at, (name, ns)) in known.enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{name} {}", readable(ns))?;
            if name == KERNEL && self.threads.is_empty() {
                f.write_str(" (it did not tell for whom)")?;
            } else if name == KERNEL {
                let threads = self.threads.iter();
                let named = threads.map(|t| format!("`{}` {}", t.name, readable(t.taken_ns)));
                let named: Vec<String> = named.collect();
                write!(f, " ({})", named.join(", "))?;
            }
        }
        Ok(())
    }
}
