//! Wrong: a thread that goes on with the budget of a later job keeps the place of the first one.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy, ReadyQueue};
use punctual_model::{Instant, ThreadId};

use crate::assert_caught;

/// By deadline at the time of waking, or of the last change of it.
struct ForgetsNewBudgets(ReadyQueue<(Instant, Instant, u32)>);

impl Policy for ForgetsNewBudgets {
    fn wake(&mut self, thread: ThreadId, a: &Attributes) {
        self.0
            .insert(thread, (a.absolute_deadline, a.release, a.order));
    }

    fn block(&mut self, thread: ThreadId) {
        self.0.remove(thread);
    }

    fn renew(&mut self, _: ThreadId, _: &Attributes) {}

    fn pick(&mut self, _: Instant) -> Pick {
        self.0
            .first()
            .map_or(Pick::NOBODY, |(first, _)| Pick::run(first))
    }
}

#[test]
fn a_policy_that_forgets_new_budgets_breaks_the_order_of_deadlines() {
    let claims = Claims {
        ties: punctual_conform::Ties::Any,
        ..Claims::EARLIEST_DEADLINE_FIRST
    };
    let make = |capacity| ForgetsNewBudgets(ReadyQueue::new(capacity));
    assert_caught(&claims, make, Property::PriorityOrder, 40);
}
