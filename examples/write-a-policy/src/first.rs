//! The first attempt: an order, and an instant at which every turn ends. Wrong.

use std::cmp::Reverse;

use punctual_kern::{Attributes, Pick, Policy, ReadyQueue};
use punctual_model::{Instant, Span, ThreadId};

/// How long a turn is, in ticks.
const TURN: Span = Span::from_ticks(100_000);

/// Ready threads by priority, then by ticket: who comes later has a larger one.
#[derive(Debug)]
pub struct Turns {
    ready: ReadyQueue<(Reverse<u32>, u64)>,
    next_ticket: u64,
}

impl Turns {
    /// For threads with an index below `capacity`.
    pub fn new(capacity: usize) -> Self {
        Turns {
            ready: ReadyQueue::new(capacity),
            next_ticket: 0,
        }
    }
}

impl Policy for Turns {
    fn wake(&mut self, thread: ThreadId, attributes: &Attributes) {
        let urgency = Reverse(attributes.priority.number());
        self.ready.insert(thread, (urgency, self.next_ticket));
        self.next_ticket += 1;
    }

    fn block(&mut self, thread: ThreadId) {
        self.ready.remove(thread);
    }

    fn pick(&mut self, now: Instant) -> Pick {
        match self.ready.first() {
            Some((thread, _)) => Pick {
                entity: Some(thread),
                until: Some(now.saturating_add(TURN)),
            },
            None => Pick::NOBODY,
        }
    }
}
