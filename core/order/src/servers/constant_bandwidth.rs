//! Constant bandwidth server: a deadline that moves with the use of the budget.
//!
//! Source: Abeni and Buttazzo 1998, in its hard variant: exhausted, it is throttled until its
//! deadline instead of running on under a later one. Under a parent that orders by deadline it
//! never demands more than budget/period in any interval, whatever runs in it. Gives up: idle time
//! of others, which the soft variant would use.

use crate::server::Server;
use punctual_model::{Instant, Span, Work};

/// A budget with a deadline of its own.
#[derive(Clone, Copy, Debug)]
pub struct ConstantBandwidth {
    capacity: Work,
    period: Span,
    left: Work,
    used: Work,
    repaid: Work,
    debt: Work,
    deadline: Instant,
    awake: bool,
}

impl ConstantBandwidth {
    /// A full budget for `deadline`. Overdrawn budget is paid back: whole budgets by so many
    /// periods, the rest from this one.
    fn renew(&mut self, deadline: Instant) {
        let whole = self.debt.ticks() / self.capacity.ticks().max(1);
        let later = Span::from_ticks(whole.saturating_mul(self.period.ticks()));
        self.deadline = deadline.saturating_add(later);
        self.debt = Work::from_ticks(self.debt.ticks() - whole * self.capacity.ticks());
        self.repaid = self.debt.min(self.capacity);
        self.debt = self.debt.saturating_sub(self.repaid);
        self.left = self.capacity.saturating_sub(self.repaid);
        self.used = Work::ZERO;
    }

    /// Whether the rest of the budget before the deadline is a higher rate than budget/period.
    fn is_ahead_of_its_rate(&self, now: Instant) -> bool {
        let (left, period) = (
            u128::from(self.left.ticks()),
            u128::from(self.period.ticks()),
        );
        let (ahead, capacity) = (
            u128::from(self.deadline.since(now).ticks()),
            u128::from(self.capacity.ticks()),
        );
        left * period >= ahead * capacity
    }
}

impl Server for ConstantBandwidth {
    fn new(terms: &punctual_model::Server) -> Self {
        ConstantBandwidth {
            capacity: terms.budget,
            period: terms.period.max(Span::from_ticks(1)),
            left: terms.budget,
            used: Work::ZERO,
            repaid: Work::ZERO,
            debt: Work::ZERO,
            deadline: Instant::ZERO,
            awake: false,
        }
    }

    fn wake(&mut self, now: Instant, _since: Instant) {
        self.awake = true;
        if self.deadline <= now || self.is_ahead_of_its_rate(now) {
            self.renew(now.saturating_add(self.period));
        }
    }

    fn idle(&mut self, _at: Instant) {
        self.awake = false;
    }

    fn charge(&mut self, now: Instant, work: Work) {
        let covered = work.min(self.left);
        self.left = self.left.saturating_sub(covered);
        self.used = self.used.saturating_add(covered);
        self.debt = self.debt.saturating_add(work.saturating_sub(covered));
        if self.left.is_zero() && self.deadline <= now {
            // It was starved past its deadline: what is missed does not come as a burst.
            self.renew(now.saturating_add(self.period));
        }
    }

    #[inline]
    fn spend(&mut self, now: Instant, work: Work) -> Option<Work> {
        if work >= self.left {
            self.charge(now, work);
            return None;
        }
        self.left = self.left.saturating_sub(work);
        self.used = self.used.saturating_add(work);
        Some(self.left)
    }

    fn timer(&mut self, now: Instant) {
        if self.awake && self.left.is_zero() && self.deadline <= now {
            self.renew(self.deadline.saturating_add(self.period));
        }
    }

    #[inline]
    fn budget(&self) -> Work {
        self.left
    }

    fn capacity(&self) -> Work {
        self.capacity
    }

    /// Its budget comes only when the last is used up.
    fn give_up(&mut self) {
        self.used = self.used.saturating_add(self.left);
        self.left = Work::ZERO;
    }

    fn next(&self) -> Option<Instant> {
        (self.awake && self.left.is_zero()).then_some(self.deadline)
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn check(&self) -> Result<(), &'static str> {
        let sum = self.used.saturating_add(self.repaid);
        if self.left.saturating_add(sum) == self.capacity {
            Ok(())
        } else {
            Err("T3: what is left, used and paid back is the capacity")
        }
    }
}
