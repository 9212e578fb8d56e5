//! Readiness flows up the tree, supply comes and goes: the ready sets between two decisions.

use punctual_model::{Instant, Span, Work};

use super::Rule;
use super::cpu::CpuCheck;
use super::node::ROOT;
use super::order::Entity;
use super::supply::Budget;

impl CpuCheck<'_> {
    /// A scheduler in messages.
    pub(super) fn node_name(&self, node: usize) -> String {
        self.log.node_name(self.cpu, node).into()
    }

    /// The place of a node; `None` for one that does not exist.
    pub(super) fn node(&self, id: punctual_kern::NodeId) -> Option<usize> {
        (id.index() < self.nodes.len()).then_some(id.index())
    }

    /// The thread is ready from now on, and has been since `since`.
    pub(super) fn enter(&mut self, thread: usize, since: Instant) {
        if self.threads[thread].ready {
            self.leave(thread);
        }
        let at = self.queue_of(thread);
        let t = &mut self.threads[thread];
        t.ready = true;
        t.throttled = false;
        t.queue = at;
        let entity = Entity::Thread(t.id);
        if !t.background && !self.nodes[at].own_time {
            let late = self.late_now();
            self.nodes[at].order.enter(entity, late);
        }
        self.gained(at, since);
    }

    /// The thread is not ready any more.
    pub(super) fn leave(&mut self, thread: usize) {
        let t = &mut self.threads[thread];
        if !t.ready {
            return;
        }
        t.ready = false;
        t.in_section = false;
        let (id, at) = (t.id, t.queue);
        self.unprotect(thread);
        self.nodes[at].order.leave(Entity::Thread(id));
        self.lost(at);
    }

    /// The thread keeps its siblings away no more.
    pub(super) fn unprotect(&mut self, thread: usize) {
        let (id, at) = (self.threads[thread].id, self.threads[thread].queue);
        if self.nodes[at].protected == Some(id) {
            self.nodes[at].protected = None;
        }
    }

    /// The instant of this entry if it is late.
    fn late_now(&self) -> Option<Instant> {
        (self.lateness() > 0).then_some(self.now)
    }

    fn gained(&mut self, at: usize, since: Instant) {
        self.nodes[at].ready += 1;
        if self.nodes[at].ready > 1 {
            return;
        }
        let now = self.now;
        let node = &mut self.nodes[at];
        let paused = node.fell.take().is_none();
        if let Some(budget) = node.budget.as_mut().filter(|_| paused) {
            budget.wake(now, since);
        }
        self.offer(at, since);
    }

    fn lost(&mut self, at: usize) {
        let now = self.now;
        let node = &mut self.nodes[at];
        node.ready = node.ready.saturating_sub(1);
        if node.ready == 0 {
            // What has work again at the same instant was never idle.
            node.fell = Some(now);
            self.offer(at, now);
        }
    }

    /// Brings the ready set of the parent in line with whether a node may run.
    fn offer(&mut self, at: usize, since: Instant) {
        let now = self.now;
        self.move_deadline(at);
        let node = &mut self.nodes[at];
        let may_run = node.ready > 0 && node.is_funded();
        let Some(parent) = node.parent.filter(|_| may_run != node.shown.is_some()) else {
            return;
        };
        node.shown = may_run.then_some((since.min(now), now));
        let entity = Entity::Node(at);
        if may_run {
            let late = self.late_now();
            self.nodes[parent].order.enter(entity, late);
            self.gained(parent, since);
        } else {
            self.nodes[parent].order.leave(entity);
            self.lost(parent);
        }
    }

    /// A server whose deadline moves can be preempted from there on, under any policy, as a job can
    /// that lives on a new allotment.
    fn move_deadline(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let deadline = node.budget.as_ref().map_or(Instant::MAX, Budget::deadline);
        let moved = std::mem::replace(&mut node.deadline, deadline) != deadline;
        let shown = node.shown.is_some();
        if let Some(parent) = node.parent.filter(|_| moved && shown) {
            let order = &mut self.nodes[parent].order;
            if order.holder == Some(Entity::Node(at)) {
                order.holder = None;
            }
        }
    }

    /// An entry begins: what fell idle at an earlier instant was idle since.
    pub(super) fn settle_idle(&mut self) {
        let now = self.now;
        for node in &mut self.nodes {
            if let Some(since) = node.fell.filter(|since| *since < now) {
                node.fell = None;
                if let Some(budget) = node.budget.as_mut() {
                    budget.idle(since);
                }
            }
        }
    }

    /// Every server from node `from` up pays for `executed` ticks.
    pub(super) fn charge_supply(&mut self, from: usize, executed: u64) {
        let (now, late) = (self.now, self.lateness());
        let mut at = from;
        while let Some(parent) = self.nodes[at].parent {
            let budget = self.nodes[at].budget.as_mut();
            let beyond = budget.map_or(0, |budget| budget.charge(now, executed));
            if beyond > late {
                let name = self.node_name(at);
                let what = format!("{name}: {beyond} ticks over its budget, {late} of them late");
                self.violation(Rule::SupplyRespected, what);
            }
            self.nodes[parent].order.charge(Entity::Node(at), executed);
            at = parent;
        }
        let mut at = from;
        while let Some(parent) = self.nodes[at].parent {
            if self.nodes[at].budget.is_some() {
                if !self.nodes[at].is_funded() {
                    self.exhausted.push(at);
                }
                self.offer(at, now);
            }
            at = parent;
        }
    }

    /// Budgets come that are due by `until`.
    pub(super) fn pass(&mut self, until: Instant) {
        for at in 0..self.nodes.len() {
            let Some(budget) = self.nodes[at].budget.as_mut() else {
                continue;
            };
            let due = budget.next().unwrap_or(until);
            budget.pass(until);
            self.offer(at, due);
        }
    }

    /// What is due before the entry comes before it.
    pub(super) fn pass_before(&mut self) {
        if self.now > Instant::ZERO {
            self.pass(self.now.saturating_sub(Span::from_ticks(1)));
        }
    }

    /// The core says that a server has this much now.
    pub(super) fn server_replenished(&mut self, at: usize, says: Work) {
        self.pass(self.now);
        let says = says.ticks();
        let Some(budget) = self.nodes[at].budget.as_mut() else {
            let what = format!("{} has a budget where none belongs", self.node_name(at));
            return self.violation(Rule::SupplyRespected, what);
        };
        let (has, told) = (budget.left(), budget.told);
        budget.told = has;
        if has != says || says <= told {
            let name = self.node_name(at);
            let what = format!("{name} is replenished to {says}, should go from {told} to {has}");
            self.violation(Rule::SupplyRespected, what);
        }
    }

    /// The core says that a server has nothing left.
    pub(super) fn server_exhausted(&mut self, at: usize) {
        match self.exhausted.iter().position(|&node| node == at) {
            Some(index) => drop(self.exhausted.swap_remove(index)),
            None => {
                let what = format!("{} is exhausted and has budget", self.node_name(at));
                self.violation(Rule::SupplyRespected, what);
            }
        }
    }

    /// At the end of an entry: what came was told, what ended was told, and the core wants to be
    /// back when more comes.
    pub(super) fn supply_is_told(&mut self, arm: Option<Instant>) {
        self.pass(self.now);
        if let Some(at) = self.exhausted.pop() {
            let what = format!("{} is exhausted and nobody was told", self.node_name(at));
            self.violation(Rule::SupplyRespected, what);
            self.exhausted.clear();
        }
        for at in ROOT + 1..self.nodes.len() {
            let node = &mut self.nodes[at];
            let Some(budget) = node.budget.as_mut() else {
                continue;
            };
            let (has, told, awake) = (budget.left(), budget.told, node.ready > 0);
            let silent = has > told && awake && budget.woken < self.now;
            budget.told = match awake && budget.woken == self.now {
                true => has,
                false => told.min(has),
            };
            let due = budget.next().filter(|_| awake);
            if silent {
                let what = format!("{} has {has} ticks, told of {told}", self.node_name(at));
                self.violation(Rule::SupplyRespected, what);
            }
            if due.is_some_and(|due| arm.is_none_or(|arm| arm > due)) {
                let name = self.node_name(at);
                let what = format!("{name}: nothing is armed for the return of its budget");
                self.violation(Rule::SupplyRespected, what);
            }
        }
    }
}
