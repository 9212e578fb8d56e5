//! The order within one node: which of its ready entities its policy must choose.

use std::cmp::Reverse;
use std::collections::VecDeque;

use punctual_model::{Instant, PolicyKind, Priority, Span, ThreadId};

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

/// Somebody who yielded among equals, until it becomes ready again or counts anew.
#[derive(Debug)]
struct Gave {
    entity: Entity,
    /// Who was ready then, and has neither left nor counted anew since.
    to: Vec<Entity>,
    /// As what it counts among equals: as released between these two.
    place: (Instant, Instant),
    /// Where it is among its equals a log cannot tell.
    unsure: bool,
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
    /// By urgency: who gave way.
    gave: Vec<Gave>,
    /// The latest as which anybody who gave way can count.
    latest: Instant,
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
            latest: Instant::ZERO,
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
        self.count_anew(entity);
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
        if self.policy != PolicyKind::Fifo && self.holder == Some(entity) {
            self.holder = None;
        }
    }

    /// By urgency: behind whom that is ready, with its release, an entity goes that gives way at
    /// `now`. A policy counts it as released after all that it has seen, and that is nothing later.
    pub(super) fn go_behind(
        &mut self,
        entity: Entity,
        ready: &[(Entity, Instant)],
        (now, unsure): (Instant, bool),
    ) {
        self.count_anew(entity);
        if !self.is_by_urgency() {
            return;
        }
        let tick = Span::from_ticks(1);
        self.latest = self.latest.max(now).saturating_add(tick);
        let releases = ready.iter().map(|&(_, release)| release);
        let earlier = self.gave.iter().map(|gave| gave.place.0);
        let after = releases.chain(earlier).max().unwrap_or_default();
        let others = ready.iter().map(|&(other, _)| other);
        self.gave.push(Gave {
            entity,
            to: others.filter(|&other| other != entity).collect(),
            place: (after.saturating_add(tick), self.latest),
            unsure,
        });
    }

    /// An entity has its place by its release again.
    pub(super) fn count_anew(&mut self, entity: Entity) {
        self.gave.retain(|gave| gave.entity != entity);
        for gave in &mut self.gave {
            gave.to.retain(|&other| other != entity);
        }
    }

    /// An entity may have its place by its release again.
    pub(super) fn doubt(&mut self, entity: Entity) {
        for gave in &mut self.gave {
            gave.unsure |= gave.entity == entity;
            gave.to.retain(|&other| other != entity);
        }
    }

    /// Whether it is not known of somebody who comes before whom.
    pub(super) fn is_unsure(&self) -> bool {
        self.unsure || self.gave.iter().any(|gave| gave.unsure)
    }

    fn of(&self, entity: Entity) -> Option<&Gave> {
        self.gave.iter().find(|gave| gave.entity == entity)
    }

    /// Of two that are equally urgent, whether the first certainly comes before the second.
    fn is_ahead(&self, one: (Entity, &Attributes), other: (Entity, &Attributes)) -> bool {
        let (a, b) = (self.of(one.0), self.of(other.0));
        if [a, b].into_iter().flatten().any(|gave| gave.unsure) {
            return false;
        }
        if b.is_some_and(|b| b.to.contains(&one.0)) {
            return true;
        }
        let place = |gave: Option<&Gave>, by_itself: &Attributes| match gave {
            Some(gave) => gave.place,
            None => by_itself.release,
        };
        let (a, b) = (place(a, one.1).1, place(b, other.1).0);
        (a, one.1.rank) < (b, other.1.rank)
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
        let a = one.1.urgency(self.policy, one.1.deadline.1);
        let b = other.1.urgency(self.policy, other.1.deadline.0);
        a < b || (a == b && self.is_ahead(one, other))
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

impl Attributes {
    /// Smaller is more urgent; `deadline` where there are several.
    fn urgency(&self, policy: PolicyKind, deadline: Instant) -> (Reverse<u32>, Instant) {
        match policy {
            PolicyKind::FixedPriority { .. } => (Reverse(self.priority.number()), Instant::ZERO),
            PolicyKind::EarliestDeadlineFirst => (Reverse(0), deadline),
            PolicyKind::Fifo | PolicyKind::RoundRobin { .. } | PolicyKind::Tdm { .. } => {
                (Reverse(0), Instant::ZERO)
            }
        }
    }
}
