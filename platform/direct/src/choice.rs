//! The order of direct threads in place of turns.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::collections::VecDeque;

use punctual_model::Instant;

use crate::DirectId;
use crate::word::NOBODY;

/// The order of a [`crate::Scheduler`]'s threads where they say themselves who is next.
///
/// A thread that was preempted goes on, unless the preemption ended at or after an instant that was
/// said before: then the *next* thread goes first, and the interrupted one stays ready. The next
/// thread goes on, too, where a thread yields, blocks or ends without naming another. Where it is
/// not ready, turns go on.
///
/// It is data and no function, because the preemption signal asks it. All calls are O(1).
#[derive(Debug)]
pub struct Choice {
    next: AtomicUsize,
    from: AtomicU64,
}

impl Default for Choice {
    fn default() -> Choice {
        Choice::new()
    }
}

impl Choice {
    /// Nobody is next, and preempted threads go on.
    pub const fn new() -> Choice {
        Choice {
            next: AtomicUsize::new(NOBODY),
            from: AtomicU64::new(u64::MAX),
        }
    }

    /// This thread is next.
    pub fn set_next(&self, thread: DirectId) {
        self.next.store(thread.0, Ordering::Relaxed);
    }

    /// A preemption that ends at this instant of the run or later hands over to the next thread. So
    /// does a thread that names another from then on. [`Instant::MAX`]: none does.
    pub fn set_from(&self, at: Instant) {
        self.from.store(at.ticks(), Ordering::Relaxed);
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now.ticks() >= self.from.load(Ordering::Relaxed)
    }

    /// The place of the next thread in the queue, if it is there. O(threads).
    pub(crate) fn place_in(&self, ready: &VecDeque<usize>) -> Option<usize> {
        let next = self.next.load(Ordering::Relaxed);
        ready.iter().position(|&thread| thread == next)
    }
}
