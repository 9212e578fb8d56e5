//! Wrong: a choice holds until the very instant of the pick.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy, ReadyQueue};
use punctual_model::{Instant, ThreadId};

use crate::assert_caught;

/// In the order of the file.
struct AnswersForNow(ReadyQueue<u32>);

impl Policy for AnswersForNow {
    fn wake(&mut self, thread: ThreadId, a: &Attributes) {
        self.0.insert(thread, a.order);
    }

    fn block(&mut self, thread: ThreadId) {
        self.0.remove(thread);
    }

    fn pick(&mut self, now: Instant) -> Pick {
        Pick {
            entity: self.0.first().map(|(first, _)| first),
            until: (self.0.len() > 1).then_some(now),
        }
    }
}

#[test]
fn a_policy_that_answers_for_now_alone_never_lets_the_core_go() {
    let make = |capacity| AnswersForNow(ReadyQueue::new(capacity));
    assert_caught(&Claims::ANY_ORDER, make, Property::TurnEnd, 5);
}
