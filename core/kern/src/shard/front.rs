//! The shortest way through an entry: the first of a queue comes, goes, or goes behind its equals.
//!
//! Most wake-ups that matter are of a thread that goes before all others, most waits are those of
//! such a thread, and most yields are among equals. Then one call of the policy changes its queue
//! and says who runs, nothing else is looked at, and the entry is reported in one piece. What is
//! less plain takes the way of all others ([`super::fast`]).

use punctual_model::{Instant, ThreadId, Work};
use punctual_order::{Band, Choice, Next, Policy};

use super::{FastOutcome, Front, Shard, Turn};
use crate::event::{Entry, Event};
use crate::thread::{JobStamp, State, Thread};
use crate::trace::{Sink, TraceEvent, WakeCause};

impl<P: Policy> Shard<P> {
    /// [`Event::Yield`] on the shortest way. A platform tries that where it knows the event, before
    /// [`Shard::handle_fast`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn yield_front<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Front {
        match self.runs_until(now) {
            Some(id) if self.threads[id.index()].goes_behind_its_equals() => {
                // Where it is queued, and on what it runs, is part of that.
                let on_budget = |_: &Thread| true;
                // As in `checked`, whose closure may become a call: that takes 65 instructions.
                let front = self.yield_turn(now, (id, Band::RealTime), on_budget, sink);
                debug_assert_eq!(self.check(), Ok(()));
                front
            }
            _ => Front::Closed,
        }
    }

    /// [`Event::Wake`] on the shortest way, as [`Shard::yield_front`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn wake_front<S: Sink>(&mut self, now: Instant, other: ThreadId, sink: &mut S) -> Front {
        match self.runs_until(now) {
            Some(id) => self.checked(|shard| shard.wake_turn(now, id, other, sink)),
            None => Front::Closed,
        }
    }

    /// [`Event::Block`] without a time-out on the shortest way, as [`Shard::yield_front`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn block_front<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Front {
        match self.runs_until(now) {
            Some(id) => self.checked(|shard| shard.block_turn(now, id, sink)),
            None => Front::Closed,
        }
    }

    /// Who has run up to `now`, if the shortest way is open: one instant is that of the platform
    /// and of the core, and nothing is due.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn runs_until(&self, now: Instant) -> Option<ThreadId> {
        // In this form it is part of what a platform asks that knows the interval.
        let is_later = self.passed(now).ticks() <= u64::MAX / 2;
        self.running.filter(|_| is_later && now < self.fast_until)
    }

    /// Work up to `now`; more than half of all numbers where that is before the last entry. Two
    /// instants of a run are less than 2^63 ticks apart.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn passed(&self, now: Instant) -> Work {
        Work::from_ticks(now.ticks().wrapping_sub(self.now.ticks()))
    }

    /// What [`Front::Chosen`] stands for.
    pub fn chosen(&self, arm: Option<Instant>) -> FastOutcome {
        self.outcome(arm)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn checked(&mut self, turn: impl FnOnce(&mut Self) -> Front) -> Front {
        let front = turn(self);
        debug_assert_eq!(self.check(), Ok(()));
        front
    }

    /// The running thread lets others of the same urgency go first.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn yield_turn<S: Sink>(
        &mut self,
        now: Instant,
        (id, band): (ThreadId, Band),
        on_budget: impl FnOnce(&Thread) -> bool,
        sink: &mut S,
    ) -> Front {
        debug_assert_eq!(band, self.threads[id.index()].place);
        let Some(next) = self.tree.yield_to_next(id, band) else {
            return Front::Closed;
        };
        let chosen = self.threads.get(next.index());
        // Both are alive: they differ as their places do.
        if chosen.is_some_and(|chosen| chosen.runs_fast(next)) && next != id {
            let executed = self.passed(now);
            let t = &mut self.threads[id.index()];
            debug_assert!(t.queued, "I1");
            let on_budget = on_budget(t);
            t.book_before_end(executed, on_budget);
            t.gave_way = true;
            t.state = State::Ready;
            let chosen = &mut self.threads[next.index()];
            chosen.state = State::Running;
            let (budget, stamp) = (chosen.budget, JobStamp::of(chosen));
            let turn = self.begin_turn(now, next, (budget, stamp), false);
            sink.entry(now, &Event::Yield, Some(id), (next, Some(turn.arm)));
            return Front::Turn(turn);
        }
        Front::Chosen(self.give_way_to_pick(now, id, &Event::Yield, false, sink))
    }

    /// The running thread wakes one that waits and goes before all others, which runs at once.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn wake_turn<S: Sink>(
        &mut self,
        now: Instant,
        id: ThreadId,
        woken: ThreadId,
        sink: &mut S,
    ) -> Front {
        let executed = self.passed(now);
        let pair = [id.index(), woken.index()];
        let Ok([t, w]) = self.threads.get_disjoint_mut(pair) else {
            return Front::Closed;
        };
        let resumes = w.generation == woken.generation() && w.resumes_fast();
        // Work without guarantees has turns of its own, which are charged.
        if !resumes || t.place != Band::RealTime || !self.costs.cache_delay.is_zero() {
            return Front::Closed;
        }
        debug_assert!(w.awaits_wake() && w.may_run_fast() && self.locks.is_apart(woken.index()));
        if !self.tree.wake_to_run(woken, &w.own_attributes()) {
            return Front::Closed;
        }
        debug_assert!(t.queued && t.state == State::Running, "I1, I2");
        t.book_fast(executed);
        t.state = State::Ready;
        w.state = State::Running;
        w.queued = true;
        w.gave_way = false;
        w.place = Band::RealTime;
        let (budget, stamp) = (w.budget, JobStamp::of(w));
        let turn = self.begin_turn(now, woken, (budget, stamp), true);
        let change = TraceEvent::Woken {
            thread: woken,
            cause: WakeCause::Wake,
        };
        let run = (id, woken, Some(turn.arm));
        sink.entry_of_change(now, &Event::Wake(woken), change, run);
        Front::Turn(turn)
    }

    /// The running thread waits until it is woken, and the next one of its queue runs.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn block_turn<S: Sink>(
        &mut self,
        now: Instant,
        id: ThreadId,
        sink: &mut S,
    ) -> Front {
        let executed = self.passed(now);
        let t = &mut self.threads[id.index()];
        let Some(job) = &mut t.job else {
            return Front::Closed;
        };
        if t.wake_pending || !self.costs.cache_delay.is_zero() {
            return Front::Closed;
        }
        let Some(next) = self.tree.block_to_next(id, t.place) else {
            return Front::Closed;
        };
        debug_assert!(t.queued && t.state == State::Running, "I1, I2");
        job.gave_up = true;
        let change = TraceEvent::Blocked {
            thread: id,
            job: job.index,
            for_predecessors: false,
        };
        t.book_fast(executed);
        t.state = State::Blocked;
        t.waits_plainly = true;
        t.queued = false;
        let chosen = self.threads.get_mut(next.index());
        let Some(chosen) = chosen.filter(|chosen| chosen.runs_fast(next)) else {
            (self.now, self.since) = (now, now);
            return Front::Chosen(self.choose_instead(now, change, sink));
        };
        chosen.state = State::Running;
        let (budget, stamp) = (chosen.budget, JobStamp::of(chosen));
        let turn = self.begin_turn(now, next, (budget, stamp), false);
        let (event, run) = (Event::Block { until: None }, (id, next, Some(turn.arm)));
        sink.entry_of_change(now, &event, change, run);
        Front::Turn(turn)
    }

    /// `next` runs from now on, which is counted, and until when entries may take the fast path.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn begin_turn(
        &mut self,
        now: Instant,
        next: ThreadId,
        (budget, stamp): (Work, JobStamp),
        preempts: bool,
    ) -> Turn {
        let choice = Choice {
            next: Next::Thread(next),
            until: None,
        };
        debug_assert_eq!(self.tree.pick(now), choice, "one step chose without an end");
        (self.now, self.since) = (now, now);
        self.running = Some(next);
        self.count_switch(preempts);
        self.counters.decisions += 1;
        let end = now.saturating_add(budget.as_span());
        let arm = self.timeline.next_or_end().min(end);
        self.fast_until = arm;
        Turn { next, arm, stamp }
    }

    /// Something speaks against who is next: chooses again on the slow path.
    #[cold]
    #[inline(never)]
    fn choose_instead<S: Sink>(
        &mut self,
        now: Instant,
        change: TraceEvent,
        sink: &mut S,
    ) -> Option<Instant> {
        sink.begin(&Entry::at(now, &Event::Block { until: None }));
        self.yields = false;
        sink.trace(now, change);
        self.decide_slowly(now, sink)
    }
}
