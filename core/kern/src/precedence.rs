//! Precedence: a job starts when the jobs that it depends on are done.
//!
//! Jobs of a thread are numbered in the order of their release and done in that order, so "every
//! job released at or before r is done" is a comparison of two numbers: how many had arrived at r
//! (*needed*), and the index of the oldest job that is not done (the *frontier*). Delays, backlogs
//! and preemption cannot change either, so the order holds under any of them.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{CpuId, Instant, Span, ThreadId};

use crate::event::Message;
use crate::thread::count_arrivals;

/// One precedence of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// Whose jobs must be done.
    pub from: Source,
    /// Only jobs released strictly before (`follows`), or also those at the same instant (`after`).
    pub strict: bool,
}

/// A predecessor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// A thread of this shard.
    Local(ThreadId),
    /// A thread of another CPU that arrives by the clock; its shard sends [`Message`]s for `slot`.
    Remote {
        /// Number of the remote predecessor on this shard, as returned by
        /// [`crate::Shard::add_remote`].
        slot: u32,
    },
}

#[derive(Debug)]
struct EdgeState {
    edge: Edge,
    successor: u32,
    waiting: bool,
    needed: u64,
    /// The next older edge of the successor, and of the predecessor.
    next_incoming: u32,
    next_outgoing: u32,
}

/// A predecessor on another CPU, mirrored here.
#[derive(Debug)]
struct Remote {
    first_arrival: Instant,
    period: Option<Span>,
    frontier: u64,
    outgoing: u32,
}

/// News of a thread that another shard waits for.
#[derive(Debug)]
struct Notification {
    thread: u32,
    to: CpuId,
    slot: u32,
    dirty: bool,
    /// The next older one of the thread.
    next: u32,
}

/// The end of a list. Edges and notifications are counted from 1 in all lists.
const END: u32 = 0;

/// The newest of the edges of a thread, as a successor and as a predecessor, and of its
/// notifications. Each leads to the next older one. All of them are zero, and thus not in memory,
/// where no thread near it has any; the record of the thread says that
/// ([`crate::traits::Traits`]).
type Ends = [u32; 3];

const INCOMING: usize = 0;
const OUTGOING: usize = 1;
const NOTIFICATIONS: usize = 2;

/// The place in its table of the one that a list names; beyond all tables at the end of the list.
#[inline]
fn place(number: u32) -> usize {
    number.wrapping_sub(1) as usize
}

/// All edges of one shard. Nothing allocates after setup.
#[derive(Debug)]
pub(crate) struct Precedences {
    edges: Vec<EdgeState>,
    remotes: Vec<Remote>,
    notifications: Vec<Notification>,
    threads: Box<[Ends]>,
    outbox: Vec<u32>,
}

fn small(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

impl Precedences {
    pub(crate) fn new(threads: usize) -> Self {
        Precedences {
            edges: Vec::new(),
            remotes: Vec::new(),
            notifications: Vec::new(),
            threads: vec![[END; 3]; threads].into_boxed_slice(),
            outbox: Vec::new(),
        }
    }

    pub(crate) fn add_remote(&mut self, first_arrival: Instant, period: Option<Span>) -> u32 {
        self.remotes.push(Remote {
            first_arrival,
            period,
            frontier: 0,
            outgoing: END,
        });
        small(self.remotes.len() - 1)
    }

    /// Adds an edge to a thread from a thread or a remote predecessor; `false`: there is no such
    /// remote one.
    pub(crate) fn add_edge(&mut self, successor: usize, edge: Edge) -> bool {
        let id = small(self.edges.len() + 1);
        let outgoing = match edge.from {
            Source::Local(thread) => &mut self.threads[thread.index()][OUTGOING],
            Source::Remote { slot } => match self.remotes.get_mut(slot as usize) {
                Some(remote) => &mut remote.outgoing,
                None => return false,
            },
        };
        let next_outgoing = core::mem::replace(outgoing, id);
        let incoming = &mut self.threads[successor][INCOMING];
        let next_incoming = core::mem::replace(incoming, id);
        self.edges.push(EdgeState {
            edge,
            successor: small(successor),
            waiting: false,
            needed: 0,
            next_incoming,
            next_outgoing,
        });
        true
    }

    pub(crate) fn add_notification(&mut self, thread: usize, to: CpuId, slot: u32) {
        let id = small(self.notifications.len() + 1);
        let newest = &mut self.threads[thread][NOTIFICATIONS];
        let next = core::mem::replace(newest, id);
        self.notifications.push(Notification {
            thread: small(thread),
            to,
            slot,
            dirty: false,
            next,
        });
        self.outbox.reserve(self.notifications.len());
    }

    /// Whether a thread has predecessors, as its record says too.
    pub(crate) fn has_predecessors(&self, successor: usize) -> bool {
        self.threads[successor][INCOMING] != END
    }

    /// Marks what the job of `successor` that arrived at `arrival` still needs; returns how many
    /// predecessors that are. `local` answers (needed, frontier) for a thread of this shard.
    /// O(predecessors).
    pub(crate) fn begin(
        &mut self,
        successor: usize,
        arrival: Instant,
        local: impl Fn(ThreadId, bool) -> (u64, u64),
    ) -> u32 {
        let mut unsatisfied = 0;
        let mut at = self.threads[successor][INCOMING];
        while let Some(state) = self.edges.get_mut(place(at)) {
            at = state.next_incoming;
            let strict = state.edge.strict;
            let (needed, frontier) = match state.edge.from {
                Source::Local(thread) => local(thread, strict),
                Source::Remote { slot } => {
                    let r = &self.remotes[slot as usize];
                    let needed = count_arrivals(r.first_arrival, r.period, arrival, strict);
                    (needed, r.frontier)
                }
            };
            state.needed = needed;
            state.waiting = frontier < needed;
            unsatisfied += u32::from(state.waiting);
        }
        unsatisfied
    }

    /// Forgets what `successor` waits for and waited for: it has ended, and the next thread of its
    /// place has precedences of its own.
    pub(crate) fn forget(&mut self, successor: usize) {
        let mut at = core::mem::replace(&mut self.threads[successor][INCOMING], END);
        while let Some(state) = self.edges.get_mut(place(at)) {
            state.waiting = false;
            at = state.next_incoming;
        }
    }

    /// The newest of the edges that leave a predecessor.
    pub(crate) fn first_edge_from(&self, source: Source) -> Option<u32> {
        let edge = match source {
            Source::Local(thread) => self.threads[thread.index()][OUTGOING],
            Source::Remote { slot } => self.remotes[slot as usize].outgoing,
        };
        (edge != END).then_some(edge)
    }

    /// The next older edge of the same predecessor.
    pub(crate) fn edge_after(&self, edge: u32) -> Option<u32> {
        let next = self.edges[place(edge)].next_outgoing;
        (next != END).then_some(next)
    }

    /// The predecessor of an edge is so far: the successor, if this edge just came free.
    pub(crate) fn advance(&mut self, edge: u32, frontier: u64) -> Option<usize> {
        let state = &mut self.edges[place(edge)];
        let freed = state.waiting && frontier >= state.needed;
        state.waiting &= !freed;
        freed.then_some(state.successor as usize)
    }

    /// Takes in news of a remote predecessor; `false` when there is none of this number.
    pub(crate) fn remote(&mut self, slot: u32, frontier: u64) -> bool {
        let remote = self.remotes.get_mut(slot as usize);
        remote
            .map(|remote| remote.frontier = remote.frontier.max(frontier))
            .is_some()
    }

    /// Whether anything, here or on another CPU, waits for jobs of a thread; its record says so,
    /// too.
    pub(crate) fn is_followed(&self, thread: usize) -> bool {
        let ends = &self.threads[thread];
        ends[NOTIFICATIONS] != END || ends[OUTGOING] != END
    }

    /// How far a remote predecessor is; `None` when there is none of this number.
    pub(crate) fn frontier(&self, slot: u32) -> Option<u64> {
        self.remotes
            .get(slot as usize)
            .map(|remote| remote.frontier)
    }

    pub(crate) fn notify(&mut self, thread: usize) {
        let mut at = self.threads[thread][NOTIFICATIONS];
        while let Some(notification) = self.notifications.get_mut(place(at)) {
            if !notification.dirty {
                notification.dirty = true;
                self.outbox.push(at);
            }
            at = notification.next;
        }
    }

    #[inline]
    pub(crate) fn has_message(&self) -> bool {
        !self.outbox.is_empty()
    }

    pub(crate) fn take_message(&mut self, frontier: impl Fn(usize) -> u64) -> Option<Message> {
        let notification = &mut self.notifications[place(self.outbox.pop()?)];
        notification.dirty = false;
        let frontier = frontier(notification.thread as usize);
        Some(Message {
            to: notification.to,
            slot: notification.slot,
            frontier,
        })
    }
}
