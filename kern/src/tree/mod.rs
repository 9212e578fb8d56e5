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
//! `choose` (downwards), `check` (the invariants). The depth is bounded by
//! [`punctual_model::MAX_DEPTH`], so an entry costs at most that many times what one level costs.
//!
//! Work without guarantees belongs to the nearest node above it whose supply is bounded (a server or
//! slots, else the root), below everything else of that node and charged to its supply: it never
//! delays real-time work of other nodes beyond what their supply allows.
//!
//! Sources: Composite (Parmer and West 2011) §2; Regehr and Stankovic 2001 (hierarchies).

mod build;
mod check;
mod choose;
mod flow;
mod node;
mod time;

use alloc::boxed::Box;
use alloc::vec::Vec;

use punctual_model::{Instant, ThreadId, Work};

use crate::event::Refusal;
use crate::heap::IndexedHeap;
use crate::hierarchy::{Band, Choice, Hierarchy};
use crate::node::NodeId;
use crate::policy::{Attributes, Policy};
use crate::server::Server;
use crate::shard::Capacity;
use crate::trace::Sink;
use node::{NONE, Node};

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
    /// By the index of a thread.
    places: Box<[Place]>,
    /// What nodes wait for by themselves: replenishments and the end of a rest.
    timers: IndexedHeap<(Instant, u32)>,
    /// Nodes whose servers have not been told that nothing is ready (at most once each).
    fallen: Vec<u16>,
    /// Nodes whose budget has come and has not been reported (at most once each).
    news: Vec<u16>,
    /// How many nodes rest.
    resting: u32,
    capacity: Capacity,
}

/// Where a thread belongs, and in whose queue it stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    home: u16,
    /// [`NONE`] while it is not ready.
    at: u16,
}

impl<P: Policy, V: Server> Hierarchy for Tree<P, V> {
    fn nodes(&self) -> usize {
        self.nodes.iter().filter(|node| node.alive).count()
    }

    fn begin(&mut self, now: Instant) {
        self.tell_idle(now);
    }

    fn attach(&mut self, thread: ThreadId, home: NodeId) -> Result<(), Refusal> {
        self.take_in(thread, home)
    }

    fn detach(&mut self, thread: ThreadId) {
        self.let_go(thread);
    }

    fn wake(&mut self, now: Instant, since: Instant, t: ThreadId, a: &Attributes, band: Band) {
        let at = self.queue_of(t, band);
        let node = &mut self.nodes[usize::from(at)];
        if node.is_own_time() {
            // It keeps its own order; the set of ready threads is all that is kept here.
        } else if band == Band::RealTime || node.policy.orders_background() {
            node.policy.wake(t, a);
        } else {
            node.background.wake(t, a.priority);
        }
        self.places[t.index()].at = at;
        self.joined(now, since, at);
    }

    fn block(&mut self, now: Instant, thread: ThreadId, band: Band) {
        let at = self.places[thread.index()].at;
        if at == NONE {
            return;
        }
        let node = &mut self.nodes[usize::from(at)];
        if node.is_own_time() {
            // As above.
        } else if band == Band::RealTime || node.policy.orders_background() {
            node.policy.block(thread);
        } else {
            node.background.block(thread);
        }
        if node.held == Some(thread) {
            node.held = None;
        }
        self.places[thread.index()].at = NONE;
        self.left(now, at);
    }

    fn update(&mut self, thread: ThreadId, attributes: &Attributes, band: Band) {
        let at = self.queue_of(thread, band);
        let node = &mut self.nodes[usize::from(at)];
        if node.is_own_time() {
            // As above.
        } else if band == Band::RealTime || node.policy.orders_background() {
            node.policy.update(thread, attributes);
        } else {
            node.background.update(thread, attributes.priority);
        }
    }

    fn yield_now(&mut self, thread: ThreadId, band: Band) {
        let at = self.queue_of(thread, band);
        let node = &mut self.nodes[usize::from(at)];
        if node.is_own_time() {
            // As above.
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
            // As above.
        } else if band == Band::RealTime || node.policy.orders_background() {
            node.policy.charge(t, work);
        } else {
            node.background.charge(t, work);
        }
        self.charge_path(now, at, work, s);
    }

    fn charge_child<S: Sink>(&mut self, now: Instant, child: NodeId, work: Work, sink: &mut S) {
        if let Ok(at) = self.node(child) {
            self.charge_path(now, at, work, sink);
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

    fn serve_timers<S: Sink>(&mut self, now: Instant, strictly: bool, sink: &mut S) {
        self.serve(now, strictly);
        if !strictly {
            self.report(now, sink);
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        self.timers.first().map(|((at, _), _)| at)
    }

    fn pick(&mut self, now: Instant) -> Choice {
        self.choose(now)
    }

    fn check(&self) -> Result<(), &'static str> {
        self.check_invariants()
    }
}
