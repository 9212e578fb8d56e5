//! What a switch through the core costs by itself: threads of one urgency that yield in turn.
//!
//! With everything that a run has: clock, charge, budget, policy, record, trace, storage of each
//! thread. Every thread is ready all the time, and every yield switches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_linux::bench::through_core;
use punctual_linux::{Body, job};
use punctual_model::{Ns, PolicyKind};
use punctual_policy::AnyPolicy;
use punctual_rivals::on;
use punctual_trace::Recorder;

use super::figure::{Measured, of_cycles, time};
use super::live::{Live, MOST_NS, Notebook, endless, place, tables_of};

/// More than an entry writes down.
pub(super) const BYTES_PER_ENTRY: usize = 160;
/// Yields of one sample, at least.
const YIELDS: u32 = 100;
/// Yields of a figure.
const ALL_YIELDS: u32 = if cfg!(debug_assertions) {
    2_000
} else {
    200_000
};

/// One yield of `threads` equals, each of which gives way to all others in turn.
pub(super) fn yields(policy: PolicyKind<Ns>, threads: u32) -> Result<Measured, String> {
    yields_below(0, policy, threads)
}

/// The same, with so many schedulers between the CPU's own and the threads.
pub(super) fn yields_below(
    levels: u16,
    policy: PolicyKind<Ns>,
    threads: u32,
) -> Result<Measured, String> {
    let rounds = YIELDS.div_ceil(threads);
    let per_sample = rounds * threads;
    let samples = ALL_YIELDS.div_ceil(per_sample).max(10);
    let notebook = Notebook::default();
    let theirs = Arc::new(AtomicU64::new(0));
    let (kept, seen) = (notebook.clone(), Arc::clone(&theirs));
    let measuring: Body = Box::new(move |_| {
        kept.take_all(samples as usize, || {
            let before = seen.load(Ordering::Relaxed);
            let ns = time(per_sample, || {
                for _ in 0..rounds {
                    job::yield_now();
                }
            });
            let switched = seen.load(Ordering::Relaxed).wrapping_sub(before);
            let expected = u64::from(rounds) * u64::from(threads - 1);
            match switched == expected {
                true => Ok(ns),
                false => Err(format!("{switched} of {expected} yields switched")),
            }
        });
    });
    let mut tasks = vec![(endless("measuring", 1, 0), measuring)];
    for index in 1..threads {
        let (over, turns) = (notebook.clone(), Arc::clone(&theirs));
        let body: Body = Box::new(move |_| {
            while !over.is_over() {
                // All of them on one CPU, which a yield alone takes from them here.
                turns.store(turns.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                job::yield_now();
            }
        });
        tasks.push((endless(&format!("equal{index}"), 1, 0), body));
    }
    let entries = (samples as usize + 1) * per_sample as usize;
    let live = Live {
        levels,
        record_bytes: entries * BYTES_PER_ENTRY + (1 << 20),
        ..Live::of(policy, tasks)
    };
    live.run(&notebook)
}

/// The same by the core and the dispatch alone: no gate, no timer, and storage that all share.
pub(super) fn core_yields(policy: PolicyKind<Ns>, threads: u32) -> Result<Measured, String> {
    let tasks = (0..threads).map(|index| endless(&format!("equal{index}"), 1, 0));
    let (_, mut tables) = tables_of(policy, tasks.collect(), MOST_NS);
    let cpu = tables.cpus.pop().ok_or("no CPU")?;
    let rounds = YIELDS.div_ceil(threads);
    let per_sample = (rounds * threads) as usize;
    let samples = (ALL_YIELDS as usize).div_ceil(per_sample).max(10);
    let bytes = (samples + 1) * per_sample * BYTES_PER_ENTRY + (1 << 20);
    let samples = on(place()?, move || {
        let shard = cpu
            .build(AnyPolicy::new)
            .map_err(|error| error.to_string())?;
        let sink = Recorder::with_capacity(bytes).map_err(|error| error.to_string())?;
        Ok(through_core(samples, per_sample, shard, sink))
    })?;
    if samples.is_empty() {
        return Err("not every yield switched, or there is no memory".into());
    }
    of_cycles(samples)
}
