//! The choice: from the CPU's own scheduler down, each node runs the entity that must be chosen.

use punctual_model::Span;

use crate::Rule;
use crate::entry::Judge;
use crate::node::ROOT;
use crate::queue::Entity;

impl Judge<'_> {
    /// In whose ready set a thread belongs.
    pub(crate) fn queue_of(&self, thread: usize, background: bool) -> usize {
        let home = self.threads[thread].home;
        if background {
            self.nodes[home].background_at
        } else {
            home
        }
    }

    /// A node or a thread in messages.
    fn entity(&self, entity: Entity) -> String {
        match entity {
            Entity::Thread(id) => self.name(id.index()),
            Entity::Node(node) => self.node_name(node),
        }
    }

    /// Holds the choice of an entry against the ready sets; `None` is idle.
    pub(crate) fn choice(&mut self, chosen: Option<Entity>) {
        let (entity, home) = match chosen {
            None => return self.idle_is_right(),
            Some(Entity::Thread(id)) => (Entity::Thread(id), self.threads[id.index()].queue),
            Some(Entity::Node(node)) => {
                self.answer_is_kept(node, None);
                (Entity::Node(node), self.nodes[node].parent.unwrap_or(ROOT))
            }
        };
        let ready = match entity {
            Entity::Thread(id) => self.threads[id.index()].ready && !self.threads[id.index()].dead,
            Entity::Node(node) => self.nodes[node].queue.len() > 0,
        };
        if !ready {
            let what = format!("{} runs and is not ready", self.entity(entity));
            return self.violation(Rule::OnlyReadyRuns, what);
        }
        let (mut entity, mut at) = (entity, home);
        if let (Entity::Thread(id), Some(top)) = (entity, self.overdrawn_above(home)) {
            self.overdraft_is_right(top, id.index());
            let Some(parent) = self.nodes[top].parent else {
                return;
            };
            (entity, at) = (Entity::Node(top), parent);
        }
        loop {
            self.place_is_right(at, entity);
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
    fn overdraft_is_right(&mut self, at: usize, thread: usize) {
        let Some((may, most)) = self.overdrawer(at) else {
            return;
        };
        let end = self.now.saturating_add(Span::from_ticks(most));
        let what = if may != thread {
            let (is, should) = (self.name(thread), self.name(may));
            format!("{is} runs where {should} alone may finish its section")
        } else if !self.is_armed_by(end) {
            let name = self.name(thread);
            format!("{name}: nothing is armed for the end of its overdraft")
        } else {
            return;
        };
        self.violation(Rule::SupplyRespected, what);
    }

    fn idle_is_right(&mut self) {
        let asks = self.first_answer_ends();
        if asks.is_some_and(|until| !self.is_armed_by(until)) {
            let what = "idle, and nothing is armed for the end of an answer".into();
            return self.violation(Rule::ChildAnswersChecked, what);
        }
        let root = &self.nodes[ROOT];
        let ready = match root.queue.is_divided() {
            true => root.ready_owner(self.now),
            false => root.queue.entities().next().map(|(entity, _)| entity),
        };
        if let Some(waits) = ready {
            let what = format!("idle while {} is ready and has supply", self.entity(waits));
            self.violation(Rule::WorkConserving, what);
        }
    }

    /// One step of the way down: in node `at`, `chosen` runs.
    fn place_is_right(&mut self, at: usize, chosen: Entity) {
        if let Entity::Node(node) = chosen {
            let funded = self.nodes[node].supply.as_ref().map(|supply| supply.left);
            let end = funded.map(|left| self.now.saturating_add(Span::from_ticks(left)));
            let overdrawn = funded == Some(0) && self.overdrawer(node).is_some();
            if !overdrawn && end.is_some_and(|end| !self.is_armed_by(end)) {
                let what = "runs, and nothing is armed for the end of its budget";
                return self.accuse_node(Rule::SupplyRespected, node, what);
            }
        }
        if self.nodes[at].queue.is_divided() {
            return self.slot_is_right(at, chosen);
        }
        if self.nodes[at].own_time {
            // Its order is its own; it chooses among its ready threads.
            if let Entity::Thread(thread) = chosen {
                self.answer_is_kept(at, Some(thread));
            }
            return;
        }
        let better = match self.nodes[at].protected {
            Some(holder) if Entity::Thread(holder) == chosen => return,
            Some(holder) => Some(Entity::Thread(holder)),
            None => self.nodes[at].queue.better_than(chosen),
        };
        if let Some(better) = better {
            let (is, should) = (self.entity(chosen), self.entity(better));
            let what = format!("{is} runs while {should} is ready and comes first");
            self.violation(Rule::PolicyOrder, what);
        }
    }

    /// Nobody but the owner runs in a slot, and the core wants to be back at its end.
    fn slot_is_right(&mut self, at: usize, chosen: Entity) {
        let (owner, end) = self.nodes[at].owner(self.now);
        let (who, now) = (self.entity(chosen), self.now.ticks());
        let what = match owner {
            None => format!("{who} runs at {now}, which is nobody's time"),
            Some(owner) if !owner.is_place_of(chosen) => {
                format!("{who} runs in a slot of {}", self.entity(owner))
            }
            Some(_) if !self.is_armed_by(end) => {
                format!("{who}: nothing is armed for the end of its slot")
            }
            Some(_) => return,
        };
        self.violation(Rule::SlotRespected, what);
    }

    /// At the end of an entry a scheduler is in the ready set of its parent exactly if it has
    /// something ready and supply for it, and does not want nobody to run.
    pub(crate) fn schedulers_are_queued(&mut self) {
        for at in ROOT + 1..self.nodes.len() {
            let node = &self.nodes[at];
            let Some(parent) = node.parent.filter(|_| node.alive) else {
                continue;
            };
            let queued = self.nodes[parent].queue.has(Entity::Node(at));
            let ready = node.queue.len() > 0;
            let supplied = node.is_funded() || self.overdrawer(at).is_some();
            let (rule, what) = match queued {
                true if !ready => (Rule::OnlyReadyRuns, "is queued and has nothing ready"),
                true if !supplied => (Rule::SupplyRespected, "is queued without budget"),
                false if ready && supplied && !self.rests(at) => {
                    let what = "has something ready and supply for it, and is not queued";
                    (Rule::WorkConserving, what)
                }
                _ => continue,
            };
            let what = format!("{} {what}", self.node_name(at));
            self.violation(rule, what);
        }
    }

    /// Whether a scheduler may want nobody to run now, though somebody is ready.
    fn rests(&self, at: usize) -> bool {
        let node = &self.nodes[at];
        let divided = node.queue.is_divided() && node.ready_owner(self.now).is_none();
        let answer = node.standing(self.now).filter(|_| node.own_time);
        divided || answer.is_some_and(|answer| answer.thread.is_none())
    }
}
