//! Wrong: threads are kept by their index; a newcomer in the same place has another id.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, ThreadId};

use crate::assert_caught;

/// In the order of the table.
struct KeepsOldGenerations(Vec<bool>);

impl Policy for KeepsOldGenerations {
    fn wake(&mut self, thread: ThreadId, _: &Attributes) {
        self.0[thread.index()] = true;
    }

    fn block(&mut self, thread: ThreadId) {
        self.0[thread.index()] = false;
    }

    fn pick(&mut self, _: Instant) -> Pick {
        let first = (0_u32..).zip(&self.0).find(|(_, ready)| **ready);
        first.map_or(Pick::NOBODY, |(index, _)| {
            Pick::run(ThreadId::new(index, 0))
        })
    }
}

#[test]
fn a_policy_that_forgets_generations_picks_the_dead() {
    let make = |capacity| KeepsOldGenerations(vec![false; capacity]);
    assert_caught(&Claims::ANY_ORDER, make, Property::UnknownThread, 4);
}
