//! A ticket lock between CPUs: first come, first served.
//!
//! The holder has its own CPU to itself (gate closed), and so has each thread that spins for the
//! lock. It is held for one critical section, so a thread spins for one section of each other CPU
//! at most (MSRP: Gai, Lipari and Di Natale 2001, §4).

use super::atomic::{AtomicU32, Ordering, pause};

/// A ticket lock.
#[derive(Debug)]
pub(crate) struct TicketLock {
    /// The next number that is given out.
    next: AtomicU32,
    /// The number that holds the lock.
    now: AtomicU32,
}

impl TicketLock {
    /// Of two words that are 0; given, because those of a model checker are not made in constants.
    pub(crate) const fn of(next: AtomicU32, now: AtomicU32) -> TicketLock {
        TicketLock { next, now }
    }

    /// Spins until the lock is the caller's, until [`TicketLock::release`].
    pub(crate) fn acquire(&self) {
        let mine = self.next.fetch_add(1, Ordering::Relaxed);
        // What earlier holders did is seen by this one.
        while self.now.load(Ordering::Acquire) != mine {
            pause();
        }
    }

    /// The caller gives the lock to the next.
    pub(crate) fn release(&self) {
        // Nobody but the holder writes here.
        let mine = self.now.load(Ordering::Relaxed);
        self.now.store(mine.wrapping_add(1), Ordering::Release);
    }
}
