//! The cost of a wake-up by the kernel: nobody spins for longer before it sleeps.
//!
//! The first sleeps of a process measure it, from the ring of the bell to the first instruction
//! behind it. The shortest of them counts: others met a CPU that was busy. Until then it is what a
//! machine of two CPUs needs.

use core::sync::atomic::{AtomicU64, Ordering};

/// Cycles before anything was measured (16,000 to 18,000 were seen from one CPU to another).
const BEFORE: u64 = 18_000;
/// The bounds of what is believed: two calls of the kernel, and what no spin is worth.
const BOUNDS: (u64, u64) = (4_000, 100_000);
/// Sleeps that are measured.
const MEASURED: u64 = 16;

static LEFT: AtomicU64 = AtomicU64::new(MEASURED);
static LEAST: AtomicU64 = AtomicU64::new(u64::MAX);
static CYCLES: AtomicU64 = AtomicU64::new(BEFORE);

/// Cycles of a wake-up.
#[inline]
pub(crate) fn cycles() -> u64 {
    CYCLES.load(Ordering::Relaxed)
}

/// Whether a sleep is still to be measured.
pub(crate) fn is_measured() -> bool {
    LEFT.load(Ordering::Relaxed) > 0
}

/// A carrier that slept was woken so many cycles after its bell rang.
pub(crate) fn note(cycles: u64) {
    let order = (Ordering::Relaxed, Ordering::Relaxed);
    let less = |left: u64| left.checked_sub(1);
    let Ok(left) = LEFT.fetch_update(order.0, order.1, less) else {
        return;
    };
    LEAST.fetch_min(cycles, Ordering::Relaxed);
    if left == 1 {
        let least = LEAST.load(Ordering::Relaxed);
        CYCLES.store(least.clamp(BOUNDS.0, BOUNDS.1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_of_the_first_wake_ups_counts_and_later_ones_do_not() {
        assert_eq!(cycles(), BEFORE);
        for round in 0..MEASURED {
            assert!(is_measured());
            note(30_000 - 100 * round);
        }
        assert_eq!(cycles(), 30_000 - 100 * (MEASURED - 1));
        assert!(!is_measured());
        note(5_000);
        assert_eq!(cycles(), 30_000 - 100 * (MEASURED - 1));
    }
}
