//! Wrong: blocking one thread throws away those queued behind it.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, ThreadId};

use crate::assert_caught;

/// In the order of waking.
struct DropsThoseBehind(Vec<ThreadId>);

impl Policy for DropsThoseBehind {
    fn wake(&mut self, thread: ThreadId, _: &Attributes) {
        self.0.push(thread);
    }

    fn block(&mut self, thread: ThreadId) {
        if let Some(place) = self.0.iter().position(|queued| *queued == thread) {
            self.0.truncate(place);
        }
    }

    /// Keeps its place in the queue: the update itself is right.
    fn update(&mut self, _: ThreadId, _: &Attributes) {}

    fn pick(&mut self, _: Instant) -> Pick {
        self.0
            .first()
            .map_or(Pick::NOBODY, |&first| Pick::run(first))
    }
}

#[test]
fn a_policy_that_drops_those_behind_loses_a_thread() {
    let make = |capacity| DropsThoseBehind(Vec::with_capacity(capacity));
    assert_caught(&Claims::ANY_ORDER, make, Property::LostThread, 6);
}
