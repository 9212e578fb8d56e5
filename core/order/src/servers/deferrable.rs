//! Deferrable server: full at each period start, and kept to the end of the period.
//!
//! Source: Strosnider, Lehoczky and Sha 1995. Serves at once whatever comes while budget is left.
//! Gives up: schedulability of the work below it, which may meet two budgets back to back, one at
//! the end of a period and the next at its start.

use crate::server::Server;
use punctual_model::{Instant, Work};

use super::allotment::Allotment;

/// A budget that is kept while there is nothing to do.
#[derive(Clone, Copy, Debug)]
pub struct Deferrable {
    allotment: Allotment,
    awake: bool,
}

impl Server for Deferrable {
    fn new(terms: &punctual_model::Server) -> Self {
        Deferrable {
            allotment: Allotment::new(terms),
            awake: false,
        }
    }

    fn wake(&mut self, now: Instant, _since: Instant) {
        let _ = self.allotment.begin(now);
        self.awake = true;
    }

    fn idle(&mut self, _at: Instant) {
        self.awake = false;
    }

    fn charge(&mut self, now: Instant, work: Work) {
        self.allotment.charge(now, work);
    }

    #[inline]
    fn spend(&mut self, now: Instant, work: Work) -> Option<Work> {
        self.allotment.charge_some(now, work)
    }

    fn timer(&mut self, now: Instant) {
        let _ = self.allotment.begin(now);
    }

    #[inline]
    fn budget(&self) -> Work {
        self.allotment.left()
    }

    fn capacity(&self) -> Work {
        self.allotment.capacity()
    }

    fn next(&self) -> Option<Instant> {
        self.awake.then(|| self.allotment.end())
    }

    fn returns(&self) -> Option<Instant> {
        self.awake.then(|| self.allotment.returns())
    }

    fn deadline(&self) -> Instant {
        self.allotment.end()
    }

    fn check(&self) -> Result<(), &'static str> {
        self.allotment.check()
    }
}
