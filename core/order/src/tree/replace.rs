//! A policy takes the place of another while its scheduler goes on.
//!
//! ```text
//!   shelved      the new policy stands beside the node: made by who asks, not on a scheduling path
//!   built        some places per entry: the new one is told what it has to order; the old decides,
//!                and both hear of every change
//!   installed    at one instant the new one decides; the old stands on the shelf, to be taken away
//! ```
//!
//! So exactly one policy decides at each instant, and nobody who is ready waits for the change. The
//! new policy begins as if all had become ready at once, in the order of their places: nobody has
//! begun to execute under it, and nobody has yielded. A policy that is known before a run stands in
//! stock instead of on a shelf, by the order that it keeps, for any scheduler. The same way leads
//! from a scheduler that decides on its own supply back to the policy of its node.

use alloc::vec::Vec;

use punctual_model::{Instant, PolicyKind, Span, ThreadId, Trust};

use super::node::NONE;
use super::{Attributes, Band, NodeId, Policy, Refusal, Tree};

/// The place beside a node for the policy that may replace its own.
#[derive(Debug)]
pub(super) struct Shelf<P> {
    policy: Option<P>,
    /// It has not been asked for yet.
    is_new: bool,
    /// What becomes of a node that decides on its own supply and does not.
    fallback: Option<Fallback>,
}

/// Policies that were made before a run for what will be asked for, by the order that they keep,
/// and room for those whose places they take.
#[derive(Debug)]
pub(super) struct Stock<P> {
    new: Vec<(PolicyKind, P)>,
    old: Vec<P>,
}

impl<P> Default for Stock<P> {
    fn default() -> Self {
        Stock {
            new: Vec::new(),
            old: Vec::new(),
        }
    }
}

impl<P> Stock<P> {
    fn has(&self, policy: PolicyKind) -> bool {
        self.new.iter().any(|(kind, _)| *kind == policy)
    }

    fn take(&mut self, policy: PolicyKind) -> Option<P> {
        let at = self.new.iter().position(|(kind, _)| *kind == policy)?;
        Some(self.new.swap_remove(at).1)
    }
}

/// The policy of a node that decides on its own supply, for when it does not.
#[derive(Clone, Copy, Debug)]
struct Fallback {
    policy: PolicyKind,
    /// How long it may be asked without a lawful answer.
    patience: Span,
    /// Since when it has been.
    asked: Option<Instant>,
}

/// Why a scheduler that decided on its own supply does so no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FallbackCause {
    /// Its code failed, as by a panic.
    Failed,
    /// It let its time to answer pass without a lawful answer.
    Unanswered,
}

/// A node whose order is being built anew.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replacing {
    at: u16,
    /// The order that the new policy keeps.
    policy: PolicyKind,
    /// Entities with an index below this are known to the new policy.
    next: usize,
    /// The new policy is the node's own, which decided on its supply until now: why.
    fallback: Option<FallbackCause>,
    /// That has been reported.
    is_told: bool,
}

/// A thread, for the policy that comes to order it.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Which.
    pub thread: ThreadId,
    /// How urgent it is, and where it stands, if it is ready.
    pub ready: Option<(Attributes, Band)>,
}

/// What a policy hears of an entity of its node.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change<'a> {
    Attach,
    Detach,
    Wake(&'a Attributes, Band),
    Block(Band),
    Update(&'a Attributes, Band),
    Renew(&'a Attributes, Band),
}

impl Change<'_> {
    /// Where the entity stands. Only ready ones stand below all real-time work.
    pub(super) fn band(self) -> Band {
        match self {
            Change::Attach | Change::Detach => Band::RealTime,
            Change::Wake(_, band)
            | Change::Block(band)
            | Change::Update(_, band)
            | Change::Renew(_, band) => band,
        }
    }

    fn tell<P: Policy>(self, policy: &mut P, entity: ThreadId) {
        match self {
            Change::Attach => policy.attach(entity),
            Change::Detach => policy.detach(entity),
            Change::Wake(a, _) => policy.wake(entity, a),
            Change::Block(_) => policy.block(entity),
            Change::Update(a, _) => policy.update(entity, a),
            Change::Renew(a, _) => policy.renew(entity, a),
        }
    }
}

impl<P> Default for Shelf<P> {
    fn default() -> Self {
        Shelf {
            policy: None,
            is_new: false,
            fallback: None,
        }
    }
}

impl<P: Policy> Tree<P> {
    /// Puts a policy, with room for [`crate::Capacity::entities`] and nothing to order, beside a
    /// scheduler. [`Tree::begin_replace`] begins to install it.
    ///
    /// # Errors
    /// The policy, when there is no such scheduler or another policy stands there.
    pub fn shelve(&mut self, node: NodeId, policy: P) -> Result<(), P> {
        match self.node(node).ok().map(|at| self.shelf(at)) {
            Some(shelf) if shelf.policy.is_none() => {
                (shelf.policy, shelf.is_new) = (Some(policy), true);
                Ok(())
            }
            _ => Err(policy),
        }
    }

    /// Puts policies, each with room for [`crate::Capacity::entities`] and nothing to order, in
    /// stock before a run. [`Tree::begin_replace`] takes one of the order that is asked for where
    /// nothing new stands beside the scheduler. They and the ones that they replace stay to the
    /// end.
    pub fn stock(&mut self, policies: impl IntoIterator<Item = (PolicyKind, P)>) {
        self.stock.new.extend(policies);
        self.stock.old.reserve(self.stock.new.len());
    }

    /// Takes away what stands beside a scheduler, unless it is about to decide: a policy that was
    /// not asked for, or the one that was replaced. It knows entities no more that it may name.
    pub fn unshelve(&mut self, node: NodeId) -> Option<P> {
        let at = self.node(node).ok()?;
        match self.is_being_replaced(at) {
            true => None,
            false => self.shelf(at).policy.take(),
        }
    }

    fn shelf(&mut self, at: u16) -> &mut Shelf<P> {
        &mut self.shelves[usize::from(at)]
    }

    fn is_being_replaced(&self, at: u16) -> bool {
        self.replacing.iter().any(|it| it.at == at)
    }

    /// Whether `by` may have the policy of `node` replaced by the one that stands beside it, which
    /// keeps the order of `policy`. The code of a scheduler that decides on its own supply stands
    /// with its platform, which has the new one. O(depth + schedulers + stock).
    ///
    /// # Errors
    /// Why not.
    pub fn permit_replace(
        &self,
        by: NodeId,
        node: NodeId,
        policy: PolicyKind,
    ) -> Result<(), Refusal> {
        let (by, at) = (self.node(by)?, self.node(node)?);
        if !self.is_below(at, by) {
            return Err(Refusal::NotItsChild(node));
        }
        let (old, shelf) = (&self.nodes[usize::from(at)], &self.shelves[usize::from(at)]);
        let divides = matches!(policy, PolicyKind::Tdm { .. }) || old.policy.orders_background();
        if divides {
            return Err(Refusal::NotReplaceable(node));
        }
        if self.is_being_replaced(at) {
            return Err(Refusal::BeingReplaced(node));
        }
        match &shelf.policy {
            _ if old.is_own_time() => Ok(()),
            Some(new) if shelf.is_new && !new.orders_background() => Ok(()),
            _ if !shelf.is_new && self.stock.has(policy) => Ok(()),
            _ => Err(Refusal::NothingShelved(node)),
        }
    }

    /// The policy beside `node`, which keeps the order of `policy`, is told of what there is from
    /// now on, as has been permitted. Whether that is all: a scheduler that decides on its own
    /// supply has its new code from this instant on, and what the old one answered, or is about
    /// to, counts no more.
    pub fn begin_replace(&mut self, node: NodeId, policy: PolicyKind) -> bool {
        let Ok(at) = self.node(node) else {
            return false;
        };
        if self.nodes[usize::from(at)].is_own_time() {
            self.asks_no_more(at);
            self.ready_changed(at);
            self.stir(self.now, at);
            return true;
        }
        if !self.shelf(at).is_new
            && let Some(new) = self.stock.take(policy)
            && let Some(old) = self.shelf(at).policy.replace(new)
        {
            self.stock.old.push(old);
        }
        self.shelf(at).is_new = false;
        self.begin_replacing(at, policy, None);
        false
    }

    fn begin_replacing(&mut self, at: u16, policy: PolicyKind, fallback: Option<FallbackCause>) {
        let has_children = self.nodes.iter().any(|n| n.alive && n.parent == at);
        let has_nobody = !has_children && self.places.iter().all(|place| place.home != at);
        self.replacing.push(Replacing {
            at,
            policy,
            // There is nothing to tell of a scheduler that orders nobody.
            next: if has_nobody {
                self.capacity.entities()
            } else {
                0
            },
            fallback,
            is_told: fallback.is_none(),
        });
        self.is_flat = false;
    }

    /// A scheduler that decides on its own supply, whose policy here is to order its threads when
    /// it has been asked for `patience` and has not answered lawfully, or has failed. Before the
    /// run starts.
    ///
    /// # Errors
    /// No such scheduler, or it does not decide on its own supply.
    pub fn set_fallback(
        &mut self,
        node: NodeId,
        policy: PolicyKind,
        patience: Span,
    ) -> Result<(), Refusal> {
        let at = self.node(node)?;
        if !self.nodes[usize::from(at)].is_own_time() {
            return Err(Refusal::NotDeciding(node));
        }
        self.shelf(at).fallback = Some(Fallback {
            policy,
            patience,
            asked: None,
        });
        Ok(())
    }

    /// The code of a child that was let run has failed; it decides no more.
    ///
    /// # Errors
    /// No such child.
    pub fn child_failed(&mut self, now: Instant, child: NodeId) -> Result<(), Refusal> {
        let at = self.node(child)?;
        if !self.nodes[usize::from(at)].is_own_time() {
            return Err(Refusal::NotDeciding(child));
        }
        if self.shelf(at).fallback.is_some() {
            self.fall_back(now, at, FallbackCause::Failed);
        } else {
            self.give_up(at);
        }
        Ok(())
    }

    /// The child of node `at` is asked to decide.
    pub(super) fn asks(&mut self, now: Instant, at: u16) {
        if let Some(fallback) = &mut self.shelf(at).fallback
            && fallback.asked.is_none()
        {
            fallback.asked = Some(now);
            self.arm(at);
        }
    }

    /// The child of node `at` has answered lawfully, or has nothing to decide on.
    pub(super) fn asks_no_more(&mut self, at: u16) {
        if let Some(fallback) = &mut self.shelf(at).fallback
            && fallback.asked.take().is_some()
        {
            self.arm(at);
        }
    }

    /// When the patience with a child ends.
    pub(super) fn patience_ends(&self, at: u16) -> Option<Instant> {
        let fallback = self.shelves[usize::from(at)].fallback.as_ref()?;
        Some(fallback.asked?.saturating_add(fallback.patience))
    }

    /// The patience with a child has come to its end by `limit`, if it has one.
    pub(super) fn lose_patience(&mut self, now: Instant, at: u16, limit: Instant) {
        if self.patience_ends(at).is_some_and(|end| end <= limit) {
            self.fall_back(now, at, FallbackCause::Unanswered);
        }
    }

    fn fall_back(&mut self, now: Instant, at: u16, cause: FallbackCause) {
        if let Some(fallback) = self.shelf(at).fallback.take() {
            self.begin_replacing(at, fallback.policy, Some(cause));
            // What it answered last stands no more.
            self.ready_changed(at);
            self.stir(now, at);
            self.arm(at);
        }
    }

    /// The next scheduler that falls back, with the reason; each once.
    pub fn next_fallback(&mut self) -> Option<(NodeId, FallbackCause)> {
        let untold = self.replacing.iter_mut().find(|it| !it.is_told)?;
        untold.is_told = true;
        let (at, cause) = (untold.at, untold.fallback?);
        Some((self.nodes[usize::from(at)].id(at), cause))
    }

    /// Whether a policy is being replaced.
    #[inline]
    pub fn is_replacing(&self) -> bool {
        !self.replacing.is_empty()
    }

    /// Whether it has no room for a second node.
    #[inline]
    pub(super) fn has_one_node(&self) -> bool {
        self.capacity.nodes == 0
    }

    /// The first new policy is told of at most `most` more places, less those that it has been told
    /// of: that scheduler, once it has been told of all. O(most · log n).
    pub fn build_some(
        &mut self,
        most: &mut usize,
        member: impl Fn(usize) -> Option<Member>,
    ) -> Option<(NodeId, PolicyKind)> {
        let Replacing {
            at, policy, next, ..
        } = *self.replacing.first()?;
        let end = self.capacity.entities();
        let stop = end.min(next.saturating_add(*most));
        *most -= stop.saturating_sub(next);
        for index in next..stop {
            match member(index) {
                Some(member) => self.introduce(at, &member),
                None => self.introduce_child(at, index),
            }
        }
        if let Some(first) = self.replacing.first_mut() {
            first.next = stop;
        }
        (stop == end).then(|| (self.nodes[usize::from(at)].id(at), policy))
    }

    fn introduce(&mut self, at: u16, member: &Member) {
        let thread = member.thread;
        let home = self.places.get(thread.index()).map_or(NONE, |p| p.home);
        if home == at {
            self.tell(at, thread, Change::Attach);
        }
        if let Some((attributes, band)) = &member.ready
            && self.queue_of(thread, *band) == at
        {
            self.tell(at, thread, Change::Wake(attributes, *band));
        }
    }

    fn introduce_child(&mut self, at: u16, index: usize) {
        let child = index.checked_sub(self.capacity.threads);
        let child = child.and_then(|child| u16::try_from(child).ok());
        let child = child.and_then(|child| Some((child, self.nodes.get(usize::from(child))?)));
        let Some((child, node)) = child.filter(|(_, node)| node.alive && node.parent == at) else {
            return;
        };
        let (queued, attributes) = (node.queued, node.attributes());
        let entity = self.entity(child);
        self.tell(at, entity, Change::Attach);
        if queued {
            self.tell(at, entity, Change::Wake(&attributes, Band::RealTime));
        }
    }

    /// The first node that is being replaced waits for something: the others come before it.
    pub fn put_off(&mut self) {
        if !self.replacing.is_empty() {
            self.replacing.rotate_left(1);
        }
    }

    /// The new policy of the first node that is being replaced decides from now on.
    pub fn install(&mut self, now: Instant) {
        if self.replacing.is_empty() {
            return;
        }
        let Replacing { at, fallback, .. } = self.replacing.remove(0);
        self.is_flat = self.has_one_node() && self.replacing.is_empty();
        let (node, shelf) = (
            &mut self.nodes[usize::from(at)],
            &mut self.shelves[usize::from(at)],
        );
        if fallback.is_some() {
            (node.trust, node.answer) = (Trust::Inline, None);
        } else if let Some(shelved) = &mut shelf.policy {
            core::mem::swap(&mut node.policy, shelved);
        }
        // What the old one rested for is over.
        self.stir(now, at);
    }

    /// A node is no more, nor is the policy that was to order it. That one may be taken away, and
    /// installs itself in no node that comes to the same place.
    pub(super) fn forget_replacing(&mut self, at: u16) {
        self.replacing.retain(|it| it.at != at);
        let shelf = self.shelf(at);
        (shelf.fallback, shelf.is_new) = (None, false);
    }

    /// The policy that comes, if it knows the entity, hears what the one that decides hears.
    #[inline]
    pub(super) fn follow(&mut self, at: u16, entity: ThreadId, change: Change<'_>) {
        if !self.replacing.is_empty() {
            self.follow_apart(at, entity, change);
        }
    }

    #[cold]
    fn follow_apart(&mut self, at: u16, entity: ThreadId, change: Change<'_>) {
        let mut replacing = self.replacing.iter();
        if replacing.any(|it| it.at == at && entity.index() < it.next) {
            self.tell(at, entity, change);
        }
    }

    /// Work without guarantees stays where it is: no policy of a node that can be replaced orders
    /// it. Of a node that decides on its own supply it comes below the policy, which has heard who
    /// is in its care.
    fn tell(&mut self, at: u16, entity: ThreadId, change: Change<'_>) {
        let node = &mut self.nodes[usize::from(at)];
        if node.is_own_time() {
            return match change {
                Change::Attach | Change::Detach => {}
                Change::Wake(a, band) => node.wake(entity, a, band),
                Change::Block(band) => node.block(entity, band),
                Change::Update(a, band) => node.update(entity, a, band),
                Change::Renew(a, band) => node.renew(entity, a, band),
            };
        }
        let shelf = self.shelf(at);
        if let Some(policy) = shelf
            .policy
            .as_mut()
            .filter(|_| change.band() == Band::RealTime)
        {
            change.tell(policy, entity);
        }
    }
}
