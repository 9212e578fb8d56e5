//! Wrong: a thread that blocks and wakes has its whole budget again.

use punctual_conform::{Claims, Property};
use punctual_kern::{Attributes, Pick, Policy};
use punctual_model::{Instant, Span, ThreadId, Work};

use crate::assert_caught;

use punctual_conform::Budget;

const BUDGET: Work = Work::from_ticks(30);
const PERIOD: Span = Span::from_ticks(100);

/// Five ticks in ten for each thread, in the order of the table.
struct Limited {
    threads: Vec<Option<ThreadId>>,
    used: Vec<Work>,
    period: u64,
    /// What is wrong: new budget for who wakes.
    generous: bool,
}

impl Limited {
    fn new(capacity: usize, generous: bool) -> Self {
        Limited {
            threads: vec![None; capacity],
            used: vec![Work::ZERO; capacity],
            period: 0,
            generous,
        }
    }
}

impl Policy for Limited {
    fn wake(&mut self, thread: ThreadId, _: &Attributes) {
        self.threads[thread.index()] = Some(thread);
        if self.generous {
            self.used[thread.index()] = Work::ZERO;
        }
    }

    fn block(&mut self, thread: ThreadId) {
        self.threads[thread.index()] = None;
    }

    fn update(&mut self, _: ThreadId, _: &Attributes) {}

    fn charge(&mut self, thread: ThreadId, work: Work) {
        let used = &mut self.used[thread.index()];
        *used = used.saturating_add(work);
    }

    fn pick(&mut self, now: Instant) -> Pick {
        let period = now.ticks() / PERIOD.ticks();
        if period != self.period {
            self.period = period;
            self.used.fill(Work::ZERO);
        }
        let end = Instant::from_ticks((period + 1) * PERIOD.ticks());
        let ready = self.threads.iter().zip(&self.used);
        let mut ready = ready.filter_map(|(thread, used)| Some((*thread.as_ref()?, *used)));
        match ready.find(|(_, used)| *used < BUDGET) {
            Some((thread, used)) => {
                let left = BUDGET.saturating_sub(used).as_span();
                Pick {
                    entity: Some(thread),
                    until: Some(now.saturating_add(left).min(end)),
                }
            }
            None => Pick {
                entity: None,
                until: Some(end),
            },
        }
    }
}

const CLAIMS: Claims = Claims {
    work_conserving: false,
    budget: Some(Budget {
        work: BUDGET,
        period: PERIOD,
    }),
    ..Claims::ANY_ORDER
};

#[test]
fn a_policy_that_gives_budget_on_waking_does_not_conserve_it() {
    let make = |capacity| Limited::new(capacity, true);
    assert_caught(&CLAIMS, make, Property::BudgetConservation, 7);
}

#[test]
fn the_same_policy_without_the_gift_conforms() {
    let make = |capacity| Limited::new(capacity, false);
    let report = punctual_conform::check(&CLAIMS, make, &punctual_conform::Options::default());
    assert!(report.is_ok(), "{report:?}");
}
