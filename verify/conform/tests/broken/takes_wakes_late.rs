//! Wrong: wake-ups are taken at the next pick, so a block in between comes to nothing.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, ThreadId};

use crate::assert_caught;

/// In the order of waking.
struct TakesWakesLate {
    ready: Vec<ThreadId>,
    woken: Vec<ThreadId>,
}

impl Policy for TakesWakesLate {
    fn wake(&mut self, thread: ThreadId, _: &Attributes) {
        self.woken.push(thread);
    }

    fn block(&mut self, thread: ThreadId) {
        self.ready.retain(|ready| *ready != thread);
    }

    fn update(&mut self, _: ThreadId, _: &Attributes) {}

    fn pick(&mut self, _: Instant) -> Pick {
        self.ready.append(&mut self.woken);
        self.ready
            .first()
            .map_or(Pick::NOBODY, |&first| Pick::run(first))
    }
}

#[test]
fn a_policy_that_takes_wakes_late_picks_who_has_blocked() {
    let make = |capacity| TakesWakesLate {
        ready: Vec::with_capacity(capacity),
        woken: Vec::with_capacity(capacity),
    };
    assert_caught(&Claims::ANY_ORDER, make, Property::WakeBeforeBlock, 4);
}
