//! The shortest way of a job that comes on an idle CPU, by the clock, or ends.
//!
//! Nearly all releases are those of a thread that has done its jobs, goes on as it is, and comes
//! again by the clock; and most jobs end with nothing behind them. Such an entry does what
//! `release` and `job` do, without a look at what cannot be, and is reported in one piece. Where
//! more turns out to be due, the entry goes on from there in its parts. A release beside a thread
//! that runs is in `come`.

use punctual_model::{Class, Instant, ThreadId, Work};
use punctual_order::{Band, Choice, Next, Policy};

use super::{Front, MAX_RELEASES_PER_ENTRY, Shard};
use crate::event::{Entry, Event};
use crate::thread::{Job, Key, State, Thread};
use crate::timeline::Timer;
use crate::trace::{Outcome, Sink, TraceEvent};
use crate::traits::Traits;

impl<P: Policy> Shard<P> {
    /// [`Shard::release_front`] while nobody runs.
    #[inline(never)]
    pub(super) fn release_idle<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Front {
        let arm = match self.may_be_due(now) {
            true => self.release_alone(now, sink),
            false => None,
        };
        self.checked(|_| arm.map_or(Front::Closed, Front::Chosen))
    }

    /// [`Event::Complete`] on the shortest way. A platform tries that where it knows the event,
    /// before [`Shard::handle_fast`].
    #[inline(never)]
    pub fn complete_front<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Front {
        let now = now.max(self.now);
        let arm = match self.running.filter(|_| self.may_be_due(now)) {
            Some(id) => self.complete_turn(now, id, sink),
            None => None,
        };
        self.checked(|_| arm.map_or(Front::Closed, Front::Chosen))
    }

    /// The first timer releases a job at `now`, and nothing else is known to be due. When to enter
    /// again; `None`: it is not like that, and nothing has happened.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn release_alone<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Option<Option<Instant>> {
        if self.timeline.next() != Some(now) || !self.costs.entry.is_zero() {
            return None;
        }
        let (thread, timer) = self.timeline.first();
        let next = self.threads.get(thread)?.next_if_plain(now)?;
        let is_plain = timer == Timer::Release && self.costs.cache_delay.is_zero();
        if !is_plain || self.threads[thread].traits.has(Traits::HAS_PREDECESSORS) {
            return None;
        }
        let t = &self.threads[thread];
        debug_assert!(t.job.is_none() && t.backlog.is_empty());
        self.timeline.defer_first(next);
        (self.now, self.since) = (now, now);
        self.yields = false;
        self.unsettled += u64::from(now < self.horizon);
        let t = &mut self.threads[thread];
        t.next_release = next;
        let changes = t.release(thread, now);
        t.take_allotment(t.granted, self.costs, false);
        let (id, budget) = (t.id(thread), t.budget);
        let started = TraceEvent::Started {
            thread: id,
            job: t.job_index(),
            budget: Some(budget),
        };
        if budget.is_zero() {
            return Some(self.go_on_in_parts(now, (changes, started), Some(thread), sink));
        }
        let attributes = t.own_attributes();
        t.become_ready();
        let mut choice = Choice {
            next: Next::Thread(id),
            until: None,
        };
        if !self.tree.wake_to_run(id, &attributes) {
            self.tree.wake(now, now, id, &attributes, Band::RealTime);
            choice = self.tree.pick(now);
        }
        let is_alone = self.timeline.next().is_none_or(|at| at > now);
        if !is_alone || choice.next != Next::Thread(id) {
            return Some(self.go_on_in_parts(now, (changes, started), None, sink));
        }
        self.threads[thread].state = State::Running;
        self.running = Some(id);
        self.count_switch(false);
        self.counters.decisions += 1;
        let arm = self.set_arm::<false>(now, choice.until, Some(budget));
        let (changes, run) = ((changes, Some(started)), (None, Some(id), arm));
        sink.entry_of_job(now, &Event::Tick, changes, run);
        Some(arm)
    }

    /// A release after which more is due, or another thread runs: the rest of the entry. `spent`:
    /// the thread of the release has no budget.
    #[cold]
    #[inline(never)]
    fn go_on_in_parts<S: Sink>(
        &mut self,
        now: Instant,
        (released, started): (TraceEvent, TraceEvent),
        spent: Option<usize>,
        sink: &mut S,
    ) -> Option<Instant> {
        sink.begin(&Entry::at(now, &Event::Tick));
        sink.trace(now, released);
        sink.trace(now, started);
        if let Some(thread) = spent {
            self.exhaust(thread, sink);
        }
        let _ = self.serve_own_timers(false, MAX_RELEASES_PER_ENTRY - 1, sink);
        self.enforce_budget(now, sink);
        self.decide_when_due(now, sink)
    }

    /// The running thread has done its job, behind which nothing waits. When to enter again;
    /// `None`: more has to be looked at, and nothing has happened.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn complete_turn<S: Sink>(
        &mut self,
        now: Instant,
        id: ThreadId,
        sink: &mut S,
    ) -> Option<Option<Instant>> {
        let thread = id.index();
        let t = self.threads.get(thread)?;
        let job = t.job.filter(|job| !job.settled && t.ends_plainly())?;
        let is_due = self.timeline.next().is_some_and(|at| at <= now);
        let costs = !self.costs.stop.is_zero() || !self.costs.cache_delay.is_zero();
        if is_due || costs || t.traits.has(Traits::IS_FOLLOWED) {
            return None;
        }
        debug_assert!(t.queued && t.state == State::Running, "I1, I2");
        debug_assert!(!t.asks && self.locks.waits_for(thread).is_none());
        self.charge_fast(now, id);
        self.yields = false;
        self.unsettled -= u64::from(job.arrival < self.horizon);
        let t = &mut self.threads[thread];
        let completed = TraceEvent::Completed {
            thread: id,
            job: job.index,
            outcome: match job.stop {
                true => Outcome::Stopped,
                false => Outcome::Done,
            },
            arrival: job.arrival,
            deadline: job.absolute_deadline,
            received: t.job.map_or(Work::ZERO, |job| job.received),
        };
        let place = t.place;
        t.queued = false;
        t.job = None;
        t.state = State::Idle;
        self.tree.block(now, id, place);
        let choice = self.tree.pick(now);
        let (next, budget) = match self.may_run(choice) {
            Some((next, budget, _)) => (Some(next), budget),
            None if choice.next == Next::Idle => (None, None),
            None => return Some(self.choose_after(now, completed, sink)),
        };
        if let Some(next) = next {
            self.threads[next.index()].state = State::Running;
        }
        self.running = next;
        self.count_switch(false);
        self.counters.decisions += 1;
        let arm = self.set_arm::<false>(now, choice.until, budget);
        let (changes, run) = ((completed, None), (Some(id), next, arm));
        sink.entry_of_job(now, &Event::Complete, changes, run);
        Some(arm)
    }

    /// Something speaks against who is next: chooses again on the slow path.
    #[cold]
    #[inline(never)]
    fn choose_after<S: Sink>(
        &mut self,
        now: Instant,
        completed: TraceEvent,
        sink: &mut S,
    ) -> Option<Instant> {
        sink.begin(&Entry::at(now, &Event::Complete));
        sink.trace(now, completed);
        self.decide_slowly(now, sink)
    }
}

impl Thread {
    /// When the clock releases a job after the one of `now`, if this one finds the thread idle, as
    /// urgent as by itself, and going on as it is.
    #[inline]
    fn next_if_plain(&self, now: Instant) -> Option<Instant> {
        let Class::Periodic { period, .. } = self.constraint.class else {
            return None;
        };
        let is_plain = self.state == State::Idle && self.key == Key::Own && !self.changes;
        if !is_plain || !self.may_run_fast() || self.constraint.fed || now >= self.constraint.until
        {
            return None;
        }
        now.checked_add(period)
    }

    /// Its next job is released, and begins.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn release(&mut self, index: usize, now: Instant) -> TraceEvent {
        let (job, deadline) = (self.next_index, self.deadline_of(now));
        self.next_index += 1;
        self.last_arrival = now;
        self.granted += 1;
        self.band = Band::RealTime;
        self.has_drained = false;
        self.job = Some(Job::new(job, now, deadline));
        TraceEvent::Released {
            thread: self.id(index),
            job,
            arrival: now,
            deadline,
        }
    }

    #[inline]
    fn become_ready(&mut self) {
        self.state = State::Ready;
        self.queued = true;
        self.gave_way = false;
        self.place = Band::RealTime;
    }

    /// Whether its job ends, and nothing follows from that for itself.
    #[inline]
    fn ends_plainly(&self) -> bool {
        debug_assert!(self.held == 0 && !self.in_section);
        self.traits.has(Traits::RUNS_PER_JOB) && self.backlog.is_empty() && !self.changes
    }
}
