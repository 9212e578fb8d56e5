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

const END: u32 = u32::MAX;

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
    next_in: u32,
    next_out: u32,
}

/// A predecessor on another CPU, mirrored here.
#[derive(Debug)]
struct Remote {
    first_arrival: Instant,
    period: Option<Span>,
    frontier: u64,
    head_out: u32,
}

/// News of a thread that another shard waits for.
#[derive(Debug)]
struct Notification {
    thread: u32,
    to: CpuId,
    slot: u32,
    dirty: bool,
    next: u32,
}

/// All edges of one shard, as lists by successor and by predecessor. Nothing allocates after setup.
#[derive(Debug)]
pub(crate) struct Precedences {
    edges: Vec<EdgeState>,
    remotes: Vec<Remote>,
    notifications: Vec<Notification>,
    head_in: Box<[u32]>,
    head_out: Box<[u32]>,
    head_notify: Box<[u32]>,
    outbox: Vec<u32>,
}

fn small(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(END)
}

impl Precedences {
    pub(crate) fn new(threads: usize) -> Self {
        let none = || vec![END; threads].into_boxed_slice();
        Precedences {
            edges: Vec::new(),
            remotes: Vec::new(),
            notifications: Vec::new(),
            head_in: none(),
            head_out: none(),
            head_notify: none(),
            outbox: Vec::new(),
        }
    }

    pub(crate) fn add_remote(&mut self, first_arrival: Instant, period: Option<Span>) -> u32 {
        self.remotes.push(Remote {
            first_arrival,
            period,
            frontier: 0,
            head_out: END,
        });
        small(self.remotes.len() - 1)
    }

    pub(crate) fn add_edge(&mut self, successor: usize, edge: Edge) -> bool {
        let id = small(self.edges.len());
        let head_out = match edge.from {
            Source::Local(thread) => self.head_out.get_mut(thread.index()),
            Source::Remote { slot } => self
                .remotes
                .get_mut(slot as usize)
                .map(|remote| &mut remote.head_out),
        };
        let (Some(head_out), Some(head_in)) = (head_out, self.head_in.get_mut(successor)) else {
            return false;
        };
        self.edges.push(EdgeState {
            edge,
            successor: small(successor),
            waiting: false,
            needed: 0,
            next_in: *head_in,
            next_out: *head_out,
        });
        *head_in = id;
        *head_out = id;
        true
    }

    pub(crate) fn add_notification(&mut self, thread: usize, to: CpuId, slot: u32) -> bool {
        let Some(head) = self.head_notify.get_mut(thread) else {
            return false;
        };
        let id = small(self.notifications.len());
        let thread = small(thread);
        self.notifications.push(Notification {
            thread,
            to,
            slot,
            dirty: false,
            next: *head,
        });
        *head = id;
        self.outbox.reserve_exact(self.notifications.len());
        true
    }

    pub(crate) fn has_predecessors(&self, successor: usize) -> bool {
        self.head_in[successor] != END
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
        let mut at = self.head_in[successor];
        while at != END {
            let state = &mut self.edges[at as usize];
            let strict = state.edge.strict;
            let (needed, frontier) = match state.edge.from {
                Source::Local(thread) => local(thread, strict),
                Source::Remote { slot } => {
                    let r = &self.remotes[slot as usize];
                    (
                        count_arrivals(r.first_arrival, r.period, arrival, strict),
                        r.frontier,
                    )
                }
            };
            state.needed = needed;
            state.waiting = frontier < needed;
            unsatisfied += u32::from(state.waiting);
            at = state.next_in;
        }
        unsatisfied
    }

    /// Forgets what `successor` waits for and waited for: it has ended, and the next thread of its
    /// place has precedences of its own.
    pub(crate) fn forget(&mut self, successor: usize) {
        let mut at = core::mem::replace(&mut self.head_in[successor], END);
        while at != END {
            let state = &mut self.edges[at as usize];
            state.waiting = false;
            at = state.next_in;
        }
    }

    pub(crate) fn first_out(&self, source: Source) -> u32 {
        match source {
            Source::Local(thread) => self.head_out[thread.index()],
            Source::Remote { slot } => self.remotes[slot as usize].head_out,
        }
    }

    /// Looks at one outgoing edge: the next edge, and the successor if this edge just came free.
    pub(crate) fn advance(&mut self, edge: u32, frontier: u64) -> (u32, Option<usize>) {
        let state = &mut self.edges[edge as usize];
        let freed = state.waiting && frontier >= state.needed;
        if freed {
            state.waiting = false;
        }
        (state.next_out, freed.then_some(state.successor as usize))
    }

    pub(crate) const END: u32 = END;

    /// Takes in news of a remote predecessor; `false` when there is none of this number.
    pub(crate) fn remote(&mut self, slot: u32, frontier: u64) -> bool {
        match self.remotes.get_mut(slot as usize) {
            Some(remote) => {
                remote.frontier = remote.frontier.max(frontier);
                true
            }
            None => false,
        }
    }

    /// Whether anything, here or on another CPU, waits for jobs of a thread.
    #[inline]
    pub(crate) fn is_followed(&self, thread: usize) -> bool {
        self.head_notify[thread] != END || self.head_out[thread] != END
    }

    pub(crate) fn notify(&mut self, thread: usize) {
        let mut at = self.head_notify[thread];
        while at != END {
            let notification = &mut self.notifications[at as usize];
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
        let notification = &mut self.notifications[self.outbox.pop()? as usize];
        notification.dirty = false;
        let frontier = frontier(notification.thread as usize);
        Some(Message {
            to: notification.to,
            slot: notification.slot,
            frontier,
        })
    }
}
