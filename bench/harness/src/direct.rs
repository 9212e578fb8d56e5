//! The dispatch by itself: from one record to another, without a policy and without the core.
//!
//! Once bare, and once with the ring of events looked at, the clock read, the thread charged and an
//! event traced. Threads with storage of their own pay for the thread pointer as well.

use punctual_linux::bench::{Sharing, direct, direct_full};
use punctual_rivals::{contexts, kernel, on};

use super::figure::{Bench, Measured, of_cycles};
use super::live::place;
use super::switching::rival;

/// Samples, each of a hundred dispatches.
const BATCHES: usize = if cfg!(debug_assertions) { 100 } else { 5_000 };

pub(super) fn benches() -> Vec<Bench> {
    let figures = [
        ("switch.direct", direct as Dispatches, Sharing::Shared),
        ("switch.direct_full", direct_full, Sharing::Shared),
        ("switch.direct.own_storage", direct, Sharing::Own),
        ("switch.direct_full.own_storage", direct_full, Sharing::Own),
    ];
    let bench = |(name, dispatches, sharing): (&str, Dispatches, Sharing)| {
        Bench::in_cycles(name, move || measure(dispatches, sharing))
            .against("boost.context", rival(contexts::boost))
            .against("corosensei", rival(contexts::corosensei))
            .against("swapcontext", rival(contexts::swapcontext))
            .against("sched_yield", rival(kernel::sched_yield))
            .against("futex", rival(kernel::futex_same_cpu))
    };
    figures.into_iter().map(bench).collect()
}

type Dispatches = fn(usize, Sharing) -> Vec<f64>;

fn measure(dispatches: Dispatches, sharing: Sharing) -> Result<Measured, String> {
    let samples = on(place()?, move || Ok(dispatches(BATCHES, sharing)))?;
    if samples.is_empty() {
        return Err("this machine or its C library does not let threads have storage".into());
    }
    of_cycles(samples)
}
