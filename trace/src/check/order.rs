//! The order within one node: which of its ready entities its policy must choose.

use std::cmp::Reverse;
use std::collections::VecDeque;

use punctual_model::{Instant, PolicyKind, Priority, ThreadId};

/// What a node orders: its threads, and the schedulers below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Entity {
    Thread(ThreadId),
    Node(usize),
}

impl Entity {
    /// Whether both are the same thread, or threads that had the same place one after the other, or
    /// the same scheduler.
    pub(super) fn is_place_of(self, other: Entity) -> bool {
        match (self, other) {
            (Entity::Thread(a), Entity::Thread(b)) => a.index() == b.index(),
            _ => self == other,
        }
    }
}

/// What a policy remembers beyond the attributes of ready entities.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) policy: PolicyKind,
    /// Without preemption: who executed last and has not left the ready set since.
    pub(super) holder: Option<Entity>,
    /// Round robin: ready entities by turn, and what the first has left of its turn.
    pub(super) turns: VecDeque<Entity>,
    left: u64,
    /// Who joined in one late entry: its instant, how many, a scheduler among them.
    late: (Instant, u32, bool),
    /// By urgency: who gave way and has not left the ready set since. Among its equals its policy
    /// may have it anywhere.
    gave: Vec<Entity>,
    /// The last late entry in which somebody gave way: to whom that was due before it, no record
    /// shows.
    gave_way: Option<Instant>,
    /// The order of the turns is not known: a log does not tell what a late entry served first.
    pub(super) unsure: bool,
}

impl Order {
    pub(super) fn new(policy: PolicyKind) -> Order {
        let mut order = Order {
            policy,
            holder: None,
            turns: VecDeque::new(),
            left: 0,
            late: (Instant::MAX, 0, false),
            gave: Vec::new(),
            gave_way: None,
            unsure: false,
        };
        order.left = order.timeslice();
        order
    }

    fn timeslice(&self) -> u64 {
        match self.policy {
            PolicyKind::RoundRobin { timeslice } => timeslice.ticks().max(1),
            _ => u64::MAX,
        }
    }

    /// Whether it gives every entity time of its own, work without guarantees included.
    pub(super) fn is_divided(&self) -> bool {
        matches!(self.policy, PolicyKind::Tdm { .. })
    }

    /// An entity is ready; `late`: told by a late entry, at this instant.
    pub(super) fn enter(&mut self, entity: Entity, late: Option<Instant>) {
        if !matches!(self.policy, PolicyKind::RoundRobin { .. }) {
            return;
        }
        self.turns.push_back(entity);
        if let Some(now) = late {
            let (at, count, scheduler) = self.late;
            let (count, scheduler) = if at == now {
                (count, scheduler)
            } else {
                (0, false)
            };
            let scheduler = scheduler || matches!(entity, Entity::Node(_));
            self.late = (now, count + 1, scheduler);
            self.unsure |= scheduler && count > 0;
            self.unsure |= self.gave_way == Some(now);
        }
    }

    pub(super) fn leave(&mut self, entity: Entity) {
        if self.holder == Some(entity) {
            self.holder = None;
        }
        if self.turns.front() == Some(&entity) {
            self.left = self.timeslice();
        }
        self.turns.retain(|&t| t != entity);
        self.gave.retain(|&t| t != entity);
        self.unsure &= self.turns.len() > 1;
    }

    pub(super) fn charge(&mut self, entity: Entity, executed: u64) {
        if executed > 0 && self.is_sticky() {
            self.holder = Some(entity);
        }
        if self.turns.front() != Some(&entity) {
            return;
        }
        // Alone, nobody waits for the end of the turn: it begins when somebody comes.
        if self.turns.len() == 1 {
            self.left = self.timeslice();
            return;
        }
        self.left = self.left.saturating_sub(executed);
        if self.left == 0 {
            self.rotate();
        }
    }

    /// Whoever executes lets others in that are more urgent.
    pub(super) fn let_in(&mut self, entity: Entity) {
        if self.holder == Some(entity) {
            self.holder = None;
        }
    }

    /// `late`: in a late entry, at this instant.
    pub(super) fn give_way(&mut self, entity: Entity, late: Option<Instant>) {
        self.gave_way = late;
        self.unsure |= late.is_some() && self.turns.len() > 1;
        if self.turns.front() == Some(&entity) {
            self.rotate();
        }
        if self.policy == PolicyKind::Fifo {
            return;
        }
        if self.holder == Some(entity) {
            self.holder = None;
        }
        if self.is_by_urgency() && !self.gave.contains(&entity) {
            self.gave.push(entity);
        }
    }

    fn is_by_urgency(&self) -> bool {
        matches!(
            self.policy,
            PolicyKind::FixedPriority { .. } | PolicyKind::EarliestDeadlineFirst
        )
    }

    /// Whether the first certainly comes before the second.
    pub(super) fn comes_before(
        &self,
        one: (Entity, &Attributes),
        other: (Entity, &Attributes),
    ) -> bool {
        let in_order = !self.gave.contains(&one.0) && !self.gave.contains(&other.0);
        one.1.come_before(other.1, self.policy, in_order)
    }

    fn rotate(&mut self) {
        self.left = self.timeslice();
        self.turns.rotate_left(1);
    }

    fn is_sticky(&self) -> bool {
        matches!(
            self.policy,
            PolicyKind::Fifo | PolicyKind::FixedPriority { preemptive: false }
        )
    }
}

/// How urgent an entity is. Dates are ranges: their ends differ where a log cannot tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Attributes {
    pub(super) priority: Priority,
    pub(super) deadline: (Instant, Instant),
    pub(super) release: (Instant, Instant),
    pub(super) rank: u32,
}

/// Smaller is more urgent.
type Key = (Reverse<u32>, Instant, Instant, u32);

impl Attributes {
    /// Whether `self` certainly comes before `other` under `policy`; unless both are `in_order`,
    /// urgency alone tells.
    fn come_before(&self, other: &Attributes, policy: PolicyKind, in_order: bool) -> bool {
        let mut a = self.key(policy, (self.deadline.1, self.release.1));
        let mut b = other.key(policy, (other.deadline.0, other.release.0));
        if !in_order {
            (a.2, a.3) = (Instant::ZERO, 0);
            (b.2, b.3) = (Instant::ZERO, 0);
        }
        a < b
    }

    fn key(&self, policy: PolicyKind, (deadline, release): (Instant, Instant)) -> Key {
        match policy {
            PolicyKind::FixedPriority { .. } => {
                let priority = Reverse(self.priority.number());
                (priority, Instant::ZERO, release, self.rank)
            }
            PolicyKind::EarliestDeadlineFirst => (Reverse(0), deadline, release, self.rank),
            PolicyKind::Fifo | PolicyKind::RoundRobin { .. } | PolicyKind::Tdm { .. } => {
                (Reverse(0), Instant::ZERO, release, self.rank)
            }
        }
    }
}
