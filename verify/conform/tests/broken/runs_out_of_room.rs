//! Wrong: its table has one place too few.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, ThreadId};

use crate::assert_caught;

/// In the order of the table.
struct RunsOutOfRoom(Vec<Option<ThreadId>>);

impl Policy for RunsOutOfRoom {
    fn wake(&mut self, thread: ThreadId, _: &Attributes) {
        self.0[thread.index()] = Some(thread);
    }

    fn block(&mut self, thread: ThreadId) {
        self.0[thread.index()] = None;
    }

    fn pick(&mut self, _: Instant) -> Pick {
        let first = self.0.iter().flatten().next();
        first.map_or(Pick::NOBODY, |&first| Pick::run(first))
    }
}

#[test]
fn a_policy_without_room_for_the_last_thread_panics() {
    let make = |capacity: usize| RunsOutOfRoom(vec![None; capacity - 1]);
    assert_caught(&Claims::ANY_ORDER, make, Property::Panic, 2);
}
