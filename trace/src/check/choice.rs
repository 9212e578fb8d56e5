//! Who runs: from the CPU's own scheduler down, in each node the entity that must be chosen.

use punctual_model::Instant;

use super::Rule;
use super::cpu::CpuCheck;
use super::node::ROOT;
use super::order::{Attributes, Entity};
use super::thread::Thread;

impl CpuCheck<'_> {
    /// In whose ready set a thread stands.
    pub(super) fn queue_of(&self, thread: usize) -> usize {
        let t = &self.threads[thread];
        match t.background {
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

    /// The children in the ready set of a node that could run something now.
    fn children_of(&self, node: usize) -> impl Iterator<Item = usize> {
        let below = (0..self.nodes.len()).filter(move |&at| self.nodes[at].parent == Some(node));
        below.filter(|&at| self.offers(at))
    }

    /// Whether somebody in the subtree of a node could run now. O(threads + nodes) per level.
    fn offers(&self, node: usize) -> bool {
        let n = &self.nodes[node];
        if n.ready == 0 || !n.is_funded() {
            return false;
        }
        if !n.order.is_divided() {
            return self.ready_in(node).next().is_some() || self.children_of(node).next().is_some();
        }
        match n.owner(self.now).0 {
            Some(Entity::Thread(id)) => self.ready_in(node).any(|t| t.id == id),
            Some(Entity::Node(child)) => self.offers(child),
            None => false,
        }
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
            None => return self.idle_is_right(),
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
        let (mut entity, mut at) = (entity, home);
        loop {
            self.place_is_right(at, entity, arm);
            match self.nodes[at].parent {
                Some(parent) => (entity, at) = (Entity::Node(at), parent),
                None => return,
            }
        }
    }

    fn idle_is_right(&mut self) {
        if !self.offers(ROOT) {
            return;
        }
        let ready = self.threads.iter().find(|t| {
            let lineage = std::iter::successors(Some(self.queue_of(t.id.index())), |&at| {
                self.nodes[at].parent
            });
            t.ready && !t.dead && lineage.into_iter().all(|at| self.offers(at))
        });
        let name = ready.map_or("somebody".into(), |t| self.name(t.id.index()));
        self.violation(
            Rule::WorkConserving,
            format!("idle while {name} is ready and has supply"),
        );
    }

    /// One step of the way down: in node `at`, `chosen` runs.
    fn place_is_right(&mut self, at: usize, chosen: Entity, arm: Option<Instant>) {
        if let Entity::Node(node) = chosen
            && !self.nodes[node].is_funded()
        {
            let what = format!("{} runs without budget", self.node_name(node));
            return self.violation(Rule::SupplyRespected, what);
        }
        if self.nodes[at].order.is_divided() {
            return self.slot_is_right(at, chosen, arm);
        }
        if self.nodes[at].own_time {
            // Its order is its own; it chooses among its ready threads.
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
            Some(owner) if owner != chosen => {
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
            Entity::Thread(id) => Some(&self.threads[id.index()]).filter(|t| t.background),
            Entity::Node(_) => None,
        };
        let Some(chosen_thread) = background else {
            return self.more_urgent(at, chosen);
        };
        let priority = chosen_thread.constraint.priority;
        let mut others = self.ready_in(at);
        let thread =
            others.find(|o| !o.background || o.constraint.priority.is_higher_than(priority));
        let thread = thread.map(|o| Entity::Thread(o.id));
        thread.or_else(|| self.children_of(at).next().map(Entity::Node))
    }

    fn more_urgent(&self, at: usize, chosen: Entity) -> Option<Entity> {
        let order = &self.nodes[at].order;
        // Who rests in its slots leaves and joins the ready set without a word in the log.
        let is_known = |e: Entity| match e {
            Entity::Thread(_) => true,
            Entity::Node(node) => !self.has_rests(node) && self.offers(node),
        };
        let all_known = !order.unsure && order.turns.iter().copied().all(is_known);
        if let Some(&first) = order.turns.front() {
            return Some(first).filter(|&first| all_known && first != chosen);
        }
        if let Some(holder) = order.holder
            && is_known(holder)
        {
            return (holder != chosen).then_some(holder);
        }
        let is = self.attributes(chosen);
        let threads = self.ready_in(at).filter(|t| !t.background);
        let threads = threads.map(|t| Entity::Thread(t.id));
        let mut others = threads
            .chain(self.children_of(at).map(Entity::Node))
            .filter(|&other| other != chosen);
        others.find(|&other| self.attributes(other).come_before(&is, order.policy))
    }

    /// Whether somewhere in the subtree of a node time is divided, so that it may idle on purpose.
    fn has_rests(&self, node: usize) -> bool {
        let below = |at: usize| self.nodes[at].parent == Some(node) && self.has_rests(at);
        self.nodes[node].order.is_divided() || (0..self.nodes.len()).any(below)
    }

    fn attributes(&self, entity: Entity) -> Attributes {
        match entity {
            Entity::Thread(id) => self.threads[id.index()].attributes(),
            Entity::Node(node) => self.nodes[node].attributes(),
        }
    }
}
