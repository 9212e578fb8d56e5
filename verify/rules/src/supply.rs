//! The supply of schedulers: each statement of a budget is held against its server.

use punctual_kern::NodeId;
use punctual_model::{Instant, Work};

use crate::Rule;
use crate::entry::Judge;
use crate::node::ROOT;
use crate::queue::Entity;

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
                let what = format!(": {beyond} ticks over its budget, {allowed} allowed");
                self.accuse_node(Rule::SupplyRespected, at, what);
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
            self.accuse_node(Rule::SupplyRespected, at, what.to_string());
        }
    }

    /// The core says that a server has nothing left.
    pub(crate) fn server_exhausted(&mut self, at: usize) {
        let late = self.lateness() > 0;
        let supply = self.nodes[at].supply.as_mut();
        let right = supply.is_some_and(|supply| {
            let lapsed = supply.was_borrowed > 0 || late;
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
            self.accuse_node(Rule::SupplyRespected, at, what.to_string());
        }
    }

    /// Checks the key by which a scheduler is queued: the deadline is that of its server, and the
    /// release the instant since which it has both a ready thread and a budget.
    pub(crate) fn supply_is_due(&mut self, at: usize, deadline: Instant, release: Option<Instant>) {
        let now = self.now;
        let supply = self.nodes[at].supply.as_mut();
        let what = supply.and_then(|supply| {
            let known = supply.is_periodic() && supply.starves && supply.was_borrowed == 0;
            let known = known && supply.left > 0;
            let early = release.is_some_and(|at| known && supply.balance_at(at) <= 0);
            let early = early.then(|| "counts from before it had a budget".to_string());
            supply.is_due(now, deadline).or(early)
        });
        if let Some(what) = what {
            self.accuse_node(Rule::SupplyRespected, at, what.to_string());
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
            let most = if asleep { supply.full() } else { supply.left };
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
            supply.was_borrowed = supply.was_borrowed.saturating_add(work);
            true
        });
        if !given || !taken {
            let what = format!("lends {work} ticks that it has not, or to no server");
            self.accuse_node(Rule::SupplyRespected, lender, what);
        }
    }
}
