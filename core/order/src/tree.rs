//! A tree of schedulers: each node orders its threads and children on the supply its parent grants.
//!
//! ```text
//!   root (the CPU's policy)        pick: from the root down, in each node whom its policy chooses
//!    |-- thread                    charge: from the thread's node up, to every server on the way
//!    |-- node  [server: 2 in 10]   ready: upwards; a node stands in its parent's queue as an
//!    |    |-- thread                      entity of its own while something in it is ready and
//!    |    `-- node                        its supply allows it
//!    `-- node  [slots]
//! ```
//!
//! In parts: `build` (nodes and homes), `places` (where threads are), `flat` (one policy, in one
//! step), `flow` (ready, upwards), `time` (charges and timers), `choose` (downwards), `pass` (both
//! where nothing is due), `own_time` (children that decide themselves), `section` (what locks
//! need), `lend` (budget between siblings), `delegate` (slices of time in other hands), `manage`
//! (operations on the tree), `replace` (one policy after another), `book` and `check` (the
//! invariants). The depth is bounded by [`punctual_model::MAX_DEPTH`], so an entry costs at most
//! that many times what one level costs.
//!
//! Work without guarantees belongs to the nearest node above it whose supply is bounded (a server
//! or slots, else the root), below everything else of that node and charged to its supply: it
//! never delays real-time work of other nodes beyond what their supply allows.
//!
//! Sources: Composite paper §2; Regehr and Stankovic 2001 (hierarchies).

mod book;
mod build;
mod check;
mod choose;
mod delegate;
mod flat;
mod flow;
mod lend;
mod manage;
mod node;
mod own_time;
mod pass;
mod places;
mod replace;
mod section;
mod time;

use alloc::boxed::Box;
use alloc::vec::Vec;

use punctual_model::{Instant, ThreadId, Work};

use crate::capacity::Capacity;
use crate::choice::{Band, Choice};
use crate::heap::IndexedHeap;
use crate::node::NodeId;
use crate::policy::{Attributes, Policy};
use crate::refusal::Refusal;
use node::{NONE, Node};
use places::Places;
use replace::{Change, Replacing, Shelf, Stock};
use section::{Overrun, Parked};

pub use build::{Grant, NodeTerms, SlotTerms};
pub use replace::{FallbackCause, Member};

/// Hears that a server has budget that it did not have, or has used its budget (zero).
pub(crate) type Tell<'a> = &'a mut dyn FnMut(NodeId, Work);

/// A tree of schedulers, each with a policy `P`, some on a server.
///
/// Contract, beyond that of [`Policy`]: of one entry, [`Tree::begin`] comes first, then charges,
/// then changes, [`Tree::serve_timers`] before and after the event, and [`Tree::pick`] last.
///
/// A tree that has no room for a second node keeps no count of what is ready: then an entry costs
/// what the queues of its policy cost, and one branch.
///
/// Invariants, checked in debug builds at every exit of the shard:
/// * T1: a node counts exactly the threads and children that stand in its queues.
/// * T2: a node stands in its parent's queue exactly when it is eligible.
/// * T3: every server conserves its budget ([`crate::Server::check`]).
/// * T4: a thread that keeps its siblings away is ready in that node.
/// * T5: where a section waits for the only budget above it, that budget comes.
/// * INV-TIME: each node above pays for the work on a slice; a loan is used once; no scheduler has
///   delegated more than it has.
#[derive(Debug)]
pub struct Tree<P> {
    nodes: Vec<Node<P>>,
    /// It has no room for a second node, and its policy is not being replaced.
    is_flat: bool,
    /// By place: the policy that may replace that of a node, or that did.
    shelves: Box<[Shelf<P>]>,
    stock: Stock<P>,
    /// The nodes whose order is being built anew (each at most once), the first one first.
    replacing: Vec<Replacing>,
    /// Places of the table that no scheduler has.
    free: Vec<u16>,
    /// By the index of a thread.
    places: Places,
    /// What nodes wait for by themselves: replenishments and the end of a rest.
    timers: IndexedHeap<(Instant, u32)>,
    /// Nodes whose servers have not been told that nothing is ready (at most once each).
    fallen: Vec<u16>,
    /// Nodes whose budget has come and has not been reported (at most once each).
    news: Vec<u16>,
    /// Nodes whose key or budget is other than was reported (at most once each).
    moved: Vec<u16>,
    /// Threads that wait for budgets; threads that go on without.
    parked: Vec<Parked>,
    /// A budget has come since it was last asked which of the parked threads fit; never set where
    /// none is parked.
    has_come: bool,
    overruns: Vec<Overrun>,
    /// How many nodes rest.
    resting: u32,
    capacity: Capacity,
    /// The instant of this entry.
    now: Instant,
}

impl<P: Policy> Tree<P> {
    /// The capacity that it was made for.
    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// How many schedulers it has, the root included.
    pub fn nodes(&self) -> usize {
        self.nodes.iter().filter(|node| node.alive).count()
    }

    /// Whether it is one policy and nothing else: no supply, no timers, no thread parked, and no
    /// policy that is being replaced.
    #[inline]
    pub fn is_flat(&self) -> bool {
        self.is_flat
    }

    /// An entry begins: everything before `now` is over.
    #[inline]
    pub fn begin(&mut self, now: Instant) {
        if self.is_flat {
            return;
        }
        self.now = now;
        if !self.fallen.is_empty() {
            self.tell_idle(now);
        }
    }

    /// A thread leaves permanently; it is not ready.
    pub fn detach(&mut self, thread: ThreadId) {
        self.unpark(self.now, thread);
        self.overrun(self.now, thread, None);
        self.let_go(thread);
    }

    /// A thread becomes ready. It has wanted the processor since `since`, at or before `now`, which
    /// is earlier when a timer was served late.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn wake(&mut self, now: Instant, since: Instant, t: ThreadId, a: &Attributes, band: Band) {
        if self.is_flat {
            return self.nodes[0].wake(t, a, band);
        }
        self.wake_apart((now, since), t, a, band);
    }

    fn wake_apart(
        &mut self,
        (now, since): (Instant, Instant),
        t: ThreadId,
        a: &Attributes,
        band: Band,
    ) {
        let at = self.queue_of(t, band);
        self.follow(at, t, Change::Wake(a, band));
        if self.has_one_node() {
            return self.nodes[0].wake(t, a, band);
        }
        if self.nodes[usize::from(at)].is_own_time() {
            self.ready_changed(at);
        } else {
            self.nodes[usize::from(at)].wake(t, a, band);
        }
        self.places.enter(t.index(), at);
        self.joined(now, since, at);
        if !self.overruns.is_empty() {
            self.offer_path(now, at);
        }
    }

    /// A thread is no longer ready.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn block(&mut self, now: Instant, thread: ThreadId, band: Band) {
        if self.is_flat {
            return self.nodes[0].block(thread, band);
        }
        self.block_apart(now, thread, band);
    }

    fn block_apart(&mut self, now: Instant, thread: ThreadId, band: Band) {
        if self.has_one_node() {
            self.follow(node::ROOT, thread, Change::Block(band));
            return self.nodes[0].block(thread, band);
        }
        let at = self.places.at(thread.index());
        if at == NONE {
            return;
        }
        self.follow(at, thread, Change::Block(band));
        if self.nodes[usize::from(at)].is_own_time() {
            self.ready_changed(at);
        } else {
            self.nodes[usize::from(at)].block(thread, band);
        }
        self.nodes[usize::from(at)].release(thread);
        self.places.leave(thread.index());
        self.left(now, at);
        if !self.overruns.is_empty() {
            self.offer_path(now, at);
        }
    }

    /// A ready thread's attributes have changed.
    pub fn update(&mut self, thread: ThreadId, attributes: &Attributes, band: Band) {
        let change = Change::Update(attributes, band);
        if let Some(node) = self.queue_to_change(thread, change) {
            node.update(thread, attributes, band);
        }
    }

    /// A ready thread goes on with a new budget, whose attributes these are.
    pub fn renew(&mut self, thread: ThreadId, attributes: &Attributes, band: Band) {
        let change = Change::Renew(attributes, band);
        if let Some(node) = self.queue_to_change(thread, change) {
            node.renew(thread, attributes, band);
        }
    }

    /// The node in whose queue a ready thread stands, unless that node decides by itself: it may
    /// want another thread now, also if it wanted none.
    fn queue_to_change(&mut self, thread: ThreadId, change: Change<'_>) -> Option<&mut Node<P>> {
        let at = self.queue_of(thread, change.band());
        self.follow(at, thread, change);
        if self.nodes[usize::from(at)].is_own_time() {
            self.ready_changed(at);
            self.stir(self.now, at);
            return None;
        }
        self.nodes.get_mut(usize::from(at))
    }

    /// The running thread lets others of the same urgency go first.
    #[inline]
    pub fn yield_now(&mut self, thread: ThreadId, band: Band) {
        let at = self.queue_of(thread, band);
        let node = &mut self.nodes[usize::from(at)];
        if node.is_own_time() {
            self.ready_changed(at);
        } else {
            node.yield_now(thread, band);
        }
    }

    /// The running thread has executed for this long, up to `now`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn charge(&mut self, now: Instant, t: ThreadId, band: Band, work: Work, tell: Tell<'_>) {
        if self.is_flat {
            return self.nodes[0].charge(t, band, work);
        }
        self.charge_in(now, t, band, work, tell);
    }

    fn charge_in(&mut self, now: Instant, t: ThreadId, band: Band, work: Work, tell: Tell<'_>) {
        if self.has_one_node() {
            return self.nodes[0].charge(t, band, work);
        }
        let at = self.places.at(t.index());
        if at == NONE {
            return;
        }
        let node = &mut self.nodes[usize::from(at)];
        // What the choice of a child has executed is the child's own business.
        if !node.is_own_time() {
            node.charge(t, band, work);
        }
        self.charge_path(now, (at, Some(t)), work, tell);
    }

    /// The scheduler `child` has spent this long on deciding, up to `now`.
    pub fn charge_child(&mut self, now: Instant, child: NodeId, work: Work, tell: Tell<'_>) {
        if let Ok(at) = self.node(child) {
            self.charge_path(now, (at, None), work, tell);
        }
    }

    /// The running thread has executed inside a non-preemptive section: no sibling of its node is
    /// chosen until `release`, or until it is no longer ready.
    pub fn hold(&mut self, thread: ThreadId, band: Band) {
        let at = self.queue_of(thread, band);
        self.nodes[usize::from(at)].held = Some(thread);
    }

    /// The section of a thread is over, if it had begun.
    pub fn release(&mut self, thread: ThreadId) {
        for band in [Band::RealTime, Band::Background] {
            let at = self.queue_of(thread, band);
            self.nodes[usize::from(at)].release(thread);
        }
    }

    /// Whether a thread keeps its siblings away.
    pub fn holds(&self, thread: ThreadId) -> bool {
        [Band::RealTime, Band::Background]
            .into_iter()
            .any(|band| self.nodes[usize::from(self.queue_of(thread, band))].held == Some(thread))
    }

    /// Serves what is due by itself (supply that comes again) before `now`, or also at it.
    #[inline]
    pub fn serve_timers(&mut self, now: Instant, strictly: bool, tell: Tell<'_>) {
        if self.is_flat {
            return;
        }
        if strictly {
            self.catch_up(now, now);
        } else {
            self.serve(now, now);
        }
        self.report_budgets(tell);
    }

    /// When something is due by itself next.
    #[inline]
    pub fn next_timer(&self) -> Option<Instant> {
        if self.is_flat {
            return None;
        }
        self.timers.first().map(|((at, _), _)| at)
    }

    /// Whether [`Tree::serve_timers`] and [`Tree::take_fitting`] up to `now` would do nothing.
    #[inline]
    pub fn is_quiet(&self, now: Instant) -> bool {
        let is_due = self.next_timer().is_some_and(|at| at <= now);
        !is_due && self.news.is_empty() && self.parked.is_empty() && !self.is_replacing()
    }

    /// Who runs from now on. O(depth · log n).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn pick(&mut self, now: Instant) -> Choice {
        if self.is_flat {
            return Choice::of(self.nodes[0].pick(now));
        }
        let (until, next) = self.choose_apart(now);
        Choice { next, until }
    }

    /// Whether a thread may be woken on behalf of the scheduler that has it.
    ///
    /// # Errors
    /// A more trusted scheduler has blocked it for itself.
    #[inline]
    pub fn permit_wake(&self, thread: ThreadId) -> Result<(), Refusal> {
        if self.is_flat {
            return Ok(());
        }
        let home = self.places.get(thread.index()).map_or(NONE, |p| p.home);
        self.may_wake(self.care(home), thread)
    }

    /// Only `by` and those above it may wake this waiting thread.
    pub fn block_for(&mut self, thread: ThreadId, by: NodeId) {
        // Of one scheduler none is less trusted.
        if let Ok(by) = self.node(by)
            && !self.has_one_node()
        {
            self.places.set_blocker(thread.index(), by);
        }
    }

    /// A thread that is not ready goes into the care of `home`, as has been permitted.
    pub fn rehome(&mut self, thread: ThreadId, home: NodeId) {
        if let Ok(home) = self.node(home) {
            self.move_thread(thread, home);
        }
    }

    /// A new scheduler below `parent`, as has been permitted.
    pub fn promote(&mut self, parent: NodeId, terms: &NodeTerms) -> Option<NodeId> {
        let parent = self.node(parent).ok()?;
        self.promote_below(parent, terms)
    }

    /// A scheduler and those below it, which have no threads any more, end.
    pub fn demote(&mut self, now: Instant, node: NodeId) {
        if let Ok(at) = self.node(node) {
            self.remove_subtree(now, at);
        }
    }

    /// The scheduler above; `None` for the root and for what is none.
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        let parent = self.nodes[usize::from(self.node(node).ok()?)].parent;
        let above = self.nodes.get(usize::from(parent))?;
        Some(above.id(parent))
    }

    /// Whether a policy that gives each its own time (slots) decides when a thread runs. O(depth).
    pub fn has_slots(&self, thread: ThreadId) -> bool {
        let mut at = self
            .places
            .get(thread.index())
            .map_or(node::ROOT, |p| p.home);
        while let Some(node) = self.nodes.get(usize::from(at)) {
            if node.policy.orders_background() {
                return true;
            }
            at = node.parent;
        }
        false
    }

    /// Whether a thread is in the care of `node` or of a scheduler below it.
    pub fn is_in_subtree(&self, thread: ThreadId, node: NodeId) -> bool {
        let home = self.places.get(thread.index()).map(|place| place.home);
        let (Some(home), Ok(at)) = (home, self.node(node)) else {
            return false;
        };
        self.is_below(home, at)
    }
}
