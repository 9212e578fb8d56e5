//! Wrong: a thread that becomes ready where nobody is runs at once, in one step, and is not queued.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, ThreadId};

use crate::assert_caught;

/// The last to wake goes first.
struct ForgetsTheFirstToCome(Vec<ThreadId>);

impl Policy for ForgetsTheFirstToCome {
    fn wake(&mut self, thread: ThreadId, _: &Attributes) {
        self.0.push(thread);
    }

    fn block(&mut self, thread: ThreadId) {
        self.0.retain(|&other| other != thread);
    }

    fn update(&mut self, _: ThreadId, _: &Attributes) {}

    fn wake_to_run(&mut self, thread: ThreadId, attributes: &Attributes) -> bool {
        if !self.0.is_empty() {
            self.wake(thread, attributes);
        }
        true
    }

    fn pick(&mut self, _: Instant) -> Pick {
        Pick {
            entity: self.0.last().copied(),
            until: None,
        }
    }
}

#[test]
fn a_policy_that_forgets_who_comes_to_an_idle_cpu_is_caught() {
    let make = |capacity| ForgetsTheFirstToCome(Vec::with_capacity(capacity));
    assert_caught(&Claims::ANY_ORDER, make, Property::WorkConservation, 3);
}
