//! Wrong: after a yield in one step the last is named as next, and the second is picked.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, ThreadId};

use crate::assert_caught;

/// In the order of waking; who yields goes to the end.
struct NamesTheLastAsNext(Vec<ThreadId>);

impl Policy for NamesTheLastAsNext {
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

    fn yield_to_next(&mut self, thread: ThreadId) -> Option<ThreadId> {
        self.yield_now(thread);
        self.0.last().copied()
    }

    fn pick(&mut self, _: Instant) -> Pick {
        self.0
            .first()
            .map_or(Pick::NOBODY, |&first| Pick::run(first))
    }
}

#[test]
fn a_policy_that_names_another_thread_than_it_picks_answers_one_question_twice() {
    let make = |capacity| NamesTheLastAsNext(Vec::with_capacity(capacity));
    assert_caught(&Claims::ANY_ORDER, make, Property::StablePick, 7);
}
