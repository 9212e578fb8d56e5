//! The changes of one thread.

use punctual_kern::{NodeId, Outcome, TraceEvent, WakeCause};
use punctual_model::{Class, Work};

use crate::Rule;
use crate::entry::Judge;
use crate::queue::{Entity, Key};
use crate::thread::{CurrentJob, OpenJob};

/// The thread that a change is about.
fn thread_of(change: &TraceEvent) -> Option<punctual_model::ThreadId> {
    use TraceEvent as T;
    match *change {
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
        | T::SectionOverran { thread, .. }
        | T::Deferred { thread, .. }
        | T::Ordered { thread, .. } => Some(thread),
        _ => None,
    }
}

impl Judge<'_> {
    /// A change of one thread.
    pub(crate) fn of_thread(&mut self, change: TraceEvent) {
        use TraceEvent as T;
        let thread = thread_of(&change).and_then(|id| self.find(id));
        let Some(thread) = thread.filter(|&t| !self.threads[t].dead) else {
            return self.is_broken(format!("{change:?}: no such thread"));
        };
        match change {
            T::Released {
                job: index,
                arrival,
                deadline,
                ..
            } => {
                let job = OpenJob {
                    index,
                    arrival,
                    deadline,
                    allotment: 0,
                };
                self.released(thread, job);
            }
            T::Skipped { job, .. } | T::Lost { job, .. } => self.dropped(thread, job),
            T::Started { job, budget, .. } => self.start(thread, job, budget),
            T::Completed { .. } => self.completed(thread, change),
            T::Moved { home, .. } => self.move_to(thread, home),
            T::Replenished { budget, .. } => self.granted(thread, budget),
            T::Deferred {
                release, deadline, ..
            } => self.deferred(thread, (release, deadline)),
            T::Ordered {
                background,
                priority,
                deadline,
                release,
                yielded,
                ..
            } => {
                let rank = self.threads[thread].constraint.order;
                let key = Key {
                    background,
                    priority,
                    deadline,
                    release,
                    rank,
                };
                self.ordered(thread, key, yielded);
            }
            other => self.readiness(thread, other),
        }
    }

    fn readiness(&mut self, thread: usize, change: TraceEvent) {
        use TraceEvent as T;
        match change {
            T::Throttled { .. } => {
                self.leave(thread);
                self.threads[thread].wants = false;
            }
            T::Overran { .. } => {
                if let Some(current) = &mut self.threads[thread].current {
                    current.overran = true;
                }
            }
            T::Demoted { .. } => {
                self.leave(thread);
                self.threads[thread].background = true;
                self.enter(thread);
            }
            T::Blocked {
                job,
                for_predecessors,
                ..
            } => {
                self.leave(thread);
                if for_predecessors {
                    self.begin_job(thread, job, false);
                } else {
                    self.has_job(thread);
                    self.threads[thread].blocked = true;
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
                let t = &mut self.threads[thread];
                t.dead = true;
                t.current = None;
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

    /// Whoever waits, asks or is handed something is at work on a job.
    pub(crate) fn has_job(&mut self, thread: usize) {
        if self.threads[thread].current.is_none() {
            self.accuse(Rule::OnlyReadyRuns, thread, "waits or holds without a job");
        }
    }

    /// The thread is ready from now on, by its own key as far as nothing else is told.
    pub(crate) fn enter(&mut self, thread: usize) {
        self.leave(thread);
        let key = self.threads[thread].own_key();
        let at = self.queue_of(thread, key.background);
        let t = &mut self.threads[thread];
        (t.ready, t.wants, t.queue) = (true, false, at);
        (t.blocker, t.waits_on) = (None, None);
        let entity = Entity::Thread(t.id);
        self.forget_answer(at);
        self.nodes[at].queue.enter(entity, key, None);
        self.wakes(at);
    }

    /// The thread wants to run. Without budget it does not become ready: what follows from that is
    /// told next.
    fn enter_funded(&mut self, thread: usize) {
        let t = &mut self.threads[thread];
        t.wants = true;
        if !t.is_budgeted() || t.budget > 0 {
            self.enter(thread);
        }
    }

    /// The thread is not ready any more.
    pub(crate) fn leave(&mut self, thread: usize) {
        let t = &mut self.threads[thread];
        if !t.ready {
            return;
        }
        (t.ready, t.in_section) = (false, false);
        let (entity, at) = (Entity::Thread(t.id), t.queue);
        self.unprotect(thread);
        self.nodes[at].queue.leave(entity);
        self.forget_answer(at);
    }

    /// The thread keeps its siblings away no more.
    pub(crate) fn unprotect(&mut self, thread: usize) {
        let (id, at) = (self.threads[thread].id, self.threads[thread].queue);
        if self.nodes[at].protected == Some(id) {
            self.nodes[at].protected = None;
        }
    }

    /// A thread goes on, or is ready again, on its next allotment: its section ends with the old
    /// one, and without preemption it lets others in.
    fn granted(&mut self, thread: usize, budget: Work) {
        self.replenished(thread, budget.ticks());
        let t = &mut self.threads[thread];
        if !t.ready {
            if !budget.is_zero() {
                self.enter(thread);
            }
            return;
        }
        t.in_section = false;
        let (entity, at) = (Entity::Thread(t.id), t.queue);
        self.nodes[at].queue.renew(entity);
        if !self.locks.shields(thread) {
            self.unprotect(thread);
        }
        self.forget_answer(at);
    }

    /// A thread waits for what it wanted to lock.
    fn waits(&mut self, thread: usize) {
        self.has_job(thread);
        self.leave(thread);
        self.threads[thread].blocked = true;
    }

    /// A thread waits no longer.
    fn woken(&mut self, thread: usize, cause: WakeCause) {
        if matches!(
            cause,
            WakeCause::Timeout | WakeCause::Supply | WakeCause::Lock
        ) {
            self.wait_is_over(thread, cause == WakeCause::Lock);
        }
        let goes_on = !matches!(cause, WakeCause::EarlyWake | WakeCause::Predecessors);
        if !goes_on || !std::mem::take(&mut self.threads[thread].blocked) {
            return;
        }
        self.threads[thread].waits_on = None;
        // An endless body without guarantee ends instead when it is to change.
        let t = &self.threads[thread];
        let changes = t.change.is_some() && !t.constraint.class.runs_per_job();
        if !(changes && t.background) {
            self.enter_funded(thread);
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
        self.leave(thread);
        self.enter_funded(thread);
        let shields = self.locks.shields(thread);
        let t = &mut self.threads[thread];
        t.in_section = in_section && t.ready;
        if t.ready && (t.in_section || shields) && holds {
            self.nodes[t.queue].protected = Some(t.id);
        }
    }

    /// The thread turns to its next job.
    fn begin_job(&mut self, thread: usize, index: u64, started: bool) {
        let t = &mut self.threads[thread];
        if let Some(current) = t.current.as_mut().filter(|c| c.job.index == index)
            && !current.started
            && started
        {
            current.started = true;
            return;
        }
        let unfinished = t.current.as_ref().is_some_and(|c| !c.settled);
        let next = t.open.pop_front();
        let Some(job) = next.filter(|job| job.index == index && !unfinished) else {
            let what = format!("starts job {index}, which is not next");
            return self.accuse(Rule::JobsEndOnce, thread, what);
        };
        t.background = matches!(t.constraint.class, Class::Aperiodic);
        t.current = Some(CurrentJob {
            job,
            deferred: None,
            lives_on: None,
            received: 0,
            started,
            overran: false,
            settled: false,
        });
        t.take_allotment(&job);
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
        if let Class::Reservation { .. } | Class::Once { .. } = t.constraint.class {
            // The body goes on, after a `once` without guarantee.
            t.background |= matches!(t.constraint.class, Class::Once { .. });
            if t.background && (t.ready || t.wants) {
                self.leave(thread);
                self.enter(thread);
            }
        } else {
            (t.current, t.request) = (None, None);
            self.leave(thread);
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
    }

    /// A thread is in other care.
    fn move_to(&mut self, thread: usize, home: NodeId) {
        let was_ready = self.threads[thread].ready;
        self.leave(thread);
        let parked = self.locks.is_postponed(thread);
        if parked {
            self.park(thread, false);
        }
        match self.node(home) {
            Some(home) => self.threads[thread].home = home,
            None => self.is_broken("a thread moves to a scheduler that does not exist".into()),
        }
        if parked {
            self.park(thread, true);
        }
        if was_ready {
            self.enter(thread);
        }
        self.moved(thread);
    }
}
