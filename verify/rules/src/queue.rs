//! The ready entities of one scheduler, each with its key, and which of them its policy may choose.

use std::cmp::Reverse;

use punctual_kern::Ceiling;
use punctual_model::{Instant, PolicyKind, Priority, Span};

/// An entity that a scheduler orders: a thread, or a scheduler below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entity {
    Thread(usize),
    Node(usize),
}

/// How urgent an entity is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    /// Below all real-time work.
    pub(crate) background: bool,
    pub(crate) priority: Priority,
    pub(crate) deadline: Instant,
    pub(crate) release: Instant,
    /// Order in the file: the last tie-break.
    pub(crate) rank: u32,
}

impl Key {
    /// The same with another last tie-break.
    pub(crate) fn with_rank(self, rank: u32) -> Key {
        Key { rank, ..self }
    }

    /// At least this urgent, and before all equals.
    pub(crate) fn at_least(background: bool, most: Ceiling, rank: u32) -> Key {
        Key {
            background,
            priority: most.priority,
            deadline: most.absolute_deadline,
            release: Instant::ZERO,
            rank,
        }
    }
}

/// A ready entity that yielded, and has been queued by no other key since.
#[derive(Clone, Copy, Debug)]
struct Yielded {
    turn: u64,
    /// It counts as released between these two.
    from: Instant,
    until: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    entity: Entity,
    key: Key,
    /// Number of the change of this queue that put it here.
    turn: u64,
    /// The entry that put it here, if the log does not state its place among those of this entry.
    entry: Option<Instant>,
    yielded: Option<Yielded>,
}

/// The ready set of a scheduler.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) policy: PolicyKind,
    /// In the order in which they came; under round robin that of their turns.
    items: Vec<Item>,
    /// Without preemption: who executed last and has not left or been renewed since.
    holder: Option<Entity>,
    /// Round robin: what the first has left of its turn.
    left: u64,
    turns: u64,
    /// The latest release, or place of somebody who yielded, that the policy has seen: at least and
    /// at most.
    latest: (Instant, Instant),
}

impl Queue {
    pub(crate) fn new(policy: PolicyKind) -> Queue {
        let mut queue = Queue {
            policy,
            items: Vec::new(),
            holder: None,
            left: 0,
            turns: 0,
            latest: (Instant::ZERO, Instant::ZERO),
        };
        queue.left = queue.timeslice();
        queue
    }

    fn see(&mut self, release: Instant) {
        self.latest = (self.latest.0.max(release), self.latest.1.max(release));
    }

    /// Another policy orders what is ready: whose turn comes first is open, and nobody has begun or
    /// yielded.
    pub(crate) fn replace(&mut self, policy: PolicyKind, now: Instant) {
        self.policy = policy;
        self.holder = None;
        self.left = self.timeslice();
        let takes_turns = self.takes_turns();
        let mut least = Instant::ZERO;
        for item in &mut self.items {
            item.yielded = None;
            least = least.max(item.key.release);
            if takes_turns {
                item.entry = Some(now);
            }
        }
        self.latest.0 = least;
    }

    fn timeslice(&self) -> u64 {
        match self.policy {
            PolicyKind::RoundRobin { timeslice } => timeslice.ticks().max(1),
            _ => u64::MAX,
        }
    }

    /// Whether it gives every entity time of its own, work without guarantees included.
    pub(crate) fn is_divided(&self) -> bool {
        matches!(self.policy, PolicyKind::Tdm { .. })
    }

    fn takes_turns(&self) -> bool {
        matches!(self.policy, PolicyKind::RoundRobin { .. })
    }

    /// Something that is ready.
    pub(crate) fn first(&self) -> Option<Entity> {
        self.items.first().map(|item| item.entity)
    }

    pub(crate) fn key(&self, entity: Entity) -> Option<Key> {
        let mut all = self.items.iter();
        Some(all.find(|item| item.entity == entity)?.key)
    }

    fn item(&mut self, entity: Entity) -> Option<&mut Item> {
        self.items.iter_mut().find(|item| item.entity == entity)
    }

    /// An entity is ready; `entry`: since some point of the entry at this instant.
    pub(crate) fn enter(&mut self, entity: Entity, key: Key, entry: Option<Instant>) {
        self.leave(entity);
        self.turns += 1;
        self.see(key.release);
        self.items.push(Item {
            entity,
            key,
            turn: self.turns,
            entry,
            yielded: None,
        });
    }

    pub(crate) fn leave(&mut self, entity: Entity) {
        if self.holder == Some(entity) {
            self.holder = None;
        }
        if self.first_turn() == Some(entity) {
            self.left = self.timeslice();
        }
        self.items.retain(|item| item.entity != entity);
    }

    /// An entity is queued by this key from now on.
    pub(crate) fn order(&mut self, entity: Entity, key: Key, yielded: bool) {
        self.see(key.release);
        self.turns += 1;
        let turn = self.turns;
        if let Some(item) = self.item(entity) {
            item.key = key;
            if !yielded {
                (item.turn, item.yielded) = (turn, None);
            }
        }
    }

    /// The key of an entity ties by this rank.
    pub(crate) fn set_rank(&mut self, entity: Entity, rank: u32) {
        if let Some(item) = self.item(entity) {
            item.key.rank = rank;
        }
    }

    /// An entity goes on with a new budget: others are let in also where nobody is preempted.
    pub(crate) fn renew(&mut self, entity: Entity) {
        if self.holder == Some(entity) {
            self.holder = None;
        }
    }

    /// The entity that has the turn, where there are turns.
    fn first_turn(&self) -> Option<Entity> {
        let mut all = self.items.iter().filter(|item| !item.key.background);
        all.next().filter(|_| self.takes_turns()).map(|i| i.entity)
    }

    fn rotate(&mut self) {
        self.left = self.timeslice();
        if let Some(at) = self.items.iter().position(|i| !i.key.background) {
            self.items[at].entry = None;
            self.items[at..].rotate_left(1);
        }
    }

    pub(crate) fn charge(&mut self, entity: Entity, executed: u64) {
        use PolicyKind::{Fifo, FixedPriority};
        let stays = matches!(self.policy, Fifo | FixedPriority { preemptive: false });
        if executed > 0 && stays {
            self.holder = Some(entity);
        }
        if self.first_turn() != Some(entity) {
            return;
        }
        // Alone, nobody waits for the end of the turn: it begins when somebody comes.
        if self.items.iter().filter(|i| !i.key.background).count() == 1 {
            self.left = self.timeslice();
            return;
        }
        self.left = self.left.saturating_sub(executed);
        if self.left == 0 {
            self.rotate();
        }
    }

    /// An entity lets its equals go first.
    pub(crate) fn yields(&mut self, entity: Entity, now: Instant) {
        if self.first_turn() == Some(entity) {
            return self.rotate();
        }
        use PolicyKind::{EarliestDeadlineFirst, FixedPriority};
        if !matches!(self.policy, FixedPriority { .. } | EarliestDeadlineFirst) {
            return;
        }
        self.renew(entity);
        self.turns += 1;
        let after = |at: Instant| at.saturating_add(Span::from_ticks(1));
        let (from, latest) = (after(self.latest.0), after(self.latest.1));
        let (turn, until) = (self.turns, latest.max(now));
        if let Some(item) = self.item(entity) {
            item.yielded = Some(Yielded { turn, from, until });
            self.latest = (from, latest);
        }
    }

    /// Smaller is more urgent.
    fn urgency(&self, key: &Key) -> (Reverse<u32>, Instant) {
        match self.policy {
            PolicyKind::FixedPriority { .. } => (Reverse(key.priority.number()), Instant::ZERO),
            PolicyKind::EarliestDeadlineFirst => (Reverse(0), key.deadline),
            _ => (Reverse(0), Instant::ZERO),
        }
    }

    fn comes_before(&self, a: &Item, b: &Item) -> bool {
        if a.key.background || b.key.background {
            let higher = || a.key.priority.is_higher_than(b.key.priority);
            return !a.key.background || (b.key.background && higher());
        }
        let (first, second) = (self.urgency(&a.key), self.urgency(&b.key));
        first < second || (first == second && is_ahead(a, b))
    }

    /// Who, but `chosen`, must run before it. A choice that the log leaves open is taken over.
    pub(crate) fn better_than(&mut self, chosen: Entity) -> Option<Entity> {
        let at = self.items.iter().position(|item| item.entity == chosen)?;
        let item = self.items[at];
        if !item.key.background && self.takes_turns() {
            let mut before = self.items[..at].iter().filter(|i| !i.key.background);
            let open = |other: &&Item| {
                let entry = other.entry.or(item.entry);
                entry.is_some() && other.entry.is_none_or(|e| Some(e) == item.entry.or(entry))
            };
            let better = before.find(|other| !open(other)).map(|item| item.entity);
            if better.is_none() {
                self.items[..=at].rotate_right(1);
            }
            return better;
        }
        if let Some(holder) = self.holder.filter(|_| !item.key.background) {
            return (holder != chosen).then_some(holder);
        }
        let better = |other: &&Item| other.entity != chosen && self.comes_before(other, &item);
        self.items.iter().find(better).map(|item| item.entity)
    }
}

/// Whether, among equals, the first certainly comes before the second.
fn is_ahead(a: &Item, b: &Item) -> bool {
    let was_there =
        |other: &Item, yielded: Yielded| other.entry.is_none() && other.turn < yielded.turn;
    match (a.yielded, b.yielded) {
        (None, None) => (a.key.release, a.key.rank) < (b.key.release, b.key.rank),
        (None, Some(yielded)) => was_there(a, yielded) || a.key.release < yielded.from,
        (Some(yielded), None) => !was_there(b, yielded) && yielded.until < b.key.release,
        (Some(a), Some(b)) => a.turn < b.turn,
    }
}
