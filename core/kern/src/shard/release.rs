//! Jobs come: by the clock, or as arrivals that are policed.

use punctual_model::{Class, Constraint, Instant, Late, ThreadId};
use punctual_order::{Band, NodeId, Policy, Refusal};

use super::Shard;
use crate::event::Message;
use crate::pending::PendingJob;
use crate::precedence::Source;
use crate::thread::{State, Thread, has_slices};
use crate::timeline::Timer;
use crate::trace::{Outcome, Sink, TraceEvent};
use crate::traits::Traits;

impl<P: Policy> Shard<P> {
    pub(super) fn create<S: Sink>(
        &mut self,
        home: NodeId,
        constraint: Constraint,
        sink: &mut S,
    ) -> Result<ThreadId, Refusal> {
        let id = self.begin(home, constraint, sink)?;
        self.await_first_release(id.index());
        Ok(id)
    }

    /// As [`Shard::create`], at an instant at which nothing else is due: what is released at once
    /// needs no timer for that.
    pub(super) fn create_alone<S: Sink>(
        &mut self,
        home: NodeId,
        constraint: Constraint,
        sink: &mut S,
    ) -> Result<ThreadId, Refusal> {
        let id = self.begin(home, constraint, sink)?;
        let (thread, at) = (id.index(), self.now);
        let t = &mut self.threads[thread];
        let is_released = constraint.released_by_clock() && t.first_arrival == at;
        if !is_released || at >= constraint.until {
            self.await_first_release(thread);
            return Ok(id);
        }
        let next = constraint.separation().and_then(|s| at.checked_add(s));
        if let Some(next) = next {
            t.next_release = next;
            self.set_timer(thread, Timer::Release, next);
        }
        if !self.costs.entry.is_zero() {
            self.spare(thread);
        }
        self.release(thread, at, sink);
        Ok(id)
    }

    /// A thread begins, and waits for its first release.
    fn begin<S: Sink>(
        &mut self,
        home: NodeId,
        constraint: Constraint,
        sink: &mut S,
    ) -> Result<ThreadId, Refusal> {
        if !constraint.is_valid() {
            return Err(Refusal::InvalidConstraint);
        }
        let place = self.free.first().ok_or(Refusal::NoThreadLeft)?;
        let index = place as usize;
        let Thread {
            generation, traits, ..
        } = self.threads[index];
        self.tree.attach(self.threads[index].id(index), home)?;
        self.free.take(place);
        self.threads[index] = Thread {
            generation,
            traits: traits.of_place(),
            state: State::Idle,
            ..Thread::default()
        };
        let id = self.threads[index].id(index);
        self.last_created = Some(id);
        sink.trace(self.now, TraceEvent::Created { thread: id });
        self.install(self.now, index, constraint);
        Ok(id)
    }

    /// Puts a constraint in force; the first arrival is a phase after `from`. Who has just begun
    /// inherits nothing; who goes on may ([`Shard::inherit`]).
    fn install(&mut self, from: Instant, thread: usize, constraint: Constraint) {
        let t = &mut self.threads[thread];
        if !t.traits.has(Traits::RUNS_PER_JOB) || t.taken == 0 {
            // No job has used a grace.
            t.budget = self.costs.grace;
        }
        t.has_slices = has_slices(&constraint);
        t.constraint = constraint;
        let per_job = constraint.class.runs_per_job();
        t.traits = t.traits.with(Traits::RUNS_PER_JOB, per_job);
        t.band = t.own_band();
        t.first_arrival = from.saturating_add(constraint.phase);
        t.first_index = t.next_index;
        t.next_release = t.first_arrival;
    }

    /// The timer of the first release under a constraint.
    fn await_first_release(&mut self, thread: usize) {
        let t = &self.threads[thread];
        if t.constraint.released_by_clock() {
            let at = t.next_release;
            self.set_timer(thread, Timer::Release, at);
        } else {
            self.timeline.cancel(thread, Timer::Release);
        }
    }

    /// Arrivals that waited for a change: the new constraint spaces them, or has no use for them.
    fn take_over_arrivals<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        let t = &mut self.threads[thread];
        let early = self.rares.early(t);
        if early > 0 && matches!(t.constraint.class, Class::Sporadic { .. }) {
            let at = t.next_release;
            self.set_timer(thread, Timer::Release, at);
            return;
        }
        self.rares.set_early(t, 0);
        for _ in 0..early {
            self.lose(thread, sink);
        }
        let t = &mut self.threads[thread];
        t.first_index = t.next_index;
    }

    pub(super) fn change<S: Sink>(
        &mut self,
        thread: usize,
        constraint: Constraint,
        sink: &mut S,
    ) -> Result<(), Refusal> {
        if !constraint.is_valid() {
            return Err(Refusal::InvalidConstraint);
        }
        let t = &mut self.threads[thread];
        // From now on a reservation's period runs to its zero-lag instant, and everything else
        // releases no more ([`Thread::is_closed`]); a throttled job still gets its budgets.
        self.rares.set_change(t, constraint);
        if t.can_change_at_once() && t.queued {
            self.finish(thread, Outcome::Done, sink);
        } else if t.job.is_none() {
            self.commit_change(thread, sink);
        }
        Ok(())
    }

    /// Puts a pending change in force. Zero lag is reached when the next job could have come, or at
    /// the last absolute deadline if that is later: from then on the bandwidth of the old
    /// constraint is free. (At a nearer deadline the last job is still ahead of its rate.) As long
    /// as nothing was released since an earlier change, that one's instant holds.
    pub(super) fn commit_change<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        let t = &mut self.threads[thread];
        let Some(constraint) = self.rares.take_change(t) else {
            return;
        };
        let zero_lag = t.lag_until(self.now, &self.rares);
        self.rares.set_zero_lag(t, zero_lag);
        self.tell(sink, thread, |thread, _| TraceEvent::Changed { thread });
        self.install(zero_lag, thread, constraint);
        self.await_first_release(thread);
        self.inherit(thread);
        self.take_over_arrivals(thread, sink);
    }

    /// From when on the phase of another constraint counts, if a thread asks for one now and its
    /// job ends before that; `None` for a stale id. O(1).
    pub fn change_counts_from(&self, thread: ThreadId, now: Instant) -> Option<Instant> {
        Some(self.thread(thread).ok()?.lag_until(now, &self.rares))
    }

    /// Serves timers that are due before `now` (or at it), at most `quota`; returns what is left of
    /// the quota.
    #[inline]
    pub(super) fn serve_timers<S: Sink>(
        &mut self,
        now: Instant,
        strictly: bool,
        mut quota: usize,
        sink: &mut S,
    ) -> usize {
        self.more = false;
        let is_due = |at: Instant| at < now || (at == now && !strictly);
        if self.timeline.next().is_some_and(is_due) {
            quota = self.serve_own_timers(strictly, quota, sink);
        }
        if !self.tree.is_flat() {
            self.tree.serve_timers(now, strictly, &mut |node, budget| {
                sink.trace(now, TraceEvent::budget(node, budget));
            });
            if !strictly && self.tree.is_replacing() {
                self.replace_some(sink);
            }
        }
        quota
    }

    #[inline(never)]
    pub(super) fn serve_own_timers<S: Sink>(
        &mut self,
        strictly: bool,
        mut quota: usize,
        sink: &mut S,
    ) -> usize {
        let most = quota;
        while let Some(at) = self.timeline.next() {
            if at > self.now || (strictly && at == self.now) {
                break;
            }
            if quota == 0 {
                self.more = true;
                break;
            }
            quota -= 1;
            let (thread, timer) = self.timeline.first();
            self.tree.catch_up(self.now, at);
            self.since = at;
            match timer {
                Timer::Release => self.serve_release(thread, at, sink),
                Timer::Timeout => self.time_out(thread, sink),
            }
        }
        self.since = self.now;
        sink.served(most - quota);
        quota
    }

    /// Its timer is the earliest of all.
    fn serve_release<S: Sink>(&mut self, thread: usize, at: Instant, sink: &mut S) {
        let t = &mut self.threads[thread];
        let next = t.constraint.separation().and_then(|s| at.checked_add(s));
        let by_clock = t.constraint.released_by_clock();
        match next {
            Some(next) => {
                t.next_release = next;
                self.timeline.defer_first(next);
            }
            None => self.timeline.cancel(thread, Timer::Release),
        }
        let t = &self.threads[thread];
        if at >= t.constraint.until || t.is_closed() {
            self.replenish_past_the_end(thread, at, sink);
            return;
        }
        if by_clock {
            if !self.costs.entry.is_zero() {
                self.spare(thread);
            }
            self.release(thread, at, sink);
            return;
        }
        // A policed thread: an early arrival may come now; else a throttled job gets its budget,
        // which uses up this place in the stream of releases.
        let t = &mut self.threads[thread];
        let early = self.rares.early(t);
        if early > 0 {
            self.rares.set_early(t, early - 1);
            self.release(thread, at, sink);
        } else if t.state == State::Throttled {
            t.last_arrival = at;
            self.replenish(thread, sink);
        } else {
            t.next_release = at;
        }
        let t = &self.threads[thread];
        if self.rares.early(t) == 0 && t.state != State::Throttled {
            self.timeline.cancel(thread, Timer::Release);
        }
    }

    /// No more releases; but a throttled job still gets its budgets, at the same instants.
    fn replenish_past_the_end<S: Sink>(&mut self, thread: usize, at: Instant, sink: &mut S) {
        let t = &mut self.threads[thread];
        let reservation = matches!(t.constraint.class, Class::Reservation { .. });
        if t.job.is_none() || reservation {
            self.end_period(thread, sink);
            self.timeline.cancel(thread, Timer::Release);
        } else if t.state == State::Throttled {
            t.last_arrival = at;
            self.replenish(thread, sink);
        }
    }

    pub(super) fn arrive<S: Sink>(
        &mut self,
        id: ThreadId,
        arrival: Instant,
        sink: &mut S,
    ) -> Result<(), Refusal> {
        let thread = id.index();
        let t = &mut self.threads[thread];
        if t.constraint.released_by_clock() {
            return Err(Refusal::NotSporadic(id));
        }
        if arrival >= t.constraint.until {
            return Ok(());
        }
        let Some(separation) = t.constraint.separation() else {
            self.release(thread, arrival, sink);
            return Ok(());
        };
        let early = self.rares.early(t);
        let first = t.next_index == t.first_index && arrival >= self.rares.zero_lag(t);
        // While a change is pending, arrivals wait for the new constraint.
        if !t.is_closed() && early == 0 && (first || arrival >= t.next_release) {
            t.next_release = arrival.saturating_add(separation);
            self.release(thread, arrival, sink);
            // A replenishment that was due at this place of the stream came with the release; what
            // is still throttled waits for the next place.
            let t = &self.threads[thread];
            if t.state == State::Throttled {
                let at = t.next_release;
                self.set_timer(thread, Timer::Release, at);
            } else {
                self.timeline.cancel(thread, Timer::Release);
            }
            return Ok(());
        }
        let backlog = match t.constraint.late {
            Late::Queue { backlog } => backlog,
            Late::Skip => 0,
        };
        if early >= backlog.max(1) || u64::from(early) >= self.pool.capacity() {
            self.lose(thread, sink);
            return Ok(());
        }
        self.rares.set_early(t, early + 1);
        let at = t.next_release;
        if !self.timeline.is_set(thread, Timer::Release) {
            self.set_timer(thread, Timer::Release, at);
        }
        Ok(())
    }

    /// A job of `thread` that arrived at `arrival` is released.
    pub(super) fn release<S: Sink>(&mut self, thread: usize, arrival: Instant, sink: &mut S) {
        let t = &mut self.threads[thread];
        if let Class::Reservation { .. } = t.constraint.class {
            return self.renew(thread, arrival, sink);
        }
        let job = t.next_index;
        t.next_index += 1;
        t.last_arrival = arrival;
        if t.job.is_none() {
            t.granted += 1;
            let pending = PendingJob {
                index: job,
                arrival,
                allotment: t.granted,
            };
            self.report_release(thread, job, arrival, sink);
            self.start(thread, pending, sink);
            return;
        }
        let throttled = t.state == State::Throttled;
        self.queue_behind(thread, job, arrival, sink);
        if throttled {
            self.replenish(thread, sink);
        }
    }

    /// The job before is unfinished: the release waits, or is dropped.
    fn queue_behind<S: Sink>(&mut self, thread: usize, job: u64, arrival: Instant, sink: &mut S) {
        let t = &mut self.threads[thread];
        let Late::Queue { backlog } = t.constraint.late else {
            return self.tell(sink, thread, |thread, _| TraceEvent::Skipped {
                thread,
                job,
            });
        };
        let pending = PendingJob {
            index: job,
            arrival,
            allotment: t.granted + 1,
        };
        if t.backlog.len() < backlog && self.pool.push(&mut t.backlog, pending) {
            t.granted += 1;
            if t.band == Band::Background {
                // The job before is demoted by its own overrun. Saved up, these allotments would
                // come as one burst that no bound of another task counts: they lapse.
                t.taken = t.granted;
            }
            self.report_release(thread, job, arrival, sink);
        } else {
            self.tell(sink, thread, |thread, _| TraceEvent::Lost { thread, job });
        }
    }

    /// Reports a job that is released, and counts it as unsettled.
    pub(super) fn report_release<S: Sink>(
        &mut self,
        thread: usize,
        job: u64,
        arrival: Instant,
        sink: &mut S,
    ) {
        self.unsettled += u64::from(self.counts(thread, arrival));
        self.tell(sink, thread, |thread, t| TraceEvent::Released {
            thread,
            job,
            arrival,
            deadline: t.deadline_of(arrival),
        });
    }

    /// An arrival for which there is no room.
    fn lose<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        let job = self.threads[thread].next_index;
        self.threads[thread].next_index += 1;
        self.tell(sink, thread, |thread, _| TraceEvent::Lost { thread, job });
    }

    /// News from another CPU.
    pub(super) fn hear<S: Sink>(&mut self, message: Message, sink: &mut S) -> Result<(), Refusal> {
        if !self.precedences.remote(message.slot, message.frontier) {
            return Err(Refusal::NoSuchSlot(message.slot));
        }
        let Message { slot, frontier, .. } = message;
        self.advance(Source::Remote { slot }, frontier, sink);
        Ok(())
    }

    /// Lets go every successor of `source` that waited for nothing else. O(successors · log n).
    pub(super) fn advance<S: Sink>(&mut self, source: Source, frontier: u64, sink: &mut S) {
        let mut next = self.precedences.first_edge_from(source);
        while let Some(edge) = next {
            next = self.precedences.edge_after(edge);
            if let Some(successor) = self.precedences.advance(edge, frontier) {
                self.predecessor_done(successor, sink);
            }
        }
    }
}
