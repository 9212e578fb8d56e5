//! The server of the kit: so much at the start of each period, kept until the next.
//!
//! The kit judges policies on any supply and must not depend on the servers that are shipped, so it
//! has a plain one. Source: the deferrable server, Strosnider, Lehoczky and Sha 1995.

use punctual_kern::Server;
use punctual_model::{Instant, Work};

/// A budget per period. Its platform is exact: nothing is executed beyond it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ration {
    terms: punctual_model::Server,
    budget: Work,
    next: Instant,
}

impl Server for Ration {
    fn new(terms: &punctual_model::Server) -> Self {
        Ration {
            terms: *terms,
            budget: terms.budget,
            next: Instant::ZERO.saturating_add(terms.period),
        }
    }

    fn wake(&mut self, _: Instant, _: Instant) {}

    fn idle(&mut self, _: Instant) {}

    fn charge(&mut self, _: Instant, work: Work) {
        self.budget = self.budget.saturating_sub(work);
    }

    fn timer(&mut self, now: Instant) {
        while self.next <= now {
            self.budget = self.terms.budget;
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
        Some(self.next)
    }

    fn deadline(&self) -> Instant {
        self.next
    }

    fn check(&self) -> Result<(), &'static str> {
        if self.budget <= self.terms.budget {
            Ok(())
        } else {
            Err("a ration is never more than its budget")
        }
    }
}
