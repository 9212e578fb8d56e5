//! Segments that CPUs have done, and what follows: kills, requests, and keys that are free again

use std::collections::VecDeque;

use punctual_kern::{AgendaStep, AgendaView};
use punctual_model::Instant;

use super::asking::Waiting;
use super::{Identity, Order, Planning, tell_all};
use crate::requests::{Execution, Misplanning};

impl Planning {
    /// A CPU has gone on. The orders that follow for each CPU of the planner, if any do.
    pub(crate) fn see(
        &mut self,
        cpu: usize,
        now: Instant,
        view: AgendaView,
    ) -> Option<Vec<VecDeque<Order>>> {
        let before = std::mem::replace(&mut self.seen[cpu], view);
        if before == view {
            return None;
        }
        self.book.done(cpu, view.frontier);
        if let Some(at) = view.started {
            self.book.started(cpu, view.frontier, at);
        }
        self.is_full &= before.frontier == view.frontier;
        let mut orders = vec![VecDeque::new(); self.seen.len()];
        for number in before.frontier..view.frontier {
            let start = before.started.filter(|_| number == before.frontier);
            if let Some((identity, planned)) = self.identities.remove(&(cpu, number)) {
                let execution = start.map(|start| Execution {
                    cpu: self.groups.executors[cpu].0,
                    start,
                    end: now,
                    planned,
                });
                self.ended(identity, (execution, before.cleans), &mut orders);
                self.forget_ended(identity.0);
            }
        }
        orders
            .iter()
            .any(|orders| !orders.is_empty())
            .then_some(orders)
    }

    /// A segment is over, or passed over.
    fn ended(
        &mut self,
        (group, which): Identity,
        (execution, cleans): (Option<Execution>, bool),
        orders: &mut [VecDeque<Order>],
    ) {
        let Some(execution) = execution else { return };
        let outcome = &mut self.outcomes[group];
        if cleans {
            return outcome.cleaned.push((which, execution));
        }
        let segment = &self.groups.kinds[outcome.kind].segments[which];
        let now = execution.end;
        outcome.missed |= now > outcome.arrival.saturating_add(segment.deadline);
        outcome.executions[which] = Some(execution);
        let (kills, asks) = (segment.kills.clone(), segment.asks.clone());
        // The dead ask for nothing any more.
        let asks = match outcome.killed {
            Some(_) => None,
            None => Waiting::child(now, &asks, outcome),
        };
        let alive = outcome.killed.is_none();
        if outcome.executions.iter().all(Option::is_some) {
            outcome.done = Some(now);
        }
        for kind in kills.into_iter().filter(|_| alive) {
            self.kill((group, kind), now, orders);
        }
        if let Some(asks) = asks {
            self.wait(asks);
        }
    }

    /// The groups of a kind that arrived with this one, before they start or at their next
    /// boundary; where none did, the latest of the kind.
    fn kill(&mut self, (by, kind): (usize, usize), now: Instant, orders: &mut [VecDeque<Order>]) {
        let origin = self.outcomes[by].origin;
        // Those that arrived together have outcomes behind that of the first.
        let with_it =
            |at: &usize| self.outcomes[*at].origin == origin && self.outcomes[*at].kind == kind;
        let others = || origin..self.outcomes.len();
        let targets: Vec<usize> = match others().any(|at| with_it(&at)) {
            true => others().filter(with_it).collect(),
            false => {
                let of_kind = |at: &&usize| self.outcomes[**at].kind == kind;
                self.live
                    .iter()
                    .rev()
                    .find(of_kind)
                    .copied()
                    .into_iter()
                    .collect()
            }
        };
        for number in targets {
            let Some(key) = self.keys[number].filter(|key| !self.kills.is_dead(key.place())) else {
                continue;
            };
            if self.outcomes[number].done.is_none() && self.kills.kill(key).is_ok() {
                self.outcomes[number].killed = Some(now);
                self.tell_kill(number, key.place(), orders);
            }
        }
    }

    /// Each CPU hears of a kill, and of the handlers there: in the place of the next segment of
    /// each flow that has begun.
    fn tell_kill(&self, number: usize, group: u32, orders: &mut [VecDeque<Order>]) {
        tell_all(
            orders,
            AgendaStep::Kill {
                group,
                cleans: None,
            },
        );
        let outcome = &self.outcomes[number];
        let segments = &self.groups.kinds[outcome.kind].segments;
        let running = |cpu: usize, own: u64| {
            self.seen[cpu].frontier == own && self.seen[cpu].started.is_some()
        };
        let cuts = self
            .groups
            .misplanning
            .filter(|of| *of == Misplanning::Cuts);
        for (&(cpu, own), &((of, which), _)) in &self.identities {
            if of != number {
                continue;
            }
            if running(cpu, own) {
                let again = Order::of(AgendaStep::Kill {
                    group,
                    cleans: None,
                });
                orders[cpu].extend(cuts.map(|_| Order {
                    misplanned: cuts,
                    ..again
                }));
                continue;
            }
            let flow = segments[which].flow;
            let Some(before) = (0..which).rev().find(|&one| segments[one].flow == flow) else {
                continue;
            };
            let mut still = self.identities.iter();
            let runs = still.any(|(&(cpu, own), &(identity, _))| {
                identity == (number, before) && running(cpu, own)
            });
            if outcome.executions[before].is_some() || runs {
                let cleans = Some(own);
                let step = AgendaStep::Kill { group, cleans };
                orders[cpu].push_back(Order::of(step));
            }
        }
    }

    /// Groups that were killed while planning was pending are staged like others. The place of one
    /// that has nothing left is free.
    pub(super) fn bury(&mut self, orders: &mut [VecDeque<Order>]) {
        for number in self.live.clone() {
            let dead = self.keys[number].filter(|key| self.kills.is_dead(key.place()));
            let Some(key) = dead else { continue };
            self.tell_kill(number, key.place(), orders);
            self.forget_ended(number);
        }
    }

    /// The families of the groups that were removed.
    pub(super) fn forget_removed(&mut self) {
        for number in self.live.clone() {
            if self.outcomes[number].removed.is_some() {
                self.leave(self.outcomes[number].family);
            }
        }
    }

    /// The keys of a family are free when nothing of it is left: until then its children are
    /// those of a group that has begun.
    fn forget_ended(&mut self, number: usize) {
        let family = self.outcomes[number].family;
        let dead = |at: usize| self.keys[at].is_some_and(|key| self.kills.is_dead(key.place()));
        let over = |at: usize| self.outcomes[at].done.is_some() || dead(at);
        let own = |group: usize| self.outcomes[group].family == family;
        let mut left = self.identities.values();
        if self.members(family).all(over) && !left.any(|((group, _), _)| own(*group)) {
            self.leave(family);
        }
    }

    /// The outcomes of a family.
    fn members(&self, family: usize) -> impl Iterator<Item = usize> + '_ {
        (family..self.outcomes.len()).take_while(move |&at| self.outcomes[at].family == family)
    }

    /// The keys of a family name nobody any more.
    pub(super) fn leave(&mut self, family: usize) {
        let members: Vec<usize> = self.members(family).collect();
        for at in members {
            if let Some(key) = self.keys[at].take() {
                let _ = self.kills.leave(key);
            }
            self.live.remove(&at);
        }
    }

    /// Takes the last outcome back: it was never planned.
    pub(super) fn drop_last(&mut self) {
        let last = self.outcomes.len().saturating_sub(1);
        if let Some(key) = self.keys.pop().flatten() {
            let _ = self.kills.leave(key);
        }
        self.live.remove(&last);
        self.outcomes.pop();
    }
}
