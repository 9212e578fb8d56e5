//! Wrong: a thread that becomes ready runs at once, in one step, and only for a turn.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, Span, ThreadId};

use crate::assert_caught;

/// The last to wake goes first, for ten ticks.
struct RunsForATurnInOneStep(Vec<ThreadId>);

impl Policy for RunsForATurnInOneStep {
    fn wake(&mut self, thread: ThreadId, _: &Attributes) {
        self.0.push(thread);
    }

    fn block(&mut self, thread: ThreadId) {
        self.0.retain(|&other| other != thread);
    }

    fn update(&mut self, _: ThreadId, _: &Attributes) {}

    fn wake_to_run(&mut self, thread: ThreadId, attributes: &Attributes) -> bool {
        self.wake(thread, attributes);
        true
    }

    fn pick(&mut self, now: Instant) -> Pick {
        let until = now.saturating_add(Span::from_ticks(10));
        match self.0.last() {
            Some(&entity) => Pick {
                entity: Some(entity),
                until: Some(until),
            },
            None => Pick::NOBODY,
        }
    }
}

#[test]
fn a_policy_that_takes_a_step_for_a_turn_is_caught_since_nobody_would_end_the_turn() {
    let make = |capacity| RunsForATurnInOneStep(Vec::with_capacity(capacity));
    assert_caught(&Claims::ANY_ORDER, make, Property::StablePick, 7);
}
