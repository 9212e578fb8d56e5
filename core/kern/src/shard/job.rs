//! Jobs start and end.

use punctual_model::{Class, Instant};
use punctual_order::{Band, Policy};

use super::{Shard, frontier};
use crate::pending::{List, PendingJob, Pool};
use crate::precedence::Source;
use crate::thread::{Job, State, Thread};
use crate::timeline::Timer;
use crate::trace::{Outcome, Sink, TraceEvent, WakeCause};

impl<P: Policy> Shard<P> {
    /// The thread turns to this job: it takes the job's budget and waits for its predecessors.
    pub(super) fn start<S: Sink>(&mut self, thread: usize, pending: PendingJob, sink: &mut S) {
        let deadline = self.threads[thread].deadline_of(pending.arrival);
        let t = &mut self.threads[thread];
        t.band = match t.constraint.class {
            Class::Aperiodic => Band::Background,
            _ => Band::RealTime,
        };
        t.job = Some(Job {
            index: pending.index,
            arrival: pending.arrival,
            absolute_deadline: deadline,
            scheduling_deadline: deadline,
            scheduling_arrival: pending.arrival,
            received: punctual_model::Work::ZERO,
            overran: false,
            stop: false,
            settled: false,
            gave_up: false,
        });
        if t.taken < pending.allotment {
            t.taken = pending.allotment;
            t.budget = t.constraint.class.budget().unwrap_or_default();
            t.debt = punctual_model::Work::ZERO;
        } else {
            self.move_back(thread);
        }
        let unsatisfied = if self.precedences.has_predecessors(thread) {
            self.count_predecessors(thread, pending.arrival)
        } else {
            0
        };
        if unsatisfied > 0 {
            let t = &mut self.threads[thread];
            t.unsatisfied = unsatisfied;
            t.state = State::Blocked;
            let (id, job) = (t.id(thread), pending.index);
            sink.trace(
                self.now,
                TraceEvent::Blocked {
                    thread: id,
                    job,
                    for_predecessors: true,
                },
            );
        } else {
            self.launch(thread, sink);
        }
    }

    fn count_predecessors(&mut self, thread: usize, arrival: Instant) -> u32 {
        let Shard {
            precedences,
            threads,
            pool,
            ..
        } = self;
        precedences.begin(thread, arrival, |pred, strict| {
            let t = &threads[pred.index()];
            if t.generation != pred.generation() {
                return (0, u64::MAX);
            }
            (needed(t, pool, arrival, strict), frontier(t, pool))
        })
    }

    /// One predecessor less to wait for.
    pub(super) fn predecessor_done<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        let t = &mut self.threads[thread];
        t.unsatisfied = t.unsatisfied.saturating_sub(1);
        if t.unsatisfied == 0 && t.state == State::Blocked {
            let thread_id = t.id(thread);
            sink.trace(
                self.now,
                TraceEvent::Woken {
                    thread: thread_id,
                    cause: WakeCause::Predecessors,
                },
            );
            self.launch(thread, sink);
        }
    }

    /// The job becomes ready for the first time.
    pub(super) fn launch<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        let t = &self.threads[thread];
        let job = t.job.as_ref().map_or(0, |job| job.index);
        let budget = t.is_budgeted().then_some(t.budget);
        sink.trace(
            self.now,
            TraceEvent::Started {
                thread: t.id(thread),
                job,
                budget,
            },
        );
        self.report_deferral(thread, sink);
        self.make_ready(thread, sink);
    }

    /// Ready if there is budget; else as if it had just used it up.
    pub(super) fn make_ready<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        let t = &self.threads[thread];
        if t.is_budgeted() && t.budget.is_zero() {
            self.exhaust(thread, sink);
        } else {
            self.enqueue(thread);
        }
    }

    /// The running thread says that its job is done.
    pub(super) fn complete<S: Sink>(&mut self, now: Instant, thread: usize, sink: &mut S) {
        debug_assert_eq!(now, self.now);
        match self.threads[thread].constraint.class {
            Class::Periodic { .. } | Class::Sporadic { .. } => {
                let stop = self.threads[thread]
                    .job
                    .as_ref()
                    .is_some_and(|job| job.stop);
                let outcome = if stop {
                    Outcome::Stopped
                } else {
                    Outcome::Done
                };
                self.finish(thread, outcome, sink);
            }
            // An endless body that returns has nothing left to do.
            Class::Reservation { .. } | Class::Once { .. } | Class::Aperiodic => {
                self.settle(thread, Outcome::Done, sink);
                self.end(thread, sink);
            }
        }
    }

    /// Reports the end of the current job once. (A settled reservation stays with its job.)
    pub(super) fn settle<S: Sink>(&mut self, thread: usize, outcome: Outcome, sink: &mut S) {
        let t = &mut self.threads[thread];
        let id = t.id(thread);
        let Some(job) = t.job.as_mut().filter(|job| !job.settled) else {
            return;
        };
        job.settled = true;
        let job = *job;
        self.unsettled -= u64::from(self.counts(thread, job.arrival));
        sink.trace(
            self.now,
            TraceEvent::Completed {
                thread: id,
                job: job.index,
                outcome,
                arrival: job.arrival,
                deadline: job.absolute_deadline,
                received: job.received,
            },
        );
        self.announce(thread, sink);
    }

    /// Tells successors, here and on other CPUs, how far this thread is.
    #[inline]
    fn announce<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        if self.precedences.is_followed(thread) {
            self.announce_to_each(thread, sink);
        }
    }

    #[inline(never)]
    fn announce_to_each<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        let t = &self.threads[thread];
        let (id, done) = (t.id(thread), frontier(t, &self.pool));
        self.precedences.notify(thread);
        self.advance(Source::Local(id), done, sink);
    }

    /// The current job is over; the thread turns to the next one, or is idle.
    pub(super) fn finish<S: Sink>(&mut self, thread: usize, outcome: Outcome, sink: &mut S) {
        self.dequeue(thread);
        self.settle(thread, outcome, sink);
        self.leave_resources(thread, sink);
        let t = &mut self.threads[thread];
        t.job = None;
        t.state = State::Idle;
        match self.pool.pop(&mut t.backlog) {
            Some(pending) => self.start(thread, pending, sink),
            None => self.commit_change(thread, sink),
        }
    }

    /// The thread ends, whatever it was doing.
    pub(super) fn end<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        self.dequeue(thread);
        self.timeline.cancel(thread, Timer::Release);
        self.timeline.cancel(thread, Timer::Timeout);
        self.precedences.forget(thread);
        self.leave_resources(thread, sink);
        self.threads[thread].ceiling = None;
        self.locks.forget(thread);
        self.inherit(thread);
        let t = &mut self.threads[thread];
        let (mut backlog, mut early) = (t.backlog, t.early);
        t.backlog = List::EMPTY;
        t.early = List::EMPTY;
        while let Some(pending) = self.pool.pop(&mut backlog) {
            self.unsettled -= u64::from(self.counts(thread, pending.arrival));
        }
        while self.pool.pop(&mut early).is_some() {}
        self.settle(thread, Outcome::Aborted, sink);
        let t = &mut self.threads[thread];
        t.job = None;
        t.change = None;
        t.state = State::Dead;
        let id = t.id(thread);
        sink.trace(self.now, TraceEvent::Ended { thread: id });
        self.announce(thread, sink);
        self.tree.detach(id);
        self.threads[thread].generation += 1;
        self.free.push(u32::try_from(thread).unwrap_or(u32::MAX));
    }
}

/// How many jobs of a predecessor must be done before a job that arrives at `arrival` starts.
fn needed(t: &Thread, pool: &Pool, arrival: Instant, strict: bool) -> u64 {
    if let Some(n) = t.arrivals_until(arrival, strict) {
        // A pending change ends the releases before the clock does.
        return if t.is_closed() {
            n.min(t.next_index)
        } else {
            n
        };
    }
    // Arrivals that only history knows: up to the first unfinished one that came later, if any.
    let counts = |at: Instant| at < arrival || (!strict && at == arrival);
    if let Some(job) = t.job.as_ref().filter(|job| !counts(job.arrival)) {
        return job.index;
    }
    let later = pool.iter(&t.backlog).find(|job| !counts(job.arrival));
    later.map_or(t.next_index, |job| job.index)
}
