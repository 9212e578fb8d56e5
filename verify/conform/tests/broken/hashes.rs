//! Wrong: the order is that of a hash table, which differs from run to run.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, ThreadId};

use crate::assert_caught;

use std::collections::HashSet;

/// In no order.
struct Hashes(HashSet<ThreadId>);

impl Policy for Hashes {
    fn wake(&mut self, thread: ThreadId, _: &Attributes) {
        self.0.insert(thread);
    }

    fn block(&mut self, thread: ThreadId) {
        self.0.remove(&thread);
    }

    fn pick(&mut self, _: Instant) -> Pick {
        self.0
            .iter()
            .next()
            .map_or(Pick::NOBODY, |&first| Pick::run(first))
    }
}

#[test]
fn a_policy_that_hashes_is_not_deterministic() {
    let make = |capacity| Hashes(HashSet::with_capacity(capacity));
    // Chance decides how short the shortest history is.
    assert_caught(&Claims::ANY_ORDER, make, Property::Determinism, 100);
}
