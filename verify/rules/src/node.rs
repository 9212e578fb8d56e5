//! The schedulers of a CPU as a log states them: a tree, its ready sets, its supply.
//!
//! ```text
//!   node 0, the CPU's own ----- threads, ready
//!     |-- node 1 [budget] ----- threads, ready       a child is in the ready set of its parent
//!     `-- node 2 [slots] ------ ...                  while it has something ready and has supply
//! ```

use punctual_kern::{ChildPick, Grant, NodeTerms};
use punctual_model::{Instant, PolicyKind, Priority, Slot, Trust};
use punctual_tables::CpuTables;

use crate::queue::{Entity, Queue};
use crate::server::Supply;

/// The CPU's own scheduler.
pub(crate) const ROOT: usize = 0;

/// One scheduler.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) alive: bool,
    pub(crate) generation: u16,
    /// Most threads in its subtree.
    pub(crate) quota: Option<u32>,
    pub(crate) parent: Option<usize>,
    pub(crate) priority: Priority,
    /// The last tie-break among its siblings.
    pub(crate) rank: u32,
    /// Supply that its parent grants it beyond the processor whenever it is chosen.
    pub(crate) supply: Option<Supply>,
    /// It decides on its own supply.
    pub(crate) own_time: bool,
    /// Its last answer, and whether what is ready in it has changed since.
    pub(crate) answer: Option<ChildPick>,
    pub(crate) changed: bool,
    /// The node whose background level takes its work without guarantees.
    pub(crate) background_at: usize,
    /// Whose time is when, when it divides time.
    pub(crate) slots: Vec<(Slot, Entity)>,
    pub(crate) queue: Queue,
}

impl Node {
    /// The schedulers of a CPU: node 0 is the CPU's own.
    pub(crate) fn all(plan: &CpuTables) -> Vec<Node> {
        let mut nodes = vec![Node::root(plan.policy)];
        for planned in &plan.nodes {
            let at = nodes.len();
            let parent = usize::from(planned.parent).min(at - 1);
            let (mut node, above) = (Node::root(planned.policy), nodes[parent].background_at);
            node.take_terms((at, parent), &planned.terms, above);
            nodes.push(node);
        }
        // Places for schedulers that are promoted in the run.
        for _ in nodes.len()..=usize::from(plan.capacity.nodes) {
            let mut node = Node::root(PolicyKind::FixedPriority { preemptive: true });
            node.alive = false;
            nodes.push(node);
        }
        for slot in &plan.slots {
            let slice = Slot {
                at: slot.at,
                length: slot.length,
            };
            let node = slot.entity.checked_sub(plan.capacity.entity_of(0));
            let owner = match node {
                Some(node) => Entity::Node(node as usize),
                None => Entity::Thread(slot.entity as usize),
            };
            if let Some(node) = nodes.get_mut(usize::from(slot.node)) {
                node.slots.push((slice, owner));
            }
        }
        nodes
    }

    fn root(policy: PolicyKind) -> Node {
        Node {
            alive: true,
            generation: 0,
            quota: None,
            parent: None,
            priority: Priority::LOWEST,
            rank: 0,
            supply: None,
            own_time: false,
            answer: None,
            changed: true,
            background_at: ROOT,
            slots: Vec::new(),
            queue: Queue::new(policy),
        }
    }

    /// Exists on these terms, with nothing ready; `above` takes its work without guarantees unless
    /// its own supply is bounded.
    pub(crate) fn take_terms(&mut self, at: (usize, usize), terms: &NodeTerms, above: usize) {
        let (at, parent) = at;
        self.alive = true;
        self.parent = Some(parent);
        self.quota = terms.quota;
        self.priority = terms.priority;
        self.rank = terms.order;
        self.supply = match terms.supply {
            Grant::Server(server) => Some(Supply::new(server)),
            Grant::Shared | Grant::Slots => None,
        };
        self.own_time = terms.trust == Trust::OwnTime;
        let bounded = terms.supply != Grant::Shared || self.queue.is_divided();
        self.background_at = if bounded { at } else { above };
    }

    /// Exists no more: its place waits for the next.
    pub(crate) fn end(&mut self) {
        let generation = self.generation.wrapping_add(1);
        *self = Node {
            alive: false,
            generation,
            ..Node::root(self.queue.policy)
        };
    }

    /// The answer that still counts.
    pub(crate) fn standing(&self, now: Instant) -> Option<ChildPick> {
        let over = |answer: &ChildPick| answer.until.is_some_and(|until| until <= now);
        self.answer.filter(|answer| !self.changed && !over(answer))
    }

    /// Whether its supply lets it run now.
    pub(crate) fn is_funded(&self) -> bool {
        self.supply.as_ref().is_none_or(|supply| supply.left > 0)
    }

    /// Whose slot `now` lies in, and when that slot ends. O(slots).
    pub(crate) fn owner(&self, now: Instant) -> (Option<Entity>, Instant) {
        let PolicyKind::Tdm { frame, .. } = self.queue.policy else {
            return (None, Instant::MAX);
        };
        let within = now.ticks() % frame.ticks().max(1);
        let start = now.ticks() - within;
        let end = |slot: &Slot| slot.at.saturating_add(slot.length).ticks();
        let mut slots = self.slots.iter();
        let current = slots.find(|(slot, _)| slot.at.ticks() <= within && within < end(slot));
        match current {
            Some((slot, owner)) => {
                let end = Instant::from_ticks(start.saturating_add(end(slot)));
                (Some(*owner), end)
            }
            None => (None, Instant::MAX),
        }
    }

    /// The owner of the slot that `now` lies in, if it is ready.
    pub(crate) fn ready_owner(&self, now: Instant) -> Option<Entity> {
        self.owner(now).0.filter(|&owner| self.queue.has(owner))
    }
}
