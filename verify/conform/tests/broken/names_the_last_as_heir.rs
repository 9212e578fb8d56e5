//! Wrong: the last is named as the heir of a thread that gives way, and the second is picked.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, ThreadId};

use crate::assert_caught;

/// In the order of waking; who yields goes to the end.
struct NamesTheLastAsHeir(Vec<ThreadId>);

impl Policy for NamesTheLastAsHeir {
    fn wake(&mut self, thread: ThreadId, _: &Attributes) {
        self.0.push(thread);
    }

    fn block(&mut self, thread: ThreadId) {
        self.0.retain(|&other| other != thread);
    }

    fn update(&mut self, _: ThreadId, _: &Attributes) {}

    fn yield_now(&mut self, thread: ThreadId) {
        self.block(thread);
        self.0.push(thread);
    }

    fn heir(&self, _: ThreadId) -> Option<ThreadId> {
        self.0.last().copied()
    }

    fn pick(&mut self, _: Instant) -> Pick {
        self.0
            .first()
            .map_or(Pick::NOBODY, |&first| Pick::run(first))
    }
}

#[test]
fn a_policy_that_names_another_heir_than_it_picks_answers_one_question_twice() {
    let make = |capacity| NamesTheLastAsHeir(Vec::with_capacity(capacity));
    assert_caught(&Claims::ANY_ORDER, make, Property::StablePick, 7);
}
