//! Budgets of servers by windows: what comes, never comes faster than the server's kind allows.
//!
//! The log states each budget that comes, and each that becomes less without being used; between
//! the two it is what was executed that makes it less. A rise is lawful when, with what was used
//! in its window, it is at most what the kind grants there.

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
    /// Of it at most this is a sibling's.
    borrowed: u64,
    /// Periods: the start of the last one seen, what was used in it, what earlier ones owe of it,
    /// and what is owed beyond it.
    start: Instant,
    used: u64,
    owed: u64,
    debt: u64,
    /// Constant bandwidth: the deadline as last stated, and what has come since.
    deadline: Option<Instant>,
    risen: u64,
    /// Sporadic: from when what may be used, in order.
    pieces: Vec<(Instant, u64)>,
    /// It ran out in this entry, which has not been told.
    spent: bool,
    /// Since when it has had nothing, and when something comes at the earliest.
    empty_until: Option<Instant>,
    /// Something came at an instant before this entry, at the earliest.
    came: Option<Instant>,
    /// Nothing has been ready since then.
    idle: Option<Instant>,
    /// A sibling has lent this since the last statement.
    fresh: u64,
    /// It has lent while nothing was ready: what it has then is not known.
    unsure: bool,
}

impl Supply {
    pub(crate) fn new(terms: Server) -> Supply {
        let full = terms.budget.ticks();
        Supply {
            terms,
            left: if terms.kind == ServerKind::Polling {
                0
            } else {
                full
            },
            borrowed: 0,
            start: Instant::ZERO,
            used: 0,
            owed: 0,
            debt: 0,
            deadline: None,
            risen: 0,
            pieces: vec![(Instant::ZERO, full)],
            spent: false,
            empty_until: None,
            came: None,
            idle: Some(Instant::ZERO),
            fresh: 0,
            unsure: false,
        }
    }

    fn full(&self) -> u64 {
        self.terms.budget.ticks()
    }

    fn period(&self) -> u64 {
        self.terms.period.ticks().max(1)
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

    /// The start of the period that `now` is in.
    fn period_of(&self, now: Instant) -> Instant {
        Instant::from_ticks(now.ticks() / self.period() * self.period())
    }

    /// The period that begins at `start` is the last one seen.
    fn begin_period(&mut self, start: Instant) {
        let passed = start.since(self.start).ticks() / self.period();
        let Some(unseen) = passed.checked_sub(1) else {
            return;
        };
        let debt = self.debt.saturating_sub(self.full().saturating_mul(unseen));
        (self.start, self.used) = (start, 0);
        self.owed = debt.min(self.full());
        self.debt = debt - self.owed;
    }

    /// Something is ready that was not: what a sporadic server may use counts from now on.
    fn wake(&mut self, now: Instant) {
        if self.idle.take().is_none_or(|since| since >= now) {
            return;
        }
        // What passes while nothing is ready is not told.
        self.unsure |= self.loses();
        let usable = self.pieces.iter_mut().filter(|piece| piece.0 <= now);
        usable.for_each(|piece| piece.0 = now);
    }

    /// `work` was executed up to `now`; returns how much of it lay beyond the budget.
    fn charge(&mut self, now: Instant, work: u64, on_time: bool) -> u64 {
        let beyond = work.saturating_sub(self.left);
        self.spent = self.left > 0 && self.left <= work;
        self.left = self.left.saturating_sub(work);
        let own = work.saturating_sub(self.borrowed);
        self.borrowed = self.borrowed.saturating_sub(work).min(self.left);
        let is_split = self.consume(now, own, beyond);
        if self.left == 0 && self.empty_until.is_none() && !is_split {
            self.empty_until = self.returns(now, on_time);
        }
        beyond
    }

    /// Whether some of it counts in a later period than it began in.
    fn consume(&mut self, now: Instant, own: u64, beyond: u64) -> bool {
        if self.terms.kind == ServerKind::Sporadic {
            self.use_pieces(own);
        }
        // What ran past the end of a period counts as late as it can have been.
        let last = self.period_of(now.saturating_sub(Span::from_ticks(1)));
        let late = match last > self.start {
            true => own.min(now.since(last).ticks()),
            false => 0,
        };
        self.debt = self.debt.saturating_add(beyond.saturating_sub(late));
        self.begin_period(last);
        self.used = match late {
            0 => self.used.saturating_add(own),
            _ => late,
        };
        late > 0
    }

    /// What is used of a piece comes back one period after the piece could be used.
    fn use_pieces(&mut self, mut work: u64) {
        while work > 0 && !self.pieces.is_empty() {
            let (at, amount) = self.pieces[0];
            let used = amount.min(work);
            work -= used;
            if used == amount {
                let _ = self.pieces.remove(0);
            } else {
                self.pieces[0].1 -= used;
            }
            let back = at.saturating_add(Span::from_ticks(self.period()));
            match self.pieces.last_mut() {
                Some(last) if last.0 == back => last.1 += used,
                _ => self.pieces.push((back, used)),
            }
        }
    }

    /// When something comes again at the earliest, now that nothing is left.
    fn returns(&self, now: Instant, on_time: bool) -> Option<Instant> {
        let later = |start: Instant, periods: u64| {
            start.saturating_add(Span::from_ticks(self.period().saturating_mul(periods)))
        };
        let whole = self.debt / self.full().max(1);
        match self.terms.kind {
            ServerKind::ConstantBandwidth => self.deadline.filter(|_| on_time),
            ServerKind::Sporadic => None,
            _ => {
                let start = self.period_of(now.saturating_sub(Span::from_ticks(1)));
                Some(later(start, 1 + whole))
            }
        }
    }

    /// The log states that there is `budget` now; what is wrong with that.
    fn rise(&mut self, now: Instant, budget: u64, is_leaf: bool) -> Option<String> {
        let (left, full) = (self.left, self.full());
        let own = budget.saturating_sub(self.borrowed);
        self.begin_period(self.period_of(now));
        let most = match self.terms.kind {
            ServerKind::ConstantBandwidth => full,
            ServerKind::Sporadic => {
                let usable = self.pieces.iter().filter(|piece| piece.0 <= now);
                usable.map(|piece| piece.1).sum()
            }
            _ => full.saturating_sub(self.used).saturating_sub(self.owed),
        };
        let fresh = std::mem::take(&mut self.fresh);
        let unsure = std::mem::take(&mut self.unsure);
        let risen = budget.saturating_sub(left).saturating_sub(fresh);
        self.risen = self.risen.saturating_add(risen);
        (self.left, self.spent) = (budget, false);
        self.came = self.empty_until.take();
        // What sleeps catches up when it wakes. (Above other schedulers that is told last.)
        let asleep = is_leaf && fresh == 0 && self.idle.is_some_and(|since| since < now);
        if (budget <= left || asleep) && !unsure {
            return Some(format!("is replenished to {budget}, and has {left}"));
        }
        (own > most).then(|| format!("is replenished to {budget}, may have {most} of its own"))
    }

    /// The log states that there is `budget` at the end of an entry.
    fn is_now(&mut self, budget: u64, parked: bool) -> Option<String> {
        let left = std::mem::replace(&mut self.left, budget);
        let forgoes = parked && self.terms.kind == ServerKind::ConstantBandwidth;
        let unsure = std::mem::take(&mut self.unsure) && budget <= self.full();
        let falls = self.loses() || forgoes || self.borrowed > 0;
        let lawful = budget == left || unsure || (budget < left && falls);
        self.borrowed = self.borrowed.min(budget);
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
                risen * u128::from(self.period()) <= u128::from(moved) * u128::from(self.full())
            }
            _ => deadline == self.period_of(now).saturating_add(self.terms.period),
        };
        (!right).then(|| {
            format!(
                "has deadline {}, which its budget is not for",
                deadline.ticks()
            )
        })
    }

    /// When its budget changes by itself next, while something is ready.
    fn next(&self, now: Instant, on_time: bool) -> Option<Instant> {
        match self.terms.kind {
            ServerKind::ConstantBandwidth => self.deadline.filter(|_| on_time && self.left == 0),
            // Its pieces are known to come no earlier than stated here.
            ServerKind::Sporadic => None,
            _ => Some(self.period_of(now).saturating_add(self.terms.period)),
        }
    }
}

impl Judge<'_> {
    /// Every server from node `from` up pays for `executed` ticks.
    pub(crate) fn charge_supply(&mut self, from: usize, executed: u64, thread: Option<usize>) {
        let now = self.now;
        // Sections that overrun by choice may go on for so long, at the cost of the next budgets.
        let allowed = thread.map_or(0, |thread| self.locks.allowance(thread));
        let allowed = self.lateness().saturating_add(allowed);
        let on_time = !self.was_late && self.lateness() == 0;
        let (mut most, mut at) = (0, from);
        while let Some(parent) = self.nodes[at].parent {
            let supply = self.nodes[at].supply.as_mut();
            let beyond = supply.map_or(0, |supply| supply.charge(now, executed, on_time));
            most = beyond.max(most);
            if beyond > allowed {
                let name = self.node_name(at);
                let what = format!("{name}: {beyond} ticks over its budget, {allowed} allowed");
                self.violation(Rule::SupplyRespected, what);
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
                on = on.filter(|_| supply.left > 0 || supply.unsure);
            }
        }
    }

    /// The core says that a server has this much now.
    pub(crate) fn server_replenished(&mut self, at: usize, budget: Work) {
        let now = self.now;
        let mut nodes = self.nodes.iter();
        let is_leaf = !nodes.any(|node| node.alive && node.parent == Some(at));
        let Some(supply) = self.nodes[at].supply.as_mut() else {
            let what = format!("{} has a budget where none belongs", self.node_name(at));
            return self.violation(Rule::SupplyRespected, what);
        };
        if let Some(what) = supply.rise(now, budget.ticks(), is_leaf) {
            let what = format!("{} {what}", self.node_name(at));
            self.violation(Rule::SupplyRespected, what);
        }
    }

    /// The core says that a server has nothing left.
    pub(crate) fn server_exhausted(&mut self, at: usize) {
        let late = self.lateness() > 0;
        let supply = self.nodes[at].supply.as_mut();
        let right = supply.is_some_and(|supply| {
            let lapsed = supply.borrowed > 0 || late;
            let right = std::mem::take(&mut supply.spent) || lapsed;
            supply.left = 0;
            right
        });
        if !right {
            let what = format!("{} is exhausted and has budget", self.node_name(at));
            self.violation(Rule::SupplyRespected, what);
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
            let what = format!("{} {what}", self.node_name(at));
            self.violation(Rule::SupplyRespected, what);
        }
    }

    /// Checks the key by which a scheduler is queued: the deadline is that of its server, and the
    /// release the instant since which it has both a ready thread and a budget.
    pub(crate) fn supply_is_due(&mut self, at: usize, deadline: Instant, release: Option<Instant>) {
        let now = self.now;
        let supply = self.nodes[at].supply.as_mut();
        let due = supply.and_then(|supply| supply.is_due(now, deadline));
        let came = self.nodes[at]
            .supply
            .as_ref()
            .and_then(|supply| supply.came);
        let early = release.is_some_and(|release| came.is_some_and(|came| release < came));
        let early = early.then(|| "counts from before it had a budget".to_string());
        if let Some(what) = due.or(early) {
            let what = format!("{} {what}", self.node_name(at));
            self.violation(Rule::SupplyRespected, what);
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

    /// At the end of an entry: what ended was told, and the core wants to be back when more comes
    /// for whoever is ready.
    pub(crate) fn supply_is_told(&mut self, arm: Option<Instant>) {
        let now = self.now;
        self.was_late |= self.lateness() > 0;
        for at in ROOT + 1..self.nodes.len() {
            let node = &mut self.nodes[at];
            let ready = node.queue.len() > 0 || node.parked > 0;
            let Some(supply) = node.supply.as_mut() else {
                continue;
            };
            if !ready {
                supply.idle.get_or_insert(now);
                supply.empty_until = None;
            }
            (supply.came, supply.unsure) = (None, false);
            let silent = std::mem::take(&mut supply.spent);
            let due = supply.next(now, !self.was_late).filter(|_| ready);
            let what = if silent {
                "is exhausted and nobody was told"
            } else if due.is_some_and(|due| arm.is_none_or(|arm| arm > due)) {
                "waits, and nothing is armed for the return of its budget"
            } else {
                continue;
            };
            let what = format!("{} {what}", self.node_name(at));
            self.violation(Rule::SupplyRespected, what);
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
            let most = supply.idle.map_or(supply.own(), |_| supply.full());
            let enough = work > 0 && work <= most;
            supply.left = supply.left.saturating_sub(work);
            if supply.idle.is_some() {
                (supply.unsure, supply.deadline) = (true, None);
            }
            let _ = supply.consume(now, work, 0);
            enough
        });
        let taken = self.nodes[borrower].supply.as_mut();
        let taken = taken.is_some_and(|supply| {
            supply.borrowed = supply.borrowed.saturating_add(work);
            supply.fresh = supply.fresh.saturating_add(work);
            supply.empty_until = None;
            true
        });
        if !given || !taken {
            let name = self.node_name(lender);
            let what = format!("{name} lends {work} ticks that it has not, or to no server");
            self.violation(Rule::SupplyRespected, what);
        }
    }
}
