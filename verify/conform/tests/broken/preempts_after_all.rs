//! Wrong: it claims to preempt nobody, and looks at the queue alone.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy, ReadyQueue};
use punctual_model::{Instant, ThreadId};

use crate::assert_caught;

/// By priority.
struct PreemptsAfterAll(ReadyQueue<(std::cmp::Reverse<u32>, Instant, u32)>);

impl Policy for PreemptsAfterAll {
    fn wake(&mut self, thread: ThreadId, a: &Attributes) {
        let urgency = std::cmp::Reverse(a.priority.number());
        self.0.insert(thread, (urgency, a.release, a.order));
    }

    fn block(&mut self, thread: ThreadId) {
        self.0.remove(thread);
    }

    fn pick(&mut self, _: Instant) -> Pick {
        self.0
            .first()
            .map_or(Pick::NOBODY, |(first, _)| Pick::run(first))
    }
}

#[test]
fn a_policy_that_preempts_after_all_breaks_its_claim() {
    let claims = Claims {
        preemptive: false,
        ..Claims::FIXED_PRIORITY
    };
    let make = |capacity| PreemptsAfterAll(ReadyQueue::new(capacity));
    assert_caught(&claims, make, Property::NoPreemption, 7);
}
