//! The dispatch by itself: from one record to another, without a policy and without the core.
//!
//! Once bare, and once with the ring of events looked at, the clock read, the thread charged and an
//! event traced. Threads with storage of their own pay for the thread pointer as well.

use punctual_linux::bench::{Sharing, direct, direct_full};
use punctual_rivals::{contexts, kernel, on};

use super::counting::{Counted, batch};
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
            .counted(Counted::by(move || count(dispatches, sharing)))
            .against("boost.context", rival(contexts::boost))
            .against("corosensei", rival(contexts::corosensei))
            .against("swapcontext", rival(contexts::swapcontext))
            .against("sched_yield", rival(kernel::sched_yield))
            .against("futex", rival(kernel::futex_same_cpu))
    };
    figures.into_iter().map(bench).collect()
}

type Dispatches = fn(usize, Sharing) -> Vec<f64>;

/// Dispatches of a batch of these functions.
const DISPATCHES: u32 = 100;

/// Executes one batch or three of them in turn, so that what they have in common does not count.
fn count(dispatches: Dispatches, sharing: Sharing) -> Result<(), String> {
    for batches in [1_u8, 1, 3] {
        let mut samples = Vec::new();
        batch(DISPATCHES * u32::from(batches), || {
            samples = dispatches(batches.into(), sharing);
        });
        if samples.is_empty() {
            return Err(NO_STORAGE.into());
        }
    }
    Ok(())
}

const NO_STORAGE: &str = "this machine or its C library does not let threads have storage";

fn measure(dispatches: Dispatches, sharing: Sharing) -> Result<Measured, String> {
    let samples = on(place()?, move || Ok(dispatches(BATCHES, sharing)))?;
    if samples.is_empty() {
        return Err(NO_STORAGE.into());
    }
    of_cycles(samples)
}
