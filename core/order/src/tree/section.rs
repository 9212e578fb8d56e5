//! What locks need of a tree: budgets overrun or waited for, and schedulers raised.
//!
//! A holder whose server runs out may *overrun*: it alone goes on, for at most what its section may
//! still take, and the server pays back from its next budget (Davis and Burns 2006). Or the section
//! is not begun: its thread is *parked* until every server above it has enough (SIRAP, Behnam et
//! al. 2007). A resource between schedulers *raises* the holder's at the closest common one.

use punctual_model::{Instant, Priority, ThreadId, Work};

use super::Tree;
use super::node::{NONE, ROOT, Supply};
use super::replace::Change;
use crate::choice::Band;
use crate::node::NodeId;
use crate::policy::Policy;
use crate::server::Server;

/// A thread that goes on when the budgets above it are used up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overrun {
    thread: ThreadId,
    left: Work,
}

/// A thread that waits until the servers above it have this much.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parked {
    pub(super) thread: ThreadId,
    pub(super) length: Work,
}

impl<P: Policy> Tree<P> {
    /// Whether each server above a thread has `length` left, or as much as it ever has. O(depth).
    pub fn fits(&self, thread: ThreadId, length: Work) -> bool {
        self.path(self.home_of(thread))
            .all(|at| match &self.nodes[usize::from(at)].supply {
                Supply::Server(server) => server.budget() >= length.min(server.capacity()),
                Supply::Shared | Supply::Slots => true,
            })
    }

    /// A thread that is not ready (any more) waits until it [`Tree::fits`]. The servers above it
    /// know that something is pending.
    pub fn park(&mut self, now: Instant, thread: ThreadId, length: Work) {
        self.parked.push(Parked { thread, length });
        let mut at = self.home_of(thread);
        while at != ROOT {
            let node = &mut self.nodes[usize::from(at)];
            node.parked += 1;
            if let Supply::Server(server) = &mut node.supply {
                node.fell = None;
                if !node.awake {
                    node.awake = true;
                    server.wake(now, now);
                }
                if server.budget() < length.min(server.capacity()) {
                    server.give_up();
                }
                self.supply_changed(at);
                self.offer(now, now, at);
            }
            at = self.nodes[usize::from(at)].parent;
        }
    }

    /// What a parked thread waits for.
    pub(super) fn parked_length(&self, thread: ThreadId) -> Option<Work> {
        let mut parked = self.parked.iter();
        let found = parked.find(|parked| parked.thread == thread);
        found.map(|parked| parked.length)
    }

    /// The next parked thread whose servers have enough by now; it is parked no more, and is to be
    /// woken. To be asked after [`Tree::serve_timers`], until there is none: O(parked · depth) for
    /// each, and O(parked · depth · log nodes) once where rests are given up.
    #[inline]
    pub fn take_fitting(&mut self, now: Instant) -> Option<ThreadId> {
        if self.parked.is_empty() {
            return None;
        }
        self.take_first_fitting(now)
    }

    fn take_first_fitting(&mut self, now: Instant) -> Option<ThreadId> {
        let fits = |parked: &Parked| self.fits(parked.thread, parked.length);
        let Some(found) = self.parked.iter().find(|parked| fits(parked)) else {
            if core::mem::take(&mut self.has_come) {
                self.give_up_rests(now);
            }
            return None;
        };
        let thread = found.thread;
        self.unpark(now, thread);
        Some(thread)
    }

    /// What has come of a budget may be too little for a section that waits: it has paid back, or
    /// others have used a part while another server had too little. A server whose budget comes
    /// only when the last is used up waits for the next as well.
    fn give_up_rests(&mut self, now: Instant) {
        for index in 0..self.parked.len() {
            let Parked { thread, length } = self.parked[index];
            let mut at = self.home_of(thread);
            while at != ROOT {
                let node = &mut self.nodes[usize::from(at)];
                let parent = node.parent;
                if let Supply::Server(server) = &mut node.supply {
                    let left = server.budget();
                    if left < length.min(server.capacity()) {
                        server.give_up();
                    }
                    if server.budget() < left {
                        self.supply_changed(at);
                        self.offer(now, now, at);
                    }
                }
                at = parent;
            }
        }
    }

    /// A thread is parked no more, if it was: it has ended, or its time is over. Comes before it
    /// changes its home.
    pub fn unpark(&mut self, now: Instant, thread: ThreadId) {
        let Some(index) = self.parked.iter().position(|p| p.thread == thread) else {
            return;
        };
        let _ = self.parked.remove(index);
        self.has_come &= !self.parked.is_empty();
        let mut at = self.home_of(thread);
        while at != ROOT {
            let node = &mut self.nodes[usize::from(at)];
            node.parked = node.parked.saturating_sub(1);
            if node.ready == 0 {
                self.fall(now, at);
            }
            at = self.nodes[usize::from(at)].parent;
        }
    }

    /// A thread in a section may execute this much beyond the budgets above it, which pay from
    /// their next; `None`: no more. (At least 1 as long as the section lasts.)
    pub fn overrun(&mut self, now: Instant, thread: ThreadId, most: Option<Work>) {
        self.overruns.retain(|overrun| overrun.thread != thread);
        if let Some(left) = most {
            self.overruns.push(Overrun { thread, left });
        }
        self.offer_path(now, self.home_of(thread));
    }

    /// Who goes on below a node whose budget is used up, and for how long: of those in a section
    /// the one that began last, since sections of one CPU nest. O(overruns · depth).
    pub(super) fn overdrawer(&self, at: u16) -> Option<(ThreadId, Work)> {
        let may = |overrun: &&Overrun| {
            let stands_at = self.places.at(overrun.thread.index());
            !overrun.left.is_zero() && stands_at != NONE && self.is_below(stands_at, at)
        };
        let found = self.overruns.iter().rev().find(may)?;
        Some((found.thread, found.left))
    }

    /// A thread has executed this much beyond a budget above it.
    pub(super) fn overdraw(&mut self, thread: ThreadId, beyond: Work) {
        let of = |overrun: &&mut Overrun| overrun.thread == thread;
        if let Some(overrun) = self.overruns.iter_mut().find(of) {
            overrun.left = overrun.left.saturating_sub(beyond);
        }
    }

    /// Brings the queues above in line, when somebody with an overrun becomes ready or is not.
    pub(super) fn offer_path(&mut self, now: Instant, at: u16) {
        let mut at = at;
        while at != ROOT && at != NONE {
            self.offer(now, now, at);
            at = self.nodes[usize::from(at)].parent;
        }
    }

    /// The child of `common` in whose subtree a thread is; `None`: the thread is `common`'s own, or
    /// not below it. O(depth).
    pub fn child_towards(&self, common: NodeId, thread: ThreadId) -> Option<NodeId> {
        let above = self.node(common).ok()?;
        let mut at = self.home_of(thread);
        while at != NONE {
            let node = &self.nodes[usize::from(at)];
            if node.parent == above {
                return Some(node.id(at));
            }
            at = node.parent;
        }
        None
    }

    /// A scheduler is at least this urgent among its siblings, and goes before its equals; `None`:
    /// as urgent as on its own.
    pub fn raise(&mut self, child: NodeId, priority: Option<Priority>) {
        let Ok(at) = self.node(child) else { return };
        let node = &mut self.nodes[usize::from(at)];
        node.raised = priority;
        if node.queued {
            let (parent, attributes) = (node.parent, node.attributes());
            let entity = self.entity(at);
            self.moves(at);
            let policy = &mut self.nodes[usize::from(parent)].policy;
            policy.update(entity, &attributes);
            self.follow(parent, entity, Change::Update(&attributes, Band::RealTime));
        }
    }

    pub(super) fn home_of(&self, thread: ThreadId) -> u16 {
        self.places.get(thread.index()).map_or(ROOT, |p| p.home)
    }

    pub(super) fn path(&self, from: u16) -> impl Iterator<Item = u16> + '_ {
        let up = |at: &u16| Some(self.nodes[usize::from(*at)].parent).filter(|up| *up != NONE);
        core::iter::successors(Some(from), up)
    }
}
