//! The schedulers of a CPU as the checker sees them: a tree, its ready sets, its supply.
//!
//! ```text
//!   node 0, the CPU's own ----- threads, ready
//!     |-- node 1 [budget] ----- threads, ready       a child stands in the ready set of its parent
//!     `-- node 2 [slots] ------ ...                  while it has something ready and has supply
//! ```

use punctual_kern::{CpuPlan, Grant, NodeTerms};
use punctual_model::{Instant, PolicyKind, Priority, Slot, ThreadId, Trust};

use super::order::{Attributes, Entity, Order};
use super::supply::Budget;

/// The CPU's own scheduler.
pub(super) const ROOT: usize = 0;

/// What a child that decides on its own supply has answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) thread: Option<ThreadId>,
    pub(super) until: Option<Instant>,
}

/// One scheduler.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) alive: bool,
    pub(super) generation: u16,
    /// Most threads in its subtree.
    pub(super) quota: Option<u32>,
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
    /// Its answer, the state of its ready threads that it was given for, and whether that has
    /// changed since.
    pub(super) answer: Option<Answer>,
    pub(super) epoch: Option<u32>,
    pub(super) changed: bool,
    /// The node whose background level takes its work without guarantees.
    pub(super) background_at: usize,
    /// Whose time is when, when it divides time.
    pub(super) slots: Vec<(Slot, Entity)>,
    pub(super) order: Order,
    /// Who executes in a non-preemptive section here.
    pub(super) protected: Option<ThreadId>,
    /// Threads and children in its ready set.
    pub(super) ready: u32,
    /// Threads of the subtree that wait for budgets.
    pub(super) parked: u32,
    /// The entry in which a budget came last after it had none, and when that was due.
    pub(super) funded: (Instant, Instant),
    /// At least as urgent as this, while somebody in it holds what others share.
    pub(super) raised: Option<Priority>,
    /// It has had nothing ready since then, which its server has not been told.
    pub(super) fell: Option<Instant>,
    /// It wants nobody to run until then, though somebody is ready.
    pub(super) resting: Option<Instant>,
    /// It stands in its parent's ready set, since some instant between these.
    pub(super) shown: Option<(Instant, Instant)>,
}

impl Node {
    /// The schedulers of a CPU: node 0 is the CPU's own.
    pub(super) fn all(plan: &CpuPlan) -> Vec<Node> {
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
                None => Entity::Thread(ThreadId::new(slot.entity, 0)),
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
            budget: None,
            deadline: Instant::MAX,
            own_time: false,
            answer: None,
            epoch: None,
            changed: true,
            background_at: ROOT,
            slots: Vec::new(),
            order: Order::new(policy),
            protected: None,
            ready: 0,
            parked: 0,
            funded: (Instant::MAX, Instant::ZERO),
            raised: None,
            fell: None,
            resting: None,
            shown: None,
        }
    }

    /// Exists on these terms, with nothing ready; `above` takes its work without guarantees unless
    /// its own supply is bounded.
    pub(super) fn take_terms(&mut self, at: (usize, usize), terms: &NodeTerms, above: usize) {
        let (at, parent) = at;
        let divided = self.order.is_divided();
        self.alive = true;
        self.parent = Some(parent);
        self.quota = terms.quota;
        self.priority = terms.priority;
        self.rank = terms.order;
        self.budget = match terms.supply {
            Grant::Server(server) => Some(Budget::new(server)),
            Grant::Shared | Grant::Slots => None,
        };
        self.deadline = self.budget.as_ref().map_or(Instant::MAX, Budget::deadline);
        self.own_time = terms.trust == Trust::OwnTime;
        self.background_at = match terms.supply == Grant::Shared && !divided {
            true => above,
            false => at,
        };
    }

    /// Exists no more: its place waits for the next.
    pub(super) fn end(&mut self) {
        let generation = self.generation.wrapping_add(1);
        let vacant = Node::root(self.order.policy);
        *self = Node {
            alive: false,
            generation,
            ..vacant
        };
    }

    /// The answer that still counts.
    pub(super) fn standing(&self, now: Instant) -> Option<Answer> {
        let over = |answer: &Answer| answer.until.is_some_and(|until| until <= now);
        self.answer.filter(|answer| !over(answer))
    }

    /// Whether its supply lets it run now.
    pub(super) fn is_funded(&self) -> bool {
        self.budget.as_ref().is_none_or(|budget| budget.left() > 0)
    }

    /// How its parent's policy sees it.
    pub(super) fn attributes(&self) -> Attributes {
        let by_itself = Attributes {
            priority: self.priority,
            deadline: (self.deadline, self.deadline),
            release: self.shown.unwrap_or_default(),
            rank: self.rank,
        };
        match self.raised.filter(|to| !self.priority.is_higher_than(*to)) {
            Some(priority) => Attributes {
                priority,
                release: (Instant::ZERO, Instant::ZERO),
                ..by_itself
            },
            None => by_itself,
        }
    }

    /// When the next slot begins. O(slots).
    pub(super) fn next_part(&self, now: Instant) -> Instant {
        let PolicyKind::Tdm { frame, .. } = self.order.policy else {
            return Instant::MAX;
        };
        let frame = frame.ticks().max(1);
        let within = now.ticks() % frame;
        let starts = self.slots.iter().map(|(slot, _)| slot.at.ticks());
        let after = |from: u64| match from > within {
            true => from,
            false => from.saturating_add(frame),
        };
        let next = starts.map(after).min().unwrap_or(u64::MAX);
        Instant::from_ticks((now.ticks() - within).saturating_add(next))
    }

    /// Whose slot `now` lies in, and when that slot ends. O(slots).
    pub(super) fn owner(&self, now: Instant) -> (Option<Entity>, Instant) {
        let PolicyKind::Tdm { frame, .. } = self.order.policy else {
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
}
