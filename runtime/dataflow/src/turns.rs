//! The turns of a tile where the core decides: each actor is a thread of it
//!
//! A thread fires once, or finds that it may not, and yields to the others. Where none of them may
//! fire, the last one looks at the FIFOs of all. So the core, and the record of a run, hear nothing
//! of an idle tile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_linux::job;

use crate::ends::Watch;
use crate::meter::Meter;

/// One that polls lets the others look so often: a firing that waits in a call of its function goes
/// on then.
const POLL_NS: u64 = 50_000;

/// Shared by the threads of one tile.
#[derive(Debug)]
pub(crate) struct OfTile {
    watch: Watch,
    threads: u64,
    /// Looks in vain, one after the other, since anything has changed.
    in_vain: AtomicU64,
    /// The sum of tokens and space before the first of them.
    seen: AtomicU64,
}

impl OfTile {
    pub(crate) fn new(watch: Watch, threads: usize) -> OfTile {
        OfTile {
            watch,
            threads: threads as u64,
            in_vain: AtomicU64::new(0),
            seen: AtomicU64::new(0),
        }
    }
}

/// The turns of one thread.
#[derive(Debug)]
pub(crate) struct Turns {
    shared: Arc<OfTile>,
    meter: Meter,
}

impl Turns {
    pub(crate) fn new(shared: Arc<OfTile>, meter: Meter) -> Turns {
        Turns { shared, meter }
    }

    /// Its thread looks whether it may fire. O(FIFOs of the tile) where others have not looked in
    /// vain already.
    pub(crate) fn looks(&self) {
        let of_tile = &self.shared;
        if of_tile.in_vain.load(Ordering::Relaxed) == 0 {
            let sum = of_tile.watch.sum();
            of_tile.seen.store(sum, Ordering::Relaxed);
        }
    }

    /// Its turn is over: it has `fired`, or may not. Returns in its next turn.
    pub(crate) fn over(&self, fired: bool) {
        let of_tile = &self.shared;
        let in_vain = of_tile.in_vain.load(Ordering::Relaxed) + 1;
        let polls = !fired && in_vain >= of_tile.threads;
        if polls {
            self.poll();
        }
        let in_vain = if fired || polls { 0 } else { in_vain };
        of_tile.in_vain.store(in_vain, Ordering::Relaxed);
        job::yield_now();
    }

    /// Until another tile has read or written, or the others are to look again.
    fn poll(&self) {
        let of_tile = &self.shared;
        let start = self.meter.read().now;
        let long = self.meter.frequency().ticks_up(POLL_NS);
        let seen = of_tile.seen.load(Ordering::Relaxed);
        while of_tile.watch.sum() == seen {
            job::checkpoint();
            core::hint::spin_loop();
            if self.meter.read().now.since(start).ticks() >= long {
                break;
            }
        }
    }
}
