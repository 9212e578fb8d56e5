//! Who runs: from the CPU's own scheduler down, in each node the entity that must be chosen.

use punctual_model::{Instant, Span};

use super::Rule;
use super::cpu::CpuCheck;
use super::node::ROOT;
use super::order::{Attributes, Entity};
use super::thread::Thread;

impl CpuCheck<'_> {
    /// In whose ready set a thread stands.
    pub(super) fn queue_of(&self, thread: usize) -> usize {
        let t = &self.threads[thread];
        match t.low {
            true => self.nodes[t.home].background_at,
            false => t.home,
        }
    }

    /// The ready threads of a node.
    fn ready_in(&self, node: usize) -> impl Iterator<Item = &Thread> {
        let here = move |t: &&Thread| t.ready && !t.dead;
        let all = self
            .threads
            .iter()
            .enumerate()
            .filter(move |(_, t)| here(t));
        all.filter(move |(at, _)| self.queue_of(*at) == node)
            .map(|(_, t)| t)
    }

    /// The children in the ready set of a node.
    fn children_of(&self, node: usize) -> impl Iterator<Item = usize> {
        let child = move |at: &usize| {
            let n = &self.nodes[*at];
            n.parent == Some(node) && n.shown.is_some()
        };
        (0..self.nodes.len()).filter(child)
    }

    /// What the policy of a node orders now: what is ready and has guarantees.
    fn entities_of(&self, at: usize) -> impl Iterator<Item = Entity> {
        let threads = self.ready_in(at).filter(|t| !t.low);
        let threads = threads.map(|t| Entity::Thread(t.id));
        threads.chain(self.children_of(at).map(Entity::Node))
    }

    /// Whether an entity is in the ready set of a node.
    fn stands_in(&self, entity: Entity, at: usize) -> bool {
        match entity {
            Entity::Thread(id) => {
                let thread = self.threads.get(id.index());
                thread.is_some_and(|t| t.ready && t.queue == at)
            }
            Entity::Node(child) => {
                let n = &self.nodes[child];
                n.parent == Some(at) && n.shown.is_some()
            }
        }
    }

    /// Whose slot it is in a node that divides time, if the owner is ready.
    fn ready_owner(&self, at: usize) -> Option<Entity> {
        let owner = self.nodes[at].owner(self.now).0;
        owner.filter(|&owner| self.stands_in(owner, at))
    }

    /// A node or a thread in messages.
    fn entity(&self, entity: Entity) -> String {
        match entity {
            Entity::Thread(id) => self.name(id.index()),
            Entity::Node(node) => self.node_name(node),
        }
    }

    /// Holds the choice of an entry against the ready threads; `None` is idle.
    pub(super) fn choice(&mut self, chosen: Option<Entity>, arm: Option<Instant>) {
        let (entity, home) = match chosen {
            None => return self.idle_is_right(arm),
            Some(entity @ Entity::Thread(id)) => (entity, self.queue_of(id.index())),
            Some(entity @ Entity::Node(node)) => (entity, self.nodes[node].parent.unwrap_or(ROOT)),
        };
        let ready = match entity {
            Entity::Thread(id) => self.threads[id.index()].ready && !self.threads[id.index()].dead,
            Entity::Node(node) => self.nodes[node].ready > 0,
        };
        if !ready {
            let what = format!("{} runs and is not ready", self.entity(entity));
            return self.violation(Rule::OnlyReadyRuns, what);
        }
        if let Entity::Node(node) = entity {
            self.answer_is_kept(node, None, arm);
        }
        let (mut entity, mut at) = (entity, home);
        if let (Entity::Thread(id), Some(top)) = (entity, self.overdrawn_above(home)) {
            self.overdraft_is_right(top, id.index(), arm);
            let Some(parent) = self.nodes[top].parent else {
                return;
            };
            (entity, at) = (Entity::Node(top), parent);
        }
        loop {
            self.place_is_right(at, entity, arm);
            match self.nodes[at].parent {
                Some(parent) => (entity, at) = (Entity::Node(at), parent),
                None => return,
            }
        }
    }

    /// The highest scheduler above `home` whose budget is used up while somebody may go on.
    fn overdrawn_above(&self, home: usize) -> Option<usize> {
        let spent = |at: &usize| !self.nodes[*at].is_funded() && self.overdrawer(*at).is_some();
        self.lineage(home).filter(spent).last()
    }

    /// Below a scheduler without budget runs who may finish a section, for as long as it may take.
    fn overdraft_is_right(&mut self, at: usize, thread: usize, arm: Option<Instant>) {
        let Some((may, most)) = self.overdrawer(at) else {
            return;
        };
        let end = self.now.saturating_add(Span::from_ticks(most));
        let what = if may != thread {
            let (is, should) = (self.name(thread), self.name(may));
            format!("{is} runs where {should} alone may finish its section")
        } else if arm.is_none_or(|arm| arm > end) {
            let name = self.name(thread);
            format!("{name}: nothing is armed for the end of its overdraft")
        } else {
            return;
        };
        self.violation(Rule::SupplyRespected, what);
    }

    fn idle_is_right(&mut self, arm: Option<Instant>) {
        let asks = self.first_answer_ends();
        if asks.is_some_and(|until| arm.is_none_or(|arm| arm > until)) {
            let what = "idle, and nothing is armed for the end of an answer".into();
            return self.violation(Rule::ChildAnswersChecked, what);
        }
        let node = &self.nodes[ROOT];
        let ready = match node.order.is_divided() {
            true => self.ready_owner(ROOT),
            false => self.ready_in(ROOT).next().map(|t| Entity::Thread(t.id)),
        };
        let child = || self.children_of(ROOT).next().map(Entity::Node);
        let waits = ready.or_else(|| child().filter(|_| !node.order.is_divided()));
        if let Some(waits) = waits {
            let what = format!("idle while {} is ready and has supply", self.entity(waits));
            self.violation(Rule::WorkConserving, what);
        }
    }

    /// One step of the way down: in node `at`, `chosen` runs.
    fn place_is_right(&mut self, at: usize, chosen: Entity, arm: Option<Instant>) {
        if let Entity::Node(node) = chosen
            && !self.nodes[node].is_funded()
            && self.overdrawer(node).is_none()
        {
            let what = format!("{} runs without budget", self.node_name(node));
            return self.violation(Rule::SupplyRespected, what);
        }
        if self.nodes[at].order.is_divided() {
            return self.slot_is_right(at, chosen, arm);
        }
        if self.nodes[at].own_time {
            // Its order is its own; it chooses among its ready threads.
            if let Entity::Thread(thread) = chosen {
                self.answer_is_kept(at, Some(thread), arm);
            }
            return;
        }
        let better = match self.nodes[at].protected {
            Some(holder) if Entity::Thread(holder) == chosen => return,
            Some(holder) => Some(Entity::Thread(holder)),
            None => self.comes_before(at, chosen),
        };
        if let Some(better) = better {
            let (is, should) = (self.entity(chosen), self.entity(better));
            let what = format!("{is} runs while {should} is ready and comes first");
            self.violation(Rule::PolicyOrder, what);
        }
    }

    /// Nobody but the owner runs in a slot, and the core wants to be back at its end.
    fn slot_is_right(&mut self, at: usize, chosen: Entity, arm: Option<Instant>) {
        let (owner, end) = self.nodes[at].owner(self.now);
        let (who, now) = (self.entity(chosen), self.now.ticks());
        let what = match owner {
            None => format!("{who} runs at {now}, which is nobody's time"),
            Some(owner) if !owner.is_place_of(chosen) => {
                format!("{who} runs in a slot of {}", self.entity(owner))
            }
            Some(_) if arm.is_none_or(|arm| arm > end) => {
                format!("{who}: nothing is armed for the end of its slot")
            }
            Some(_) => return,
        };
        self.violation(Rule::SlotRespected, what);
    }

    /// Somebody in the ready set of node `at` who certainly comes before `chosen`.
    fn comes_before(&self, at: usize, chosen: Entity) -> Option<Entity> {
        let background = match chosen {
            Entity::Thread(id) => Some(&self.threads[id.index()]).filter(|t| t.low),
            Entity::Node(_) => None,
        };
        let Some(chosen_thread) = background else {
            return self.more_urgent(at, chosen);
        };
        let urgency = |t: &Thread| self.standing(t.id.index()).1.priority;
        let priority = urgency(chosen_thread);
        let mut others = self.ready_in(at);
        let thread = others.find(|o| !o.low || urgency(o).is_higher_than(priority));
        let thread = thread.map(|o| Entity::Thread(o.id));
        thread.or_else(|| self.children_of(at).next().map(Entity::Node))
    }

    fn more_urgent(&self, at: usize, chosen: Entity) -> Option<Entity> {
        let order = &self.nodes[at].order;
        if let Some(&first) = order.turns.front() {
            return Some(first).filter(|&first| !order.unsure && first != chosen);
        }
        if let Some(holder) = order.holder {
            return (holder != chosen).then_some(holder);
        }
        let is = self.attributes(chosen);
        let mut others = self.entities_of(at).filter(|&other| other != chosen);
        others.find(|&other| order.comes_before((other, &self.attributes(other)), (chosen, &is)))
    }

    /// A thread lets its equals go first. In a late entry what was due comes before that; who holds
    /// or is lent something keeps its place.
    pub(super) fn gives_way(&mut self, thread: usize) {
        let (id, at) = (self.threads[thread].id, self.threads[thread].queue);
        let late = self.late_now();
        let entity = Entity::Thread(id);
        let release = |entity| (entity, self.attributes(entity).release.0);
        let ready: Vec<(Entity, Instant)> = self.entities_of(at).map(release).collect();
        let unsure = late.is_some() || self.keeps_its_place(thread);
        let order = &mut self.nodes[at].order;
        order.give_way(entity, late);
        order.go_behind(entity, &ready, (self.now, unsure));
    }

    /// Whom the policy of a node would choose.
    fn first(&self, at: usize) -> Option<Entity> {
        let order = &self.nodes[at].order;
        let by_turn = order.turns.front().copied().or(order.holder);
        by_turn.or_else(|| {
            self.entities_of(at).reduce(|first, other| {
                let (a, b) = (self.attributes(first), self.attributes(other));
                if order.comes_before((other, &b), (first, &a)) {
                    other
                } else {
                    first
                }
            })
        })
    }

    /// The node, on the way down by everybody's order, that wants nobody to run, and until when.
    pub(super) fn who_rests(&self) -> Option<(usize, Instant)> {
        let mut at = ROOT;
        loop {
            let node = &self.nodes[at];
            if !node.is_funded() && self.overdrawer(at).is_some() {
                // Who finishes its section there is nobody's choice.
                return None;
            }
            if node.own_time {
                let answer = node
                    .standing(self.now)
                    .filter(|_| node.protected.is_none())?;
                let until = answer.until.unwrap_or(Instant::MAX);
                return answer.thread.is_none().then_some((at, until));
            }
            let divided = node.order.is_divided();
            if node.protected.is_some() && !divided {
                return None;
            }
            let first = match divided {
                true => self.ready_owner(at),
                false => self.first(at),
            };
            match first {
                Some(Entity::Node(child)) => at = child,
                Some(Entity::Thread(_)) => return None,
                None if at == ROOT || !divided => return None,
                None => return Some((at, node.next_part(self.now))),
            }
        }
    }

    fn attributes(&self, entity: Entity) -> Attributes {
        match entity {
            Entity::Thread(id) => self.standing(id.index()).1,
            Entity::Node(node) => self.nodes[node].attributes(),
        }
    }
}
