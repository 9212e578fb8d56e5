//! The code of a scheduler that decides on its own supply: a policy, and what it knows.
//!
//! A platform lets a child run ([`punctual_kern::Next::RunChild`]) by executing its code: the child
//! *looks* at its ready threads, *decides* with its policy, and answers
//! ([`punctual_kern::Event::ChildPicked`]). The look is short, and the platform lets nothing come
//! between. The decision is the child's own and may take any time, or never end: that is charged to
//! the child. A thread that becomes ready after the look makes the answer stale, and the child
//! decides again.
//!
//! Source: CompOSe §4.2 (application-time scheduling); Slite §III.B (schedulers learn by events).

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use punctual_kern::{Attributes, ChildPick, NodeId, Policy, Shard};
use punctual_model::{Instant, ThreadId, Work};

/// A ready thread as the child saw it.
#[derive(Clone, Copy, Debug)]
struct Seen {
    thread: ThreadId,
    attributes: Attributes,
    /// Its job, and what that had received.
    job: u64,
    received: Work,
}

/// A child scheduler, as the platform executes it.
pub struct ChildScheduler {
    node: NodeId,
    policy: Box<dyn Policy + Send>,
    /// The ready threads at the last look, by index.
    seen: Vec<Seen>,
    epoch: u32,
    /// The ready threads that the policy knows, by index.
    known: Box<[Option<Seen>]>,
    /// Policies that are known to take its place, the next one last, and room for those that were
    /// replaced.
    next: Vec<Box<dyn Policy + Send>>,
    old: Vec<Box<dyn Policy + Send>>,
}

impl ChildScheduler {
    /// The scheduler `node`, with a policy for threads with an index below `threads`.
    pub fn new(node: NodeId, threads: usize, policy: Box<dyn Policy + Send>) -> ChildScheduler {
        ChildScheduler {
            node,
            policy,
            seen: Vec::with_capacity(threads),
            epoch: 0,
            known: vec![None; threads].into_boxed_slice(),
            next: Vec::new(),
            old: Vec::new(),
        }
    }

    /// The same, and policies that take the place of each other in this order
    /// ([`ChildScheduler::take_next`]).
    #[must_use]
    pub fn followed_by(mut self, mut next: Vec<Box<dyn Policy + Send>>) -> ChildScheduler {
        next.reverse();
        self.old.reserve_exact(next.len());
        self.next = next;
        self
    }

    /// Another policy orders its threads when it decides next, and hears of all that are ready then
    /// as if they had just become so; the policy before. Not while it decides. O(threads).
    pub fn replace(&mut self, policy: Box<dyn Policy + Send>) -> Box<dyn Policy + Send> {
        self.known.fill(None);
        core::mem::replace(&mut self.policy, policy)
    }

    /// [`ChildScheduler::replace`], by the next of those that it was made with, if there is one.
    /// Frees nothing.
    pub fn take_next(&mut self) {
        if let Some(policy) = self.next.pop() {
            let old = self.replace(policy);
            self.old.push(old);
        }
    }

    /// Which scheduler it is.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// The scheduler has ended and comes again under this id. Its policy forgets the threads of its
    /// former life when it decides next. O(1).
    pub fn come_again(&mut self, node: NodeId) {
        self.node = node;
        self.epoch = 0;
        self.seen.clear();
    }

    /// Sees which of its threads are ready. Nothing may come between two parts of it. O(threads of
    /// the shard).
    pub fn look<P: Policy>(&mut self, shard: &Shard<P>) {
        self.epoch = shard.epoch(self.node).unwrap_or(self.epoch);
        self.seen.clear();
        let room = self.known.len();
        let guaranteed = |thread| shard.is_above_background(thread);
        // Background work is there for the rest of the supply.
        let any = shard.ready_in(self.node).any(|(t, _)| guaranteed(t));
        let offered = shard.ready_in(self.node);
        let offered = offered.filter(|(thread, _)| !any || guaranteed(*thread));
        for (thread, attributes) in offered.take(room) {
            let job = shard.job(thread);
            self.seen.push(Seen {
                thread,
                attributes,
                job: job.map_or(0, |job| job.index),
                received: job.map_or(Work::ZERO, |job| job.received),
            });
        }
    }

    /// Decides on what it saw: the answer to give at `now`. O(threads · log threads).
    pub fn decide(&mut self, now: Instant) -> ChildPick {
        self.take_charges();
        self.forget();
        self.learn();
        let pick = self.policy.pick(now);
        ChildPick {
            thread: pick.entity,
            until: pick.until,
            ..self.decline()
        }
    }

    /// The answer of a scheduler that has nothing to say any more, on what it saw: nobody runs
    /// until its ready threads change.
    pub fn decline(&self) -> ChildPick {
        ChildPick {
            child: self.node,
            epoch: self.epoch,
            thread: None,
            until: None,
        }
    }

    /// A thread of its own has given up its turn.
    pub fn yield_now(&mut self, thread: ThreadId) {
        if self.knows(thread) {
            self.policy.yield_now(thread);
        }
    }

    fn knows(&self, thread: ThreadId) -> bool {
        let known = self.known.get(thread.index()).copied().flatten();
        known.is_some_and(|known| known.thread == thread)
    }

    /// The work of its threads since it decided last.
    fn take_charges(&mut self) {
        for seen in &self.seen {
            let Some(Some(known)) = self.known.get_mut(seen.thread.index()) else {
                continue;
            };
            if known.thread == seen.thread && known.job == seen.job {
                let work = seen.received.saturating_sub(known.received);
                known.received = seen.received;
                if !work.is_zero() {
                    self.policy.charge(seen.thread, work);
                }
            }
        }
    }

    /// Threads that are not ready any more, or have a new job.
    fn forget(&mut self) {
        let mut seen = self.seen.iter().peekable();
        for (index, place) in self.known.iter_mut().enumerate() {
            let same = seen.next_if(|seen| seen.thread.index() == index);
            let Some(known) = *place else { continue };
            if !same.is_some_and(|s| s.thread == known.thread && s.job == known.job) {
                self.policy.block(known.thread);
                *place = None;
            }
        }
    }

    fn learn(&mut self) {
        for seen in &self.seen {
            let Some(place) = self.known.get_mut(seen.thread.index()) else {
                continue;
            };
            match place {
                None => self.policy.wake(seen.thread, &seen.attributes),
                // The job goes on, on the budget of a later release.
                Some(known) if known.attributes.release < seen.attributes.release => {
                    self.policy.renew(seen.thread, &seen.attributes);
                }
                Some(known) if known.attributes != seen.attributes => {
                    self.policy.update(seen.thread, &seen.attributes);
                }
                Some(_) => {}
            }
            *place = Some(*seen);
        }
    }
}

impl fmt::Debug for ChildScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ChildScheduler { node, seen, .. } = self;
        f.debug_struct("ChildScheduler")
            .field("node", node)
            .field("seen", seen)
            .finish_non_exhaustive()
    }
}
