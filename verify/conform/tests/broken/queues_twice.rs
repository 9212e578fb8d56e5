//! Wrong: an update queues the thread once more.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, ThreadId};

use crate::assert_caught;

/// In the order of waking.
struct QueuesTwice(Vec<ThreadId>);

impl Policy for QueuesTwice {
    fn wake(&mut self, thread: ThreadId, _: &Attributes) {
        self.0.push(thread);
    }

    fn block(&mut self, thread: ThreadId) {
        if let Some(place) = self.0.iter().position(|queued| *queued == thread) {
            self.0.remove(place);
        }
    }

    fn update(&mut self, thread: ThreadId, attributes: &Attributes) {
        self.wake(thread, attributes);
    }

    fn pick(&mut self, _: Instant) -> Pick {
        self.0
            .first()
            .map_or(Pick::NOBODY, |&first| Pick::run(first))
    }
}

#[test]
fn a_policy_that_queues_twice_has_a_duplicate() {
    let make = |capacity| QueuesTwice(Vec::with_capacity(capacity));
    assert_caught(&Claims::ANY_ORDER, make, Property::Duplicate, 4);
}
