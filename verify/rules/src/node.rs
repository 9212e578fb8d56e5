//! The schedulers of a CPU as a log states them: a tree, its ready sets, its supply.
//!
//! ```text
//!   node 0, the CPU's own ----- threads, ready
//!     |-- node 1 [budget] ----- threads, ready       a child is in the ready set of its parent
//!     `-- node 2 [slots] ------ ...                  while it has something ready and has supply
//! ```

use punctual_kern::{ChildPick, Grant, NodeTerms, SlotTerms};
use punctual_model::{Instant, PolicyKind, Span, Trust};
use punctual_tables::{CpuTables, FallbackRow};

use crate::queue::{Entity, Queue};
use crate::server::Supply;

/// The CPU's own scheduler.
pub(crate) const ROOT: usize = 0;
pub(crate) const CPU: Entity = Entity::Node(ROOT);

/// One scheduler, or a place for one.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) generation: u16,
    /// A place without a parent is vacant, but for the CPU's own.
    pub(crate) parent: Option<usize>,
    pub(crate) terms: NodeTerms,
    /// The shares of slices of it that have ended, each until when it counts.
    pub(crate) ended: Vec<(u64, Instant)>,
    /// Supply that its parent grants it beyond the processor whenever it is chosen.
    pub(crate) supply: Option<Supply>,
    /// Its last answer, and whether what is ready in it has changed since.
    pub(crate) answer: Option<ChildPick>,
    pub(crate) changed: bool,
    /// The node whose background level takes its work without guarantees.
    pub(crate) background_at: usize,
    /// Whose time is when, when it divides time.
    pub(crate) slots: Vec<(SlotTerms, Entity)>,
    pub(crate) queue: Queue,
    /// The policy that was asked for and does not order it yet.
    pub(crate) next: Option<PolicyKind>,
    /// What orders it when it decides on its own supply and does not.
    pub(crate) fallback: Option<FallbackRow>,
    /// That comes to order it now.
    pub(crate) falls_back: bool,
    /// Since when it is asked to decide without a lawful answer.
    pub(crate) asked: Option<Instant>,
}

impl Node {
    /// The schedulers of a CPU, node 0 being the CPU's own, and places for more.
    pub(crate) fn all(tables: &CpuTables) -> Vec<Node> {
        let mut nodes = vec![Node::vacant(0, tables.policy)];
        for row in &tables.nodes {
            let at = nodes.len();
            let parent = usize::from(row.parent).min(at - 1);
            let (mut node, above) = (Node::vacant(0, row.policy), nodes[parent].background_at);
            let is_absent = tables
                .absent
                .iter()
                .any(|&absent| usize::from(absent) == at);
            if !is_absent {
                node.take_terms((at, parent), row.terms, above);
            }
            let mut fallbacks = tables.fallbacks.iter();
            node.fallback = fallbacks.find(|row| usize::from(row.node) == at).copied();
            nodes.push(node);
        }
        let promoted = PolicyKind::FixedPriority { preemptive: true };
        let places = nodes.len().max(usize::from(tables.capacity.nodes) + 1);
        nodes.resize_with(places, || Node::vacant(0, promoted));
        for slot in &tables.slots {
            let node = slot.entity.checked_sub(tables.capacity.entity_of(0));
            let owner = node.map(|node| Entity::Node(node as usize));
            let owner = owner.unwrap_or(Entity::Thread(slot.entity as usize));
            if let Some(node) = nodes.get_mut(usize::from(slot.node)) {
                node.slots.push((*slot, owner));
            }
        }
        nodes
    }

    /// A place with nothing ready.
    pub(crate) fn vacant(generation: u16, policy: PolicyKind) -> Node {
        Node {
            generation,
            parent: None,
            terms: NodeTerms::ROOT,
            ended: Vec::new(),
            supply: None,
            answer: None,
            changed: true,
            background_at: ROOT,
            slots: Vec::new(),
            queue: Queue::new(policy),
            next: None,
            fallback: None,
            falls_back: false,
            asked: None,
        }
    }

    /// Exists on these terms, with nothing ready; `above` takes its work without guarantees unless
    /// its own supply is bounded.
    pub(crate) fn take_terms(&mut self, at: (usize, usize), terms: NodeTerms, above: usize) {
        (self.parent, self.terms) = (Some(at.1), terms);
        if let Grant::Server(server) = terms.supply {
            self.supply = Some(Supply::new(server));
        }
        let bounded = terms.supply != Grant::Shared || self.queue.is_divided();
        self.background_at = if bounded { at.0 } else { above };
    }

    /// Whether it decides on its own supply.
    pub(crate) fn decides(&self) -> bool {
        self.terms.trust == Trust::OwnTime
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
        let within = Span::from_ticks(now.ticks() % frame.ticks().max(1));
        let start = now.saturating_sub(within);
        let current = |(slot, _): &&(SlotTerms, Entity)| {
            slot.at <= within && within < slot.at.saturating_add(slot.length)
        };
        let current = self.slots.iter().find(current);
        current.map_or((None, Instant::MAX), |(slot, owner)| {
            let end = slot.at.saturating_add(slot.length);
            (Some(*owner), start.saturating_add(end))
        })
    }

    /// The owner of the slot that `now` lies in, if it is ready.
    pub(crate) fn ready_owner(&self, now: Instant) -> Option<Entity> {
        self.owner(now)
            .0
            .filter(|&owner| self.queue.key(owner).is_some())
    }
}
