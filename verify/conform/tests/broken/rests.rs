//! Wrong: after each block it rests for one pick, though others are ready.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy, ReadyQueue};
use punctual_model::{Instant, ThreadId};

use crate::assert_caught;

/// In the order of the file.
struct Rests {
    ready: ReadyQueue<u32>,
    resting: Option<Instant>,
    tired: bool,
}

impl Policy for Rests {
    fn wake(&mut self, thread: ThreadId, a: &Attributes) {
        self.ready.insert(thread, a.order);
    }

    fn block(&mut self, thread: ThreadId) {
        self.ready.remove(thread);
        self.tired = true;
    }

    fn update(&mut self, _: ThreadId, _: &Attributes) {}

    fn pick(&mut self, now: Instant) -> Pick {
        if std::mem::take(&mut self.tired) {
            self.resting = Some(now);
        }
        match self.ready.first() {
            Some((first, _)) if self.resting != Some(now) => Pick::run(first),
            _ => Pick::NOBODY,
        }
    }
}

#[test]
fn a_policy_that_rests_conserves_no_work() {
    let make = |capacity| Rests {
        ready: ReadyQueue::new(capacity),
        resting: None,
        tired: false,
    };
    assert_caught(&Claims::ANY_ORDER, make, Property::WorkConservation, 6);
    let idles = Claims {
        work_conserving: false,
        ..Claims::ANY_ORDER
    };
    // Who idles on purpose says until when.
    assert_caught(&idles, make, Property::WorkConservation, 6);
}
