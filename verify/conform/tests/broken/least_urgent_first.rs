//! Wrong: the smallest priority number goes first.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy, ReadyQueue};
use punctual_model::{Instant, ThreadId};

use crate::assert_caught;

/// By priority, the wrong way round.
pub(crate) struct LeastUrgentFirst(ReadyQueue<(u32, Instant, u32)>);

impl LeastUrgentFirst {
    pub(crate) fn new(capacity: usize) -> Self {
        LeastUrgentFirst(ReadyQueue::new(capacity))
    }
}

impl Policy for LeastUrgentFirst {
    fn wake(&mut self, thread: ThreadId, a: &Attributes) {
        self.0
            .insert(thread, (a.priority.number(), a.release, a.order));
    }

    fn block(&mut self, thread: ThreadId) {
        self.0.remove(thread);
    }

    fn pick(&mut self, _: Instant) -> Pick {
        self.0
            .first()
            .map_or(Pick::NOBODY, |(first, _)| Pick::run(first))
    }
}

#[test]
fn a_policy_that_reads_priorities_backwards_breaks_their_order() {
    let make = LeastUrgentFirst::new;
    assert_caught(&Claims::FIXED_PRIORITY, make, Property::PriorityOrder, 5);
}
