//! Readiness flows up the tree, supply comes and goes: the ready sets between two decisions.

use punctual_model::{Instant, Span, Work};

use super::Rule;
use super::cpu::CpuCheck;
use super::node::{Node, ROOT};
use super::order::Entity;
use super::supply::Budget;

impl CpuCheck<'_> {
    /// A scheduler in messages.
    pub(super) fn node_name(&self, node: usize) -> String {
        self.log.node_name(self.cpu, node).into()
    }

    /// The place of a node; `None` for one that does not exist.
    pub(super) fn node(&self, id: punctual_kern::NodeId) -> Option<usize> {
        let node = self.nodes.get(id.index())?;
        let present = node.alive && node.generation == id.generation();
        present.then_some(id.index())
    }

    /// The thread wants to run. Without budget it does not become ready: what follows from that is
    /// told next.
    pub(super) fn enter_funded(&mut self, thread: usize, since: Instant) {
        let t = &mut self.threads[thread];
        t.wants = Some(since);
        if !t.is_budgeted() || t.budget > 0 {
            self.enter(thread, since);
        }
    }

    /// A ready thread goes on on another allotment: its section ends with the old one, and without
    /// preemption it lets others in.
    pub(super) fn requeue(&mut self, thread: usize) {
        let standing = self.standing(thread);
        let t = &mut self.threads[thread];
        t.standing = Some((t.low, standing.1));
        t.in_section = false;
        let (entity, at) = (Entity::Thread(t.id), t.queue);
        self.nodes[at].order.let_in(entity);
        self.nodes[at].order.count_anew(entity);
        if !self.locks.shields(thread) {
            self.unprotect(thread);
        }
        self.reorder(thread);
    }

    /// The thread is ready from now on, and has been since `since`.
    pub(super) fn enter(&mut self, thread: usize, since: Instant) {
        if self.threads[thread].ready {
            self.leave(thread);
        }
        self.lenders.goes_on(thread);
        let standing = self.standing(thread);
        let t = &mut self.threads[thread];
        t.low = standing.0;
        t.standing = Some(standing);
        let at = self.queue_of(thread);
        let t = &mut self.threads[thread];
        t.ready = true;
        t.wants = None;
        t.throttled = false;
        t.queue = at;
        t.blocker = None;
        let entity = Entity::Thread(t.id);
        if self.nodes[at].own_time {
            self.forget_answer(at);
        } else if !self.threads[thread].low {
            let late = self.late_now();
            self.nodes[at].order.enter(entity, late);
        }
        self.gained(at, since);
        if self.locks.allowance(thread) > 0 {
            self.offer_above(thread);
        }
    }

    /// A ready thread counts at another level.
    pub(super) fn change_level(&mut self, thread: usize, low: bool) {
        let t = &self.threads[thread];
        let (id, at, in_section) = (t.id, t.queue, t.in_section);
        let alone = self.nodes[at].protected == Some(id);
        self.leave(thread);
        self.enter(thread, self.now);
        let t = &mut self.threads[thread];
        (t.low, t.in_section) = (low, in_section);
        if alone {
            self.nodes[t.queue].protected = Some(id);
        }
    }

    /// A ready thread has other parameters: a scheduler that decides itself decides again.
    pub(super) fn reorder(&mut self, thread: usize) {
        let at = self.threads[thread].queue;
        if self.nodes[at].own_time {
            // It may want another now, also if it wanted nobody.
            self.forget_answer(at);
            self.stir(at);
        }
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
        if self.nodes[at].own_time {
            self.forget_answer(at);
        }
        self.lost(at);
        if self.locks.allowance(thread) > 0 {
            self.offer_above(thread);
        }
    }

    /// The thread keeps its siblings away no more.
    pub(super) fn unprotect(&mut self, thread: usize) {
        let (id, at) = (self.threads[thread].id, self.threads[thread].queue);
        if self.nodes[at].protected == Some(id) {
            self.nodes[at].protected = None;
        }
    }

    /// The instant of this entry if it is late.
    pub(super) fn late_now(&self) -> Option<Instant> {
        (self.lateness() > 0).then_some(self.now)
    }

    fn gained(&mut self, at: usize, since: Instant) {
        self.nodes[at].ready += 1;
        self.stir(at);
        let first = self.nodes[at].ready == 1;
        let now = self.now;
        let node = &mut self.nodes[at];
        if first {
            node.fell = None;
        }
        if let Some(budget) = node.budget.as_mut() {
            budget.wake(now, since);
        }
        let since = self.since_funded(at, since);
        self.offer(at, since);
        if !first {
            self.since_earlier(at, since);
        }
    }

    /// Since when a node has had both: something ready since `since`, and a budget.
    fn since_funded(&self, at: usize, since: Instant) -> Instant {
        let (entry, came) = self.nodes[at].funded;
        if entry == self.now {
            since.max(came)
        } else {
            since
        }
    }

    /// Schedulers above may have been woken in this entry for something that was due later.
    fn since_earlier(&mut self, at: usize, mut since: Instant) {
        let mut on = at;
        while let (Some(parent), Some(shown)) = (self.nodes[on].parent, self.nodes[on].shown) {
            if shown.1 == self.now {
                self.nodes[on].shown = Some((shown.0.min(since), shown.1));
            }
            if let Some(budget) = self.nodes[parent].budget.as_mut() {
                budget.wake(self.now, since);
            }
            since = self.since_funded(parent, since);
            self.offer(parent, since);
            on = parent;
        }
    }

    fn lost(&mut self, at: usize) {
        let now = self.now;
        self.nodes[at].ready = self.nodes[at].ready.saturating_sub(1);
        self.stir(at);
        let node = &mut self.nodes[at];
        if node.ready == 0 && node.parked > 0 {
            self.offer(at, now);
        } else if node.ready == 0 {
            // What has work again at the same instant was never idle.
            node.fell = Some(now);
            self.offer(at, now);
        }
    }

    /// The budget of a node is other than it was.
    pub(super) fn refresh(&mut self, at: usize) {
        self.offer(at, self.now);
    }

    /// Brings the ready set of the parent in line with whether a node may run.
    pub(super) fn offer(&mut self, at: usize, since: Instant) {
        let now = self.now;
        self.move_deadline(at);
        let funded = self.nodes[at].is_funded() || self.overdrawer(at).is_some();
        let node = &mut self.nodes[at];
        let may_run = node.ready > 0 && funded && node.resting.is_none();
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

    /// Something is other than it was in a node: nobody from there up has a reason to rest.
    pub(super) fn stir(&mut self, at: usize) {
        let mut on = Some(at);
        while let Some(at) = on {
            self.end_rest(at);
            on = self.nodes[at].parent;
        }
    }

    fn end_rest(&mut self, at: usize) {
        if self.nodes[at].resting.take().is_some() {
            self.offer(at, self.now);
        }
    }

    /// Nodes that want nobody to run, though they were chosen, step back, one after the other.
    pub(super) fn take_rests(&mut self) {
        for _ in 0..self.nodes.len() {
            let Some((at, until)) = self.who_rests() else {
                return;
            };
            self.nodes[at].resting = Some(until);
            self.offer(at, self.now);
        }
    }

    /// Where a log leaves open who came first, it does so whether a node has stepped back, and with
    /// that since when it stands where it does: by now, once it wants somebody again.
    pub(super) fn doubt_rests(&mut self) {
        let now = self.now;
        self.was_late |= self.lateness() > 0;
        for at in 0..self.nodes.len() {
            let node = &self.nodes[at];
            let rests = node.own_time && node.standing(now).is_some_and(|a| a.thread.is_none());
            let open = rests && (self.was_late || self.is_unsure_above(at));
            let Some(shown) = self.nodes[at].shown.as_mut() else {
                continue;
            };
            if open {
                shown.1 = Instant::MAX;
            } else if shown.1 == Instant::MAX {
                shown.1 = now;
            }
        }
    }

    /// Whether the order that a scheduler stands in, or one above it, is not known.
    fn is_unsure_above(&self, at: usize) -> bool {
        let mut above = self.lineage(at).skip(1);
        above.any(|node| self.nodes[node].order.is_unsure())
    }

    /// A scheduler on a new budget lets others in, also where nothing is preempted.
    fn move_deadline(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let deadline = node.budget.as_ref().map_or(Instant::MAX, Budget::deadline);
        let moved = std::mem::replace(&mut node.deadline, deadline) != deadline;
        let shown = node.shown.is_some();
        if let Some(parent) = node.parent.filter(|_| moved && shown) {
            self.nodes[parent].order.let_in(Entity::Node(at));
        }
    }

    /// An entry begins: what fell idle at an earlier instant was idle since.
    pub(super) fn settle_idle(&mut self) {
        let now = self.now;
        for node in &mut self.nodes {
            if let Some(budget) = node.budget.as_mut() {
                budget.settle();
            }
            if let Some(since) = node.fell.filter(|since| *since < now) {
                node.fell = None;
                if let Some(budget) = node.budget.as_mut() {
                    budget.idle(since);
                }
            }
        }
    }

    /// Every server from node `from` up pays for `executed` ticks.
    pub(super) fn charge_supply(&mut self, from: usize, (executed, thread): (u64, Option<usize>)) {
        let (now, late) = (self.now, self.lateness());
        // Sections that overrun by choice may go on for so long, at the cost of the next budgets.
        let allowed = thread.map_or(0, |thread| self.locks.allowance(thread));
        let allowed = late.saturating_add(allowed);
        let mut most = 0;
        let mut told = vec![false; self.nodes.len()];
        let mut at = from;
        while let Some(parent) = self.nodes[at].parent {
            let budget = self.nodes[at].budget.as_mut();
            told[at] = budget.as_ref().is_some_and(|budget| budget.told > 0);
            let beyond = budget.map_or(0, |budget| budget.charge(now, executed));
            most = beyond.max(most);
            if beyond > allowed {
                let name = self.node_name(at);
                let what = format!("{name}: {beyond} ticks over its budget, {allowed} allowed");
                self.violation(Rule::SupplyRespected, what);
            }
            self.nodes[parent].order.charge(Entity::Node(at), executed);
            at = parent;
        }
        if let Some(thread) = thread.filter(|_| most > 0) {
            self.locks.overdraw(thread, most);
        }
        let mut at = from;
        while let Some(parent) = self.nodes[at].parent {
            if self.nodes[at].budget.is_some() {
                if !self.nodes[at].is_funded() && told[at] {
                    self.exhausted.push(at);
                }
                self.offer(at, now);
            }
            at = parent;
        }
    }

    /// Budgets come that are due by `until`. A server that sleeps catches up when it wakes.
    pub(super) fn pass(&mut self, until: Instant) {
        // One that gets work again at this instant was never idle: what is due comes to it too.
        while self.pass_once(until) {}
    }

    fn pass_once(&mut self, until: Instant) -> bool {
        let fallen = |nodes: &[Node]| nodes.iter().filter(|node| node.fell.is_some()).count();
        let before = fallen(&self.nodes);
        for at in 0..self.nodes.len() {
            let fell = self.nodes[at].fell.is_some();
            let mut budget = self.nodes[at].budget.as_mut();
            if let Some(budget) = &mut budget {
                budget.end_loan(until);
            }
            let turns = |budget: &&mut Budget| !fell && budget.is_awake() && !budget.forgone;
            if let Some(budget) = budget.filter(turns) {
                let first = budget.next().unwrap_or(until);
                let came = budget.pass_until_funded(until);
                budget.pass(until);
                if let Some(came) = came {
                    self.nodes[at].funded = (self.now, came);
                }
                self.offer(at, came.unwrap_or(first));
            }
            if self.nodes[at].resting.is_some_and(|end| end <= until) {
                self.end_rest(at);
            }
        }
        fallen(&self.nodes) < before
    }

    /// What is due before the entry comes before it.
    pub(super) fn pass_before(&mut self) {
        if self.now > Instant::ZERO {
            self.pass(self.now.saturating_sub(Span::from_ticks(1)));
        }
    }

    /// The core says that a server has this much now.
    pub(super) fn server_replenished(&mut self, at: usize, says: Work) {
        if let Some(budget) = self.nodes[at].budget.as_mut() {
            budget.forgone = false;
        }
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

    /// At the end of an entry: what came was told, what ended was told.
    pub(super) fn supply_is_told(&mut self) {
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
            let awake = node.ready > 0 || node.parked > 0;
            let (has, told) = (budget.left(), budget.told);
            let silent = has > told && awake && budget.woken < self.now;
            budget.told = match awake && budget.woken == self.now {
                true => has,
                false => told.min(has),
            };
            if silent {
                let what = format!("{} has {has} ticks, told of {told}", self.node_name(at));
                self.violation(Rule::SupplyRespected, what);
            }
        }
    }

    /// The core wants to be back when more comes for whoever is ready.
    pub(super) fn supply_is_armed(&mut self, arm: Option<Instant>) {
        for at in ROOT + 1..self.nodes.len() {
            let node = &self.nodes[at];
            let due = node.budget.as_ref().and_then(Budget::next);
            let due = due.filter(|_| node.ready > 0 || node.parked > 0);
            if due.is_some_and(|due| arm.is_none_or(|arm| arm > due)) {
                let name = self.node_name(at);
                let what = format!("{name}: nothing is armed for the return of its budget");
                self.violation(Rule::SupplyRespected, what);
            }
        }
    }
}
