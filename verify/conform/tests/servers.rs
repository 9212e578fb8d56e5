//! The shipped servers keep to their terms, and servers that are deliberately wrong are caught.

use punctual_conform::{Level, Options, Property, check_server};
use punctual_model::{Instant, ServerKind, Work};
use punctual_order::{
    AnyServer, ConstantBandwidth, Deferrable, PeriodicResource, Polling, Server, Sporadic,
};

fn passes<V: Server>(kind: ServerKind) {
    let options = Options {
        histories: 500,
        ..Options::default()
    };
    if let Err(broken) = check_server::<V>(kind, &options) {
        panic!("{broken}");
    }
}

#[test]
fn the_shipped_servers_give_what_their_terms_say() {
    passes::<Polling>(ServerKind::Polling);
    passes::<Deferrable>(ServerKind::Deferrable);
    passes::<Sporadic>(ServerKind::Sporadic);
    passes::<ConstantBandwidth>(ServerKind::ConstantBandwidth);
    passes::<PeriodicResource>(ServerKind::PeriodicResource);
}

#[test]
fn a_server_that_a_file_chooses_is_the_one_that_it_is() {
    for kind in ServerKind::ALL {
        passes::<AnyServer>(kind);
    }
}

/// What is wrong.
const KEEPS_THE_REST: u8 = 1;
const FILLS_ON_WAKING: u8 = 2;
const FORGETS_TO_FILL: u8 = 3;
const WAITS_FOR_NOTHING: u8 = 4;
const HURRIES: u8 = 5;
const STANDS_STILL: u8 = 6;

/// A deferrable server with one mistake.
struct Wrong<const MISTAKE: u8> {
    terms: punctual_model::Server,
    budget: Work,
    next: Instant,
    periods: u32,
}

impl<const MISTAKE: u8> Server for Wrong<MISTAKE> {
    fn new(terms: &punctual_model::Server) -> Self {
        Wrong {
            terms: *terms,
            budget: terms.budget,
            next: Instant::ZERO.saturating_add(terms.period),
            periods: 0,
        }
    }

    fn wake(&mut self, _: Instant, _: Instant) {
        if MISTAKE == FILLS_ON_WAKING {
            self.budget = self.terms.budget;
        }
    }

    fn idle(&mut self, _: Instant) {}

    fn charge(&mut self, now: Instant, work: Work) {
        self.budget = self.budget.saturating_sub(work);
        if MISTAKE == HURRIES && self.budget.is_zero() {
            // Wants to be filled one period after the use, and counts from the wrong end.
            self.next = self.next.min(now.saturating_add(work.as_span()));
        }
    }

    fn timer(&mut self, now: Instant) {
        self.periods += 1;
        self.budget = match MISTAKE {
            KEEPS_THE_REST => self.budget.saturating_add(self.terms.budget),
            FORGETS_TO_FILL if self.periods.is_multiple_of(2) => self.budget,
            _ => self.terms.budget,
        };
        if MISTAKE == STANDS_STILL {
            return;
        }
        while self.next <= now {
            self.next = self.next.saturating_add(self.terms.period);
        }
    }

    fn budget(&self) -> Work {
        self.budget
    }

    fn capacity(&self) -> Work {
        self.terms.budget
    }

    fn next(&self) -> Option<Instant> {
        let waits = MISTAKE != WAITS_FOR_NOTHING || !self.budget.is_zero();
        waits.then_some(self.next)
    }

    fn deadline(&self) -> Instant {
        self.next
    }

    fn check(&self) -> Result<(), &'static str> {
        Ok(())
    }
}

fn assert_caught<V: Server>(property: Property) {
    for seed in [1, 5_000_000] {
        let options = Options {
            seed,
            ..Options::default()
        };
        let found = check_server::<V>(ServerKind::Deferrable, &options);
        let broken = found.expect_err("it is wrong");
        assert_eq!(broken.property, property, "{broken}");
        assert_eq!(broken.level, Level::Server);
        assert!(broken.shortest <= 8, "{broken}");
    }
}

#[test]
fn without_a_mistake_it_is_right() {
    passes::<Wrong<0>>(ServerKind::Deferrable);
}

#[test]
fn a_server_that_gains_budget_does_not_conserve_it() {
    assert_caught::<Wrong<KEEPS_THE_REST>>(Property::BudgetConservation);
    assert_caught::<Wrong<FILLS_ON_WAKING>>(Property::BudgetConservation);
    assert_caught::<Wrong<HURRIES>>(Property::BudgetConservation);
}

#[test]
fn a_server_that_loses_budget_does_not_conserve_it_either() {
    assert_caught::<Wrong<FORGETS_TO_FILL>>(Property::BudgetConservation);
}

#[test]
fn a_server_that_waits_for_nothing_loses_its_threads() {
    assert_caught::<Wrong<WAITS_FOR_NOTHING>>(Property::LostThread);
}

#[test]
fn a_server_whose_timer_stands_still_never_lets_the_core_go() {
    assert_caught::<Wrong<STANDS_STILL>>(Property::TurnEnd);
}
