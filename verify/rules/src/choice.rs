//! The choice: from the CPU's own scheduler down, each node runs the entity that must be chosen.

use crate::Rule;
use crate::entry::Judge;
use crate::node::{CPU, ROOT};
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

    /// The thread that executes in a non-preemptive section in a node.
    pub(crate) fn protected(&self, at: usize) -> Option<usize> {
        let mut all = self.threads.iter();
        all.position(|t| t.protected && t.ready && t.queue == at)
    }

    /// A thread executes in a non-preemptive section, and no other in its node any more.
    pub(crate) fn protect(&mut self, thread: usize) {
        let at = self.threads[thread].queue;
        for (other, t) in self.threads.iter_mut().enumerate() {
            t.protected = other == thread || (t.protected && t.queue != at);
        }
    }

    /// Holds the choice of an entry against the ready sets; `None` is idle.
    pub(crate) fn choice(&mut self, chosen: Option<Entity>) {
        let Some(mut entity) = chosen else {
            return self.idle_is_right();
        };
        let (ready, mut at) = match entity {
            Entity::Thread(thread) => (self.threads[thread].ready, self.threads[thread].queue),
            Entity::Node(node) => {
                self.answer_is_kept(node, None);
                let node = &self.nodes[node];
                (node.queue.first().is_some(), node.parent.unwrap_or(ROOT))
            }
        };
        if !ready {
            return self.accuse(Rule::OnlyReadyRuns, entity, "runs and is not ready");
        }
        if let (Entity::Thread(_), Some((top, may, most))) = (entity, self.overdraft(at)) {
            // Who may finish a section runs, for as long as it may take.
            let (may, end) = (Entity::Thread(may), self.after(most));
            let should = self.name(may);
            let what = format_args!("runs where {should} alone may finish its section");
            self.must(may == entity, Rule::SupplyRespected, entity, what);
            self.ends(end, Rule::SupplyRespected, may, "its overdraft");
            (entity, at) = (Entity::Node(top), self.nodes[top].parent.unwrap_or(ROOT));
        }
        loop {
            self.place_is_right(at, entity);
            let Some(parent) = self.nodes[at].parent else {
                return;
            };
            (entity, at) = (Entity::Node(at), parent);
        }
    }

    /// The highest scheduler above `home` whose budget is used up while somebody may go on: who,
    /// and for how long.
    fn overdraft(&self, home: usize) -> Option<(usize, usize, u64)> {
        let spent = self.lineage(home).filter(|at| !self.nodes[*at].is_funded());
        let may = |at| self.overdrawer(at).map(|(who, most)| (at, who, most));
        spent.filter_map(may).last()
    }

    fn idle_is_right(&mut self) {
        if let Some(until) = self.first_answer_ends() {
            self.ends(until, Rule::ChildAnswersChecked, CPU, "an answer");
        }
        let root = &self.nodes[ROOT];
        let ready = match root.queue.is_divided() {
            true => root.ready_owner(self.now),
            false => root.queue.first(),
        };
        if let Some(waits) = ready {
            let what = "is ready and has supply while nobody runs";
            self.accuse(Rule::WorkConserving, waits, what);
        }
    }

    /// One step of the way down: in node `at`, `chosen` runs.
    fn place_is_right(&mut self, at: usize, chosen: Entity) {
        if let Entity::Node(node) = chosen
            && let Some(supply) = &self.nodes[node].supply
            && (supply.left > 0 || self.overdrawer(node).is_none())
        {
            let end = self.after(supply.left);
            self.ends(end, Rule::SupplyRespected, chosen, "its budget");
        }
        if self.nodes[at].queue.is_divided() {
            return self.slot_is_right(at, chosen);
        }
        if self.nodes[at].decides() {
            // Its order is its own; it chooses among its ready threads.
            if let Entity::Thread(thread) = chosen {
                self.answer_is_kept(at, Some(thread));
            }
            return;
        }
        let protected = self.protected(at).map(Entity::Thread);
        let better = match protected {
            Some(_) => protected.filter(|first| *first != chosen),
            None => self.nodes[at].queue.better_than(chosen),
        };
        if let Some(better) = better {
            let what = format!("runs while {} is ready and comes first", self.name(better));
            self.accuse(Rule::PolicyOrder, chosen, what);
        }
    }

    /// Nobody but the owner runs in a slot, and the core wants to be back at its end.
    fn slot_is_right(&mut self, at: usize, chosen: Entity) {
        let (owner, end) = self.nodes[at].owner(self.now);
        if owner == Some(chosen) {
            return self.ends(end, Rule::SlotRespected, chosen, "its slot");
        }
        let whose = owner.map_or("nobody".into(), |owner| self.name(owner));
        let what = format_args!("runs in the time of {whose}");
        self.accuse(Rule::SlotRespected, chosen, what);
    }

    /// At the end of an entry a scheduler is in the ready set of its parent exactly if it has
    /// something ready and supply for it, and does not want nobody to run.
    pub(crate) fn schedulers_are_queued(&mut self) {
        for at in ROOT + 1..self.nodes.len() {
            let node = &self.nodes[at];
            let Some(parent) = node.parent else {
                continue;
            };
            let queued = self.nodes[parent].queue.key(Entity::Node(at)).is_some();
            let ready = node.queue.first().is_some();
            let supplied = node.is_funded() || self.overdrawer(at).is_some();
            let (rule, what) = match queued {
                true if !ready => (Rule::OnlyReadyRuns, "is queued and has nothing ready"),
                true if !supplied => (Rule::SupplyRespected, "is queued without budget"),
                false if ready && supplied && !self.rests(at) => (
                    Rule::WorkConserving,
                    "is ready, has supply, and is not queued",
                ),
                _ => continue,
            };
            self.accuse(rule, Entity::Node(at), what);
        }
    }

    /// Whether a scheduler may want nobody to run now, though somebody is ready.
    fn rests(&self, at: usize) -> bool {
        let node = &self.nodes[at];
        let divided = node.queue.is_divided() && node.ready_owner(self.now).is_none();
        let answer = node.standing(self.now).filter(|_| node.decides());
        divided || answer.is_some_and(|answer| answer.thread.is_none())
    }
}
