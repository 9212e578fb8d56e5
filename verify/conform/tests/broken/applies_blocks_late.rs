//! Wrong: blocks are taken at the next pick, so a wake-up in between is lost.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, ThreadId};

use crate::assert_caught;

/// In the order of waking.
struct AppliesBlocksLate {
    ready: Vec<ThreadId>,
    leaving: Vec<ThreadId>,
}

impl Policy for AppliesBlocksLate {
    fn wake(&mut self, thread: ThreadId, _: &Attributes) {
        if !self.ready.contains(&thread) {
            self.ready.push(thread);
        }
    }

    fn block(&mut self, thread: ThreadId) {
        self.leaving.push(thread);
    }

    fn update(&mut self, _: ThreadId, _: &Attributes) {}

    fn pick(&mut self, _: Instant) -> Pick {
        self.ready.retain(|thread| !self.leaving.contains(thread));
        self.leaving.clear();
        self.ready
            .first()
            .map_or(Pick::NOBODY, |&first| Pick::run(first))
    }
}

#[test]
fn a_policy_that_applies_blocks_late_loses_a_wake_up() {
    let make = |capacity| AppliesBlocksLate {
        ready: Vec::with_capacity(capacity),
        leaving: Vec::with_capacity(capacity),
    };
    assert_caught(&Claims::ANY_ORDER, make, Property::WakeBeforeBlock, 5);
}
