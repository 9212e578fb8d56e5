//! The changes of an entry, each with its effect on threads and schedulers.

use punctual_kern::{Outcome, TraceEvent, WakeCause};
use punctual_model::{Class, Instant, Work};

use crate::Rule;
use crate::entry::Judge;
use crate::node::CPU;
use crate::queue::{Entity, Key};
use crate::thread::CurrentJob;

impl Judge<'_> {
    /// Takes over a change that is told.
    pub(crate) fn change(&mut self, change: TraceEvent) {
        if self.of_schedulers(change).is_none() {
            use TraceEvent::{Locked, Postponed, SectionOverran, Unlocked, Waits};
            let rule = match change {
                Locked { .. } | Postponed { .. } | Unlocked { .. } => Rule::LocksExclude,
                SectionOverran { .. } | Waits { .. } => Rule::LocksExclude,
                _ => Rule::EntriesAreWhole,
            };
            let what = format_args!("tells {change:?} of what does not exist or was not declared");
            self.accuse(rule, CPU, what);
        }
    }

    fn of_schedulers(&mut self, change: TraceEvent) -> Option<()> {
        use TraceEvent as T;
        match change {
            T::CaughtUp | T::SegmentSkipped { .. } => {}
            T::SegmentStarted {
                number,
                thread,
                cleans,
            } => self.segment_started(self.find(thread)?, number, cleans)?,
            T::Switched {
                from,
                to,
                preempted,
            } => self.switch(from, to, preempted),
            T::Created { thread } => self.created(thread),
            T::ServerReplenished { node, budget } => {
                self.server_replenished(self.node(node)?, budget);
            }
            T::ServerExhausted { node } => self.server_exhausted(self.node(node)?),
            T::ChildCharged { node, work } => self.child_charged(self.node(node)?, work),
            T::Lent { from, to, work } => self.lent(self.node(from)?, self.node(to)?, work),
            T::Promoted { node, parent } => self.promoted(node, self.node(parent)?),
            T::Supplied { node } => self.supplied(self.node(node)?),
            T::SchedulerEnded { node } => self.scheduler_ended(self.node(node)?),
            T::FellBack { node, cause } => self.fell_back(self.node(node)?, cause),
            T::PolicyReplaced { node, policy } => self.policy_replaced(self.node(node)?, policy),
            T::Queued {
                node,
                priority,
                deadline,
                release,
                budget,
            } => {
                let at = self.node(node)?;
                let key = Key {
                    background: false,
                    priority,
                    deadline,
                    release,
                    rank: self.nodes[at].terms.order,
                };
                self.queued(at, self.nodes[at].parent?, key, budget);
            }
            T::Unqueued { node, budget } => {
                let at = self.node(node)?;
                self.budget_is(at, budget);
                let parent = self.nodes[at].parent?;
                self.nodes[parent].queue.leave(Entity::Node(at));
            }
            _ => return self.of_jobs(change),
        }
        Some(())
    }

    fn of_jobs(&mut self, change: TraceEvent) -> Option<()> {
        use TraceEvent as T;
        if let T::Released { thread, .. } | T::Skipped { thread, .. } | T::Lost { thread, .. } =
            change
        {
            let thread = self.find(thread)?;
            // Early arrivals that a change loses come without an entry.
            if !matches!(change, T::Lost { .. }) || self.threads[thread].changed < Some(self.now) {
                self.spare(thread);
            }
        }
        match change {
            T::Released {
                thread,
                job,
                arrival,
                deadline,
            } => self.released(self.find(thread)?, job, (arrival, deadline)),
            T::Skipped { thread, job } | T::Lost { thread, job } => {
                self.dropped(self.find(thread)?, job);
            }
            T::Started {
                thread,
                job,
                budget,
            } => self.start(self.find(thread)?, job, budget),
            T::Completed {
                thread,
                job,
                outcome,
                arrival,
                deadline,
                received,
            } => {
                let aborted = outcome == Outcome::Aborted;
                let (thread, dates) = (self.find(thread)?, (arrival, deadline));
                self.completed(thread, (job, aborted), dates, received);
            }
            T::Overran { thread, .. } => {
                if let Some(current) = &mut self.thread(thread)?.current {
                    current.overran = true;
                }
            }
            T::Replenished { thread, budget } => self.granted(self.find(thread)?, budget),
            T::Deferred {
                thread,
                release,
                deadline,
            } => self.deferred(self.find(thread)?, (release, deadline)),
            T::Ordered {
                thread,
                background,
                priority,
                deadline,
                release,
                yielded,
            } => {
                let thread = self.find(thread)?;
                let key = Key {
                    background,
                    priority,
                    deadline,
                    release,
                    rank: self.threads[thread].constraint.order,
                };
                self.ordered(thread, key, yielded);
            }
            _ => return self.of_readiness(change),
        }
        Some(())
    }

    fn of_readiness(&mut self, change: TraceEvent) -> Option<()> {
        use TraceEvent as T;
        match change {
            T::Throttled { thread, .. } => {
                self.stops(self.find(thread)?);
                self.leave(self.find(thread)?);
                self.thread(thread)?.wants = false;
            }
            T::Demoted { thread, .. } => {
                let thread = self.find(thread)?;
                self.stops(thread);
                self.leave(thread);
                self.threads[thread].background = true;
                self.enter(thread);
            }
            T::Blocked {
                thread,
                job,
                for_predecessors,
            } => {
                let thread = self.find(thread)?;
                if for_predecessors {
                    self.threads[thread].awaits = true;
                    self.leave(thread);
                    self.begin_job(thread, job, false);
                } else {
                    self.waits(thread);
                    self.waits_for_holder(thread);
                }
            }
            T::Woken { thread, cause } => self.woken(self.find(thread)?, cause),
            T::Locked {
                thread,
                resource,
                mode,
            } => self.locked(self.claim(thread, resource)?, mode),
            T::Unlocked { thread, resource } => self.unlocked(self.claim(thread, resource)?),
            T::SectionOverran { thread, resource } => {
                self.section_overran(self.claim(thread, resource)?);
            }
            T::Waits {
                thread,
                resource,
                mode,
            } => self.waits_for(self.claim(thread, resource)?, mode),
            T::Postponed { thread, resource } => self.postponed(self.claim(thread, resource)?),
            T::Moved { thread, home } => self.move_to(self.find(thread)?, self.node(home)?),
            T::Ended { thread } => {
                let thread = self.find(thread)?;
                self.leave(thread);
                self.forget_locks(thread);
                (self.threads[thread].dead, self.threads[thread].current) = (true, None);
            }
            T::Changed { thread } => {
                self.leave(self.find(thread)?);
                let now = self.now;
                let t = self.thread(thread)?;
                t.changed = Some(now);
                t.turns_to_its_change();
            }
            _ => return None,
        }
        Some(())
    }

    /// Whoever waits, asks or is handed something is at work on a job.
    pub(crate) fn waits(&mut self, thread: usize) {
        let has_job = self.threads[thread].current.is_some();
        let (who, what) = (Entity::Thread(thread), "waits or holds without a job");
        self.must(has_job, Rule::OnlyReadyRuns, who, what);
        self.leave(thread);
        self.threads[thread].blocked = true;
    }

    /// The thread is ready from now on, by its own key as far as nothing else is told.
    pub(crate) fn enter(&mut self, thread: usize) {
        self.leave(thread);
        let key = self.threads[thread].own_key();
        let at = self.queue_of(thread, key.background);
        let t = &mut self.threads[thread];
        (t.ready, t.wants, t.queue) = (true, false, at);
        (t.blocker, t.waits_on) = (None, None);
        self.forget_answer(at);
        self.nodes[at]
            .queue
            .enter(Entity::Thread(thread), key, None);
        self.wakes(at);
    }

    /// The thread wants to run. Without budget it does not become ready: what follows from that is
    /// told next.
    fn enter_funded(&mut self, thread: usize) {
        let t = &mut self.threads[thread];
        t.wants = true;
        if t.background || t.budget > 0 {
            self.enter(thread);
        }
    }

    /// The thread is not ready any more.
    pub(crate) fn leave(&mut self, thread: usize) {
        let t = &mut self.threads[thread];
        let at = t.queue;
        if std::mem::take(&mut t.ready) {
            (t.in_section, t.protected) = (false, false);
            self.nodes[at].queue.leave(Entity::Thread(thread));
            self.forget_answer(at);
        }
    }

    /// The thread keeps its siblings away no more, unless a section of it does.
    pub(crate) fn unprotect(&mut self, thread: usize) {
        let shields = self.threads[thread].in_section || self.locks.shields(thread);
        self.threads[thread].protected &= shields;
    }

    /// A thread goes on, or is ready again, on its next allotment: its section ends with the old
    /// one, and without preemption it lets others in.
    fn granted(&mut self, thread: usize, budget: Work) {
        self.replenished(thread, budget.ticks());
        let t = &mut self.threads[thread];
        let at = t.queue;
        if t.ready {
            t.in_section = false;
            self.nodes[at].queue.renew(Entity::Thread(thread));
            self.unprotect(thread);
            self.forget_answer(at);
        } else if !budget.is_zero() {
            self.enter(thread);
        }
    }

    /// A thread waits no longer.
    fn woken(&mut self, thread: usize, cause: WakeCause) {
        use WakeCause::{EarlyWake, Lock, Predecessors, Supply, Timeout};
        if matches!(cause, Timeout | Supply | Lock) {
            self.wait_is_over(thread, cause == Lock);
        }
        let t = &mut self.threads[thread];
        t.awaits &= cause != Predecessors;
        self.is_handed_lawfully(thread, cause);
        let t = &mut self.threads[thread];
        if matches!(cause, EarlyWake | Predecessors) || !std::mem::take(&mut t.blocked) {
            return;
        }
        t.waits_on = None;
        // An endless body without guarantee ends instead when it is to change.
        let changes = t.change.is_some() && !t.constraint.class.runs_per_job();
        if !(changes && t.background) {
            self.enter_funded(thread);
        }
    }

    /// A job is ready for the first time. A reservation that runs on into its next period keeps its
    /// section.
    fn start(&mut self, thread: usize, job: u64, budget: Option<Work>) {
        let t = &self.threads[thread];
        let (holds, in_section) = (t.protected, t.in_section && t.ready && t.budget > 0);
        self.begin_job(thread, job, true);
        self.threads[thread].awaits = false;
        self.funded(thread, budget);
        if self.threads[thread].blocked {
            return;
        }
        self.leave(thread);
        self.enter_funded(thread);
        let t = &mut self.threads[thread];
        (t.in_section, t.protected) = (in_section && t.ready, holds && t.ready);
        self.unprotect(thread);
    }

    /// The thread turns to its next job.
    fn begin_job(&mut self, thread: usize, index: u64, started: bool) {
        let terms = (self.grace(), self.window);
        let t = &mut self.threads[thread];
        let current = t.current.as_mut().filter(|c| c.job.index == index);
        if let Some(current) = current.filter(|c| started && !c.started) {
            current.started = true;
            return;
        }
        let unfinished = t.current.as_ref().is_some_and(|c| !c.settled);
        let next = t.open.pop_front();
        let Some(job) = next.filter(|job| job.index == index && !unfinished) else {
            let what = format_args!("starts job {index}, which is not next");
            return self.accuse(Rule::JobsEndOnce, Entity::Thread(thread), what);
        };
        t.background = matches!(t.constraint.class, Class::Aperiodic);
        t.drained = false;
        t.current = Some(CurrentJob {
            job,
            started,
            ..CurrentJob::default()
        });
        t.take_allotment(&job, terms);
    }

    fn completed(
        &mut self,
        thread: usize,
        (job, aborted): (u64, bool),
        dates: (Instant, Instant),
        received: Work,
    ) {
        let (who, t) = (Entity::Thread(thread), &mut self.threads[thread]);
        let current = t.current.as_mut();
        let Some(current) = current.filter(|c| c.job.index == job && !c.settled) else {
            let what = format_args!("completes job {job}, which it is not working on");
            return self.accuse(Rule::JobsEndOnce, who, what);
        };
        current.settled = true;
        let is_it = dates == (current.job.arrival, current.job.deadline);
        let (got, started) = (current.received, current.started);
        if let Class::Reservation { .. } | Class::Once { .. } = t.constraint.class {
            // The body goes on, after a `once` without guarantee.
            t.background |= matches!(t.constraint.class, Class::Once { .. });
            if t.background && (t.ready || t.wants) {
                self.enter(thread);
            }
        } else {
            (t.current, t.request) = (None, None);
            self.leave(thread);
        }
        let received = received.ticks();
        let what = format_args!("job {job} received {got}, says {received}, or other dates");
        self.must(is_it && got == received, Rule::JobArithmetic, who, what);
        let what = format_args!("job {job} is over before it started");
        self.must(started || aborted, Rule::JobsEndOnce, who, what);
    }

    /// A thread is in other care.
    fn move_to(&mut self, thread: usize, home: usize) {
        let was_ready = self.threads[thread].ready;
        self.leave(thread);
        let from = std::mem::replace(&mut self.threads[thread].home, home);
        if self.locks.is_postponed(thread) {
            self.parks(thread);
        }
        if was_ready {
            self.enter(thread);
        }
        self.moved(thread, from);
    }
}
