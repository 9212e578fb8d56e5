//! Budgets of servers by windows: what comes, never comes faster than the server's kind allows.
//!
//! The log states each budget that comes, and each that becomes less without being used. Between
//! two statements the work executed makes it less. A rise leaves the server with no more than its
//! kind grants: the capacity of each period less debts, or the replenishments of a sporadic server.
//! Under constant bandwidth the deadline moves far enough for the rise.
//!
//! Not judged: when the timer of a sporadic server is armed, from when a sporadic or a constant
//! bandwidth server counts among equals, and what is left of a budget that passes unused.

use punctual_model::{Instant, Server, ServerKind, Span};

/// The budget of one server, in ticks.
#[derive(Clone, Debug)]
pub(crate) struct Supply {
    pub(crate) terms: Server,
    /// As the log states it, less what was executed since.
    pub(crate) left: u64,
    /// Of it at most this is a sibling's, and so much of it was when it was stated last.
    pub(crate) borrowed: u64,
    pub(crate) was_borrowed: u64,
    /// Periods: what those up to the one of `since` have given, less what was used; below zero it
    /// is owed.
    pub(crate) since: Instant,
    pub(crate) balance: i64,
    /// Constant bandwidth: the deadline as last stated, and what has come since.
    pub(crate) deadline: Option<Instant>,
    pub(crate) risen: u64,
    /// Sporadic: from when what may be used, in order.
    pub(crate) replenishments: Vec<(Instant, u64)>,
    /// It ran out in this entry, which has not been told.
    pub(crate) spent: bool,
    /// It ran out, and something that is ready has waited for more since.
    pub(crate) starves: bool,
    /// The longest section that has waited for its budget in this entry, at most its capacity.
    pub(crate) wanted: u64,
    /// A budget has come in this entry, or a section has begun to wait for one.
    pub(crate) weighed: bool,
    /// Nothing has been ready since then.
    pub(crate) idle: Option<Instant>,
    /// Some of it may have passed unused: what there is has to be stated first.
    pub(crate) unknown: bool,
    /// It counts by the period that ends now: an entry of its own begins the next one.
    pub(crate) ended: bool,
}

fn signed(ticks: u64) -> i64 {
    i64::try_from(ticks).unwrap_or(i64::MAX)
}

impl Supply {
    pub(crate) fn new(terms: Server) -> Supply {
        let full = terms.budget.ticks();
        let polls = terms.kind == ServerKind::Polling;
        Supply {
            terms,
            left: if polls { 0 } else { full },
            borrowed: 0,
            was_borrowed: 0,
            since: Instant::ZERO,
            balance: signed(full),
            deadline: None,
            risen: 0,
            replenishments: vec![(Instant::ZERO, full)],
            spent: false,
            starves: false,
            wanted: 0,
            weighed: false,
            idle: Some(Instant::ZERO),
            unknown: false,
            ended: false,
        }
    }

    pub(crate) fn full(&self) -> u64 {
        self.terms.budget.ticks()
    }

    /// Whether it has one budget per period.
    pub(crate) fn is_periodic(&self) -> bool {
        use ServerKind::{ConstantBandwidth, Sporadic};
        !matches!(self.terms.kind, ConstantBandwidth | Sporadic)
    }

    /// Whether its budget becomes less while nothing is ready.
    pub(crate) fn loses(&self) -> bool {
        use ServerKind::{PeriodicResource, Polling};
        matches!(self.terms.kind, Polling | PeriodicResource)
    }

    /// At least what it has without what is borrowed.
    pub(crate) fn own(&self) -> u64 {
        self.left.saturating_sub(self.borrowed)
    }

    /// The start of the period that `at` is in.
    pub(crate) fn period_of(&self, at: Instant) -> Instant {
        let period = self.terms.period.ticks().max(1);
        Instant::from_ticks(at.ticks() / period * period)
    }

    /// What the periods up to the one of `at` have given and was not used until now.
    pub(crate) fn balance_at(&self, at: Instant) -> i64 {
        let passed = self.period_of(at).since(self.since).ticks();
        let given = passed / self.terms.period.ticks().max(1);
        let given = signed(given.saturating_mul(self.full()));
        self.balance
            .saturating_add(given)
            .min(signed(self.full()).max(self.balance))
    }

    /// Something is ready that was not: what a sporadic server may use counts from now on.
    pub(crate) fn wake(&mut self, now: Instant) {
        if self.idle.is_some_and(|since| since < now) {
            self.unknown |= self.loses();
            let usable = self.replenishments.iter_mut().filter(|r| r.0 <= now);
            usable.for_each(|r| r.0 = now);
        }
    }

    /// `work` was executed up to `now`; returns how much of it lay beyond the budget.
    pub(crate) fn charge(&mut self, began: Instant, now: Instant, work: u64) -> u64 {
        let beyond = work.saturating_sub(self.left);
        self.spent = self.left > 0 && self.left <= work;
        self.left = self.left.saturating_sub(work);
        self.starves = self.left == 0;
        self.spend(began, now, work.saturating_sub(self.borrowed));
        self.borrowed = self.borrowed.saturating_sub(work).min(self.left);
        beyond
    }

    /// So much of its own was used between these two. What ran past the end of a period counts as
    /// late as it can have been.
    pub(crate) fn spend(&mut self, began: Instant, now: Instant, work: u64) {
        if self.terms.kind == ServerKind::Sporadic {
            return self.replenish(work);
        }
        let start = self.period_of(now.saturating_sub(Span::from_ticks(1)));
        let late = work.min(now.since(start).ticks());
        for (at, part) in [(began, work - late), (start, late)] {
            if part > 0 {
                self.balance = self.balance_at(at).saturating_sub(signed(part));
                self.since = self.since.max(self.period_of(at));
            }
        }
    }

    /// What is used of a replenishment comes back one period after it could be used.
    pub(crate) fn replenish(&mut self, mut work: u64) {
        while work > 0 && !self.replenishments.is_empty() {
            let (at, amount) = self.replenishments[0];
            let used = amount.min(work);
            work -= used;
            if used == amount {
                let _ = self.replenishments.remove(0);
            } else {
                self.replenishments[0].1 -= used;
            }
            let back = at.saturating_add(self.terms.period);
            match self.replenishments.last_mut() {
                Some(last) if last.0 == back => last.1 += used,
                _ => self.replenishments.push((back, used)),
            }
        }
    }

    /// The log states that there is `budget` now, which is more than there was; what is wrong with
    /// that.
    pub(crate) fn rise(&mut self, now: Instant, budget: u64) -> Option<String> {
        let (left, own) = (self.left, budget.saturating_sub(self.borrowed));
        let most = match self.terms.kind {
            ServerKind::ConstantBandwidth => self.full(),
            ServerKind::Sporadic => {
                let usable = self.replenishments.iter().filter(|r| r.0 <= now);
                usable.map(|r| r.1).sum()
            }
            _ => u64::try_from(self.balance_at(now)).unwrap_or(0),
        };
        let risen = budget
            .saturating_sub(left)
            .saturating_sub(self.was_borrowed);
        self.risen = self.risen.saturating_add(risen);
        self.weighed = true;
        let passes = self.loses() && self.idle.is_some_and(|since| since < now);
        let known = !passes && !self.unknown && self.was_borrowed == 0;
        self.state(budget);
        if own > most {
            return Some(format!(
                "is replenished to {budget}, may have {most} of its own"
            ));
        }
        (known && budget <= left).then(|| format!("is replenished to {budget}, and has {left}"))
    }

    pub(crate) fn state(&mut self, budget: u64) {
        self.borrowed = self.borrowed.min(budget);
        (self.left, self.was_borrowed) = (budget, self.borrowed);
        (self.spent, self.unknown) = (false, false);
    }

    /// A section of this length waits until it has so much, or as much as it ever has.
    pub(crate) fn wants(&mut self, length: u64) {
        self.wanted = self.wanted.max(length.min(self.full()));
        self.weighed = true;
    }

    /// Whether a rest that is too little for a section that waits is given up.
    fn forgoes(&self) -> bool {
        self.terms.kind == ServerKind::ConstantBandwidth
    }

    /// An entry ends, and the longest section that still waits is so long. The rest that it should
    /// have given up for that section, and has not. What of it is borrowed ends by itself.
    pub(crate) fn keeps(&mut self, longest: Option<u64>) -> Option<u64> {
        self.wanted = longest.map_or(0, |length| length.min(self.full()));
        let weighed = std::mem::take(&mut self.weighed) && self.forgoes() && !self.unknown;
        let keeps = weighed && self.own() > 0 && self.left < self.wanted;
        keeps.then_some(self.left)
    }

    /// The log states that there is `budget` at the end of an entry.
    pub(crate) fn is_now(&mut self, budget: u64) -> Option<String> {
        let left = self.left;
        // It gives up all that it has of its own, and only what is too little.
        let forgoes = self.forgoes() && self.own() < self.wanted && budget <= self.was_borrowed;
        let falls = self.loses() || forgoes || left.saturating_sub(budget) <= self.was_borrowed;
        // A lender that sleeps may have borrowed before, beside a new budget of its own.
        let unknown = self.unknown && budget <= self.full().saturating_add(self.was_borrowed);
        let lawful = budget == left || unknown || (budget < left && falls);
        let spent = self.spent;
        self.state(budget);
        self.spent = spent;
        (!lawful).then(|| format!("has {budget}, should have {left}"))
    }

    /// The log states its deadline; what is wrong with that.
    pub(crate) fn is_due(&mut self, now: Instant, deadline: Instant) -> Option<String> {
        let right = match self.terms.kind {
            ServerKind::Sporadic => true,
            ServerKind::ConstantBandwidth => {
                let risen = u128::from(std::mem::take(&mut self.risen));
                let before = self.deadline.replace(deadline);
                let moved = before.map_or(u64::MAX, |before| deadline.since(before).ticks());
                risen * u128::from(self.terms.period.ticks().max(1))
                    <= u128::from(moved) * u128::from(self.full())
            }
            _ => {
                let at = self.period_of(now);
                let right = deadline == at.saturating_add(self.terms.period);
                self.ended = !right && deadline == now && at == now && now > Instant::ZERO;
                right || self.ended
            }
        };
        let deadline = deadline.ticks();
        (!right).then(|| format!("has deadline {deadline}, which its budget is not for"))
    }

    /// When its budget changes by itself next, while something is ready.
    pub(crate) fn next(&self, now: Instant, on_time: bool) -> Option<Instant> {
        match self.terms.kind {
            ServerKind::ConstantBandwidth => self.deadline.filter(|_| on_time && self.left == 0),
            ServerKind::Sporadic => None,
            _ if self.ended => Some(now),
            _ => Some(self.period_of(now).saturating_add(self.terms.period)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::Work;

    fn server(kind: ServerKind, budget: u64) -> Supply {
        Supply::new(Server {
            kind,
            budget: Work::from_ticks(budget),
            period: Span::from_ticks(10),
        })
    }

    #[test]
    fn what_is_too_little_for_a_section_is_given_up_whole_and_nothing_else_is() {
        // Of a budget of 6 ticks, 4 are left.
        let waits = |kind, length| {
            let mut server = server(kind, 6);
            let _ = server.charge(Instant::ZERO, Instant::from_ticks(2), 2);
            server.wants(length);
            server
        };
        use ServerKind::{ConstantBandwidth, Deferrable};
        assert_eq!(waits(ConstantBandwidth, 5).is_now(0), None);
        // The capacity counts where a section is longer.
        assert_eq!(waits(ConstantBandwidth, 9).is_now(0), None);
        let wrong = Some("has 0, should have 4".to_string());
        assert_eq!(waits(ConstantBandwidth, 4).is_now(0), wrong);
        assert_eq!(waits(Deferrable, 5).is_now(0), wrong);
        let wrong = Some("has 1, should have 4".to_string());
        assert_eq!(waits(ConstantBandwidth, 5).is_now(1), wrong);
    }

    #[test]
    fn a_rest_that_is_too_little_is_not_kept_where_nothing_comes_before_it_is_used_up() {
        let keeps = |kind, length| {
            let mut server = server(kind, 6);
            let _ = server.rise(Instant::ZERO, 4);
            server.keeps(length)
        };
        use ServerKind::{ConstantBandwidth, Deferrable};
        assert_eq!(keeps(ConstantBandwidth, Some(5)), Some(4));
        assert_eq!(keeps(ConstantBandwidth, Some(9)), Some(4));
        assert_eq!(keeps(ConstantBandwidth, Some(4)), None);
        assert_eq!(keeps(ConstantBandwidth, None), None);
        assert_eq!(keeps(Deferrable, Some(5)), None);
        // Others may use a part of it, later, while another server has too little.
        let mut server = server(ConstantBandwidth, 6);
        server.wants(5);
        assert_eq!(server.keeps(Some(5)), None);
        let _ = server.charge(Instant::ZERO, Instant::from_ticks(2), 2);
        assert_eq!(server.keeps(Some(5)), None);
    }

    #[test]
    fn one_that_counts_by_the_period_that_ends_now_begins_the_next_one_at_once() {
        let mut server = server(ServerKind::Deferrable, 2);
        let at = Instant::from_ticks;
        assert_eq!(server.is_due(at(15), at(20)), None);
        assert_eq!(server.next(at(15), true), Some(at(20)));
        // Queued at the end of its period, before that of the next one is told.
        assert_eq!(server.is_due(at(20), at(20)), None);
        assert_eq!(server.next(at(20), true), Some(at(20)));
        assert_eq!(server.is_due(at(20), at(30)), None);
        assert_eq!(server.next(at(20), true), Some(at(30)));
        // In the middle of a period, and before the first one, it counts by its own.
        assert!(server.is_due(at(25), at(25)).is_some());
        assert!(server.is_due(at(0), at(0)).is_some());
    }
}
