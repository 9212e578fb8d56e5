//! Periodic resource: full at each period start; budget passes whether it is used or not.
//!
//! Source: Shin and Lee 2003 (the periodic resource model), in its idling form: while nothing is
//! ready the budget runs down as if something were. To the work below it, it is exactly a periodic
//! task. Gives up: budget that comes while there is nothing to do.

use crate::server::Server;
use punctual_model::{Instant, Work};

use super::allotment::Allotment;

/// A budget that passes with time while nothing is ready.
#[derive(Clone, Copy, Debug)]
pub struct PeriodicResource {
    allotment: Allotment,
    /// Nothing is ready since then, and the budget has passed up to there.
    idle_since: Option<Instant>,
}

impl PeriodicResource {
    /// Nothing was ready up to `at`.
    fn pass(&mut self, at: Instant) {
        let Some(since) = self.idle_since else { return };
        let _ = self.allotment.begin(at);
        let from = since.max(self.allotment.start());
        self.allotment.forfeit(at.since(from).as_work());
        self.idle_since = Some(since.max(at));
    }
}

impl Server for PeriodicResource {
    fn new(terms: &punctual_model::Server) -> Self {
        PeriodicResource {
            allotment: Allotment::new(terms),
            idle_since: Some(Instant::ZERO),
        }
    }

    fn wake(&mut self, now: Instant, since: Instant) {
        self.pass(since);
        let _ = self.allotment.begin(now);
        self.idle_since = None;
    }

    fn idle(&mut self, at: Instant) {
        self.idle_since = Some(at);
    }

    fn charge(&mut self, now: Instant, work: Work) {
        self.allotment.charge(now, work);
    }

    #[inline]
    fn spend(&mut self, now: Instant, work: Work) -> Option<Work> {
        self.allotment.charge_some(now, work)
    }

    fn timer(&mut self, now: Instant) {
        self.pass(now);
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
        self.idle_since.is_none().then(|| self.allotment.end())
    }

    fn returns(&self) -> Option<Instant> {
        self.idle_since.is_none().then(|| self.allotment.returns())
    }

    fn deadline(&self) -> Instant {
        self.allotment.end()
    }

    fn check(&self) -> Result<(), &'static str> {
        self.allotment.check()
    }
}
