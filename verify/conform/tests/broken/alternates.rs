//! Wrong: it rotates the queue at every pick, so that asking changes the answer.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, ThreadId};

use crate::assert_caught;

use std::collections::VecDeque;

/// Everybody in turn, and a turn lasts until the next pick.
struct Alternates(VecDeque<ThreadId>);

impl Policy for Alternates {
    fn wake(&mut self, thread: ThreadId, _: &Attributes) {
        self.0.push_back(thread);
    }

    fn block(&mut self, thread: ThreadId) {
        self.0.retain(|queued| *queued != thread);
    }

    fn pick(&mut self, _: Instant) -> Pick {
        self.0.rotate_left(1.min(self.0.len()));
        self.0.back().map_or(Pick::NOBODY, |&last| Pick::run(last))
    }
}

#[test]
fn a_policy_that_alternates_does_not_pick_the_same_twice() {
    let make = |capacity| Alternates(VecDeque::with_capacity(capacity));
    assert_caught(&Claims::ANY_ORDER, make, Property::StablePick, 5);
}
