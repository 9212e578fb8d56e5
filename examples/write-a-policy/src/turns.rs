//! Fixed priority, and turns among equals (POSIX calls it `SCHED_RR`).
//!
//! Gives up: the order of releases among equals; in exchange none of them waits longer than one
//! turn of each of the others. Source: IEEE Std 1003.1, 2.8.4.

use std::cmp::Reverse;

use punctual_kern::{Attributes, Pick, Policy, ReadyQueue};
use punctual_model::{Instant, Span, ThreadId, Work};

/// How long a turn is, in ticks.
const TURN: Span = Span::from_ticks(100_000);

/// Ready threads by priority, then by ticket; what each has left of its turn.
#[derive(Debug)]
pub struct Turns {
    ready: ReadyQueue<(Reverse<u32>, u64)>,
    next_ticket: u64,
    urgency: Vec<Reverse<u32>>,
    left: Vec<Span>,
}

impl Turns {
    /// For threads with an index below `capacity`.
    pub fn new(capacity: usize) -> Self {
        Turns {
            ready: ReadyQueue::new(capacity),
            next_ticket: 0,
            urgency: vec![Reverse(0); capacity],
            left: vec![TURN; capacity],
        }
    }

    /// Behind all of its priority, with a whole turn.
    fn queue_last(&mut self, thread: ThreadId) {
        let urgency = self.urgency[thread.index()];
        self.left[thread.index()] = TURN;
        self.ready.insert(thread, (urgency, self.next_ticket));
        self.next_ticket += 1;
    }
}

impl Policy for Turns {
    fn wake(&mut self, thread: ThreadId, attributes: &Attributes) {
        self.urgency[thread.index()] = Reverse(attributes.priority.number());
        self.queue_last(thread);
    }

    fn block(&mut self, thread: ThreadId) {
        self.ready.remove(thread);
    }

    fn update(&mut self, thread: ThreadId, attributes: &Attributes) {
        let urgency = Reverse(attributes.priority.number());
        // A new deadline is nothing to us: who only has that keeps its place and its turn.
        if self.urgency[thread.index()] != urgency {
            self.wake(thread, attributes);
        }
    }

    fn yield_now(&mut self, thread: ThreadId) {
        self.queue_last(thread);
    }

    fn charge(&mut self, thread: ThreadId, work: Work) {
        let left = &mut self.left[thread.index()];
        *left = left.saturating_sub(work.as_span());
        if left.is_zero() {
            self.queue_last(thread);
        }
    }

    fn pick(&mut self, now: Instant) -> Pick {
        match self.ready.first() {
            Some((thread, _)) => Pick {
                entity: Some(thread),
                until: Some(now.saturating_add(self.left[thread.index()])),
            },
            None => Pick::NOBODY,
        }
    }
}
