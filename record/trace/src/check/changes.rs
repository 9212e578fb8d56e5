//! What the changes of a thread do to what is known of it.

use punctual_kern::{Event, Outcome, TraceEvent, WakeCause};
use punctual_model::{Class, Span, Work};

use super::Rule;
use super::cpu::CpuCheck;
use super::thread::{CurrentJob, OpenJob};

impl CpuCheck<'_> {
    /// A change of one thread.
    pub(super) fn of_thread(&mut self, change: TraceEvent) {
        use TraceEvent as T;
        let id = match change {
            T::Ended { thread }
            | T::Changed { thread }
            | T::Released { thread, .. }
            | T::Skipped { thread, .. }
            | T::Lost { thread, .. }
            | T::Started { thread, .. }
            | T::Completed { thread, .. }
            | T::Overran { thread, .. }
            | T::Throttled { thread, .. }
            | T::Replenished { thread, .. }
            | T::Demoted { thread, .. }
            | T::Blocked { thread, .. }
            | T::Moved { thread, .. }
            | T::Woken { thread, .. }
            | T::Locked { thread, .. }
            | T::Waits { thread, .. }
            | T::Postponed { thread, .. }
            | T::Unlocked { thread, .. }
            | T::SectionOverran { thread, .. } => thread,
            T::Created { .. }
            | T::Switched { .. }
            | T::Missing { .. }
            | T::ChildCharged { .. }
            | T::Lent { .. }
            | T::Promoted { .. }
            | T::SchedulerEnded { .. }
            | T::ServerReplenished { .. }
            | T::ServerExhausted { .. } => return,
        };
        let Some(thread) = self.find(id).filter(|&t| !self.threads[t].dead) else {
            let what = format!("{change:?}: no such thread");
            return self.violation(Rule::EntriesAreWhole, what);
        };
        match change {
            T::Released {
                job,
                arrival,
                deadline,
                ..
            } => self.released(
                thread,
                OpenJob {
                    index: job,
                    arrival,
                    deadline,
                    released: self.now,
                    allotment: 0,
                },
            ),
            T::Skipped { job, .. } => self.dropped(thread, job, false),
            T::Lost { job, .. } => self.dropped(thread, job, true),
            T::Started { job, budget, .. } => {
                self.start(thread, job, budget);
            }
            T::Completed { .. } => self.completed(thread, change),
            T::Moved { home, .. } => self.moved(thread, home),
            T::Replenished { budget, .. } => self.granted(thread, budget),
            other => self.readiness(thread, other),
        }
        self.refresh_urgency();
    }

    /// A budget is enforced last in an entry, when what is due with it has come.
    fn enforced(&mut self, thread: usize) {
        if self.threads[thread].ready && self.event != Some(Event::Yield) {
            self.pass(self.now);
        }
    }

    /// A thread goes on, or is ready again, on its next allotment.
    fn granted(&mut self, thread: usize, budget: Work) {
        self.enforced(thread);
        let armed = self.now.saturating_sub(Span::from_ticks(self.lateness()));
        let granted = self.threads[thread].granted_at((armed, self.now), self.entered);
        // Who wanted to run without a budget takes what was granted before.
        let since = self.threads[thread].wants.unwrap_or(granted);
        self.replenished(thread, budget.ticks());
        if self.threads[thread].ready {
            self.requeue(thread);
        } else if !budget.is_zero() {
            self.enter(thread, since);
        }
    }

    fn readiness(&mut self, thread: usize, change: TraceEvent) {
        use TraceEvent as T;
        match change {
            T::Throttled { .. } => {
                self.enforced(thread);
                self.leave(thread);
                self.threads[thread].throttle(self.now);
            }
            T::Overran { .. } => {
                if let Some(current) = &mut self.threads[thread].current {
                    current.overran = true;
                }
            }
            T::Demoted { .. } => self.demoted(thread),
            T::Blocked {
                job,
                for_predecessors,
                ..
            } => {
                self.leave(thread);
                if for_predecessors {
                    self.begin_job(thread, job, false);
                } else {
                    self.threads[thread].blocked = true;
                    if let Some(Event::Block { until } | Event::BlockOn { until, .. }) = self.event
                    {
                        self.threads[thread].timeout = until;
                    }
                    self.waits_for_holder(thread);
                }
            }
            T::Locked { resource, mode, .. } => self.locked(thread, resource, mode),
            T::Unlocked { resource, .. } => self.unlocked(thread, resource),
            T::SectionOverran { resource, .. } => self.section_overran(thread, resource),
            T::Waits { resource, mode, .. } => {
                self.waits(thread);
                self.waits_for(thread, resource, mode);
            }
            T::Postponed { resource, .. } => {
                self.waits(thread);
                self.postponed(thread, resource);
            }
            T::Woken { cause, .. } => self.woken(thread, cause),
            T::Ended { .. } => {
                self.leave(thread);
                self.forget_locks(thread);
                self.lenders.ended(thread);
                let t = &mut self.threads[thread];
                t.dead = true;
                t.current = None;
                self.history.ended(thread, self.now);
            }
            T::Changed { .. } => {
                self.leave(thread);
                let t = &mut self.threads[thread];
                t.current = None;
                t.first = None;
                t.last_arrival = None;
                // Allotments of the time before are not counted against the new releases.
                (t.granted, t.taken) = (t.next_index, t.next_index);
                if let Some(constraint) = t.change.take() {
                    t.constraint = constraint;
                    t.background = matches!(constraint.class, Class::Aperiodic);
                }
            }
            _ => {}
        }
    }

    fn demoted(&mut self, thread: usize) {
        self.enforced(thread);
        self.leave(thread);
        self.threads[thread].background = true;
        let since = self.threads[thread].wants.unwrap_or(self.now);
        self.enter(thread, since);
    }

    /// A thread waits for what it wanted to lock.
    fn waits(&mut self, thread: usize) {
        self.leave(thread);
        let t = &mut self.threads[thread];
        (t.blocked, t.timeout) = (true, t.lock_until);
    }

    /// A thread waits no longer.
    fn woken(&mut self, thread: usize, cause: WakeCause) {
        if matches!(cause, WakeCause::Timeout | WakeCause::Supply) {
            self.wait_is_over(thread);
        } else if cause == WakeCause::Lock {
            self.asks_again(thread);
        }
        let goes_on = !matches!(cause, WakeCause::EarlyWake | WakeCause::Predecessors);
        if !goes_on || !std::mem::take(&mut self.threads[thread].blocked) {
            return;
        }
        self.lenders.goes_on(thread);
        let due = self.threads[thread].timeout.take();
        let timed_out = cause == WakeCause::Timeout;
        let since = due.filter(|_| timed_out).unwrap_or(self.now);
        // An endless body without guarantee ends instead when it is to change.
        let t = &self.threads[thread];
        let changes = t.change.is_some() && !t.constraint.class.runs_per_job();
        if !(changes && t.background) {
            self.enter_funded(thread, since.min(self.now));
        }
    }

    /// A job is ready for the first time. A reservation that runs on into its next period keeps its
    /// section.
    fn start(&mut self, thread: usize, job: u64, budget: Option<Work>) {
        let t = &self.threads[thread];
        let in_section = t.in_section && t.ready && t.budget > 0;
        let holds = self.nodes[t.queue].protected == Some(t.id);
        self.begin_job(thread, job, true);
        self.funded(thread, budget);
        if self.threads[thread].blocked {
            return;
        }
        let since = self.threads[thread].since(self.now, self.event);
        self.leave(thread);
        self.enter_funded(thread, since);
        let t = &mut self.threads[thread];
        t.in_section = in_section && t.ready;
        if t.in_section && holds {
            self.nodes[t.queue].protected = Some(t.id);
        }
    }

    /// The thread turns to its next job.
    fn begin_job(&mut self, thread: usize, index: u64, started: bool) {
        let now = self.now;
        let t = &mut self.threads[thread];
        if let Some(current) = t.current.as_mut().filter(|c| c.job.index == index)
            && !current.started
            && started
        {
            current.started = true;
            return self.history.started(thread, now);
        }
        let unfinished = t.current.as_ref().is_some_and(|c| !c.settled);
        let Some(job) = t
            .open
            .pop_front()
            .filter(|job| job.index == index && !unfinished)
        else {
            let what = format!(
                "{} starts job {index}, which is not next",
                self.name(thread)
            );
            return self.violation(Rule::JobsEndOnce, what);
        };
        t.background = matches!(t.constraint.class, Class::Aperiodic);
        t.current = Some(CurrentJob {
            job,
            urgency: (job.deadline, job.deadline),
            place: (job.arrival, job.arrival),
            received: 0,
            started,
            overran: false,
            settled: false,
        });
        t.take_allotment(&job);
        self.history.begun(thread, (index, job.arrival), now);
        if started {
            self.history.started(thread, now);
        }
    }

    fn completed(&mut self, thread: usize, change: TraceEvent) {
        let TraceEvent::Completed {
            job,
            outcome,
            arrival,
            deadline,
            received,
            ..
        } = change
        else {
            return;
        };
        let name = self.name(thread);
        let t = &mut self.threads[thread];
        let current = t.current.as_mut();
        let Some(current) = current.filter(|c| c.job.index == job && !c.settled) else {
            let what = format!("{name} completes job {job}, which it is not working on");
            return self.violation(Rule::JobsEndOnce, what);
        };
        current.settled = true;
        let fits = (arrival, deadline) == (current.job.arrival, current.job.deadline);
        let (got, unstarted) = (current.received, !current.started);
        let goes_on = matches!(
            t.constraint.class,
            Class::Reservation { .. } | Class::Once { .. }
        );
        if goes_on {
            t.background |= matches!(t.constraint.class, Class::Once { .. });
        } else {
            t.current = None;
            t.request = None;
        }
        if !goes_on {
            self.leave(thread);
        } else if self.threads[thread].background
            && (self.threads[thread].ready || self.threads[thread].wants.is_some())
        {
            let since = self.threads[thread].wants.unwrap_or(self.now);
            self.leave(thread);
            self.enter(thread, since);
        }
        if !fits || got != received.ticks() {
            let received = received.ticks();
            let what = format!("{name} job {job} received {got}, says {received}, or other dates");
            self.violation(Rule::JobArithmetic, what);
        }
        if unstarted && outcome != Outcome::Aborted {
            let what = format!("{name} job {job} is over before it started");
            self.violation(Rule::JobsEndOnce, what);
        }
        self.history.completed(thread, job, self.now);
    }
}
