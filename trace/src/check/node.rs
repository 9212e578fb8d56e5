//! The schedulers of a CPU as the checker sees them: a tree, its ready sets, its supply.
//!
//! ```text
//!   node 0, the CPU's own ----- threads, ready
//!     |-- node 1 [budget] ----- threads, ready       a child stands in the ready set of its parent
//!     `-- node 2 [slots] ------ ...                  while it has something ready and has supply
//! ```

use punctual_kern::{CpuPlan, Grant, NodePlan};
use punctual_model::{Instant, PolicyKind, Priority, Slot, ThreadId, Trust};

use super::order::{Attributes, Entity, Order};
use super::supply::Budget;

/// The CPU's own scheduler.
pub(super) const ROOT: usize = 0;

/// One scheduler.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) parent: Option<usize>,
    pub(super) priority: Priority,
    /// The last tie-break among its siblings.
    pub(super) rank: u32,
    /// What its parent grants it beyond the processor whenever it is chosen.
    pub(super) budget: Option<Budget>,
    /// Its urgency for a parent that orders by deadline.
    pub(super) deadline: Instant,
    /// It decides on its own supply.
    pub(super) own_time: bool,
    /// The node whose background level takes its work without guarantees.
    pub(super) background_at: usize,
    /// Whose time is when, when it divides time.
    pub(super) slots: Vec<(Slot, Entity)>,
    pub(super) order: Order,
    /// Who executes in a non-preemptive section here.
    pub(super) protected: Option<ThreadId>,
    /// Threads and children in its ready set.
    pub(super) ready: u32,
    /// It has had nothing ready since then, which its server has not been told.
    pub(super) fell: Option<Instant>,
    /// It stands in its parent's ready set, since some instant between these.
    pub(super) shown: Option<(Instant, Instant)>,
}

impl Node {
    /// The schedulers of a CPU: node 0 is the CPU's own.
    pub(super) fn all(plan: &CpuPlan) -> Vec<Node> {
        let mut nodes = vec![Node::root(plan.policy)];
        for planned in &plan.nodes {
            nodes.push(Node::planned(planned, &nodes));
        }
        for slot in &plan.slots {
            let slice = Slot {
                at: slot.at,
                length: slot.length,
            };
            let node = slot.entity.checked_sub(plan.capacity.entity_of(0));
            let owner = match node {
                Some(node) => Entity::Node(node as usize),
                None => Entity::Thread(ThreadId::new(slot.entity, 0)),
            };
            if let Some(node) = nodes.get_mut(usize::from(slot.node)) {
                node.slots.push((slice, owner));
            }
        }
        nodes
    }

    fn planned(plan: &NodePlan, before: &[Node]) -> Node {
        let parent = usize::from(plan.parent).min(before.len() - 1);
        let (terms, index) = (&plan.terms, before.len());
        let budget = match terms.supply {
            Grant::Server(server) => Some(Budget::new(server)),
            Grant::Shared | Grant::Slots => None,
        };
        let own_level = terms.supply != Grant::Shared;
        let divided = matches!(plan.policy, PolicyKind::Tdm { .. });
        Node {
            parent: Some(parent),
            priority: terms.priority,
            rank: terms.order,
            deadline: budget.as_ref().map_or(Instant::MAX, Budget::deadline),
            budget,
            own_time: terms.trust == Trust::OwnTime,
            background_at: match own_level || divided {
                true => index,
                false => before[parent].background_at,
            },
            ..Node::root(plan.policy)
        }
    }

    fn root(policy: PolicyKind) -> Node {
        Node {
            parent: None,
            priority: Priority::LOWEST,
            rank: 0,
            budget: None,
            deadline: Instant::MAX,
            own_time: false,
            background_at: ROOT,
            slots: Vec::new(),
            order: Order::new(policy),
            protected: None,
            ready: 0,
            fell: None,
            shown: None,
        }
    }

    /// Whether its supply lets it run now.
    pub(super) fn is_funded(&self) -> bool {
        self.budget.as_ref().is_none_or(|budget| budget.left() > 0)
    }

    /// How its parent's policy sees it.
    pub(super) fn attributes(&self) -> Attributes {
        Attributes {
            priority: self.priority,
            deadline: (self.deadline, self.deadline),
            release: self.shown.unwrap_or_default(),
            rank: self.rank,
        }
    }

    /// Whose slot `now` lies in, and when that slot ends; else nobody's, until the next begins.
    /// O(slots).
    pub(super) fn owner(&self, now: Instant) -> (Option<Entity>, Instant) {
        let PolicyKind::Tdm { frame, .. } = self.order.policy else {
            return (None, Instant::MAX);
        };
        let frame = frame.ticks().max(1);
        let within = now.ticks() % frame;
        let start = now.ticks() - within;
        let mut next = u64::MAX;
        for (slot, owner) in &self.slots {
            let (from, to) = (slot.at.ticks(), slot.at.saturating_add(slot.length).ticks());
            if from <= within && within < to {
                return (Some(*owner), Instant::from_ticks(start.saturating_add(to)));
            }
            let again = if from > within { 0 } else { frame };
            next = next.min(from.saturating_add(again));
        }
        (None, Instant::from_ticks(start.saturating_add(next)))
    }
}
