//! Events from the preemption signal to a scheduler: wait-free, and never lost.
//!
//! The signal writes, the scheduler reads; both on one kernel thread, so plain words do, and no
//! loop waits for the other side. What does not fit is added to the overflow: the scheduler finds
//! out how much it missed and fetches it where it is kept (with each thread).

use crate::words::{AtomicU64, Ordering, Place, compiler_fence};

/// Events that the ring holds.
pub const RING_SLOTS: usize = 16;

/// A thread was preempted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PreemptionEvent {
    /// The tag of its record.
    pub tag: u64,
    /// What it had executed since it was dispatched to, in ticks of the platform's clock.
    pub executed: u64,
}

/// Single writer (the signal), single reader (the scheduler).
#[derive(Debug)]
pub struct EventRing {
    written: AtomicU64,
    read: AtomicU64,
    overflow: AtomicU64,
    slots: [Place<PreemptionEvent>; RING_SLOTS],
}

// SAFETY: both sides are on one kernel thread. A slot is written before `written` covers it, and
// not again before `read` has passed it; compiler fences keep that order.
unsafe impl Sync for EventRing {}

impl EventRing {
    /// An empty ring.
    pub const fn new() -> EventRing {
        EventRing {
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            overflow: AtomicU64::new(0),
            slots: [const {
                Place::new(PreemptionEvent {
                    tag: 0,
                    executed: 0,
                })
            }; RING_SLOTS],
        }
    }

    /// Whether there is nothing to read: two loads and a comparison.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.written.load(Ordering::Relaxed) == self.read.load(Ordering::Relaxed)
            && self.overflow.load(Ordering::Relaxed) == 0
    }

    /// By the signal, behind a gate that keeps a second one out. `false`: the ring is full, and the
    /// event has been counted as overflow.
    pub fn post(&self, event: PreemptionEvent) -> bool {
        let written = self.written.load(Ordering::Relaxed);
        let used = written.wrapping_sub(self.read.load(Ordering::Relaxed));
        if used >= RING_SLOTS as u64 {
            self.overflow.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        // SAFETY: the slot is free (just checked), and this is the only writer.
        unsafe { self.slot(written).put(event) };
        compiler_fence(Ordering::Release);
        self.written
            .store(written.wrapping_add(1), Ordering::Relaxed);
        true
    }

    /// By the scheduler: the oldest event.
    pub fn take(&self) -> Option<PreemptionEvent> {
        let read = self.read.load(Ordering::Relaxed);
        if read == self.written.load(Ordering::Relaxed) {
            return None;
        }
        compiler_fence(Ordering::Acquire);
        // SAFETY: `written` covers the slot, and the writer leaves it alone until `read` passes.
        let event = unsafe { self.slot(read).get() };
        compiler_fence(Ordering::Release);
        self.read.store(read.wrapping_add(1), Ordering::Relaxed);
        Some(event)
    }

    /// By the scheduler: how many events did not fit since the last time. They are to be fetched
    /// where the signal keeps them; to be asked before fetching, so that what comes meanwhile is
    /// counted again rather than missed.
    pub fn take_overflow(&self) -> u64 {
        self.overflow.swap(0, Ordering::Relaxed)
    }

    fn slot(&self, number: u64) -> &Place<PreemptionEvent> {
        // Below RING_SLOTS, so it fits.
        #[allow(clippy::cast_possible_truncation)]
        &self.slots[(number % RING_SLOTS as u64) as usize]
    }
}

impl Default for EventRing {
    fn default() -> Self {
        EventRing::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(tag: u64) -> PreemptionEvent {
        PreemptionEvent { tag, executed: tag }
    }

    #[test]
    fn events_come_out_in_order_and_what_does_not_fit_is_counted() {
        let ring = EventRing::new();
        for round in 0..5 {
            for tag in 0..RING_SLOTS as u64 {
                assert!(ring.post(event(round * 100 + tag)));
            }
            assert!(!ring.post(event(99)) && !ring.post(event(99)));
            assert!(!ring.is_empty());
            for tag in 0..RING_SLOTS as u64 {
                assert_eq!(ring.take(), Some(event(round * 100 + tag)));
            }
            assert_eq!(ring.take(), None);
            assert!(!ring.is_empty(), "an overflow is an event");
            assert_eq!(ring.take_overflow(), 2);
            assert!(ring.is_empty());
        }
    }
}
