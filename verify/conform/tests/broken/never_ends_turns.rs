//! Wrong: it takes turns when a thread yields, but ends none by itself.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, ThreadId};

use crate::assert_caught;

use std::collections::VecDeque;

/// In the order of waking.
struct NeverEndsTurns(VecDeque<ThreadId>);

impl Policy for NeverEndsTurns {
    fn wake(&mut self, thread: ThreadId, _: &Attributes) {
        self.0.push_back(thread);
    }

    fn block(&mut self, thread: ThreadId) {
        self.0.retain(|queued| *queued != thread);
    }

    fn update(&mut self, _: ThreadId, _: &Attributes) {}

    fn yield_now(&mut self, _: ThreadId) {
        self.0.rotate_left(1);
    }

    fn pick(&mut self, _: Instant) -> Pick {
        self.0
            .front()
            .map_or(Pick::NOBODY, |&first| Pick::run(first))
    }
}

#[test]
fn a_policy_that_never_ends_a_turn_is_not_fair() {
    let make = |capacity| NeverEndsTurns(VecDeque::with_capacity(capacity));
    assert_caught(&Claims::ROUND_ROBIN, make, Property::FairTurns, 4);
}
