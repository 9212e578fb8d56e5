//! Nodes come into the tree, and threads find their home in it.

use alloc::vec::Vec;

use punctual_model::{Instant, MAX_DEPTH, Priority, Span, ThreadId, Trust, Work};

use super::Tree;
use super::book::Book;
use super::node::{Borrowed, Ended, NONE, Node, ROOT, Supply};
use super::places::Places;
use super::replace::{Change, Shelf, Stock};
use crate::background::Background;
use crate::capacity::Capacity;
use crate::choice::Band;
use crate::heap::IndexedHeap;
use crate::node::NodeId;
use crate::policy::Policy;
use crate::refusal::Refusal;

/// What a parent grants a child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grant {
    /// The processor whenever the child is chosen.
    Shared,
    /// A budget per period, in ticks.
    Server(punctual_model::Server),
    /// Slots in the table of the parent's policy.
    Slots,
}

/// The terms on which a scheduler joins a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeTerms {
    /// What its parent grants it.
    pub supply: Grant,
    /// Urgency among what its parent orders.
    pub priority: Priority,
    /// The last tie-break there.
    pub order: u32,
    /// Who executes its decisions.
    pub trust: Trust,
    /// Most threads in its subtree; `None`: no limit of its own.
    pub quota: Option<u32>,
    /// It is a slice of time (`delegate`), in the hands of this scheduler; `None`: a scheduler.
    pub receiver: Option<NodeId>,
}

/// A slot of an entity in the frame of its node, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotTerms {
    /// The place of the node whose policy divides time.
    pub node: u16,
    /// Whose slot: the index of a thread, or [`Capacity::entity_of`] a child.
    pub entity: u32,
    /// Its start, from the start of the frame.
    pub at: Span,
    /// Its length.
    pub length: Span,
}

impl NodeTerms {
    /// The root takes everything.
    pub const ROOT: NodeTerms = NodeTerms {
        supply: Grant::Shared,
        priority: Priority::LOWEST,
        order: 0,
        trust: Trust::Inline,
        quota: None,
        receiver: None,
    };
}

impl<P: Policy> Tree<P> {
    /// A tree of one node, with room for as many threads and nodes below it as the shard has. A
    /// policy of this tree has room for [`Capacity::entities`].
    pub fn new(capacity: Capacity, root: P) -> Self {
        let nodes = usize::from(capacity.nodes) + 1;
        let mut tree = Tree {
            nodes: Vec::with_capacity(nodes),
            is_flat: capacity.nodes == 0,
            shelves: (0..nodes).map(|_| Shelf::default()).collect(),
            stock: Stock::default(),
            replacing: Vec::with_capacity(nodes),
            places: Places::new(capacity.threads),
            free: Vec::with_capacity(nodes),
            timers: IndexedHeap::new(nodes),
            fallen: Vec::with_capacity(nodes),
            news: Vec::with_capacity(nodes),
            moved: Vec::with_capacity(nodes),
            resting: 0,
            parked: Vec::with_capacity(capacity.threads),
            has_come: false,
            overruns: Vec::with_capacity(capacity.threads),
            capacity,
            now: Instant::ZERO,
        };
        tree.push(NONE, root, NodeTerms::ROOT);
        tree
    }

    /// Adds a scheduler below `parent`, before the run starts. Nodes get the indices 1, 2, ... in
    /// the order of this call.
    ///
    /// # Errors
    /// No such parent, no room, too deep, or a parent that leaves no decision to the core.
    pub fn add(&mut self, parent: NodeId, policy: P, terms: NodeTerms) -> Result<NodeId, Refusal> {
        let at = self.node(parent)?;
        let above = &self.nodes[usize::from(at)];
        if self.nodes.len() > usize::from(self.capacity.nodes) {
            return Err(Refusal::NoNodeLeft);
        }
        if usize::from(above.depth) >= MAX_DEPTH {
            return Err(Refusal::TooDeep(parent));
        }
        if above.is_own_time() {
            return Err(Refusal::NotAParent(parent));
        }
        let index = self.push(at, policy, terms);
        Ok(self.nodes[usize::from(index)].id(index))
    }

    /// Adds a place that a request to promote may use, with the policy it will have.
    ///
    /// # Errors
    /// No room.
    pub fn add_spare(&mut self, policy: P) -> Result<(), Refusal> {
        if self.nodes.len() > usize::from(self.capacity.nodes) {
            return Err(Refusal::NoNodeLeft);
        }
        let index = self.push(NONE, policy, NodeTerms::ROOT);
        self.nodes[usize::from(index)].alive = false;
        self.free.push(index);
        Ok(())
    }

    /// Adds the place of a scheduler that comes later: a request to promote with this `order`
    /// finds it, and no other does.
    ///
    /// # Errors
    /// No room.
    pub fn add_kept(&mut self, policy: P, order: u32) -> Result<(), Refusal> {
        self.add_spare(policy)?;
        if let Some(node) = self
            .free
            .pop()
            .and_then(|at| self.nodes.get_mut(usize::from(at)))
        {
            node.kept = true;
            node.order = order;
        }
        Ok(())
    }

    fn push(&mut self, parent: u16, policy: P, terms: NodeTerms) -> u16 {
        let index = u16::try_from(self.nodes.len()).unwrap_or(NONE);
        let above = self.nodes.get(usize::from(parent));
        let bounded = above.is_none() || terms.supply != Grant::Shared;
        let background_at = match above {
            Some(above) if !bounded && !policy.orders_background() => above.background_at,
            _ => index,
        };
        let mut node = Node {
            generation: 0,
            alive: true,
            parent,
            depth: above.map_or(0, |above| above.depth + 1),
            trust: terms.trust,
            quota: terms.quota.unwrap_or(u32::MAX),
            receiver: NONE,
            granted: None,
            ended: Ended::default(),
            book: Book::default(),
            threads: 0,
            policy,
            background: Background::new(self.capacity.threads, self.capacity.background_turn),
            background_at,
            held: None,
            ready: 0,
            borrowed: Borrowed::default(),
            lent_below: Work::ZERO,
            parked: 0,
            supply: Supply::Shared,
            priority: terms.priority,
            raised: None,
            order: terms.order,
            kept: false,
            queued: false,
            release: Instant::ZERO,
            deadline: Instant::MAX,
            resting: None,
            fell: None,
            epoch: 0,
            answer: None,
            is_fallen: false,
            has_news: false,
            awake: false,
            reported: Work::ZERO,
            told: false,
            left: false,
            has_moved: false,
        };
        node.take_terms(&terms);
        self.nodes.push(node);
        if parent != NONE {
            let entity = self.entity(index);
            self.nodes[usize::from(parent)].policy.attach(entity);
        }
        index
    }

    /// The node in whose queue a ready thread stands: what it executes is charged to the servers
    /// from there up.
    pub fn supplier(&self, thread: ThreadId) -> Option<NodeId> {
        let at = self.places.get(thread.index())?.at;
        let node = self.nodes.get(usize::from(at))?;
        Some(node.id(at))
    }

    /// The place of a node.
    pub(super) fn node(&self, id: NodeId) -> Result<u16, Refusal> {
        match self.nodes.get(id.index()) {
            Some(node) if node.alive && node.generation == id.generation() => {
                Ok(u16::try_from(id.index()).unwrap_or(NONE))
            }
            _ => Err(Refusal::NoSuchNode(id)),
        }
    }

    /// The name of a node among the entities of its parent's policy.
    #[inline]
    pub(super) fn entity(&self, index: u16) -> ThreadId {
        let generation = u32::from(self.nodes[usize::from(index)].generation);
        ThreadId::new(self.capacity.entity_of(index), generation)
    }

    /// In whose queue a thread stands when it is ready.
    #[inline]
    pub(super) fn queue_of(&self, thread: ThreadId, band: Band) -> u16 {
        if self.is_flat {
            return ROOT;
        }
        let home = self.places.home(thread.index());
        match band {
            Band::RealTime => home,
            Band::Background => self.nodes[usize::from(home)].background_at,
        }
    }

    /// A thread comes into the care of the scheduler `home`, not ready yet.
    ///
    /// # Errors
    /// No such scheduler, or a quota is exhausted; nothing has changed then.
    pub fn attach(&mut self, thread: ThreadId, home: NodeId) -> Result<(), Refusal> {
        let home = self.node(home)?;
        self.has_quota(home, NONE)?;
        self.places.settle(thread.index(), home);
        self.count_threads(home, 1);
        self.nodes[usize::from(home)].policy.attach(thread);
        self.follow(home, thread, Change::Attach);
        Ok(())
    }

    /// A thread that is not ready leaves its home.
    pub(super) fn let_go(&mut self, thread: ThreadId) {
        let home = self.places.home(thread.index());
        self.nodes[usize::from(home)].policy.detach(thread);
        self.follow(home, thread, Change::Detach);
        self.count_threads(home, -1);
        self.places.settle(thread.index(), ROOT);
    }

    pub(super) fn count_threads(&mut self, home: u16, change: i32) {
        let mut at = self.care(home);
        while at != NONE {
            let node = &mut self.nodes[usize::from(at)];
            node.threads = node.threads.saturating_add_signed(change);
            at = node.parent;
        }
    }
}
