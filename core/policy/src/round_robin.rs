//! Round robin: everybody in turn, for at most a timeslice of executed time.
//!
//! Gives up: urgency; a job with n others ready receives one timeslice in n+1. In exchange nobody
//! waits longer than n timeslices for its next turn.

use punctual_model::{Instant, Span, ThreadId, Work};
use punctual_order::{Attributes, Pick, Policy, ReadyQueue};

/// Ready threads by the number of their turn.
#[derive(Debug)]
pub struct RoundRobin {
    ready: ReadyQueue<u64>,
    timeslice: Span,
    /// Number of the next turn to be given out.
    next_turn: u64,
    /// The rest of the timeslice of the thread at the head.
    left: Span,
}

impl RoundRobin {
    /// For threads with an index below `capacity`; `timeslice` in ticks of the platform, at least
    /// one.
    pub fn new(capacity: usize, timeslice: Span) -> Self {
        let timeslice = timeslice.max(Span::from_ticks(1));
        RoundRobin {
            ready: ReadyQueue::new(capacity),
            timeslice,
            next_turn: 0,
            left: timeslice,
        }
    }

    fn is_head(&self, thread: ThreadId) -> bool {
        self.ready.first().is_some_and(|(head, _)| head == thread)
    }

    fn queue_last(&mut self, thread: ThreadId) {
        self.ready.insert(thread, self.next_turn);
        self.next_turn += 1;
    }

    /// The head goes to the end of the queue.
    fn turn_over(&mut self) {
        self.ready.defer_first(self.next_turn);
        self.next_turn += 1;
    }
}

impl Policy for RoundRobin {
    #[inline]
    fn wake(&mut self, thread: ThreadId, _: &Attributes) {
        self.queue_last(thread);
    }

    #[inline]
    fn block(&mut self, thread: ThreadId) {
        if self.is_head(thread) {
            self.left = self.timeslice;
        }
        self.ready.remove(thread);
    }

    /// A new deadline changes nothing here: the thread keeps its turn.
    fn update(&mut self, _: ThreadId, _: &Attributes) {}

    /// Nor does a new budget.
    fn renew(&mut self, _: ThreadId, _: &Attributes) {}

    #[inline]
    fn yield_now(&mut self, thread: ThreadId) {
        if self.is_head(thread) {
            self.left = self.timeslice;
            self.turn_over();
        }
    }

    #[inline]
    fn charge(&mut self, thread: ThreadId, work: Work) {
        if !self.is_head(thread) {
            return;
        }
        // Alone, nobody waits for the end of a turn, so no timer cuts it: it begins when somebody
        // comes, or its rest would depend on how often the core was entered meanwhile.
        if self.ready.len() == 1 {
            self.left = self.timeslice;
            return;
        }
        self.left = self.left.saturating_sub(work.as_span());
        if self.left.is_zero() {
            self.left = self.timeslice;
            self.turn_over();
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pick(&mut self, now: Instant) -> Pick {
        let Some((thread, _)) = self.ready.first() else {
            return Pick::NOBODY;
        };
        let alone = self.ready.len() == 1;
        Pick {
            entity: Some(thread),
            until: (!alone).then(|| now.saturating_add(self.left)),
        }
    }
}
