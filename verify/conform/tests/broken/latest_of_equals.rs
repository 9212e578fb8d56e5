//! Wrong: among equal priorities the latest to wake goes first.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, ThreadId};

use crate::assert_caught;

/// By priority, and a stack of each.
struct LatestOfEquals(Vec<(u32, ThreadId)>);

impl Policy for LatestOfEquals {
    fn wake(&mut self, thread: ThreadId, a: &Attributes) {
        let priority = a.priority.number();
        let place = self.0.partition_point(|(queued, _)| *queued <= priority);
        self.0.insert(place, (priority, thread));
    }

    fn block(&mut self, thread: ThreadId) {
        self.0.retain(|(_, queued)| *queued != thread);
    }

    fn pick(&mut self, _: Instant) -> Pick {
        self.0
            .last()
            .map_or(Pick::NOBODY, |(_, last)| Pick::run(*last))
    }
}

#[test]
fn a_policy_that_turns_equals_round_breaks_the_order_among_equals() {
    let make = |capacity| LatestOfEquals(Vec::with_capacity(capacity));
    assert_caught(&Claims::FIXED_PRIORITY, make, Property::OrderAmongEquals, 5);
}
