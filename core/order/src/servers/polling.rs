//! Polling server: full at each period start if something is pending then, else nothing.
//!
//! Source: Lehoczky, Sha and Strosnider 1987. To the work below it, it is a periodic task. Gives
//! up: the response of what comes just after a period start, which waits for the next.

use crate::server::Server;
use punctual_model::{Instant, Work};

use super::allotment::Allotment;

/// A budget that is lost the moment there is nothing to do.
#[derive(Clone, Copy, Debug)]
pub struct Polling {
    allotment: Allotment,
    awake: bool,
}

impl Server for Polling {
    fn new(terms: &punctual_model::Server) -> Self {
        let mut allotment = Allotment::new(terms);
        allotment.forfeit(terms.budget);
        Polling {
            allotment,
            awake: false,
        }
    }

    /// Work that is pending at exactly the period start counts, also when it is reported later.
    fn wake(&mut self, now: Instant, since: Instant) {
        if self.allotment.begin(now) {
            self.allotment.forfeit(self.allotment.left());
        }
        if since <= self.allotment.start() {
            self.allotment.restore();
        }
        self.awake = true;
    }

    fn idle(&mut self, _at: Instant) {
        self.allotment.forfeit(self.allotment.left());
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
        if self.allotment.begin(now) && !self.awake {
            self.allotment.forfeit(self.allotment.left());
        }
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
