//! Operations on the tree itself: who may ask for what, and what then happens.

use punctual_model::{Instant, MAX_DEPTH, ThreadId, Trust, Work};

use super::book::Book;
use super::node::{Borrowed, Ended, NONE, Node, ROOT, Supply};
use super::places::Place;
use super::replace::Change;
use super::{Grant, NodeTerms, Tree};
use crate::node::NodeId;
use crate::policy::Policy;
use crate::refusal::Refusal;
use crate::server::Server;
use crate::servers::AnyServer;

impl<P: Policy> Tree<P> {
    /// Whether `by` may have a thread created in the care of `home`: only the root creates threads,
    /// so it can hold every subtree to its quota. O(depth).
    ///
    /// # Errors
    /// Why not.
    pub fn permit_create(&self, by: NodeId, home: NodeId) -> Result<(), Refusal> {
        if self.node(by)? != ROOT {
            return Err(Refusal::OnlyRootCreates(by));
        }
        let at = self.node(home)?;
        if self.is_slice(at) {
            return Err(Refusal::NotAScheduler(home));
        }
        self.has_time_for_all(at)?;
        self.has_quota(at, NONE)
    }

    /// Whether threads may be created in the care of the root. O(1).
    ///
    /// # Errors
    /// It divides its time by a table, which is constant.
    #[inline]
    pub fn permit_threads(&self) -> Result<(), Refusal> {
        self.has_time_for_all(ROOT)
    }

    /// Whether a scheduler has time for threads that its table knows nothing of.
    #[inline]
    fn has_time_for_all(&self, at: u16) -> Result<(), Refusal> {
        let node = &self.nodes[usize::from(at)];
        match node.policy.orders_background() {
            true => Err(Refusal::NotGrantable(node.id(at))),
            false => Ok(()),
        }
    }

    /// Whether `by` may give a thread of its own to its child `to`, or bind it to the slice `to`
    /// that it holds. O(1).
    ///
    /// # Errors
    /// Why not.
    pub fn permit_grant(&self, by: NodeId, thread: ThreadId, to: NodeId) -> Result<(), Refusal> {
        let (by, to_at) = (self.node(by)?, self.node(to)?);
        let node = &self.nodes[usize::from(to_at)];
        let is_its_own = match self.is_slice(to_at) {
            true => node.receiver == by,
            false => node.parent == by,
        };
        if !is_its_own {
            return Err(Refusal::NotItsChild(to));
        }
        if self.care(self.place(thread)?.home) != by {
            return Err(Refusal::NotItsOwn(thread));
        }
        self.has_time_for_all(to_at)?;
        self.has_quota(to_at, by)
    }

    /// Whether `by` may take back a thread that a scheduler below it has, or that is bound to a
    /// slice. O(depth).
    ///
    /// # Errors
    /// Why not.
    pub fn permit_revoke(&self, by: NodeId, thread: ThreadId) -> Result<(), Refusal> {
        let (by, home) = (self.node(by)?, self.place(thread)?.home);
        if home == by || !self.is_below(self.care(home), by) {
            return Err(Refusal::NotItsOwn(thread));
        }
        // A move goes on from here to another supply, so a table takes it in for that long.
        Ok(())
    }

    /// Whether `by` may end the scheduler `node`. O(depth).
    ///
    /// # Errors
    /// Why not.
    pub fn permit_demote(&self, by: NodeId, node: NodeId) -> Result<(), Refusal> {
        let (by, at) = (self.node(by)?, self.node(node)?);
        if at == by || !self.is_below(at, by) {
            return Err(Refusal::NotItsChild(node));
        }
        // Its threads would go there.
        self.has_time_for_all(self.nodes[usize::from(at)].parent)
    }

    /// Whether `by` may have a thread wait: it is in the subtree of `by`. O(depth).
    ///
    /// # Errors
    /// Why not.
    pub fn permit_block(&self, by: NodeId, thread: ThreadId) -> Result<(), Refusal> {
        let (by, home) = (self.node(by)?, self.place(thread)?.home);
        match self.is_below(self.care(home), by) {
            true => Ok(()),
            false => Err(Refusal::NotItsOwn(thread)),
        }
    }

    /// Whether `by` may wake a thread. O(depth).
    ///
    /// # Errors
    /// Why not.
    pub fn permit_wake_by(&self, by: NodeId, thread: ThreadId) -> Result<(), Refusal> {
        self.permit_block(by, thread)?;
        self.may_wake(self.node(by)?, thread)
    }

    /// Whether `by` may have a new child on these terms, or delegate a slice of its supply.
    /// O(nodes).
    ///
    /// # Errors
    /// Why not.
    pub fn permit_promote(&self, by: NodeId, terms: &NodeTerms) -> Result<(), Refusal> {
        let at = self.node(by)?;
        self.permit_delegate(at, terms)?;
        let parent = &self.nodes[usize::from(at)];
        let id = parent.id(at);
        if usize::from(parent.depth) >= MAX_DEPTH {
            return Err(Refusal::TooDeep(id));
        }
        if parent.is_own_time() {
            return Err(Refusal::NotAParent(id));
        }
        let meaningless = match terms.supply {
            Grant::Server(server) => {
                server.budget.is_zero() || server.period < server.budget.as_span()
            }
            Grant::Shared => false,
            Grant::Slots => true,
        };
        if meaningless || parent.policy.orders_background() {
            return Err(Refusal::NotGrantable(id));
        }
        if self
            .kept_for(terms.order)
            .or(self.free.last().copied())
            .is_none()
        {
            return Err(Refusal::NoNodeLeft);
        }
        Ok(())
    }

    /// The place that is kept for the scheduler of this order, if it is not there. O(nodes).
    fn kept_for(&self, order: u32) -> Option<u16> {
        let kept = |node: &Node<P>| node.kept && !node.alive && node.order == order;
        let at = self.nodes.iter().position(kept)?;
        u16::try_from(at).ok()
    }

    /// Whether `by` may give a scheduler below it another server. O(depth).
    ///
    /// # Errors
    /// Not below `by`, no server, terms without a meaning, or something in its subtree is ready or
    /// waits for a budget.
    pub fn permit_supply(&self, by: NodeId, node: NodeId, supply: &Grant) -> Result<(), Refusal> {
        let (by, at) = (self.node(by)?, self.node(node)?);
        if at == by || !self.is_below(at, by) {
            return Err(Refusal::NotItsChild(node));
        }
        let Grant::Server(server) = supply else {
            return Err(Refusal::NotGrantable(node));
        };
        let meaningless = server.budget.is_zero() || server.period < server.budget.as_span();
        let of = &self.nodes[usize::from(at)];
        if meaningless || !matches!(of.supply, Supply::Server(_)) {
            return Err(Refusal::NotGrantable(node));
        }
        if of.ready > 0 || of.parked > 0 || of.queued {
            return Err(Refusal::NotIdle(node));
        }
        self.permit_resupply(at, server)
    }

    /// Gives a scheduler another server, as if that had slept so far, as has been permitted.
    pub fn supply(&mut self, node: NodeId, supply: &Grant) {
        let (Ok(at), Grant::Server(server)) = (self.node(node), supply) else {
            return;
        };
        let of = &mut self.nodes[usize::from(at)];
        of.granted = Some(*server);
        let server = AnyServer::new(server);
        (of.deadline, of.reported) = (server.deadline(), server.budget());
        of.supply = Supply::Server(server);
        (of.awake, of.fell) = (false, None);
        of.book.forgoes(of.borrowed.left);
        of.borrowed = Borrowed::default();
        self.arm(at);
    }

    /// Whether every node from `at` up to (but not) `end` may have one thread more.
    pub(super) fn has_quota(&self, at: u16, end: u16) -> Result<(), Refusal> {
        let mut at = self.care(at);
        while at != end && at != NONE {
            let node = &self.nodes[usize::from(at)];
            if node.threads >= node.quota {
                return Err(Refusal::QuotaExhausted(node.id(at)));
            }
            at = node.parent;
        }
        Ok(())
    }

    /// Whether `by` is at least as trusted as whoever blocked the thread for itself.
    pub(super) fn may_wake(&self, by: u16, thread: ThreadId) -> Result<(), Refusal> {
        let blocker = self.place(thread)?.blocker;
        match blocker == NONE || self.is_below(blocker, by) {
            true => Ok(()),
            false => Err(Refusal::BlockedByTrusted(thread)),
        }
    }

    /// The scheduler that has a thread in its care; `None` for a thread that never was. O(1).
    pub fn home(&self, thread: ThreadId) -> Option<NodeId> {
        let at = self.places.get(thread.index())?.home;
        Some(self.nodes.get(usize::from(at))?.id(at))
    }

    fn place(&self, thread: ThreadId) -> Result<Place, Refusal> {
        let place = self.places.get(thread.index());
        place.ok_or(Refusal::StaleThread(thread))
    }

    /// Whether `at` is `above`, or below it. O(depth).
    pub(super) fn is_below(&self, at: u16, above: u16) -> bool {
        let mut at = at;
        while at != above && at != NONE {
            at = self.nodes[usize::from(at)].parent;
        }
        at == above
    }

    /// The closest scheduler that has both threads in its subtree: the one that decides between
    /// them (Composite §2.2). O(depth).
    pub fn closest_common(&self, a: ThreadId, b: ThreadId) -> NodeId {
        let home = |thread: ThreadId| self.places.get(thread.index()).map_or(ROOT, |p| p.home);
        let (mut a, mut b) = (home(a), home(b));
        while a != b {
            let depth = |at: u16| self.nodes[usize::from(at)].depth;
            let lower = if depth(a) > depth(b) { &mut a } else { &mut b };
            *lower = self.nodes[usize::from(*lower)].parent;
        }
        self.nodes[usize::from(a)].id(a)
    }

    /// A thread that is not ready goes to another home.
    pub(super) fn move_thread(&mut self, thread: ThreadId, to: u16) {
        let waits_for = self.parked_length(thread);
        self.unpark(self.now, thread);
        let home = self.places.home(thread.index());
        self.nodes[usize::from(home)].policy.detach(thread);
        self.follow(home, thread, Change::Detach);
        self.count_threads(home, -1);
        self.count_threads(to, 1);
        self.nodes[usize::from(to)].policy.attach(thread);
        self.follow(to, thread, Change::Attach);
        self.places.set_home(thread.index(), to);
        if let Some(length) = waits_for {
            self.park(self.now, thread, length);
        }
    }

    /// A free place, which is used then. The place of a scheduler of this order that has gone, with
    /// its policy, goes before others. O(nodes).
    fn take_free(&mut self, order: u32) -> Option<u16> {
        let of_order = |at: &u16| self.nodes[usize::from(*at)].order == order;
        match self.free.iter().rposition(of_order) {
            Some(found) => Some(self.free.remove(found)),
            None => self.free.pop(),
        }
    }

    /// A place of the table becomes a scheduler; [`Tree::permit`] has said that one is free.
    pub(super) fn promote_below(&mut self, parent: u16, terms: &NodeTerms) -> Option<NodeId> {
        let index = match self.kept_for(terms.order) {
            Some(index) => index,
            None => self.take_free(terms.order)?,
        };
        let (depth, above) = {
            let parent = &self.nodes[usize::from(parent)];
            (parent.depth + 1, parent.background_at)
        };
        let node = &mut self.nodes[usize::from(index)];
        node.alive = true;
        node.parent = parent;
        node.depth = depth;
        node.trust = terms.trust;
        node.quota = terms.quota.unwrap_or(u32::MAX);
        node.background_at = match terms.supply {
            Grant::Shared => above,
            _ => index,
        };
        node.take_terms(terms);
        let id = node.id(index);
        let entity = self.entity(index);
        self.nodes[usize::from(parent)].policy.attach(entity);
        self.follow(parent, entity, Change::Attach);
        Some(id)
    }

    /// The subtree of `top` has no threads left: its places are free again. O(nodes · depth).
    pub(super) fn remove_subtree(&mut self, now: Instant, top: u16) {
        for depth in (0..=MAX_DEPTH + 1).rev() {
            for index in 1..u16::try_from(self.nodes.len()).unwrap_or(NONE) {
                let node = &self.nodes[usize::from(index)];
                let here = node.alive && usize::from(node.depth) == depth;
                if here && self.is_below(index, top) {
                    self.remove_node(now, index);
                }
            }
        }
    }

    fn remove_node(&mut self, now: Instant, index: u16) {
        let entity = self.entity(index);
        self.end_rest(now, index);
        self.close_book(now, index);
        let node = &mut self.nodes[usize::from(index)];
        let parent = node.parent;
        self.places.change_blocker(index, parent);
        node.alive = false;
        node.generation = node.generation.wrapping_add(1);
        node.supply = Supply::Shared;
        node.trust = Trust::Inline;
        node.held = None;
        node.fell = None;
        node.awake = false;
        node.answer = None;
        node.raised = None;
        node.borrowed = Borrowed::default();
        node.lent_below = Work::ZERO;
        node.receiver = NONE;
        node.granted = None;
        node.ended = Ended::default();
        node.book = Book::default();
        self.timers.remove(u32::from(index));
        self.nodes[usize::from(parent)].policy.detach(entity);
        self.follow(parent, entity, Change::Detach);
        self.forget_replacing(index);
        if !self.nodes[usize::from(index)].kept {
            self.free.push(index);
        }
    }
}

impl<P> Node<P> {
    /// Starts on these terms, with nothing ready.
    pub(super) fn take_terms(&mut self, terms: &NodeTerms) {
        self.priority = terms.priority;
        self.order = terms.order;
        self.supply = match &terms.supply {
            Grant::Shared => Supply::Shared,
            Grant::Server(terms) => Supply::Server(AnyServer::new(terms)),
            Grant::Slots => Supply::Slots,
        };
        self.receiver = receiver_of(terms);
        self.granted = match terms.supply {
            Grant::Server(server) => Some(server),
            Grant::Shared | Grant::Slots => None,
        };
        self.deadline = Instant::MAX;
        self.reported = Work::ZERO;
        (self.told, self.left) = (false, false);
        if let Supply::Server(server) = &self.supply {
            self.deadline = server.deadline();
            self.reported = server.budget();
        }
    }
}

/// The place of the scheduler that holds a slice on these terms.
fn receiver_of(terms: &NodeTerms) -> u16 {
    let receiver = terms.receiver.map(NodeId::index);
    receiver.map_or(NONE, |at| u16::try_from(at).unwrap_or(NONE))
}
