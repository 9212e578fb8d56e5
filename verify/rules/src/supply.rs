//! Budgets of servers by windows: what comes, never comes faster than the server's kind allows.
//!
//! The log states each budget that comes, and each that becomes less without being used. Between
//! two statements the work executed makes it less. A rise leaves the server with no more than its
//! kind grants: the capacity of each period less debts, or the replenishments of a sporadic server.
//! Under constant bandwidth the deadline moves far enough for the rise.
//!
//! Not judged: when the timer of a sporadic server is armed, from when a sporadic or a constant
//! bandwidth server counts among equals, and what is left of a budget that passes unused.

use punctual_kern::NodeId;
use punctual_model::{Instant, Server, ServerKind, Span, Work};

use crate::Rule;
use crate::entry::Judge;
use crate::node::ROOT;
use crate::queue::Entity;

/// The budget of one server, in ticks.
#[derive(Clone, Debug)]
pub(crate) struct Supply {
    terms: Server,
    /// As the log states it, less what was executed since.
    pub(crate) left: u64,
    /// Of it at most this is a sibling's, and so much of it was when it was stated last.
    borrowed: u64,
    loan: u64,
    /// Periods: what those up to the one of `since` have given, less what was used; below zero it
    /// is owed.
    since: Instant,
    balance: i64,
    /// Constant bandwidth: the deadline as last stated, and what has come since.
    deadline: Option<Instant>,
    risen: u64,
    /// Sporadic: from when what may be used, in order.
    replenishments: Vec<(Instant, u64)>,
    /// It ran out in this entry, which has not been told.
    spent: bool,
    /// It ran out, and something that is ready has waited for more since.
    starves: bool,
    /// Nothing has been ready since then.
    idle: Option<Instant>,
    /// Some of it may have passed unused: what there is has to be stated first.
    unknown: bool,
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
            loan: 0,
            since: Instant::ZERO,
            balance: signed(full),
            deadline: None,
            risen: 0,
            replenishments: vec![(Instant::ZERO, full)],
            spent: false,
            starves: false,
            idle: Some(Instant::ZERO),
            unknown: false,
        }
    }

    fn full(&self) -> u64 {
        self.terms.budget.ticks()
    }

    /// Whether it has one budget per period.
    fn is_periodic(&self) -> bool {
        use ServerKind::{ConstantBandwidth, Sporadic};
        !matches!(self.terms.kind, ConstantBandwidth | Sporadic)
    }

    /// Whether its budget becomes less while nothing is ready.
    fn loses(&self) -> bool {
        use ServerKind::{PeriodicResource, Polling};
        matches!(self.terms.kind, Polling | PeriodicResource)
    }

    /// At least what it has without what is borrowed.
    fn own(&self) -> u64 {
        self.left.saturating_sub(self.borrowed)
    }

    /// The start of the period that `at` is in.
    fn period_of(&self, at: Instant) -> Instant {
        let period = self.terms.period.ticks().max(1);
        Instant::from_ticks(at.ticks() / period * period)
    }

    /// What the periods up to the one of `at` have given and was not used until now.
    fn balance_at(&self, at: Instant) -> i64 {
        let passed = self.period_of(at).since(self.since).ticks();
        let given = passed / self.terms.period.ticks().max(1);
        let given = signed(given.saturating_mul(self.full()));
        self.balance
            .saturating_add(given)
            .min(signed(self.full()).max(self.balance))
    }

    /// Something is ready that was not: what a sporadic server may use counts from now on.
    fn wake(&mut self, now: Instant) {
        if self.idle.is_some_and(|since| since < now) {
            self.unknown |= self.loses();
            let usable = self.replenishments.iter_mut().filter(|r| r.0 <= now);
            usable.for_each(|r| r.0 = now);
        }
    }

    /// `work` was executed up to `now`; returns how much of it lay beyond the budget.
    fn charge(&mut self, began: Instant, now: Instant, work: u64) -> u64 {
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
    fn spend(&mut self, began: Instant, now: Instant, work: u64) {
        if self.terms.kind == ServerKind::Sporadic {
            return self.plan(work);
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
    fn plan(&mut self, mut work: u64) {
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
    fn rise(&mut self, now: Instant, budget: u64) -> Option<String> {
        let (left, own) = (self.left, budget.saturating_sub(self.borrowed));
        let most = match self.terms.kind {
            ServerKind::ConstantBandwidth => self.full(),
            ServerKind::Sporadic => {
                let usable = self.replenishments.iter().filter(|r| r.0 <= now);
                usable.map(|r| r.1).sum()
            }
            _ => u64::try_from(self.balance_at(now)).unwrap_or(0),
        };
        let risen = budget.saturating_sub(left).saturating_sub(self.loan);
        self.risen = self.risen.saturating_add(risen);
        let passes = self.loses() && self.idle.is_some_and(|since| since < now);
        let known = !passes && !self.unknown && self.loan == 0;
        self.state(budget);
        if own > most {
            return Some(format!(
                "is replenished to {budget}, may have {most} of its own"
            ));
        }
        (known && budget <= left).then(|| format!("is replenished to {budget}, and has {left}"))
    }

    fn state(&mut self, budget: u64) {
        self.borrowed = self
            .borrowed
            .saturating_sub(self.left.saturating_sub(budget));
        (self.left, self.loan) = (budget, self.borrowed);
        (self.spent, self.unknown) = (false, false);
    }

    /// The log states that there is `budget` at the end of an entry.
    fn is_now(&mut self, budget: u64, parked: bool) -> Option<String> {
        let left = self.left;
        let forgoes = parked && self.terms.kind == ServerKind::ConstantBandwidth;
        let falls = self.loses() || forgoes || left.saturating_sub(budget) <= self.loan;
        let unknown = self.unknown && budget <= self.full();
        let lawful = budget == left || unknown || (budget < left && falls);
        let spent = self.spent;
        self.state(budget);
        self.spent = spent;
        (!lawful).then(|| format!("has {budget}, should have {left}"))
    }

    /// The log states its deadline; what is wrong with that.
    fn is_due(&mut self, now: Instant, deadline: Instant) -> Option<String> {
        let right = match self.terms.kind {
            ServerKind::Sporadic => true,
            ServerKind::ConstantBandwidth => {
                let risen = u128::from(std::mem::take(&mut self.risen));
                let before = self.deadline.replace(deadline);
                let moved = before.map_or(u64::MAX, |before| deadline.since(before).ticks());
                risen * u128::from(self.terms.period.ticks().max(1))
                    <= u128::from(moved) * u128::from(self.full())
            }
            _ => Some(deadline) == self.next(now, true),
        };
        let deadline = deadline.ticks();
        (!right).then(|| format!("has deadline {deadline}, which its budget is not for"))
    }

    /// When its budget changes by itself next, while something is ready.
    fn next(&self, now: Instant, on_time: bool) -> Option<Instant> {
        match self.terms.kind {
            ServerKind::ConstantBandwidth => self.deadline.filter(|_| on_time && self.left == 0),
            ServerKind::Sporadic => None,
            _ => Some(self.period_of(now).saturating_add(self.terms.period)),
        }
    }
}

impl Judge<'_> {
    /// Every server from node `from` up pays for `executed` ticks.
    pub(crate) fn charge_supply(&mut self, from: usize, executed: u64, thread: Option<usize>) {
        let (began, now) = (self.last, self.now);
        // Sections that overrun by choice may go on for so long, at the cost of the next budgets.
        let allowed = thread.map_or(0, |thread| self.locks.allowance(thread));
        let allowed = self.lateness().saturating_add(allowed);
        let (mut most, mut at) = (0, from);
        while let Some(parent) = self.nodes[at].parent {
            let supply = self.nodes[at].supply.as_mut();
            let beyond = supply.map_or(0, |supply| supply.charge(began, now, executed));
            most = beyond.max(most);
            if beyond > allowed {
                self.accuse_node(
                    Rule::SupplyRespected,
                    at,
                    format!(": {beyond} ticks over its budget, {allowed} allowed"),
                );
            }
            self.nodes[parent].queue.charge(Entity::Node(at), executed);
            at = parent;
        }
        if let Some(thread) = thread.filter(|_| most > 0) {
            self.locks.overdraw(thread, most);
        }
    }

    /// Something has come into the ready set of a node, or waits there for a budget.
    pub(crate) fn wakes(&mut self, at: usize) {
        let (now, mut on) = (self.now, Some(at));
        while let Some(at) = on {
            on = self.nodes[at].parent;
            if let Some(supply) = self.nodes[at].supply.as_mut() {
                supply.wake(now);
                // Without budget it comes into no ready set itself.
                on = on.filter(|_| supply.left > 0 || supply.unknown);
            }
        }
    }

    /// The core says that a server has this much now.
    pub(crate) fn server_replenished(&mut self, at: usize, budget: Work) {
        let now = self.now;
        let Some(supply) = self.nodes[at].supply.as_mut() else {
            return self.accuse_node(Rule::SupplyRespected, at, "has a budget where none belongs");
        };
        if let Some(what) = supply.rise(now, budget.ticks()) {
            self.accuse_node(Rule::SupplyRespected, at, format!("{what}"));
        }
    }

    /// The core says that a server has nothing left.
    pub(crate) fn server_exhausted(&mut self, at: usize) {
        let late = self.lateness() > 0;
        let supply = self.nodes[at].supply.as_mut();
        let right = supply.is_some_and(|supply| {
            let lapsed = supply.loan > 0 || late;
            let right = std::mem::take(&mut supply.spent) || lapsed;
            supply.left = 0;
            right
        });
        if !right {
            self.accuse_node(Rule::SupplyRespected, at, "is exhausted and has budget");
        }
    }

    /// The core says what is left of a budget at the end of an entry.
    pub(crate) fn budget_is(&mut self, at: usize, budget: Option<Work>) {
        let parked = self.nodes[at].parked > 0;
        let what = match (self.nodes[at].supply.as_mut(), budget) {
            (Some(supply), Some(budget)) => supply.is_now(budget.ticks(), parked),
            (None, None) => None,
            _ => Some("has a budget where none belongs, or none where one does".into()),
        };
        if let Some(what) = what {
            self.accuse_node(Rule::SupplyRespected, at, format!("{what}"));
        }
    }

    /// Checks the key by which a scheduler is queued: the deadline is that of its server, and the
    /// release the instant since which it has both a ready thread and a budget.
    pub(crate) fn supply_is_due(&mut self, at: usize, deadline: Instant, release: Option<Instant>) {
        let now = self.now;
        let supply = self.nodes[at].supply.as_mut();
        let what = supply.and_then(|supply| {
            let known = supply.is_periodic() && supply.starves && supply.loan == 0;
            let known = known && supply.left > 0;
            let early = release.is_some_and(|at| known && supply.balance_at(at) <= 0);
            let early = early.then(|| "counts from before it had a budget".to_string());
            supply.is_due(now, deadline).or(early)
        });
        if let Some(what) = what {
            self.accuse_node(Rule::SupplyRespected, at, format!("{what}"));
        }
    }

    /// Whether each server above a thread has this much left, or as much as it ever has. What is
    /// borrowed ends by itself: no section counts on it.
    pub(crate) fn has_supply_for(&self, thread: usize, length: u64) -> bool {
        let mut above = self.lineage(self.threads[thread].home);
        above.all(|at| {
            let supply = self.nodes[at].supply.as_ref();
            supply.is_none_or(|supply| supply.own() >= length.min(supply.full()))
        })
    }

    /// A thread waits until every server above it has what its section needs.
    pub(crate) fn park(&mut self, thread: usize, parks: bool) {
        let home = self.threads[thread].home;
        for at in self.lineage(home).collect::<Vec<_>>() {
            let node = &mut self.nodes[at];
            node.parked = match parks {
                true => node.parked + 1,
                false => node.parked.saturating_sub(1),
            };
            if parks {
                self.wakes(at);
            }
        }
    }

    /// At the end of an entry the end of every budget was told, and the core wants to be back when
    /// more comes for a scheduler that has something ready.
    pub(crate) fn supply_is_told(&mut self) {
        self.was_late |= self.lateness() > 0;
        for at in ROOT + 1..self.nodes.len() {
            let node = &mut self.nodes[at];
            let ready = node.queue.len() > 0 || node.parked > 0;
            let Some(supply) = node.supply.as_mut() else {
                continue;
            };
            supply.idle = (!ready).then_some(supply.idle.unwrap_or(self.now));
            supply.unknown &= !ready;
            supply.starves &= ready && supply.left == 0;
            let silent = std::mem::take(&mut supply.spent);
            let due = supply.next(self.now, !self.was_late).filter(|_| ready);
            if silent {
                let what = "is exhausted, and that was not told";
                self.accuse_node(Rule::SupplyRespected, at, what);
            } else if due.is_some_and(|due| !self.is_armed_by(due)) {
                let what = "waits, and nothing is armed for the return of its budget";
                self.accuse_node(Rule::SupplyRespected, at, what);
            }
        }
    }

    /// The core says that a scheduler has lent budget to a sibling.
    pub(crate) fn lent(&mut self, from: NodeId, to: NodeId, work: Work) {
        let (now, work) = (self.now, work.ticks());
        let (Some(lender), Some(borrower)) = (self.node(from), self.node(to)) else {
            let what = "budget is lent between schedulers that are none".into();
            return self.violation(Rule::SupplyRespected, what);
        };
        let given = self.nodes[lender].supply.as_mut();
        let given = given.is_some_and(|supply| {
            // What sleeps does not know what time it is: what it has is stated when it wakes.
            let asleep = supply.idle.is_some();
            let most = if asleep { supply.full() } else { supply.own() };
            supply.left = supply.left.saturating_sub(work);
            if asleep {
                (supply.unknown, supply.deadline) = (true, None);
            }
            supply.spend(now, now, work);
            work > 0 && work <= most
        });
        let taken = self.nodes[borrower].supply.as_mut();
        let taken = taken.is_some_and(|supply| {
            supply.borrowed = supply.borrowed.saturating_add(work);
            supply.loan = supply.loan.saturating_add(work);
            true
        });
        if !given || !taken {
            self.accuse_node(
                Rule::SupplyRespected,
                lender,
                format!("lends {work} ticks that it has not, or to no server"),
            );
        }
    }
}
