//! Stacks: reserved memory with a guard below it, used again by the next thread.
//!
//! Only what a thread touches takes memory. The number of stacks is bounded; beyond it, the caller
//! goes on where it stands, and that is counted.

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::sys;

const PAGE: usize = 4_096;
/// Large enough that a frame without stack probes (C code) does not step over it easily.
const GUARD: usize = 4 * PAGE;
/// From the top of one stack to that of the next, within a page: an odd number of cache lines, so
/// that the tops do not compete for the same places of the caches.
const STEP: usize = 13 * 64;
/// How many there may be.
const MOST: usize = 8_192;

/// How many have been made.
static MADE: AtomicUsize = AtomicUsize::new(0);
/// How often there was none to be had.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

/// Maps a stack of so many bytes; the address just above it. `None`: the bound is reached, or there
/// is no memory.
pub(crate) fn try_new(usable: usize) -> Option<*mut u8> {
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let bytes = usable.max(16 * PAGE).next_multiple_of(PAGE) + PAGE + GUARD;
    let area = (number < MOST)
        .then(|| sys::map_stack(bytes, GUARD))
        .flatten();
    if area.is_none() {
        MADE.fetch_sub(1, Ordering::Relaxed);
        REFUSED.fetch_add(1, Ordering::Relaxed);
    }
    area.map(|area| area.wrapping_add(bytes - number.wrapping_mul(STEP) % PAGE))
}

/// How many stacks there are, and how often there was none to be had.
pub(crate) fn counts() -> (usize, usize) {
    let load = |word: &AtomicUsize| word.load(Ordering::Relaxed);
    (load(&MADE), load(&REFUSED))
}
