//! The supply of schedulers: each statement of a budget is held against its server.

use punctual_model::{Instant, Work};

use crate::Rule;
use crate::entry::Judge;
use crate::node::ROOT;
use crate::queue::{Entity, Key};
use crate::resource::{Claim, State};

impl Judge<'_> {
    /// Every server from node `from` up pays for `executed` ticks.
    pub(crate) fn charge_supply(&mut self, from: usize, executed: u64, thread: Option<usize>) {
        let (began, now) = (self.last, self.now);
        // Sections that overrun by choice may go on for so long, at the cost of the next budgets.
        let allowed = thread.map_or(0, |thread| self.threads[thread].overdraft);
        let allowed = self.lateness().saturating_add(allowed);
        let (mut most, mut at) = (0, from);
        while let Some(parent) = self.nodes[at].parent {
            let supply = self.nodes[at].supply.as_mut();
            let beyond = supply.map_or(0, |supply| supply.charge(began, now, executed));
            most = beyond.max(most);
            let what = format_args!("gives {beyond} ticks over its budget, {allowed} allowed");
            let who = Entity::Node(at);
            self.must(beyond <= allowed, Rule::SupplyRespected, who, what);
            self.nodes[parent].queue.charge(who, executed);
            at = parent;
        }
        if let Some(thread) = thread {
            self.locks.charge(thread, executed);
            let t = &mut self.threads[thread];
            t.overdraft = t.overdraft.saturating_sub(most);
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
        let (now, supply) = (self.now, self.nodes[at].supply.as_mut());
        let what = match supply {
            Some(supply) => supply.rise(now, budget.ticks()),
            None => Some("has a budget where none belongs".into()),
        };
        self.supplies(at, what);
    }

    /// A scheduler has or does with its supply what it must not.
    fn supplies(&mut self, at: usize, wrong: Option<String>) {
        if let Some(what) = wrong {
            self.accuse(Rule::SupplyRespected, Entity::Node(at), what);
        }
    }

    /// The core says that a server has nothing left.
    pub(crate) fn server_exhausted(&mut self, at: usize) {
        let late = self.lateness() > 0;
        let right = self.nodes[at].supply.as_mut().is_some_and(|supply| {
            supply.left = 0;
            std::mem::take(&mut supply.spent) || supply.was_borrowed > 0 || late
        });
        let what = "is exhausted and has budget";
        self.must(right, Rule::SupplyRespected, Entity::Node(at), what);
    }

    /// The core says what is left of a budget at the end of an entry.
    pub(crate) fn budget_is(&mut self, at: usize, budget: Option<Work>) {
        let what = match (self.nodes[at].supply.as_mut(), budget) {
            (Some(supply), Some(budget)) => supply.is_now(budget.ticks()),
            (None, None) => None,
            _ => Some("has a budget where none belongs, or none where one does".into()),
        };
        self.supplies(at, what);
    }

    /// By which key a scheduler is queued among its siblings: the deadline is that of its server,
    /// and the release the instant since which it has both a ready thread and a budget.
    pub(crate) fn queued(&mut self, at: usize, parent: usize, key: Key, budget: Option<Work>) {
        self.budget_is(at, budget);
        let (now, entity) = (self.now, Entity::Node(at));
        let before = self.nodes[parent].queue.key(entity);
        let wakes = before.is_none() && key.release > Instant::ZERO;
        let supply = self.nodes[at].supply.as_mut();
        let what = supply.and_then(|supply| {
            let known = supply.is_periodic() && supply.starves && supply.was_borrowed == 0;
            let known = wakes && known && supply.left > 0;
            let early = known && supply.balance_at(key.release) <= 0;
            let early = early.then(|| "counts from before it had a budget".to_string());
            supply.is_due(now, key.deadline).or(early)
        });
        self.supplies(at, what);
        let what = "counts from a later instant";
        self.must(key.release <= now, Rule::PolicyOrder, entity, what);
        self.wakes(parent);
        let queue = &mut self.nodes[parent].queue;
        match before {
            None => queue.enter(entity, key, Some(now)),
            Some(old) => {
                if old.deadline != key.deadline {
                    queue.renew(entity);
                }
                queue.order(entity, key, false);
            }
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
    pub(crate) fn parks(&mut self, thread: usize) {
        let home = self.threads[thread].home;
        for at in self.lineage(home).collect::<Vec<_>>() {
            self.wakes(at);
            let longest = self.longest_parked(at).unwrap_or(0);
            if let Some(supply) = self.nodes[at].supply.as_mut() {
                supply.wants(longest);
            }
        }
    }

    /// The length of the longest section of the subtree that waits for budgets.
    fn longest_parked(&self, at: usize) -> Option<u64> {
        let waits = |c: &&Claim| matches!(c.state, State::Postponed(_));
        let waiting = self.locks.0.iter().filter(waits);
        let below = waiting.filter(|claim| self.is_below(self.threads[claim.thread].home, at));
        below.map(|claim| claim.declared.length.ticks()).max()
    }

    /// At the end of an entry the end of every budget was told, and the core wants to be back when
    /// more comes for a scheduler that has something ready.
    pub(crate) fn supply_is_told(&mut self) {
        self.was_late |= self.lateness() > 0;
        for at in ROOT + 1..self.nodes.len() {
            let waits = self.longest_parked(at);
            let ready = self.nodes[at].queue.first().is_some() || waits.is_some();
            let Some(supply) = self.nodes[at].supply.as_mut() else {
                continue;
            };
            supply.idle = (!ready).then_some(supply.idle.unwrap_or(self.now));
            supply.unknown &= !ready;
            supply.ended &= ready;
            supply.starves &= ready && supply.left == 0;
            let keeps = supply.keeps(waits);
            let silent = std::mem::take(&mut supply.spent);
            let due = supply.next(self.now, !self.was_late).filter(|_| ready);
            let (who, what) = (Entity::Node(at), "is exhausted, and that was not told");
            self.must(!silent, Rule::SupplyRespected, who, what);
            if let Some(rest) = keeps {
                let what = format_args!("keeps {rest}, too little for a section that waits");
                self.accuse(Rule::SupplyRespected, who, what);
            }
            if let Some(due) = due {
                self.ends(due, Rule::SupplyRespected, who, "its wait");
            }
        }
    }

    /// The core says that a scheduler has lent budget to a sibling.
    pub(crate) fn lent(&mut self, lender: usize, borrower: usize, work: Work) {
        let (now, work) = (self.now, work.ticks());
        let given = self.nodes[lender].supply.as_mut();
        let given = given.is_some_and(|supply| {
            // What sleeps does not know what time it is: what it has is stated when it wakes.
            let asleep = supply.idle.is_some();
            let most = if asleep { supply.full() } else { supply.left };
            supply.left = supply.left.saturating_sub(work);
            if asleep {
                (supply.unknown, supply.deadline) = (true, None);
            }
            supply.spend(now, now, work);
            work > 0 && work <= most
        });
        let taken = self.nodes[borrower].supply.as_mut();
        let taken = taken.map(|supply| {
            supply.borrowed = supply.borrowed.saturating_add(work);
            supply.was_borrowed = supply.was_borrowed.saturating_add(work);
        });
        let (lent, who) = (given && taken.is_some(), Entity::Node(lender));
        let what = "lends what it has not, or to no server";
        self.must(lent, Rule::SupplyRespected, who, what);
    }
}
