//! The budget of one period of a server: granted, used, given up, paid back.

use punctual_model::{Instant, Span, Work};

/// The budget of the current period, for a server that counts in periods. Periods start at
/// k·period.
///
/// INV-ALLOTMENT: `left` + `used` + `forfeited` + `repaid` is the capacity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allotment {
    capacity: Work,
    period: Span,
    /// Start of the current period.
    start: Instant,
    left: Work,
    used: Work,
    forfeited: Work,
    repaid: Work,
    /// Work beyond the budget, which later budgets pay back.
    debt: Work,
}

impl Allotment {
    /// Full, in the period that starts at instant 0.
    pub(crate) fn new(terms: &punctual_model::Server) -> Self {
        Allotment {
            capacity: terms.budget,
            period: terms.period.max(Span::from_ticks(1)),
            start: Instant::ZERO,
            left: terms.budget,
            used: Work::ZERO,
            forfeited: Work::ZERO,
            repaid: Work::ZERO,
            debt: Work::ZERO,
        }
    }

    #[inline]
    pub(crate) fn left(&self) -> Work {
        self.left
    }

    pub(crate) fn capacity(&self) -> Work {
        self.capacity
    }

    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    #[inline]
    pub(crate) fn end(&self) -> Instant {
        self.start.saturating_add(self.period)
    }

    /// Start of the first period that has more than what it pays back.
    pub(crate) fn returns(&self) -> Instant {
        let whole = self.debt.ticks() / self.capacity.ticks().max(1);
        let later = Span::from_ticks(whole.saturating_mul(self.period.ticks()));
        self.end().saturating_add(later)
    }

    /// Begins the last period that starts at or before `at`, with a full budget less debts, unless
    /// it is the current one. `true`: it has begun. O(1) however many periods have passed.
    pub(crate) fn begin(&mut self, at: Instant) -> bool {
        let passed = at.since(self.start).ticks() / self.period.ticks();
        if passed == 0 {
            return false;
        }
        let ticks = passed.saturating_mul(self.period.ticks());
        self.start = self.start.saturating_add(Span::from_ticks(ticks));
        // Each period that passed would have paid back as much as it could.
        let most = self.capacity.ticks().saturating_mul(passed - 1);
        self.debt = self.debt.saturating_sub(Work::from_ticks(most));
        self.repaid = self.debt.min(self.capacity);
        self.debt = self.debt.saturating_sub(self.repaid);
        self.left = self.capacity.saturating_sub(self.repaid);
        self.used = Work::ZERO;
        self.forfeited = Work::ZERO;
        true
    }

    /// Work executed in the current period.
    pub(crate) fn spend(&mut self, work: Work) {
        let covered = work.min(self.left);
        self.left = self.left.saturating_sub(covered);
        self.used = self.used.saturating_add(covered);
        self.debt = self.debt.saturating_add(work.saturating_sub(covered));
    }

    /// Work executed up to `now`, while awake. Execution past the end of a period, after a late
    /// timer, is booked as late as it can have been: that is never to the server's advantage.
    pub(crate) fn charge(&mut self, now: Instant, work: Work) {
        let end = self.end();
        if now <= end {
            self.spend(work);
            return;
        }
        let period = self.period.ticks();
        let last = end.saturating_add(Span::from_ticks(
            (now.since(end).ticks() - 1) / period * period,
        ));
        let late = work.min(now.since(last).as_work());
        self.spend(work.saturating_sub(late));
        let _ = self.begin(last);
        self.spend(late);
    }

    /// The same. Returns the rest, if there is one and no period has begun.
    #[inline]
    pub(crate) fn charge_some(&mut self, now: Instant, work: Work) -> Option<Work> {
        if now > self.end() || work >= self.left {
            self.charge(now, work);
            return None;
        }
        self.left = self.left.saturating_sub(work);
        self.used = self.used.saturating_add(work);
        Some(self.left)
    }

    /// Gives up this much of what is left.
    pub(crate) fn forfeit(&mut self, work: Work) {
        let lost = work.min(self.left);
        self.left = self.left.saturating_sub(lost);
        self.forfeited = self.forfeited.saturating_add(lost);
    }

    /// Takes back what was given up, if nothing of this period has been used.
    pub(crate) fn restore(&mut self) {
        if self.used.is_zero() {
            self.left = self.left.saturating_add(self.forfeited);
            self.forfeited = Work::ZERO;
        }
    }

    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let parts = [self.used, self.forfeited, self.repaid];
        let sum = parts.into_iter().fold(self.left, Work::saturating_add);
        if sum == self.capacity {
            Ok(())
        } else {
            Err("T3: what is left, used, given up and paid back is the capacity")
        }
    }
}
