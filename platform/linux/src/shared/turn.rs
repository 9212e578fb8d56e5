//! Turns between CPUs: first come, first served.
//!
//! Whoever takes a turn has its own CPU to itself (gate closed) and so has everybody else who
//! waits: a turn is as long as a visit, and who waits for one waits for one visit of each other CPU
//! at most (MSRP: Gai, Lipari and Di Natale 2001, §4).

use super::atomic::{AtomicU32, Ordering, pause};

/// A ticket lock.
#[derive(Debug)]
pub(crate) struct Turn {
    /// The next number that is given out.
    next: AtomicU32,
    /// The number whose turn it is.
    now: AtomicU32,
}

impl Turn {
    /// Of two words that are 0; given, because those of a model checker are not made in constants.
    pub(crate) const fn of(next: AtomicU32, now: AtomicU32) -> Turn {
        Turn { next, now }
    }

    /// Waits for the caller's turn, which lasts until [`Turn::pass`].
    pub(crate) fn take(&self) {
        let mine = self.next.fetch_add(1, Ordering::Relaxed);
        // What was done in earlier turns is seen in this one.
        while self.now.load(Ordering::Acquire) != mine {
            pause();
        }
    }

    /// The caller's turn is over.
    pub(crate) fn pass(&self) {
        // Nobody else writes here during a turn.
        let mine = self.now.load(Ordering::Relaxed);
        self.now.store(mine.wrapping_add(1), Ordering::Release);
    }
}
