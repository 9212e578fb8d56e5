//! Wrong: an update sends a thread to the end of the queue; whoever is updated often starves.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy, ReadyQueue};
use punctual_model::{Instant, Span, ThreadId, Work};

use crate::assert_caught;

/// Turns of ten ticks.
struct BeginsAnewOnUpdate {
    ready: ReadyQueue<u64>,
    next: u64,
    left: Span,
}

const TURN: Span = Span::from_ticks(10);

impl BeginsAnewOnUpdate {
    fn is_first(&self, thread: ThreadId) -> bool {
        self.ready.first().is_some_and(|(first, _)| first == thread)
    }

    fn queue_last(&mut self, thread: ThreadId) {
        self.ready.insert(thread, self.next);
        self.next += 1;
    }
}

// `update` is the default: block, and wake again.
impl Policy for BeginsAnewOnUpdate {
    fn wake(&mut self, thread: ThreadId, _: &Attributes) {
        self.queue_last(thread);
    }

    fn block(&mut self, thread: ThreadId) {
        if self.is_first(thread) {
            self.left = TURN;
        }
        self.ready.remove(thread);
    }

    fn charge(&mut self, thread: ThreadId, work: Work) {
        if self.is_first(thread) {
            self.left = self.left.saturating_sub(work.as_span());
            if self.left.is_zero() {
                self.left = TURN;
                self.queue_last(thread);
            }
        }
    }

    fn pick(&mut self, now: Instant) -> Pick {
        let until = now.saturating_add(self.left);
        match self.ready.first() {
            Some((first, _)) => Pick {
                entity: Some(first),
                until: Some(until),
            },
            None => Pick::NOBODY,
        }
    }
}

#[test]
fn a_policy_that_begins_anew_on_updates_is_not_fair() {
    let make = |capacity| BeginsAnewOnUpdate {
        ready: ReadyQueue::new(capacity),
        next: 0,
        left: TURN,
    };
    assert_caught(&Claims::ROUND_ROBIN, make, Property::FairTurns, 9);
}
