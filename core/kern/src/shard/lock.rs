//! Threads lock, wait, and give back.
//!
//! A resource of the file is tried when its thread has the processor: at the event, or when a
//! thread whose lock had to wait for budget is chosen. A thread that comes too late waits; what
//! is given back goes at once to the most urgent waiter. A job whose own budget is smaller than
//! the section that it begins is treated as if the budget were used up: so no holder runs out of
//! its own budget within the length that it declared.
//!
//! A lock of a runtime is granted by the runtime, which tells the shard only who waits for whom: so
//! taking it and giving it back costs no entry when nobody waits. In a tree of schedulers, where
//! priorities of threads do not compare, the shard does not know of these locks.

use punctual_model::{AtBudgetEnd, Instant, Mode, ThreadId, Work};
use punctual_order::{Policy, Refusal};

use super::Shard;
use crate::effective::WaitOrder;
use crate::lock::{MAX_NESTING, UseTerms};
use crate::thread::{LockRequest, State};
use crate::timeline::Timer;
use crate::trace::{Outcome, Sink, TraceEvent, WakeCause};

impl<P: Policy> Shard<P> {
    /// Whether a thread holds a resource.
    pub fn holds(&self, thread: ThreadId, resource: u32) -> bool {
        self.thread(thread).is_ok()
            && self
                .locks
                .find(thread.index(), resource)
                .is_some_and(|of| self.locks.get(of).hold.is_some())
    }

    /// The running thread asks for a resource.
    pub(super) fn lock<S: Sink>(
        &mut self,
        thread: usize,
        (resource, mode, until): (u32, Mode, Option<Instant>),
        sink: &mut S,
    ) -> Result<(), Refusal> {
        let of = self.locks.find(thread, resource);
        let of = of.ok_or(Refusal::NotDeclared(resource))?;
        let user = self.locks.get(of);
        if mode == Mode::Exclusive && user.terms.mode == Mode::Shared {
            return Err(Refusal::NotDeclared(resource));
        }
        if user.hold.is_some() {
            return Err(Refusal::AlreadyHeld(resource));
        }
        if u32::from(self.threads[thread].held) >= MAX_NESTING {
            return Err(Refusal::NestedTooDeep(resource));
        }
        if !self.is_grantable(of, mode) {
            self.locks.look_at_holders(resource);
            if self.leads_to(thread) {
                return Err(Refusal::Deadlock(resource));
            }
        }
        if self.threads[thread].job.is_none() {
            // What was due before a late entry has ended its job, and nobody holds or waits without
            // one: as if it could not wait any longer.
            return Ok(());
        }
        let request = LockRequest { of, mode, until };
        self.rares
            .set_request(&mut self.threads[thread], Some(request));
        self.try_lock(thread, sink);
        Ok(())
    }

    /// The lock that `thread`, which has the processor, asked for: it gets it, waits for it, or has
    /// no budget for it (then it is not ready any more, or lives on another budget).
    pub(super) fn try_lock<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        let t = &mut self.threads[thread];
        let Some(request) = self.rares.request(t) else {
            return;
        };
        let length = self.locks.get(request.of).terms.length;
        let whole = t.constraint.class.budget().unwrap_or_default();
        // It may have to hand over the part of its budget for cold caches.
        let delay = t.owes_delay.then_some(self.costs.cache_delay);
        let needs = length.saturating_add(delay.unwrap_or_default());
        if t.is_budgeted() && t.budget < needs && needs <= whole {
            self.exhaust(thread, sink);
            return;
        }
        let is_grantable = self.is_grantable(request.of, request.mode);
        if is_grantable && !self.lacks_supply(request.of) {
            return self.take(thread, request, sink);
        }
        if request.until.is_some_and(|until| until <= self.now) {
            self.rares.set_request(&mut self.threads[thread], None);
            return;
        }
        self.dequeue(thread);
        if is_grantable {
            self.postpone(thread, request, sink);
        } else {
            self.wait_for(thread, request, sink);
        }
    }

    /// Whether a lock is granted at once: nobody holds the resource in a mode that excludes it, and
    /// no more urgent writer waits.
    fn is_grantable(&self, of: u32, mode: Mode) -> bool {
        let resource = self.locks.get(of).terms.resource;
        if !self.locks.has_room(resource, mode) {
            return false;
        }
        let rank = self.rank(of);
        let is_ahead = |waiter: usize| {
            let request = self.rares.request(&self.threads[waiter]);
            request.is_some_and(|r| r.mode == Mode::Exclusive && self.rank(r.of) < rank)
        };
        mode == Mode::Exclusive || !self.locks.waiters(resource).any(is_ahead)
    }

    /// Whether a section has to wait for the supply of its thread.
    fn lacks_supply(&self, of: u32) -> bool {
        let user = self.locks.get(of);
        let terms = self.locks.terms(user.terms.resource);
        let thread = user.thread as usize;
        let id = self.threads[thread].id(thread);
        terms.at_budget_end == AtBudgetEnd::CheckFirst && !self.tree.fits(id, user.terms.length)
    }

    /// A thread that is not ready any more waits until its section fits.
    fn postpone<S: Sink>(&mut self, thread: usize, request: LockRequest, sink: &mut S) {
        let UseTerms {
            length, resource, ..
        } = self.locks.get(request.of).terms;
        let t = &mut self.threads[thread];
        (t.state, t.waits_plainly) = (State::Blocked, false);
        self.tree.park(self.now, t.id(thread), length);
        self.tell(sink, thread, |thread, _| TraceEvent::Postponed {
            thread,
            resource,
        });
        self.set_timeout(thread, request.until);
    }

    /// Sections that waited for supply fit by now. O(parked² · depth), and more where a rest is
    /// given up.
    #[inline]
    pub(super) fn serve_parked<S: Sink>(&mut self, now: Instant, sink: &mut S) {
        while let Some(id) = self.tree.take_fitting(now) {
            self.resume(id.index(), WakeCause::Supply, sink);
        }
    }

    /// A thread has what it asked for.
    fn take<S: Sink>(&mut self, thread: usize, request: LockRequest, sink: &mut S) {
        let LockRequest { of, mode, .. } = request;
        self.locks.hold(of, mode, self.now);
        let resource = self.locks.get(of).terms.resource;
        let t = &mut self.threads[thread];
        self.rares.set_request(t, None);
        t.held += 1;
        self.tell(sink, thread, |thread, _| TraceEvent::Locked {
            thread,
            resource,
            mode,
        });
        if self.shields(of) {
            let t = &mut self.threads[thread];
            self.rares.add_shield(t);
            // Whoever is not ready yet keeps others away from its first executed tick on.
            if t.queued {
                self.tree.hold(t.id(thread), t.place);
            }
        }
        if self.reaches_out(of) {
            self.rares.add_reach(&mut self.threads[thread]);
        }
        self.tell_tree(of);
        self.inherit(thread);
    }

    fn wait_for<S: Sink>(&mut self, thread: usize, request: LockRequest, sink: &mut S) {
        let LockRequest { of, mode, until } = request;
        let resource = self.locks.get(of).terms.resource;
        self.locks.wait(thread, resource);
        let t = &mut self.threads[thread];
        (t.state, t.waits_plainly) = (State::Blocked, false);
        self.tell(sink, thread, |thread, _| TraceEvent::Waits {
            thread,
            resource,
            mode,
        });
        self.set_timeout(thread, until);
        self.inherit(thread);
    }

    /// The running thread gives a resource back.
    pub(super) fn unlock<S: Sink>(
        &mut self,
        thread: usize,
        resource: u32,
        sink: &mut S,
    ) -> Result<(), Refusal> {
        let of = self.locks.find(thread, resource);
        let of = of.filter(|&of| self.locks.get(of).hold.is_some());
        self.give_back(of.ok_or(Refusal::NotHeld(resource))?, sink);
        let t = &self.threads[thread];
        if t.changes && t.queued && t.can_change_at_once() {
            self.finish(thread, Outcome::Done, sink);
        }
        Ok(())
    }

    fn give_back<S: Sink>(&mut self, of: u32, sink: &mut S) {
        let hold = self.locks.release(of);
        let user = self.locks.get(of);
        let (thread, resource) = (user.thread as usize, user.terms.resource);
        self.threads[thread].held -= 1;
        self.tell(sink, thread, |thread, _| TraceEvent::Unlocked {
            thread,
            resource,
        });
        if hold.is_some_and(|hold| !hold.lapsed) {
            self.disarm(of);
        }
        self.inherit(thread);
        self.hand_over(resource, sink);
    }

    /// A section that ends or lapses keeps nobody away any more.
    fn disarm(&mut self, of: u32) {
        let thread = self.locks.get(of).thread as usize;
        if self.shields(of) {
            self.rares.remove_shield(&mut self.threads[thread]);
            self.stop_holding(thread);
        }
        if self.reaches_out(of) {
            self.rares.remove_reach(&mut self.threads[thread]);
        }
        self.tell_tree(of);
    }

    /// A resource has come free, or who kept others out waits no more.
    ///
    /// Whoever may have it now is ready again and asks again when it is chosen. So it goes to the
    /// most urgent of those that want it then, waiters or not: given at once to a waiter, it could
    /// keep a more urgent job waiting that has begun meanwhile, a second time for one resource.
    /// Only where threads take turns, the first waiter has it at once, or it might never be its
    /// turn.
    fn hand_over<S: Sink>(&mut self, resource: u32, sink: &mut S) {
        if self.locks.terms(resource).wait_order == WaitOrder::Fifo {
            return self.hand_to_the_first(resource, sink);
        }
        let is_free = self.locks.has_room(resource, Mode::Exclusive);
        let mut next = self.locks.first_waiter(resource);
        while let Some(thread) = next {
            next = self.locks.next_waiter(thread);
            let request = self.rares.request(&self.threads[thread]);
            if request.is_some_and(|r| is_free || self.is_grantable(r.of, r.mode)) {
                self.resume(thread, WakeCause::Lock, sink);
            }
        }
    }

    fn hand_to_the_first<S: Sink>(&mut self, resource: u32, sink: &mut S) {
        while let Some((thread, request)) = self.most_urgent_waiter(resource) {
            if !self.locks.has_room(resource, request.mode) {
                return;
            }
            self.leave(thread);
            if self.lacks_supply(request.of) {
                self.postpone(thread, request, sink);
                continue;
            }
            self.take(thread, request, sink);
            self.resume(thread, WakeCause::Lock, sink);
        }
    }

    /// Who gets a resource next; equals in the order of their asking.
    fn most_urgent_waiter(&self, resource: u32) -> Option<(usize, LockRequest)> {
        let waiters = self.locks.waiters(resource);
        let request = |thread: usize| self.rares.request(&self.threads[thread]);
        let waiters = waiters.filter_map(|thread| Some((thread, request(thread)?)));
        waiters.min_by_key(|(_, request)| self.rank(request.of))
    }

    /// Whether the running thread may wait for what `holder` holds.
    pub(super) fn may_block_on(
        &mut self,
        thread: usize,
        holder: ThreadId,
        key: u32,
    ) -> Result<(), Refusal> {
        let waits_too = self.thread(holder)?.asks || self.locks.waits_for(holder.index()).is_some();
        let is_circle = match waits_too {
            true => {
                self.locks.look_at(holder.index());
                self.leads_to(thread)
            }
            false => holder.index() == thread,
        };
        match is_circle {
            true => Err(Refusal::Deadlock(key)),
            false => Ok(()),
        }
    }

    /// The running thread waits, as in `block`, for what `holder` holds, as it may.
    pub(super) fn block_on<S: Sink>(
        &mut self,
        now: Instant,
        thread: usize,
        (holder, key, until): (ThreadId, u32, Option<Instant>),
        sink: &mut S,
    ) {
        self.block(now, thread, until, sink);
        if self.threads[thread].state == State::Blocked && self.tree.nodes() == 1 {
            let lock = self.locks.contend(holder.index(), key, self.wait_order);
            self.locks.wait(thread, lock);
            // What it inherits itself is the same as before.
            self.locks.look_at_holders(lock);
            self.propagate();
        }
    }

    /// What `from` held under `key` is `to`'s from now on, which goes on. Both exist.
    pub(super) fn hand_on<S: Sink>(
        &mut self,
        now: Instant,
        (from, to, key): (ThreadId, ThreadId, u32),
        sink: &mut S,
    ) {
        // The lock is its own also while a more trusted scheduler has it wait.
        let goes_on = self.tree.permit_wake(to).is_ok();
        let (from, to) = (from.index(), to.index());
        if goes_on {
            self.wake(now, to, sink);
        }
        // Unless nobody waits for it any more.
        if let Some(lock) = self.locks.contended(from, key) {
            if !self.threads[to].asks {
                self.locks.hand(lock, to);
            } else {
                // Who waits for a resource was not waiting for this lock: the runtime is mistaken.
                self.locks.abandon(lock);
            }
            self.inherit(from);
            self.inherit(to);
        }
    }

    /// A thread waits for a lock no more; for which it did.
    pub(super) fn leave(&mut self, thread: usize) -> Option<u32> {
        let lock = self.locks.leave(thread)?;
        self.propagate();
        Some(lock)
    }

    /// A thread goes on without what it asked for: it has ended, or its time is over.
    pub(super) fn stop_asking<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        let left = self.leave(thread);
        let t = &mut self.threads[thread];
        let id = t.id(thread);
        if !t.asks {
            return;
        }
        self.rares.set_request(t, None);
        self.timeline.cancel(thread, Timer::Timeout);
        match left {
            // A writer that leaves may have kept readers out.
            Some(resource) => self.hand_over(resource, sink),
            None => self.tree.unpark(self.now, id),
        }
    }

    /// The job of a thread, or the thread itself, is over: whatever it holds comes free.
    #[inline]
    pub(super) fn leave_resources<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        let t = &self.threads[thread];
        if t.held > 0 || t.asks || self.locks.waits_for(thread).is_some() {
            self.leave_each_resource(thread, sink);
        }
    }

    #[inline(never)]
    fn leave_each_resource<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        self.stop_asking(thread, sink);
        while self.threads[thread].held > 0 {
            let is_held = |&of: &u32| self.locks.get(of).hold.is_some();
            let held = self.locks.uses_of(thread).find(is_held);
            let Some(of) = held else { return };
            self.give_back(of, sink);
        }
    }

    /// The running thread has executed inside its sections.
    pub(super) fn charge_sections<S: Sink>(&mut self, thread: usize, executed: Work, sink: &mut S) {
        self.each_section(thread, sink, |used, length| {
            *used = used.saturating_add(executed);
            *used > length
        });
    }

    /// The running thread goes on although a section of its has lasted as long as declared.
    #[inline]
    pub(super) fn enforce_sections<S: Sink>(&mut self, now: Instant, sink: &mut S) {
        debug_assert_eq!(now, self.now);
        let Some(id) = self.running else { return };
        let t = &self.threads[id.index()];
        if t.held > 0 && t.queued {
            self.enforce_each_section(id.index(), sink);
        }
    }

    #[inline(never)]
    fn enforce_each_section<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        self.each_section(thread, sink, |used, length| *used >= length);
    }

    /// Looks at the sections of a thread; those of which `is_over` is true lapse.
    fn each_section<S: Sink>(
        &mut self,
        thread: usize,
        sink: &mut S,
        is_over: impl Fn(&mut Work, Work) -> bool,
    ) {
        let mut next = self.locks.first_use(thread);
        while let Some(of) = next {
            next = self.locks.next_use(of);
            let user = self.locks.get_mut(of);
            let (length, resource) = (user.terms.length, user.terms.resource);
            let Some(hold) = &mut user.hold else { continue };
            if !is_over(&mut hold.used, length) || hold.lapsed {
                continue;
            }
            hold.lapsed = true;
            self.tell(sink, thread, |thread, _| TraceEvent::SectionOverran {
                thread,
                resource,
            });
            self.disarm(of);
            self.inherit(thread);
        }
    }

    /// What is left of a section before it is as long as declared; `None`: it has lapsed.
    pub(super) fn left_of(&self, of: u32) -> Option<Work> {
        let user = self.locks.get(of);
        let hold = user.hold.filter(|hold| !hold.lapsed)?;
        Some(user.terms.length.saturating_sub(hold.used))
    }

    /// What a thread may still execute before one of its sections is as long as declared.
    pub(super) fn section_left(&self, thread: usize) -> Option<Work> {
        let sections = self.locks.uses_of(thread);
        sections.filter_map(|of| self.left_of(of)).min()
    }
}
