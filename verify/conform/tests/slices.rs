//! Slices under a policy: no operation makes time, and nobody is lost.

use punctual_conform::{Sliced, check_slices};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, Span, ThreadId};
use punctual_policy::{EarliestDeadlineFirst, Fifo, FixedPriority, RoundRobin};

fn passes<P: Policy>(make: impl Fn(usize) -> P) {
    let seen = check_slices(make, 250).unwrap_or_else(|what| panic!("{what}"));
    let Sliced {
        delegated,
        bound,
        taken_back,
        transferred,
        executed,
    } = seen;
    let fewest = delegated.min(bound).min(taken_back).min(transferred);
    assert!(fewest > 60 && executed > 60, "{seen:?}");
}

#[test]
fn no_operation_on_slices_makes_time_or_loses_a_thread_under_any_policy() {
    passes(FixedPriority::new);
    passes(FixedPriority::non_preemptive);
    passes(EarliestDeadlineFirst::new);
    passes(Fifo::new);
    passes(|n| RoundRobin::new(n, Span::from_ticks(10)));
}

/// Orders threads, and of schedulers and slices those alone that it started with.
struct Narrow(FixedPriority, usize);

impl Policy for Narrow {
    fn wake(&mut self, entity: ThreadId, attributes: &Attributes) {
        if entity.index() < self.1 {
            self.0.wake(entity, attributes);
        }
    }
    fn block(&mut self, entity: ThreadId) {
        self.0.block(entity);
    }
    fn pick(&mut self, now: Instant) -> Pick {
        self.0.pick(now)
    }
}

#[test]
fn a_policy_that_passes_over_slices_leaves_somebody_waiting() {
    // Four threads and three schedulers come first.
    let broken = check_slices(|n| Narrow(FixedPriority::new(n), 4 + 4), 50);
    let what = broken.expect_err("it loses slices");
    assert!(what.contains("wait for ever"), "{what}");
}
