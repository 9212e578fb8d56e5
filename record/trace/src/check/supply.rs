//! Budgets of servers, derived again from what was ready and what was executed.
//!
//! Each kind has its rule by definition, not by the core's code: what a period grants, what is lost
//! while nothing is ready, when that what was used comes back. What a late entry let run beyond a
//! budget is a debt, taken from the next.

use punctual_model::{Instant, Server, ServerKind, Span};

use super::loan::Loan;

/// Most pieces that a sporadic server keeps apart; beyond it the two latest become one.
const MOST_PIECES: usize = 8;

/// The budget of one server, in ticks.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    terms: Server,
    /// What may be executed now (a sporadic server's is in `pieces`).
    left: u64,
    debt: u64,
    /// Start of the current period, for kinds that count in periods.
    start: Instant,
    /// Of the current period: what was executed, and what a polling server lost.
    used: u64,
    lost: u64,
    /// Constant bandwidth: its deadline.
    deadline: Instant,
    /// Sporadic: from when what may be used, in order; the first `usable` of them already.
    pieces: Vec<(Instant, u64)>,
    usable: usize,
    /// Something is ready; else since when not.
    awake: bool,
    idle_since: Instant,
    /// The last instant at which something became ready after a pause.
    pub(super) woken: Instant,
    /// In the entry that woke it: since when it is ready, and what it was before.
    asleep: Option<(Instant, Box<Budget>)>,
    /// Budget that the log has told of.
    pub(super) told: u64,
    /// What a sibling has lent, until when.
    loan: Loan,
    /// It was forgone in this entry: what comes is told by the next one at the latest.
    pub(super) forgone: bool,
}

impl Budget {
    pub(super) fn new(terms: Server) -> Budget {
        let full = terms.budget.ticks();
        let mut budget = Budget {
            terms,
            left: full,
            debt: 0,
            start: Instant::ZERO,
            used: 0,
            lost: 0,
            deadline: Instant::ZERO,
            pieces: vec![(Instant::ZERO, full)],
            usable: 1,
            awake: false,
            idle_since: Instant::ZERO,
            woken: Instant::ZERO,
            asleep: None,
            told: 0,
            loan: Loan::default(),
            forgone: false,
        };
        if terms.kind == ServerKind::Polling {
            budget.lose();
        }
        budget.told = budget.left();
        budget
    }

    /// What it gives at most at a time.
    pub(super) fn full(&self) -> u64 {
        self.terms.budget.ticks()
    }

    fn period(&self) -> Span {
        self.terms.period.max(Span::from_ticks(1))
    }

    /// What may be executed now.
    pub(super) fn left(&self) -> u64 {
        self.own_left().saturating_add(self.loan.left)
    }

    /// Without what is borrowed.
    pub(super) fn own_left(&self) -> u64 {
        match self.terms.kind {
            ServerKind::Sporadic => self.pieces[..self.usable].iter().map(|piece| piece.1).sum(),
            _ => self.left,
        }
    }

    /// Its urgency for a parent that orders by deadline.
    pub(super) fn deadline(&self) -> Instant {
        match self.terms.kind {
            ServerKind::ConstantBandwidth => self.deadline,
            ServerKind::Sporadic => {
                let first = self.pieces.first().map_or(self.start, |piece| piece.0);
                first.saturating_add(self.period())
            }
            _ => self.start.saturating_add(self.period()),
        }
    }

    /// When its budget changes by itself next, while something is ready.
    pub(super) fn next(&self) -> Option<Instant> {
        match self.terms.kind {
            ServerKind::ConstantBandwidth => (self.left == 0).then_some(self.deadline),
            ServerKind::Sporadic => self.pieces.get(self.usable).map(|piece| piece.0),
            _ => Some(self.start.saturating_add(self.period())),
        }
    }

    /// Its rule.
    pub(super) fn kind(&self) -> ServerKind {
        self.terms.kind
    }

    /// Forgoes what is left, so that the next comes.
    pub(super) fn give_up(&mut self) {
        self.left = 0;
        self.forgone = true;
        self.told = self.told.min(self.left());
    }

    /// Whether something is ready, as far as it was told.
    pub(super) fn is_awake(&self) -> bool {
        self.awake
    }

    /// Time passes up to `now`, inclusive.
    pub(super) fn pass(&mut self, now: Instant) {
        let _ = self.loan.pass(now);
        match self.terms.kind {
            ServerKind::Sporadic => {
                let usable = self
                    .pieces
                    .iter()
                    .take_while(|piece| piece.0 <= now)
                    .count();
                self.usable = self.usable.max(usable);
            }
            ServerKind::ConstantBandwidth => {
                if self.awake && self.left == 0 && self.deadline <= now {
                    self.renew(self.deadline.saturating_add(self.period()));
                }
            }
            ServerKind::Polling => {
                if self.begin_period(now) && !self.awake {
                    self.lose();
                }
            }
            ServerKind::Deferrable => {
                let _ = self.begin_period(now);
            }
            ServerKind::PeriodicResource => self.idle_until(now),
        }
    }

    /// Time passes up to the instant, at most `until`, at which a budget comes after there was
    /// none: that instant. Debts may use up what comes before.
    pub(super) fn pass_until_funded(&mut self, until: Instant) -> Option<Instant> {
        while self.left() == 0 {
            let due = self.next().filter(|&due| due <= until)?;
            self.pass(due);
            if self.left() > 0 {
                return Some(due);
            }
            if self.next().is_none_or(|next| next <= due) {
                return None;
            }
        }
        None
    }

    /// A new period begins, full but for debts. Periods that passed unseen paid back in full.
    fn begin_period(&mut self, now: Instant) -> bool {
        let passed = now.since(self.start).ticks() / self.period().ticks();
        let Some(unseen) = passed.checked_sub(1) else {
            return false;
        };
        let ticks = passed.saturating_mul(self.period().ticks());
        self.start = self.start.saturating_add(Span::from_ticks(ticks));
        self.debt = self.debt.saturating_sub(self.full().saturating_mul(unseen));
        self.grant();
        true
    }

    fn grant(&mut self) {
        self.left = self.full().saturating_sub(self.debt);
        self.debt = self.debt.saturating_sub(self.full());
        self.used = 0;
        self.lost = 0;
    }

    /// A new budget with its deadline. Debts of whole budgets are paid by so many periods.
    fn renew(&mut self, deadline: Instant) {
        let whole = self.debt / self.full().max(1);
        let later = Span::from_ticks(whole.saturating_mul(self.period().ticks()));
        self.deadline = deadline.saturating_add(later);
        self.debt -= whole * self.full();
        self.grant();
    }

    fn lose(&mut self) {
        self.lost = self.lost.saturating_add(self.left);
        self.left = 0;
    }

    /// Periodic resource: its budget passes with the time in which nothing is ready.
    fn idle_until(&mut self, now: Instant) {
        let _ = self.begin_period(now);
        if !self.awake {
            let from = self.idle_since.max(self.start);
            self.left = self.left.saturating_sub(now.since(from).ticks());
            self.idle_since = self.idle_since.max(now);
        }
    }

    /// Something is ready, and has been since `since`. Of several reasons that a late entry serves,
    /// the earliest counts, in whatever order they are told.
    pub(super) fn wake(&mut self, now: Instant, since: Instant) {
        match self.asleep.take() {
            None if self.awake => return,
            None => {}
            Some((before, asleep)) if before <= since => {
                self.asleep = Some((before, asleep));
                return;
            }
            Some((_, asleep)) => *self = *asleep,
        }
        let late = since < now;
        let asleep = late.then(|| (since, Box::new(self.clone())));
        self.rise(now, since);
        self.asleep = asleep;
    }

    /// The entry that woke it is over.
    pub(super) fn settle(&mut self) {
        self.asleep = None;
        self.forgone = false;
    }

    fn rise(&mut self, now: Instant, since: Instant) {
        self.woken = now;
        match self.terms.kind {
            ServerKind::Polling => {
                self.pass(now);
                if since <= self.start && self.used == 0 {
                    self.left += std::mem::take(&mut self.lost);
                }
            }
            ServerKind::Deferrable => self.pass(now),
            ServerKind::PeriodicResource => {
                self.idle_until(since);
                self.awake = true;
                let _ = self.begin_period(now);
            }
            ServerKind::Sporadic => {
                // Activation: all that may be used is used from now on.
                self.pass(now);
                let usable = self.own_left();
                if self.usable > 0 {
                    let _ = self.pieces.splice(..self.usable, [(now, usable)]);
                    self.usable = 1;
                }
            }
            ServerKind::ConstantBandwidth => {
                let ahead = u128::from(self.deadline.since(now).ticks());
                let rate = u128::from(self.left) * u128::from(self.period().ticks());
                if self.deadline <= now || rate >= ahead * u128::from(self.full()) {
                    self.renew(now.saturating_add(self.period()));
                }
            }
        }
        self.awake = true;
        self.told = self.told.min(self.left());
    }

    /// Nothing has been ready since `at`.
    pub(super) fn idle(&mut self, at: Instant) {
        self.awake = false;
        self.asleep = None;
        self.idle_since = at;
        if self.terms.kind == ServerKind::Polling {
            self.lose();
        }
        self.told = self.told.min(self.left());
    }

    /// `work` was executed up to `now`; returns how much of it lay beyond the budget.
    pub(super) fn charge(&mut self, now: Instant, work: u64) -> u64 {
        let beyond = match self.loan.pay(now, work) {
            0 => 0,
            own => self.execute(now, own),
        };
        self.told = self.told.min(self.left());
        beyond
    }

    /// Gives a sibling part of the budget, as if it were executed here. Returns until when it would
    /// have been; `None`: it has not that much.
    pub(super) fn give(&mut self, now: Instant, work: u64) -> Option<Instant> {
        let asleep = !self.awake;
        let woken = self.woken;
        if asleep {
            // A server that sleeps does not know what time it is.
            self.rise(now, now);
        }
        let until = self.deadline();
        let enough = work > 0 && work <= self.own_left() && until > now;
        if enough {
            let _ = self.execute(now, work);
        }
        if asleep {
            self.idle(now);
            self.woken = woken;
        }
        self.told = self.told.min(self.left());
        enough.then_some(until)
    }

    /// Has been asked for more than it can give.
    pub(super) fn refuse(&mut self, now: Instant) {
        let _ = self.give(now, 0);
    }

    /// Takes what a sibling gives.
    pub(super) fn borrow(&mut self, work: u64, until: Instant) {
        self.loan.add(work, until);
    }

    /// What is borrowed ends, also while the server sleeps.
    pub(super) fn end_loan(&mut self, now: Instant) {
        if self.loan.pass(now) {
            self.told = self.told.min(self.left());
        }
    }

    fn execute(&mut self, now: Instant, work: u64) -> u64 {
        match self.terms.kind {
            ServerKind::Sporadic => {
                let beyond = work.saturating_sub(self.own_left());
                self.use_pieces(work);
                beyond
            }
            ServerKind::ConstantBandwidth => {
                let beyond = self.spend(work);
                if self.left == 0 && self.deadline <= now {
                    self.renew(now.saturating_add(self.period()));
                }
                beyond
            }
            _ => self.charge_periods(now, work),
        }
    }

    /// What ran past the end of a period because the entry was late counts as late as it can have
    /// been.
    fn charge_periods(&mut self, now: Instant, work: u64) -> u64 {
        let before = now.since(self.start).ticks().saturating_sub(1);
        let ticks = before / self.period().ticks() * self.period().ticks();
        let last = self.start.saturating_add(Span::from_ticks(ticks));
        if last == self.start {
            return self.spend(work);
        }
        let late = work.min(now.since(last).ticks());
        let beyond = self.spend(work - late);
        let _ = self.begin_period(last);
        beyond.saturating_add(self.spend(late))
    }

    fn spend(&mut self, work: u64) -> u64 {
        let beyond = work.saturating_sub(self.left);
        self.left = self.left.saturating_sub(work);
        self.used = self.used.saturating_add(work - beyond);
        self.debt = self.debt.saturating_add(beyond);
        beyond
    }

    /// What is used of a piece comes back one period after the piece could be used.
    fn use_pieces(&mut self, mut work: u64) {
        // Using all of it once moves every piece by a period.
        let Some(rounds) = work.checked_div(self.full()) else {
            return;
        };
        let whole = rounds.saturating_sub(1);
        let shift = Span::from_ticks(whole.saturating_mul(self.period().ticks()));
        for piece in &mut self.pieces {
            piece.0 = piece.0.saturating_add(shift);
        }
        work -= whole * self.full();
        while work > 0 {
            let (at, amount) = self.pieces[0];
            let used = amount.min(work);
            work -= used;
            if used == amount {
                let _ = self.pieces.remove(0);
                self.usable = self.usable.saturating_sub(1);
            } else {
                self.pieces[0].1 -= used;
            }
            self.plan(at.saturating_add(self.period()), used);
        }
    }

    fn plan(&mut self, at: Instant, amount: u64) {
        let full = self.pieces.len() == MOST_PIECES;
        let some_to_come = self.pieces.len() > self.usable;
        if let Some(last) = self.pieces.last_mut().filter(|_| some_to_come)
            && (full || last.0 == at)
        {
            *last = (at, last.1 + amount);
            return;
        }
        if full {
            let (_, merged) = self.pieces.remove(MOST_PIECES - 2);
            self.pieces[MOST_PIECES - 2].1 += merged;
            self.usable -= 1;
        }
        self.pieces.push((at, amount));
    }
}
