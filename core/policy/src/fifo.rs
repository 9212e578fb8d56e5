//! First come, first served: by release, and nobody is preempted.
//!
//! Gives up: urgency altogether; a short deadline waits behind every job released before. In
//! exchange the longest wait is the same for all and easily bounded.

use punctual_model::{Instant, ThreadId, Work};
use punctual_order::{Attributes, Pick, Policy, ReadyQueue};

/// Ready threads by release, then order in the file; the first runs until it blocks or completes.
#[derive(Debug)]
pub struct Fifo {
    ready: ReadyQueue<(Instant, u32)>,
    /// The thread that has begun to execute.
    holder: Option<ThreadId>,
}

impl Fifo {
    /// For threads with an index below `capacity`.
    pub fn new(capacity: usize) -> Self {
        Fifo {
            ready: ReadyQueue::new(capacity),
            holder: None,
        }
    }
}

impl Policy for Fifo {
    #[inline]
    fn wake(&mut self, thread: ThreadId, a: &Attributes) {
        self.ready.insert(thread, (a.release, a.order));
    }

    #[inline]
    fn block(&mut self, thread: ThreadId) {
        self.ready.remove(thread);
        if self.holder == Some(thread) {
            self.holder = None;
        }
    }

    /// A thread that has begun goes on, whatever it inherits.
    fn update(&mut self, thread: ThreadId, a: &Attributes) {
        self.wake(thread, a);
    }

    #[inline]
    fn charge(&mut self, thread: ThreadId, _: Work) {
        self.holder = Some(thread);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pick(&mut self, _now: Instant) -> Pick {
        let first = || self.ready.first().map(|(thread, _)| thread);
        Pick {
            entity: self.holder.or_else(first),
            until: None,
        }
    }
}
