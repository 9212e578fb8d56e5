//! The shortest way through an entry by which a thread comes or goes.
//!
//! That is a release by the clock, a creation, or the end of the running thread.
//! Most releases that matter are of a job that goes before all others, and many threads that are
//! created run at once and end soon. One call of the policy changes its queue and says who runs, as
//! for a wake-up ([`super::front`]); the job starts on its whole budget, and the entry is reported
//! in one piece. What is less plain takes the ways of all others ([`super::due`],
//! [`Shard::handle_birth`]).

use punctual_model::{Class, Constraint, Instant, Priority, Span, ThreadId, Work};
use punctual_order::{Attributes, Band, Policy};

use super::{Front, Shard};
use crate::event::{Entry, Event};
use crate::thread::{Costs, Job, JobStamp, Key, State, Thread};
use crate::timeline::Timer;
use crate::trace::{Outcome, Sink, TraceEvent};
use crate::traits::Traits;

impl<P: Policy> Shard<P> {
    /// [`Event::Tick`] on the shortest way, when the first timer is due, or was: it releases a job
    /// that goes before all others, or the CPU is idle. A platform tries that where its timer has
    /// come.
    #[inline]
    pub fn release_front<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Front {
        let now = now.max(self.now);
        // The first instant stands for a path that is closed.
        match self.running {
            Some(id) if self.fast_until > Instant::ZERO => {
                self.checked(|shard| shard.release_turn(now, id, sink))
            }
            Some(_) => Front::Closed,
            None => self.release_idle(now, sink),
        }
    }

    /// [`Event::Create`], which `event` is, on the shortest way, as [`Shard::yield_front`]: the
    /// thread runs at once.
    #[inline]
    pub fn create_front<S: Sink>(&mut self, now: Instant, event: &Event, sink: &mut S) -> Front {
        let now = now.max(self.now);
        match self.running.filter(|_| now < self.fast_until) {
            Some(id) => self.checked(|shard| shard.create_turn(now, id, event, sink)),
            None => Front::Closed,
        }
    }

    /// [`Event::Exit`] on the shortest way, as [`Shard::yield_front`].
    #[inline]
    pub fn exit_front<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Front {
        let now = now.max(self.now);
        match self.running.filter(|_| now < self.fast_until) {
            Some(id) => self.checked(|shard| shard.exit_turn(now, id, sink)),
            None => Front::Closed,
        }
    }

    /// The first timer, and no other, is due: its thread has a job that goes before all others.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn release_turn<S: Sink>(&mut self, now: Instant, id: ThreadId, sink: &mut S) -> Front {
        let Some(at) = self.timeline.next().filter(|&at| at <= now) else {
            return Front::Closed;
        };
        let (thread, timer) = self.timeline.first();
        let Ok([t, r]) = self.threads.get_disjoint_mut([id.index(), thread]) else {
            return Front::Closed;
        };
        let Some((stream, next)) = Stream::of(&r.constraint, at) else {
            return Front::Closed;
        };
        let executed = now.since(self.now).as_work();
        // Work without guarantees has turns of its own, which are charged.
        let is_plain = timer == Timer::Release
            && t.place == Band::RealTime
            && next > now
            && r.comes_fast()
            // Less is owed than this budget.
            && stream.wcet > r.owed.saturating_add(self.costs.grace)
            && t.allowance().is_none_or(|left| executed < left)
            && self.costs.cache_delay.is_zero()
            && !r.traits.has(Traits::HAS_PREDECESSORS)
            && self.timeline.others_are_later(now);
        let comes = r.id(thread);
        if !is_plain || !self.tree.wake_to_run(comes, &stream.attributes(at)) {
            return Front::Closed;
        }
        debug_assert!(t.queued && t.state == State::Running, "I1, I2");
        debug_assert!(r.may_run_fast() && self.locks.is_apart(thread));
        t.book_fast(executed);
        t.state = State::Ready;
        let job = Job::new(r.next_index, at, stream.deadline(at));
        r.next_index += 1;
        r.next_release = next;
        r.granted += 1;
        let (budget, stamp) = r.start_fast(job, self.costs);
        self.timeline.defer_first(next);
        self.begin_job(now, at, thread);
        let turn = self.begin_turn(now, comes, (budget, stamp), true);
        let run = (id, comes, Some(turn.arm));
        sink.entry_of_changes(now, &Event::Tick, begins(comes, &job, budget), run);
        Front::Turn(turn)
    }

    /// The running thread creates one that is released at once and goes before all others.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn create_turn<S: Sink>(
        &mut self,
        now: Instant,
        id: ThreadId,
        event: &Event,
        sink: &mut S,
    ) -> Front {
        let Event::Create(constraint) = event else {
            return Front::Closed;
        };
        let (Some(place), Some((stream, next))) = (self.free.first(), Stream::of(constraint, now))
        else {
            return Front::Closed;
        };
        let thread = place as usize;
        let Ok([t, new]) = self.threads.get_disjoint_mut([id.index(), thread]) else {
            return Front::Closed;
        };
        let is_plain = t.place == Band::RealTime
            && constraint.phase.is_zero()
            && constraint.is_valid()
            && self.costs.cache_delay.is_zero();
        let comes = new.id(thread);
        if !is_plain || !self.tree.attach_flat(comes) {
            return Front::Closed;
        }
        if !self.tree.wake_to_run(comes, &stream.attributes(now)) {
            self.tree.detach_flat(comes);
            return Front::Closed;
        }
        debug_assert!(t.queued && t.state == State::Running, "I1, I2");
        debug_assert!(!new.traits.has(Traits::HAS_PREDECESSORS) && self.locks.is_apart(thread));
        t.book_fast(now.since(self.now).as_work());
        t.state = State::Ready;
        let job = Job::new(0, now, stream.deadline(now));
        *new = Thread {
            generation: new.generation,
            traits: new.traits.of_place().with(Traits::RUNS_PER_JOB, true),
            constraint: *constraint,
            first_arrival: now,
            next_index: 1,
            next_release: next,
            granted: 1,
            ..Thread::default()
        };
        let (budget, stamp) = new.start_fast(job, self.costs);
        self.free.take(place);
        self.last_created = Some(comes);
        self.timeline
            .set(thread, Timer::Release, next, constraint.order);
        self.begin_job(now, now, thread);
        let turn = self.begin_turn(now, comes, (budget, stamp), true);
        let created = TraceEvent::Created { thread: comes };
        let (released, started) = begins(comes, &job, budget);
        let (changes, run) = ((created, released, started), (id, comes, Some(turn.arm)));
        sink.entry_of_birth(now, event, changes, run);
        Front::Turn(turn)
    }

    /// The running thread ends in the middle of its job; it has nothing that others wait for.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn exit_turn<S: Sink>(&mut self, now: Instant, id: ThreadId, sink: &mut S) -> Front {
        let thread = id.index();
        let t = &self.threads[thread];
        let is_plain = t.job.as_ref().is_some_and(|job| !job.settled)
            && t.key == Key::Own
            && !t.asks
            && t.backlog.is_empty()
            && self.costs.cache_delay.is_zero()
            && self.locks.is_apart(thread)
            && !self.locks.has_to_look()
            && !t.traits.has(Traits::HAS_PREDECESSORS)
            && !t.traits.has(Traits::IS_FOLLOWED);
        let next = match is_plain {
            true => self.tree.block_to_next(id, t.place),
            false => None,
        };
        let Some(next) = next else {
            return Front::Closed;
        };
        let t = &mut self.threads[thread];
        debug_assert!(t.queued && t.state == State::Running, "I1, I2");
        debug_assert!(t.held == 0 && !t.inherits);
        t.book_fast(now.since(self.now).as_work());
        let Some(job) = t.job.take() else {
            debug_assert!(false, "looked at above");
            return Front::Closed;
        };
        t.queued = false;
        self.rares.leave(t);
        t.state = State::Dead;
        t.generation += 1;
        self.timeline.cancel(thread, Timer::Release);
        self.timeline.cancel(thread, Timer::Timeout);
        self.locks.forget_declared(thread);
        self.tree.detach_flat(id);
        self.free.give_back(thread);
        self.unsettled -= u64::from(job.arrival < self.horizon);
        let completed = TraceEvent::Completed {
            thread: id,
            job: job.index,
            outcome: Outcome::Aborted,
            arrival: job.arrival,
            deadline: job.absolute_deadline,
            received: job.received,
        };
        let changes = (completed, TraceEvent::Ended { thread: id });
        let chosen = self.threads.get_mut(next.index());
        let Some(chosen) = chosen.filter(|chosen| chosen.runs_fast(next)) else {
            (self.now, self.since) = (now, now);
            return Front::Chosen(self.choose_after_exit(now, changes, sink));
        };
        chosen.state = State::Running;
        let (budget, stamp) = (chosen.budget, JobStamp::of(chosen));
        let turn = self.begin_turn(now, next, (budget, stamp), false);
        let run = (id, next, Some(turn.arm));
        sink.entry_of_changes(now, &Event::Exit, changes, run);
        Front::Turn(turn)
    }

    /// A job that arrived at `arrival` begins in this entry, which is the release's.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn begin_job(&mut self, now: Instant, arrival: Instant, thread: usize) {
        self.unsettled += u64::from(arrival < self.horizon);
        if !self.costs.entry.is_zero() {
            self.now = now;
            self.spare(thread);
        }
    }

    /// Something speaks against who is next: chooses again on the slow path.
    #[cold]
    #[inline(never)]
    fn choose_after_exit<S: Sink>(
        &mut self,
        now: Instant,
        (completed, ended): (TraceEvent, TraceEvent),
        sink: &mut S,
    ) -> Option<Instant> {
        sink.begin(&Entry::at(now, &Event::Exit));
        self.yields = false;
        sink.trace(now, completed);
        sink.trace(now, ended);
        self.decide_slowly(now, sink)
    }
}

/// What a job is reported to begin with.
#[cfg_attr(not(debug_assertions), inline(always))]
fn begins(thread: ThreadId, job: &Job, budget: Work) -> (TraceEvent, TraceEvent) {
    let released = TraceEvent::Released {
        thread,
        job: job.index,
        arrival: job.arrival,
        deadline: job.absolute_deadline,
    };
    let started = TraceEvent::Started {
        thread,
        job: job.index,
        budget: Some(budget),
    };
    (released, started)
}

/// Periodic jobs that the clock releases, as far as one of them is looked at.
struct Stream {
    wcet: Work,
    relative_deadline: Span,
    priority: Priority,
    order: u32,
}

impl Stream {
    /// The stream of a constraint under which a job arrives at `at`, and when the next one does.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn of(constraint: &Constraint, at: Instant) -> Option<(Stream, Instant)> {
        let Class::Periodic {
            period,
            wcet,
            relative_deadline,
        } = constraint.class
        else {
            return None;
        };
        if constraint.fed || at >= constraint.until {
            return None;
        }
        let stream = Stream {
            wcet,
            relative_deadline,
            priority: constraint.priority,
            order: constraint.order,
        };
        Some((stream, at.checked_add(period)?))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn deadline(&self, arrival: Instant) -> Instant {
        arrival.saturating_add(self.relative_deadline)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn attributes(&self, arrival: Instant) -> Attributes {
        Attributes {
            priority: self.priority,
            absolute_deadline: self.deadline(arrival),
            release: arrival,
            order: self.order,
        }
    }
}

impl Thread {
    /// Whether nothing has to be looked into when its next job is released.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn comes_fast(&self) -> bool {
        self.state == State::Idle && self.key == Key::Own && !self.changes
    }

    /// Its job begins and runs at once, on the last allotment that was granted.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn start_fast(&mut self, job: Job, costs: Costs) -> (Work, JobStamp) {
        self.band = Band::RealTime;
        self.place = Band::RealTime;
        self.has_drained = false;
        self.queued = true;
        self.gave_way = false;
        self.state = State::Running;
        self.last_arrival = job.arrival;
        self.take_allotment(self.granted, costs, false);
        self.job = Some(job);
        debug_assert!(!self.budget.is_zero(), "it has budget");
        (self.budget, JobStamp::of(self))
    }
}
