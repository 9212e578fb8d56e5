//! Threads lock resources, wait for them, and give them back.
//!
//! A lock is tried when its thread has the processor: at the event, or when a thread whose lock had
//! to wait for budget is chosen. Whoever comes too late waits; what is given back goes at once to
//! the most urgent waiter. A job whose own budget is smaller than the section that it begins is
//! treated as if the budget were used up: so no holder runs out of its own budget within the length
//! that it declared.

use punctual_model::{AtBudgetEnd, Instant, Mode, ThreadId, Work};

use super::Shard;
use crate::effective::Urgency;
use crate::event::Refusal;
use crate::hierarchy::Hierarchy;
use crate::lock::{MAX_NESTING, UseState};
use crate::thread::{LockRequest, State};
use crate::timeline::Timer;
use crate::trace::{Outcome, Sink, TraceEvent, WakeCause};

impl<H: Hierarchy> Shard<H> {
    /// Whether a thread holds a resource.
    pub fn holds(&self, thread: ThreadId, resource: u32) -> bool {
        self.thread(thread).is_ok()
            && self
                .resources
                .find(thread.index(), resource)
                .is_some_and(|at| self.resources.get(at).is_held())
    }

    /// The running thread asks for a resource.
    pub(super) fn lock<S: Sink>(
        &mut self,
        now: Instant,
        thread: usize,
        (resource, mode, until): (u32, Mode, Option<Instant>),
        sink: &mut S,
    ) -> Result<(), Refusal> {
        let of = self.resources.find(thread, resource);
        let of = of.ok_or(Refusal::NotDeclared(resource))?;
        let user = self.resources.get(of);
        if mode == Mode::Exclusive && user.plan.mode == Mode::Shared {
            return Err(Refusal::NotDeclared(resource));
        }
        if user.is_held() {
            return Err(Refusal::AlreadyHeld(resource));
        }
        if self.threads[thread].held >= MAX_NESTING {
            return Err(Refusal::NestedTooDeep(resource));
        }
        if !self.is_grantable(of, mode) {
            let Shard {
                resources, threads, ..
            } = self;
            // Whom somebody waits for, or will when it has budget again.
            let asked = |holder: usize| {
                let t = &threads[holder];
                t.waits.or(t.request.map(|request| request.of))
            };
            let lends = |holder: usize| threads[holder].loans.holder();
            if resources.leads_on(Some(resource), thread, asked, lends) {
                return Err(Refusal::Deadlock(resource));
            }
        }
        if self.threads[thread].job.is_none() {
            // What was due before a late entry has ended its job, and nobody holds or waits without
            // one: as if it could not wait any longer.
            return Ok(());
        }
        self.threads[thread].request = Some(LockRequest { of, mode, until });
        self.try_lock(now, thread, sink);
        Ok(())
    }

    /// The lock that `thread`, which has the processor, asked for: it gets it, waits for it, or has
    /// no budget for it (then it is not ready any more, or lives on another budget).
    pub(super) fn try_lock<S: Sink>(&mut self, now: Instant, thread: usize, sink: &mut S) {
        let t = &mut self.threads[thread];
        let Some(request) = t.request else { return };
        let length = self.resources.get(request.of).plan.length;
        let whole = t.constraint.class.budget().unwrap_or_default();
        if t.is_budgeted() && t.budget < length && length <= whole {
            self.exhaust(now, thread, sink);
            return;
        }
        let may_wait = request.until.is_none_or(|until| until > now);
        if !self.is_grantable(request.of, request.mode) {
            self.threads[thread].request = None;
            if may_wait {
                self.wait_for(now, thread, request, sink);
            }
        } else if self.lacks_supply(request.of) {
            if may_wait {
                self.dequeue(thread);
                self.postpone(now, request, sink);
            } else {
                self.threads[thread].request = None;
            }
        } else {
            self.threads[thread].request = None;
            self.take(now, request.of, request.mode, sink);
        }
    }

    /// Whether a section has to wait for the supply of its thread.
    fn lacks_supply(&self, of: u32) -> bool {
        let user = self.resources.get(of);
        let plan = self.resources.plan(user.plan.resource);
        let thread = user.thread as usize;
        let id = self.threads[thread].id(thread);
        plan.at_budget_end == AtBudgetEnd::CheckFirst && !self.hierarchy.fits(id, user.plan.length)
    }

    /// A thread that is not ready any more waits until its section fits.
    fn postpone<S: Sink>(&mut self, now: Instant, request: LockRequest, sink: &mut S) {
        let user = self.resources.get(request.of);
        let (thread, length) = (user.thread as usize, user.plan.length);
        let resource = user.plan.resource;
        let t = &mut self.threads[thread];
        t.state = State::Blocked;
        t.request = Some(request);
        let (id, order) = (t.id(thread), t.constraint.order);
        sink.trace(
            now,
            TraceEvent::Postponed {
                thread: id,
                resource,
            },
        );
        self.hierarchy.park(now, id, length);
        if let Some(until) = request.until {
            self.timeline.set(thread, Timer::Timeout, until, order);
        }
    }

    /// Sections that waited for supply fit by now. O(parked · depth).
    #[inline]
    pub(super) fn serve_parked<S: Sink>(&mut self, now: Instant, sink: &mut S) {
        while let Some(id) = self.hierarchy.take_fitting(now) {
            self.resume(now, id.index(), WakeCause::Supply, sink);
        }
    }

    fn take<S: Sink>(&mut self, now: Instant, of: u32, mode: Mode, sink: &mut S) {
        let user = self.resources.get_mut(of);
        user.state = UseState::Holds {
            mode,
            since: now,
            used: Work::ZERO,
            lapsed: false,
        };
        let (thread, resource) = (user.thread as usize, user.plan.resource);
        let t = &mut self.threads[thread];
        t.held += 1;
        let id = t.id(thread);
        sink.trace(
            now,
            TraceEvent::Locked {
                thread: id,
                resource,
                mode,
            },
        );
        if self.shields(of) {
            let t = &mut self.threads[thread];
            t.shields += 1;
            // Whoever is not ready yet keeps others away from its first executed tick on.
            if t.queued {
                self.hierarchy.hold(id, t.place);
            }
        }
        self.threads[thread].reach += u32::from(self.reaches_out(of));
        self.tell_hierarchy(now, of);
        self.lend_again(thread);
    }

    fn wait_for<S: Sink>(
        &mut self,
        now: Instant,
        thread: usize,
        request: LockRequest,
        sink: &mut S,
    ) {
        self.dequeue(thread);
        let mode = request.mode;
        let turn = self.resources.take_turn();
        let user = self.resources.get_mut(request.of);
        let until = request.until;
        user.state = UseState::Waits { mode, until, turn };
        let resource = user.plan.resource;
        let t = &mut self.threads[thread];
        t.state = State::Blocked;
        t.waits = Some(request.of);
        let (id, order) = (t.id(thread), t.constraint.order);
        sink.trace(
            now,
            TraceEvent::Waits {
                thread: id,
                resource,
                mode,
            },
        );
        if let Some(until) = request.until {
            self.timeline.set(thread, Timer::Timeout, until, order);
        }
        self.pass_on(thread);
    }

    /// The running thread gives a resource back.
    pub(super) fn unlock<S: Sink>(
        &mut self,
        now: Instant,
        thread: usize,
        resource: u32,
        sink: &mut S,
    ) -> Result<(), Refusal> {
        let of = self.resources.find(thread, resource);
        let of = of.filter(|&of| self.resources.get(of).is_held());
        self.give_back(now, of.ok_or(Refusal::NotHeld(resource))?, sink);
        let t = &self.threads[thread];
        if t.change.is_some() && t.queued && t.can_change_at_once() {
            self.finish(now, thread, Outcome::Done, sink);
        }
        Ok(())
    }

    fn give_back<S: Sink>(&mut self, now: Instant, of: u32, sink: &mut S) {
        let user = self.resources.get_mut(of);
        let state = core::mem::replace(&mut user.state, UseState::Free);
        let (thread, resource) = (user.thread as usize, user.plan.resource);
        let t = &mut self.threads[thread];
        t.held -= 1;
        let id = t.id(thread);
        sink.trace(
            now,
            TraceEvent::Unlocked {
                thread: id,
                resource,
            },
        );
        if matches!(state, UseState::Holds { lapsed: false, .. }) {
            self.disarm(now, of);
        }
        self.lend_again(thread);
        self.hand_over(now, resource, sink);
    }

    /// A section that ends or lapses keeps nobody away any more.
    fn disarm(&mut self, now: Instant, of: u32) {
        let thread = self.resources.get(of).thread as usize;
        if self.shields(of) {
            let t = &mut self.threads[thread];
            t.shields -= 1;
            if t.shields == 0 && !t.in_section {
                let id = t.id(thread);
                self.hierarchy.release(id);
            }
        }
        self.threads[thread].reach -= u32::from(self.reaches_out(of));
        self.tell_hierarchy(now, of);
    }

    /// A resource has come free, or who kept others out waits no more.
    ///
    /// Whoever may have it now is ready again and asks again when it is chosen. So it goes to the
    /// most urgent of those that want it then, waiters or not: given at once to a waiter, it could
    /// keep a more urgent job waiting that has begun meanwhile, a second time for one resource.
    /// Only where threads take turns, the first waiter has it at once, or it might never be its
    /// turn.
    fn hand_over<S: Sink>(&mut self, now: Instant, resource: u32, sink: &mut S) {
        if self.resources.plan(resource).urgency == Urgency::Turn {
            return self.hand_to_the_first(now, resource, sink);
        }
        for mode in [Mode::Exclusive, Mode::Shared] {
            let mut next = self.resources.first_user(resource);
            while let Some(of) = next {
                next = self.resources.next_user(of);
                let user = self.resources.get(of);
                let waits = match user.state {
                    UseState::Waits { mode, until, .. } => Some((mode, until)),
                    _ => None,
                };
                let Some((_, until)) = waits.filter(|waits| waits.0 == mode) else {
                    continue;
                };
                if self.is_grantable(of, mode) {
                    let thread = self.stop_use(of);
                    self.threads[thread].request = Some(LockRequest { of, mode, until });
                    self.resume(now, thread, WakeCause::Lock, sink);
                }
            }
        }
        self.lend_to_holders(resource);
    }

    /// A use is not waited for any more; whose it is.
    fn stop_use(&mut self, of: u32) -> usize {
        let user = self.resources.get_mut(of);
        user.state = UseState::Free;
        let thread = user.thread as usize;
        self.threads[thread].waits = None;
        thread
    }

    fn hand_to_the_first<S: Sink>(&mut self, now: Instant, resource: u32, sink: &mut S) {
        while let Some((of, mode, until)) = self.most_urgent_waiter(resource) {
            if !self.resources.has_room(resource, mode) {
                return;
            }
            let thread = self.stop_use(of);
            if self.lacks_supply(of) {
                self.postpone(now, LockRequest { of, mode, until }, sink);
                self.lend_to_holders(resource);
                continue;
            }
            self.take(now, of, mode, sink);
            self.lend_to_holders(resource);
            self.resume(now, thread, WakeCause::Lock, sink);
        }
    }

    /// A thread that waits for a resource waits no longer: it has ended, or its time is over.
    pub(super) fn stop_waiting<S: Sink>(&mut self, now: Instant, thread: usize, sink: &mut S) {
        let Some(of) = self.threads[thread].waits else {
            return;
        };
        self.timeline.cancel(thread, Timer::Timeout);
        let resource = self.resources.get(of).plan.resource;
        let _ = self.stop_use(of);
        self.lend_to_holders(resource);
        // A writer that leaves may have kept readers out.
        self.hand_over(now, resource, sink);
    }

    /// A thread goes on without what it asked for.
    pub(super) fn stop_asking(&mut self, now: Instant, thread: usize) {
        let t = &mut self.threads[thread];
        if t.request.take().is_some() {
            let id = t.id(thread);
            self.hierarchy.unpark(now, id);
        }
    }

    /// The job of a thread, or the thread itself, is over: whatever it holds comes free.
    pub(super) fn leave_resources<S: Sink>(&mut self, now: Instant, thread: usize, sink: &mut S) {
        self.stop_asking(now, thread);
        self.stop_waiting(now, thread, sink);
        while self.threads[thread].held > 0 {
            let is_held = |&of: &u32| self.resources.get(of).is_held();
            let held = self.resources.uses_of(thread).find(is_held);
            let Some(of) = held else { return };
            self.give_back(now, of, sink);
        }
    }

    /// The running thread has executed inside its sections.
    pub(super) fn charge_sections<S: Sink>(
        &mut self,
        now: Instant,
        thread: usize,
        executed: Work,
        sink: &mut S,
    ) {
        self.each_section(now, thread, sink, |used, length| {
            *used = used.saturating_add(executed);
            *used > length
        });
    }

    /// The running thread goes on although a section of its has lasted as long as declared.
    #[inline]
    pub(super) fn enforce_sections<S: Sink>(&mut self, now: Instant, sink: &mut S) {
        let Some(id) = self.running else { return };
        let t = &self.threads[id.index()];
        if t.held > 0 && t.queued {
            self.each_section(now, id.index(), sink, |used, length| *used >= length);
        }
    }

    /// Looks at the sections of a thread; those of which `is_over` is true lapse.
    fn each_section<S: Sink>(
        &mut self,
        now: Instant,
        thread: usize,
        sink: &mut S,
        is_over: impl Fn(&mut Work, Work) -> bool,
    ) {
        let mut next = self.resources.first_use(thread);
        while let Some(of) = next {
            next = self.resources.next_use(of);
            let user = self.resources.get_mut(of);
            let (length, resource) = (user.plan.length, user.plan.resource);
            let UseState::Holds { used, lapsed, .. } = &mut user.state else {
                continue;
            };
            if !is_over(used, length) || *lapsed {
                continue;
            }
            *lapsed = true;
            let thread_id = self.threads[thread].id(thread);
            sink.trace(
                now,
                TraceEvent::SectionOverran {
                    thread: thread_id,
                    resource,
                },
            );
            self.disarm(now, of);
            self.lend_again(thread);
        }
    }

    /// What a thread may still execute before one of its sections is as long as declared.
    pub(super) fn section_left(&self, thread: usize) -> Option<Work> {
        let left = |of: u32| {
            let user = self.resources.get(of);
            match user.state {
                UseState::Holds {
                    used,
                    lapsed: false,
                    ..
                } => Some(user.plan.length.saturating_sub(used)),
                _ => None,
            }
        };
        self.resources.uses_of(thread).filter_map(left).min()
    }
}
