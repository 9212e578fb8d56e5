//! What a switch through the core costs by itself: threads of one urgency that yield in turn.
//!
//! With everything that a run has: clock, charge, budget, policy, record, trace, storage of each
//! thread. Every thread is ready all the time, and every yield switches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_kern::Shard;
use punctual_linux::bench::through_core;
use punctual_linux::{Body, job};
use punctual_model::{Ns, PolicyKind};
use punctual_policy::AnyPolicy;
use punctual_rivals::on;
use punctual_trace::Recorder;

use super::counting::{batch, units};
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
    let rounds = units(YIELDS.div_ceil(threads));
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
    let per_sample = YIELDS.next_multiple_of(threads) as usize;
    let samples = (ALL_YIELDS as usize).div_ceil(per_sample).max(10);
    let samples = on(place()?, move || {
        let (shard, sink) = world(policy, threads, (samples + 1) * per_sample)?;
        Ok(through_core(samples, per_sample, shard, sink))
    })?;
    if samples.is_empty() {
        return Err(NO_SAMPLES.into());
    }
    of_cycles(samples)
}

const NO_SAMPLES: &str = "not every yield switched, or there is no memory";

/// One batch or three of such yields in turn, so that what they have in common does not count.
pub(super) fn count_core_yields(policy: PolicyKind<Ns>, threads: u32) -> Result<(), String> {
    const COUNTED: u32 = 4;
    let each = COUNTED.next_multiple_of(threads);
    for batches in [1_u8, 1, 3] {
        let (shard, sink) = world(policy, threads, 4 * each as usize)?;
        let mut samples = Vec::new();
        batch(u32::from(batches) * each, || {
            samples = through_core(batches.into(), each as usize, shard, sink);
        });
        if samples.is_empty() {
            return Err(NO_SAMPLES.into());
        }
    }
    Ok(())
}

/// A CPU's core of so many equals, and room for the record of so many yields.
fn world(
    policy: PolicyKind<Ns>,
    threads: u32,
    yields: usize,
) -> Result<(Shard<AnyPolicy>, Recorder), String> {
    let tasks = (0..threads).map(|index| endless(&format!("equal{index}"), 1, 0));
    let (_, mut tables) = tables_of(policy, tasks.collect(), MOST_NS);
    let cpu = tables.cpus.pop().ok_or("no CPU")?;
    let shard = cpu.build(AnyPolicy::new).map_err(|e| e.to_string())?;
    let bytes = yields * BYTES_PER_ENTRY + (1 << 20);
    let sink = Recorder::with_capacity(bytes).map_err(|e| e.to_string())?;
    Ok((shard, sink))
}
