//! Threads wait, and are woken, also when the wake-up comes first.

use punctual_model::{Class, Instant};
use punctual_order::{Band, Policy};

use super::Shard;
use crate::thread::State;
use crate::timeline::Timer;
use crate::trace::{Outcome, Sink, TraceEvent, WakeCause};

impl<P: Policy> Shard<P> {
    pub(super) fn block<S: Sink>(
        &mut self,
        now: Instant,
        thread: usize,
        until: Option<Instant>,
        sink: &mut S,
    ) {
        let t = &mut self.threads[thread];
        if t.job.is_none() {
            // What was due before a late entry has ended its job: its next one begins afresh, and
            // nobody may wake it before. Nor does a wake-up for this wait end a later one.
            t.wake_pending = false;
            return;
        }
        if core::mem::take(&mut t.wake_pending) {
            let cause = WakeCause::EarlyWake;
            self.tell(sink, thread, |thread, _| TraceEvent::Woken {
                thread,
                cause,
            });
            return;
        }
        self.suspend(thread, sink);
        self.set_timeout(thread, until.map(|until| until.max(now)));
    }

    /// A ready thread waits from now on.
    pub(super) fn suspend<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        if let Some(job) = &mut self.threads[thread].job {
            job.gave_up = true;
        }
        self.dequeue(thread);
        self.wait_as_job(thread, false, sink);
    }

    /// The job of a thread waits, by its own request or for predecessors.
    pub(super) fn wait_as_job<S: Sink>(
        &mut self,
        thread: usize,
        for_predecessors: bool,
        sink: &mut S,
    ) {
        let t = &mut self.threads[thread];
        (t.state, t.waits_plainly) = (State::Blocked, false);
        self.tell(sink, thread, |thread, t| TraceEvent::Blocked {
            thread,
            job: t.job_index(),
            for_predecessors,
        });
    }

    /// Wakes a thread that waits by its own request; else remembers the wake-up for its next wait.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn wake<S: Sink>(&mut self, now: Instant, thread: usize, sink: &mut S) {
        debug_assert_eq!(now, self.now);
        let t = &mut self.threads[thread];
        if t.awaits_wake() {
            self.resume(thread, WakeCause::Wake, sink);
        } else {
            t.wake_pending = true;
        }
    }

    pub(super) fn time_out<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        self.stop_asking(thread, sink);
        self.resume(thread, WakeCause::Timeout, sink);
    }

    pub(super) fn resume<S: Sink>(&mut self, thread: usize, cause: WakeCause, sink: &mut S) {
        self.timeline.cancel(thread, Timer::Timeout);
        let t = &self.threads[thread];
        if t.state != State::Blocked {
            return;
        }
        if self.locks.waits_for(thread).is_some() {
            let _ = self.leave(thread);
        }
        self.tell(sink, thread, |thread, _| TraceEvent::Woken {
            thread,
            cause,
        });
        let t = &self.threads[thread];
        if t.can_change_at_once() && t.changes {
            self.finish(thread, Outcome::Done, sink);
        } else {
            self.make_ready(thread, sink);
        }
    }

    /// The running thread lets others go first; a reservation gives up the rest of its slice.
    ///
    /// Who holds a resource or inherits stays ahead of its equals, although whoever is more urgent
    /// goes first: that nobody up to a ceiling starts, and that nobody goes between a waiter and
    /// whom it waits for, is what the bounds of others count with.
    #[inline]
    pub(super) fn give_way<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        let t = &mut self.threads[thread];
        if t.job.is_none() {
            // What was due before a late entry has ended its job: it is among nobody's equals.
            return;
        }
        let id = t.id(thread);
        if let Class::Reservation { .. } = t.constraint.class {
            t.budget = punctual_model::Work::ZERO;
            self.exhaust(thread, sink);
        } else {
            let (place, keeps) = (t.place, t.keeps_its_place());
            t.gave_way = true;
            self.tree.yield_now(id, place);
            if keeps && place == Band::RealTime {
                self.reposition(thread);
            }
        }
    }
}
