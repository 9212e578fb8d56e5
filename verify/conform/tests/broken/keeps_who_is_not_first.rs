//! Wrong: only the thread at the head is taken out when it blocks.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, ThreadId};

use crate::assert_caught;

/// In the order of waking.
struct KeepsWhoIsNotFirst(Vec<ThreadId>);

impl Policy for KeepsWhoIsNotFirst {
    fn wake(&mut self, thread: ThreadId, _: &Attributes) {
        self.0.push(thread);
    }

    fn block(&mut self, thread: ThreadId) {
        if self.0.first() == Some(&thread) {
            self.0.remove(0);
        }
    }

    fn update(&mut self, _: ThreadId, _: &Attributes) {}

    fn pick(&mut self, _: Instant) -> Pick {
        self.0
            .first()
            .map_or(Pick::NOBODY, |&first| Pick::run(first))
    }
}

#[test]
fn a_policy_that_keeps_who_blocks_behind_the_first_picks_who_is_not_ready() {
    let make = |capacity| KeepsWhoIsNotFirst(Vec::with_capacity(capacity));
    assert_caught(&Claims::ANY_ORDER, make, Property::UnknownThread, 7);
}
