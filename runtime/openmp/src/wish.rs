//! The word of a program's lock, and one who wishes to have it.
//!
//! ```text
//!   0   free        1   held        2   held, and somebody may wait
//! ```
//!
//! One who finds it held says that it waits, under the lock of the list of waiters, and is put on
//! the list. One who lets go of a word that says so looks at the list, and has the first on it try
//! again. That one takes the word as if another waited still: there may be one. Every operation is
//! wait-free.

use core::cell::Cell;

use crate::atomic::{AtomicU32, Ordering};

const FREE: u32 = 0;
const HELD: u32 = 1;
const WANTED: u32 = 2;

/// A wish for a lock, until it is granted.
#[derive(Debug)]
pub(crate) struct Wish(Cell<u32>);

impl Wish {
    pub(crate) const fn new() -> Wish {
        Wish(Cell::new(HELD))
    }

    /// Takes the word if it is free.
    #[inline]
    pub(crate) fn take(&self, word: &AtomicU32) -> bool {
        let order = (Ordering::Acquire, Ordering::Relaxed);
        word.compare_exchange(FREE, self.0.get(), order.0, order.1)
            .is_ok()
    }

    /// Says that somebody waits. `true`: the word has become free, and is the caller's.
    pub(crate) fn wait(&self, word: &AtomicU32) -> bool {
        self.0.set(WANTED);
        word.swap(WANTED, Ordering::Acquire) == FREE
    }
}

/// Lets go of the word; whether somebody may wait for it.
#[inline]
pub(crate) fn let_go(word: &AtomicU32) -> bool {
    word.swap(FREE, Ordering::Release) == WANTED
}
