//! Schedulers manage their subtrees: threads move, schedulers come and go.

use punctual_model::{Instant, ThreadId};
use punctual_order::{Attributes, Band, ChildPick, NodeId, Policy, Refusal};

use super::Shard;
use crate::event::Event;
use crate::manage::Request;
use crate::thread::State;
use crate::timeline::Timer;
use crate::trace::{Sink, TraceEvent};

impl<P: Policy> Shard<P> {
    /// Does what `by` asks for, or refuses it and changes nothing.
    pub(super) fn manage<S: Sink>(
        &mut self,
        by: NodeId,
        request: &Request,
        sink: &mut S,
    ) -> Result<(), Refusal> {
        match *request {
            Request::Create { home, constraint } => {
                self.tree.permit_create(by, home)?;
                self.create(home, constraint, sink)?;
            }
            Request::Grant { thread, to } => {
                self.thread(thread)?;
                self.tree.permit_grant(by, thread, to)?;
                self.permit_move(thread)?;
                self.move_thread(thread, to, sink);
            }
            Request::Revoke { thread } => {
                self.thread(thread)?;
                self.tree.permit_revoke(by, thread)?;
                self.permit_move(thread)?;
                self.move_thread(thread, by, sink);
            }
            Request::Promote(terms) => {
                self.tree.permit_promote(by, &terms)?;
                if let Some(node) = self.tree.promote(by, &terms) {
                    self.last_promoted = Some(node);
                    sink.trace(self.now, TraceEvent::Promoted { node, parent: by });
                }
            }
            Request::Lend { to, work } => {
                self.tree.lend(self.now, by, to, work)?;
                sink.trace(self.now, TraceEvent::Lent { from: by, to, work });
            }
            Request::Supply { node, supply } => {
                self.tree.permit_supply(by, node, &supply)?;
                self.tree.supply(node, &supply);
                sink.trace(self.now, TraceEvent::Supplied { node });
            }
            Request::Demote(node) => {
                self.tree.permit_demote(by, node)?;
                self.demote_node(node, sink)?;
            }
            Request::Block {
                thread,
                exclusive,
                until,
            } => {
                self.thread(thread)?;
                // A thread that a more trusted scheduler has blocked gets no other timeout.
                self.tree.permit_wake_by(by, thread)?;
                self.block_by(by, (thread, exclusive, until), sink)?;
            }
            Request::Wake(thread) => {
                self.thread(thread)?;
                self.tree.permit_wake_by(by, thread)?;
                self.wake(self.now, thread.index(), sink);
            }
            Request::Replace { node, policy } => {
                self.tree.permit_replace(by, node, policy)?;
                self.permit_order(node, policy)?;
                if self.tree.begin_replace(node, policy) {
                    sink.trace(self.now, TraceEvent::PolicyReplaced { node, policy });
                }
            }
        }
        Ok(())
    }

    /// Whether nothing in the state of now refuses an event of a plan: the scheduler that is to get
    /// another server or policy may have work, or another policy under way. One that does not exist
    /// yet has neither.
    pub(crate) fn permits(&self, event: &Event) -> bool {
        let permitted = self.may_be_planned(event);
        permitted.is_ok() || matches!(permitted, Err(Refusal::NoSuchNode(_)))
    }

    /// Until when the budget that an event of a plan lends is there; the start of the run: it lends
    /// none.
    pub(crate) fn lends_until(&self, event: &Event) -> Instant {
        match event {
            Event::Manage {
                by,
                request: Request::Lend { work, .. },
            } => match self.tree.lends_until(*by, *work) {
                Some(Ok(until)) => until,
                Some(Err(_)) | None => Instant::ZERO,
            },
            _ => Instant::ZERO,
        }
    }

    /// Until when the share of slices that were taken back hinders the events of a change, which
    /// happen together, or one that lends lacks budget. O(events² + events · nodes).
    pub(crate) fn waits_for(&self, events: &[Event]) -> Option<Instant> {
        let requests = || {
            events.iter().filter_map(|event| match event {
                Event::Manage { by, request } => Some((*by, request)),
                _ => None,
            })
        };
        let givers = requests().filter_map(|(by, request)| match request {
            Request::Promote(terms) if terms.receiver.is_some() => Some(by),
            Request::Supply { node, .. } => Some(*node),
            _ => None,
        });
        let hindered = givers.filter(|&giver| {
            let slices = requests().filter_map(|(by, request)| match request {
                Request::Promote(terms) if by == giver && terms.receiver.is_some() => {
                    Some(&terms.supply)
                }
                _ => None,
            });
            let supplies = requests().filter_map(|(_, request)| match request {
                Request::Supply { node, supply } if *node == giver => Some(supply),
                _ => None,
            });
            self.tree.gives_too_much(giver, slices, supplies)
        });
        let shares = hindered.filter_map(|giver| self.tree.shares_return(giver));
        let lacking = requests().filter_map(|(by, request)| match request {
            Request::Lend { work, .. } => self.tree.lends_until(by, *work)?.err(),
            _ => None,
        });
        shares.chain(lacking).max()
    }

    /// Whether an event of a plan finds a home for a thread that has ended.
    pub(crate) fn is_over(&self, event: &Event) -> bool {
        match event {
            Event::Manage {
                request: Request::Grant { thread, .. } | Request::Revoke { thread },
                ..
            } => self.thread(*thread).is_err(),
            _ => false,
        }
    }

    fn may_be_planned(&self, event: &Event) -> Result<(), Refusal> {
        let Event::Manage { by, request } = event else {
            return Ok(());
        };
        match *request {
            Request::Supply { node, supply } => self.tree.permit_supply(*by, node, &supply),
            Request::Replace { node, policy } => {
                self.tree.permit_replace(*by, node, policy)?;
                self.permit_order(node, policy)
            }
            Request::Promote(terms) if terms.receiver.is_some() => {
                self.tree.permit_promote(*by, &terms)
            }
            _ => Ok(()),
        }
    }

    /// A thread that shares resources within its scheduler stays there.
    fn permit_move(&self, thread: ThreadId) -> Result<(), Refusal> {
        match self.locks.first_use(thread.index()) {
            Some(_) => Err(Refusal::UsesResources(thread)),
            None => Ok(()),
        }
    }

    /// The thread of this place, if it has another home when `node` ends.
    fn falls_with(&self, index: usize, node: NodeId) -> Option<ThreadId> {
        let t = &self.threads[index];
        let id = t.id(index);
        let falls = t.state != State::Dead && self.tree.falls_with(id, node);
        falls.then_some(id)
    }

    /// The ready thread goes on being ready in its new home, behind what is there.
    fn move_thread<S: Sink>(&mut self, id: ThreadId, home: NodeId, sink: &mut S) {
        let thread = id.index();
        let queued = self.threads[thread].queued;
        self.dequeue(thread);
        self.tree.rehome(id, home);
        if queued {
            self.enqueue(thread);
        }
        sink.trace(self.now, TraceEvent::Moved { thread: id, home });
    }

    /// A scheduler ends with all below it and all slices that these hold; or a slice, with what
    /// was delegated from it. O((threads + schedulers) · slices).
    fn demote_node<S: Sink>(&mut self, node: NodeId, sink: &mut S) -> Result<(), Refusal> {
        for index in 0..self.threads.len() {
            if let Some(id) = self.falls_with(index, node) {
                self.permit_move(id)?;
            }
        }
        while let Some(slice) = self.tree.slice_held_below(node) {
            self.end_node(slice, sink);
        }
        self.end_node(node, sink);
        Ok(())
    }

    fn end_node<S: Sink>(&mut self, node: NodeId, sink: &mut S) {
        for index in 0..self.threads.len() {
            let id = self.threads[index].id(index);
            if self.tree.is_in_subtree(id, node)
                && self.threads[index].state != State::Dead
                && let Some(heir) = self.tree.heir(id, node)
            {
                self.move_thread(id, heir, sink);
            }
        }
        self.tree.demote(self.now, node);
        sink.trace(self.now, TraceEvent::SchedulerEnded { node });
    }

    /// A scheduler has a thread wait. One that waits already can be made to wait for this scheduler
    /// alone.
    fn block_by<S: Sink>(
        &mut self,
        by: NodeId,
        (id, exclusive, until): (ThreadId, bool, Option<Instant>),
        sink: &mut S,
    ) -> Result<(), Refusal> {
        let thread = id.index();
        let t = &self.threads[thread];
        let waits = t.awaits_wake();
        if !t.queued && !waits {
            return Err(Refusal::NotReady(id));
        }
        if t.queued {
            self.suspend(thread, sink);
        }
        if exclusive {
            self.tree.block_for(id, by);
            // Nor does the thread wake itself, by a timeout that it had set before.
            self.timeline.cancel(thread, Timer::Timeout);
        }
        self.set_timeout(thread, until.map(|until| until.max(self.now)));
        Ok(())
    }

    /// Takes in the choice of the child that was let run.
    pub(super) fn child_picked(&mut self, pick: &ChildPick) -> Result<(), Refusal> {
        if self.deciding != Some(pick.child) {
            return Err(Refusal::NotDeciding(pick.child));
        }
        if let Some(thread) = pick.thread {
            self.thread(thread)?;
        }
        self.tree.child_picked(self.now, pick)
    }

    /// The child that was let run has failed.
    pub(super) fn child_failed(&mut self, child: NodeId) -> Result<(), Refusal> {
        if self.deciding != Some(child) {
            return Err(Refusal::NotDeciding(child));
        }
        self.tree.child_failed(self.now, child)
    }

    /// The scheduler that the last [`Request::Promote`] made.
    pub fn last_promoted(&self) -> Option<NodeId> {
        self.last_promoted
    }

    /// The closest scheduler that has both threads below it: the one that decides between them.
    /// O(depth).
    ///
    /// # Errors
    /// When a thread has ended.
    pub fn closest_common(&self, a: ThreadId, b: ThreadId) -> Result<NodeId, Refusal> {
        self.thread(a)?;
        self.thread(b)?;
        Ok(self.tree.closest_common(a, b))
    }

    /// Whether one thread's work may preempt another's, as the capabilities say on which they
    /// execute ([`Tree::preempts`](punctual_order::Tree::preempts)): no scheduler is asked.
    ///
    /// # Errors
    /// When a thread has ended.
    pub fn preempts(&self, a: ThreadId, b: ThreadId) -> Result<bool, Refusal> {
        self.thread(a)?;
        self.thread(b)?;
        let home = |id| self.tree.home(id).unwrap_or(NodeId::ROOT);
        self.tree.preempts(home(a), home(b))
    }

    /// The state of the ready threads of a child that decides on its own supply: it changes
    /// whenever they do. `None`: no such child.
    pub fn epoch(&self, child: NodeId) -> Option<u32> {
        self.tree.epoch(child)
    }

    /// The ready threads of a child that decides on its own supply, with what it may know of them.
    /// O(threads of the shard).
    pub fn ready_in(&self, child: NodeId) -> impl Iterator<Item = (ThreadId, Attributes)> + '_ {
        let threads = self.threads.iter().enumerate();
        threads.filter_map(move |(index, t)| {
            let id = t.id(index);
            let ready = t.queued && self.tree.is_ready_in(id, child);
            ready.then(|| (id, t.effective(&self.rares).attributes))
        })
    }

    /// Whether a thread stands above the background level of its scheduler now.
    pub fn is_above_background(&self, thread: ThreadId) -> bool {
        let place = self.threads.get(thread.index());
        place.is_some_and(|t| t.effective(&self.rares).band == Band::RealTime)
    }
}
