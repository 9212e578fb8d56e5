//! Jobs start and end.

use punctual_model::{Instant, ThreadId};
use punctual_order::Policy;

use super::Shard;
use crate::pending::{PendingJob, Pool};
use crate::precedence::Source;
use crate::thread::{Job, State, Thread};
use crate::timeline::Timer;
use crate::trace::{Outcome, Sink, TraceEvent, WakeCause};
use crate::traits::Traits;

impl<P: Policy> Shard<P> {
    /// When the current job of a thread arrived, if it has one.
    #[inline]
    pub fn job_arrival(&self, thread: ThreadId) -> Option<Instant> {
        let job = self.thread(thread).ok()?.job.as_ref();
        job.map(|job| job.arrival)
    }

    /// The thread turns to this job: it takes the job's budget and waits for its predecessors.
    pub(super) fn start<S: Sink>(&mut self, thread: usize, pending: PendingJob, sink: &mut S) {
        let PendingJob {
            index,
            arrival,
            allotment,
        } = pending;
        let t = &mut self.threads[thread];
        t.band = t.own_band();
        t.has_drained = false;
        t.job = Some(Job::new(index, arrival, t.deadline_of(arrival)));
        if t.taken < allotment {
            t.take_allotment(allotment, self.costs, false);
        } else {
            self.move_back(thread);
        }
        if self.threads[thread].traits.has(Traits::HAS_PREDECESSORS) {
            let unsatisfied = self.count_predecessors(thread, arrival);
            self.threads[thread].unsatisfied = unsatisfied;
            if unsatisfied > 0 {
                self.begin_to_await(thread);
                return self.wait_as_job(thread, true, sink);
            }
        }
        self.launch(thread, sink);
    }

    /// Until when jobs may wait for nothing but predecessors: the latest of their deadlines, or of
    /// one that began to wait while they did. `None`: none does. O(1).
    pub fn awaits_predecessors(&self) -> Option<Instant> {
        let (waiting, until) = self.awaiting;
        (waiting > 0).then_some(until)
    }

    fn begin_to_await(&mut self, thread: usize) {
        let deadline = self.threads[thread].job.map(|job| job.absolute_deadline);
        let deadline = deadline.filter(|&at| at != Instant::MAX);
        let (waiting, until) = self.awaiting;
        let until = if waiting == 0 { Instant::ZERO } else { until };
        self.awaiting = (waiting + 1, until.max(deadline.unwrap_or(until)));
    }

    fn count_predecessors(&mut self, thread: usize, arrival: Instant) -> u32 {
        let pool = &self.pool;
        self.precedences.begin(thread, arrival, |pred, strict| {
            let t = &self.threads[pred.index()];
            if t.generation != pred.generation() {
                return (0, u64::MAX);
            }
            (needed(t, pool, arrival, strict), t.frontier(pool))
        })
    }

    /// One predecessor less to wait for.
    pub(super) fn predecessor_done<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        let t = &mut self.threads[thread];
        t.unsatisfied = t.unsatisfied.saturating_sub(1);
        if t.unsatisfied == 0 && t.state == State::Blocked {
            self.awaiting.0 = self.awaiting.0.saturating_sub(1);
            let cause = WakeCause::Predecessors;
            self.tell(sink, thread, |thread, _| TraceEvent::Woken {
                thread,
                cause,
            });
            self.launch(thread, sink);
        }
    }

    /// The job becomes ready for the first time.
    pub(super) fn launch<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        self.report_start(thread, sink);
        self.make_ready(thread, sink);
    }

    /// Reports the budget with which a job starts, and the release by which it counts.
    pub(super) fn report_start<S: Sink>(&self, thread: usize, sink: &mut S) {
        self.tell(sink, thread, |thread, t| TraceEvent::Started {
            thread,
            job: t.job_index(),
            budget: t.is_budgeted().then_some(t.budget),
        });
        self.report_deferral(thread, sink);
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
        let t = &self.threads[thread];
        if !t.traits.has(Traits::RUNS_PER_JOB) {
            // An endless body that returns has nothing left to do.
            self.settle(thread, Outcome::Done, sink);
            return self.end(thread, sink);
        }
        let outcome = match t.job.as_ref().is_some_and(|job| job.stop) {
            true => Outcome::Stopped,
            false => Outcome::Done,
        };
        self.finish(thread, outcome, sink);
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
        let completed = TraceEvent::Completed {
            thread: id,
            job: job.index,
            outcome,
            arrival: job.arrival,
            deadline: job.absolute_deadline,
            received: job.received,
        };
        sink.trace(self.now, completed);
        self.announce(thread, sink);
    }

    /// Tells successors, here and on other CPUs, how far this thread is.
    #[inline]
    fn announce<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        if self.threads[thread].traits.has(Traits::IS_FOLLOWED) {
            self.announce_to_each(thread, sink);
        }
    }

    #[inline(never)]
    fn announce_to_each<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        let t = &self.threads[thread];
        let (id, done) = (t.id(thread), t.frontier(&self.pool));
        self.precedences.notify(thread);
        self.advance(Source::Local(id), done, sink);
    }

    /// The current job is over; the thread turns to the next one, or is idle.
    pub(super) fn finish<S: Sink>(&mut self, thread: usize, outcome: Outcome, sink: &mut S) {
        self.dequeue(thread);
        self.settle(thread, outcome, sink);
        self.leave_resources(thread, sink);
        self.end_segment(thread);
        let t = &mut self.threads[thread];
        t.job = None;
        t.state = State::Idle;
        match self.pool.pop(&mut t.backlog) {
            Some(pending) => self.start(thread, pending, sink),
            None if t.changes => self.commit_change(thread, sink),
            None => {}
        }
    }

    /// The thread ends, whatever it was doing.
    pub(super) fn end<S: Sink>(&mut self, thread: usize, sink: &mut S) {
        if self.threads[thread].awaits_predecessors() {
            self.awaiting.0 = self.awaiting.0.saturating_sub(1);
        }
        self.dequeue(thread);
        self.timeline.cancel(thread, Timer::Release);
        self.timeline.cancel(thread, Timer::Timeout);
        self.precedences.forget(thread);
        self.set_trait(thread, Traits::HAS_PREDECESSORS, false);
        self.leave_resources(thread, sink);
        self.rares.set_ceiling(&mut self.threads[thread], None);
        self.locks.forget(thread);
        // It holds nothing and waits for nothing any more.
        if self.threads[thread].inherits || self.locks.has_to_look() {
            self.inherit(thread);
        }
        while let Some(pending) = self.pool.pop(&mut self.threads[thread].backlog) {
            self.unsettled -= u64::from(self.counts(thread, pending.arrival));
        }
        self.settle(thread, Outcome::Aborted, sink);
        self.end_segment(thread);
        let t = &mut self.threads[thread];
        t.job = None;
        self.rares.leave(t);
        t.state = State::Dead;
        let id = t.id(thread);
        sink.trace(self.now, TraceEvent::Ended { thread: id });
        self.announce(thread, sink);
        self.tree.detach(id);
        self.threads[thread].generation += 1;
        self.free.give_back(thread);
    }
}

/// How many jobs of a predecessor must be done before a job that arrives at `arrival` starts.
fn needed(t: &Thread, pool: &Pool, arrival: Instant, strict: bool) -> u64 {
    if let Some(n) = t.arrivals_until(arrival, strict) {
        // A pending change ends the releases before the clock does.
        let most = if t.is_closed() { t.next_index } else { n };
        return n.min(most);
    }
    // Arrivals that only history knows: up to the first unfinished one that came later, if any.
    let counts = |at: Instant| at < arrival || (!strict && at == arrival);
    if let Some(job) = t.job.as_ref().filter(|job| !counts(job.arrival)) {
        return job.index;
    }
    let later = pool.iter(&t.backlog).find(|job| !counts(job.arrival));
    later.map_or(t.next_index, |job| job.index)
}
