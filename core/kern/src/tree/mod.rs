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
//! In parts: `build` (nodes and homes), `flow` (ready, upwards), `time` (charges and timers),
//! `choose` (downwards), `own_time` (children that decide themselves), `section`
//! (what locks need), `lend` (budget between siblings), `manage` (operations on the
//! tree), `check` (the invariants). The depth is bounded by
//! [`punctual_model::MAX_DEPTH`], so an entry costs at most that many times what one level costs.
//!
//! Work without guarantees belongs to the nearest node above it whose supply is bounded (a server
//! or slots, else the root), below everything else of that node and charged to its supply: it
//! never delays real-time work of other nodes beyond what their supply allows.
//!
//! Sources: Composite paper §2; Regehr and Stankovic 2001 (hierarchies).

mod build;
mod check;
mod choose;
mod flow;
mod lend;
mod manage;
mod node;
mod own_time;
mod section;
mod time;

use alloc::boxed::Box;
use alloc::vec::Vec;

use punctual_model::{Instant, Priority, ThreadId, Work};

use crate::event::Refusal;
use crate::heap::IndexedHeap;
use crate::hierarchy::{Band, Choice, Hierarchy};
use crate::manage::{ChildPick, Request};
use crate::node::NodeId;
use crate::policy::{Attributes, Policy};
use crate::server::Server;
use crate::shard::Capacity;
use crate::trace::{Sink, TraceEvent};
use node::{NONE, Node};
use section::{Overrun, Parked};

pub use build::{Grant, NodeTerms};

/// A hierarchy of schedulers, each with a policy `P`, some on a server `V`.
///
/// Invariants, checked in debug builds at every exit of the shard:
/// * T1: a node counts exactly the threads and children that stand in its queues.
/// * T2: a node stands in its parent's queue exactly when it is eligible.
/// * T3: every server conserves its budget ([`Server::check`]).
/// * T4: whoever keeps its siblings away is ready in that node.
#[derive(Debug)]
pub struct Tree<P, V> {
    nodes: Vec<Node<P, V>>,
    /// Places of the table that no scheduler has.
    free: Vec<u16>,
    /// By the index of a thread.
    places: Box<[Place]>,
    /// What nodes wait for by themselves: replenishments and the end of a rest.
    timers: IndexedHeap<(Instant, u32)>,
    /// Nodes whose servers have not been told that nothing is ready (at most once each).
    fallen: Vec<u16>,
    /// Nodes whose budget has come and has not been reported (at most once each).
    news: Vec<u16>,
    /// Threads that wait for budgets; threads that go on without.
    parked: Vec<Parked>,
    overruns: Vec<Overrun>,
    /// How many nodes rest.
    resting: u32,
    capacity: Capacity,
    /// The instant of this entry.
    now: Instant,
}

/// Where a thread belongs, and in whose queue it stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    home: u16,
    /// [`NONE`] while it is not ready.
    at: u16,
    /// Who blocked it for itself, if anybody.
    blocker: u16,
}

impl<P: Policy, V: Server> Hierarchy for Tree<P, V> {
    fn nodes(&self) -> usize {
        self.nodes.iter().filter(|node| node.alive).count()
    }

    fn begin(&mut self, now: Instant) {
        self.now = now;
        self.tell_idle(now);
    }

    fn attach(&mut self, thread: ThreadId, home: NodeId) -> Result<(), Refusal> {
        self.take_in(thread, home)
    }

    fn detach(&mut self, thread: ThreadId) {
        self.take_back(self.now, thread);
        self.set_overrun(self.now, thread, None);
        self.let_go(thread);
    }

    fn wake(&mut self, now: Instant, since: Instant, t: ThreadId, a: &Attributes, band: Band) {
        let at = self.queue_of(t, band);
        let node = &mut self.nodes[usize::from(at)];
        if node.is_own_time() {
            self.ready_changed(at);
        } else if band == Band::RealTime || node.policy.orders_background() {
            node.policy.wake(t, a);
        } else {
            node.background.wake(t, a.priority);
        }
        let place = &mut self.places[t.index()];
        place.at = at;
        place.blocker = NONE;
        self.joined(now, since, at);
        if !self.overruns.is_empty() {
            self.offer_path(now, at);
        }
    }

    fn block(&mut self, now: Instant, thread: ThreadId, band: Band) {
        let at = self.places[thread.index()].at;
        if at == NONE {
            return;
        }
        let node = &mut self.nodes[usize::from(at)];
        if node.is_own_time() {
            self.ready_changed(at);
        } else if band == Band::RealTime || node.policy.orders_background() {
            node.policy.block(thread);
        } else {
            node.background.block(thread);
        }
        let node = &mut self.nodes[usize::from(at)];
        if node.held == Some(thread) {
            node.held = None;
        }
        self.places[thread.index()].at = NONE;
        self.left(now, at);
        if !self.overruns.is_empty() {
            self.offer_path(now, at);
        }
    }

    fn update(&mut self, thread: ThreadId, attributes: &Attributes, band: Band) {
        let at = self.queue_of(thread, band);
        let node = &mut self.nodes[usize::from(at)];
        if node.is_own_time() {
            // It may want another now, also if it wanted nobody.
            self.ready_changed(at);
            self.stir(self.now, at);
        } else if band == Band::RealTime || node.policy.orders_background() {
            node.policy.update(thread, attributes);
        } else {
            node.background.update(thread, attributes.priority);
        }
    }

    fn renew(&mut self, thread: ThreadId, attributes: &Attributes, band: Band) {
        let at = self.queue_of(thread, band);
        let node = &mut self.nodes[usize::from(at)];
        if node.is_own_time() {
            // It may want another now, also if it wanted nobody.
            self.ready_changed(at);
            self.stir(self.now, at);
        } else if band == Band::RealTime || node.policy.orders_background() {
            node.policy.renew(thread, attributes);
        } else {
            node.background.update(thread, attributes.priority);
        }
    }

    fn yield_now(&mut self, thread: ThreadId, band: Band) {
        let at = self.queue_of(thread, band);
        let node = &mut self.nodes[usize::from(at)];
        if node.is_own_time() {
            self.ready_changed(at);
        } else if band == Band::RealTime || node.policy.orders_background() {
            node.policy.yield_now(thread);
        } else {
            node.background.rotate(thread);
        }
    }

    fn charge<S: Sink>(&mut self, now: Instant, t: ThreadId, band: Band, work: Work, s: &mut S) {
        let at = self.places[t.index()].at;
        if at == NONE {
            return;
        }
        let node = &mut self.nodes[usize::from(at)];
        if node.is_own_time() {
            // What its choice has executed is its own business.
        } else if band == Band::RealTime || node.policy.orders_background() {
            node.policy.charge(t, work);
        } else {
            node.background.charge(t, work);
        }
        self.charge_path(now, (at, Some(t)), work, s);
    }

    fn charge_child<S: Sink>(&mut self, now: Instant, child: NodeId, work: Work, sink: &mut S) {
        if let Ok(at) = self.node(child) {
            sink.trace(now, TraceEvent::ChildCharged { node: child, work });
            self.charge_path(now, (at, None), work, sink);
        }
    }

    fn hold(&mut self, thread: ThreadId, band: Band) {
        let at = self.queue_of(thread, band);
        self.nodes[usize::from(at)].held = Some(thread);
    }

    fn release(&mut self, thread: ThreadId) {
        for band in [Band::RealTime, Band::Background] {
            let at = self.queue_of(thread, band);
            let node = &mut self.nodes[usize::from(at)];
            if node.held == Some(thread) {
                node.held = None;
            }
        }
    }

    fn holds(&self, thread: ThreadId) -> bool {
        [Band::RealTime, Band::Background]
            .into_iter()
            .any(|band| self.nodes[usize::from(self.queue_of(thread, band))].held == Some(thread))
    }

    fn catch_up(&mut self, now: Instant, before: Instant) {
        self.serve_before(now, before);
    }

    fn serve_timers<S: Sink>(&mut self, now: Instant, strictly: bool, sink: &mut S) {
        if strictly {
            self.serve_before(now, now);
        } else {
            self.serve(now, now);
            self.report(now, sink);
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        self.timers.first().map(|((at, _), _)| at)
    }

    /// Inlined but for the choice itself: a hierarchy that may be one level keeps its answer in
    /// registers.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pick(&mut self, now: Instant) -> Choice {
        let (until, next) = self.choose_apart(now);
        Choice { next, until }
    }

    fn permit(&self, by: NodeId, request: &Request) -> Result<(), Refusal> {
        Tree::permit(self, by, request)
    }

    fn permit_wake(&self, thread: ThreadId) -> Result<(), Refusal> {
        let home = self.places.get(thread.index()).map_or(NONE, |p| p.home);
        Tree::permit_wake(self, home, thread)
    }

    fn block_for(&mut self, thread: ThreadId, by: NodeId) {
        if let Ok(by) = self.node(by) {
            self.places[thread.index()].blocker = by;
        }
    }

    fn lend(&mut self, now: Instant, by: NodeId, to: NodeId, work: Work) -> Result<(), Refusal> {
        self.lend_to(now, (by, to), work)
    }

    fn rehome(&mut self, thread: ThreadId, home: NodeId) {
        if let Ok(home) = self.node(home) {
            self.move_thread(thread, home);
        }
    }

    fn promote(&mut self, parent: NodeId, terms: &NodeTerms) -> Option<NodeId> {
        let parent = self.node(parent).ok()?;
        self.promote_below(parent, terms)
    }

    fn demote(&mut self, now: Instant, node: NodeId) {
        if let Ok(at) = self.node(node) {
            self.remove_subtree(now, at);
        }
    }

    fn parent(&self, node: NodeId) -> Option<NodeId> {
        let parent = self.nodes[usize::from(self.node(node).ok()?)].parent;
        let above = self.nodes.get(usize::from(parent))?;
        Some(above.id(parent))
    }

    fn is_in_subtree(&self, thread: ThreadId, node: NodeId) -> bool {
        let home = self.places.get(thread.index()).map(|place| place.home);
        let (Some(home), Ok(at)) = (home, self.node(node)) else {
            return false;
        };
        self.is_below(home, at)
    }

    fn fits(&self, thread: ThreadId, length: Work) -> bool {
        self.has_room_for(thread, length)
    }

    fn park(&mut self, now: Instant, thread: ThreadId, length: Work) {
        self.put_aside(now, thread, length);
    }

    fn unpark(&mut self, now: Instant, thread: ThreadId) {
        self.take_back(now, thread);
    }

    fn take_fitting(&mut self, now: Instant) -> Option<ThreadId> {
        self.next_fitting(now)
    }

    fn overrun(&mut self, now: Instant, thread: ThreadId, most: Option<Work>) {
        self.set_overrun(now, thread, most);
    }

    fn child_towards(&self, common: NodeId, thread: ThreadId) -> Option<NodeId> {
        self.child_of(common, thread)
    }

    fn raise(&mut self, child: NodeId, priority: Option<Priority>) {
        self.set_raised(child, priority);
    }

    fn closest_common(&self, a: ThreadId, b: ThreadId) -> NodeId {
        self.common(a, b)
    }

    fn child_picked(&mut self, now: Instant, pick: &ChildPick) -> Result<(), Refusal> {
        self.take_pick(now, pick)
    }

    fn epoch(&self, child: NodeId) -> Option<u32> {
        Tree::epoch(self, child)
    }

    fn is_ready_in(&self, thread: ThreadId, child: NodeId) -> bool {
        Tree::is_ready_in(self, thread, child)
    }

    fn check(&self) -> Result<(), &'static str> {
        self.check_invariants()
    }
}
