//! Policies change places while locks are held and budget is lent, and only the order changes.

use punctual_conform::{Held, check_held};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, Span, ThreadId};
use punctual_policy::{EarliestDeadlineFirst, Fifo, FixedPriority, RoundRobin};

fn passes<P: Policy>(make: impl Fn(usize) -> P) {
    let held = check_held(make, 40).unwrap_or_else(|what| panic!("{what}"));
    let Held {
        replaced,
        held: locked,
        awaited,
        lent,
    } = held;
    assert!(replaced > 3_000, "{held:?}");
    assert!(locked > 300 && awaited > 100 && lent > 300, "{held:?}");
}

#[test]
fn all_that_is_held_and_lent_stays_across_a_replacement() {
    passes(FixedPriority::new);
    passes(FixedPriority::non_preemptive);
    passes(EarliestDeadlineFirst::new);
    passes(Fifo::new);
    passes(|n| RoundRobin::new(n, Span::from_ticks(10)));
}

/// Orders nobody whom it is told of after its first pick: a replacement loses all the rest.
struct Deaf(FixedPriority, bool);

impl Policy for Deaf {
    fn wake(&mut self, thread: ThreadId, attributes: &Attributes) {
        if !self.1 {
            self.0.wake(thread, attributes);
        }
    }
    fn block(&mut self, thread: ThreadId) {
        self.0.block(thread);
    }
    fn pick(&mut self, now: Instant) -> Pick {
        self.1 = true;
        self.0.pick(now)
    }
}

#[test]
fn a_policy_that_loses_those_who_come_later_leaves_somebody_waiting() {
    let broken = check_held(|n| Deaf(FixedPriority::new(n), false), 10);
    let what = broken.expect_err("it loses threads");
    assert!(what.contains("wait for ever"), "{what}");
}
