//! The state of one thread as the log has stated it so far.

use std::collections::VecDeque;

use punctual_kern::{Ceiling, Constraint};
use punctual_model::{Class, Instant, Mode, Span, ThreadId};

use crate::queue::Key;

/// A released job that is not over.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct OpenJob {
    pub(crate) index: u64,
    pub(crate) arrival: Instant,
    pub(crate) deadline: Instant,
    /// The allotment that its release grants: the thread's first, second, ...
    pub(crate) allotment: u64,
}

/// The job that a thread is working on.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct CurrentJob {
    pub(crate) job: OpenJob,
    /// It lives on the allotment of a later release: of that release and its deadline.
    pub(crate) deferred: Option<(Instant, Instant)>,
    /// It has turned to such an allotment, and the log has not stated of which release: that one
    /// and its deadline as the model gives them, and whether it does.
    pub(crate) lives_on: Option<((Instant, Instant), bool)>,
    pub(crate) received: u64,
    pub(crate) started: bool,
    /// It was told to have exceeded its allotment.
    pub(crate) overran: bool,
    /// Its guarantee is settled; a reservation or a former `once` goes on.
    pub(crate) settled: bool,
}

/// One thread of the shard.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) id: ThreadId,
    pub(crate) constraint: Constraint,
    /// Its scheduler, and the one in whose ready set it is.
    pub(crate) home: usize,
    pub(crate) queue: usize,
    /// A committed change, not yet in force.
    pub(crate) change: Option<Constraint>,
    pub(crate) dead: bool,
    pub(crate) ready: bool,
    /// It wants to run and has no budget; what follows from that has not been told yet.
    pub(crate) wants: bool,
    pub(crate) blocked: bool,
    /// Its job waits for predecessors.
    pub(crate) awaits: bool,
    /// When a change of it last took force.
    pub(crate) changed: Option<Instant>,
    /// The scheduler that blocked it for itself.
    pub(crate) blocker: Option<usize>,
    /// Below all real-time work, by itself.
    pub(crate) background: bool,
    /// The thread whose lock of the runtime it waits for, and the key of that lock.
    pub(crate) waits_on: Option<(usize, u32)>,
    /// What its ceilings make it at least.
    pub(crate) ceiling: Option<Ceiling>,
    /// The lock that it asked for and has not got.
    pub(crate) request: Option<(u32, Mode)>,
    /// In a non-preemptive section; it counts from its first executed tick on.
    pub(crate) in_section: bool,
    /// For so long it may go on when a budget above it is used up.
    pub(crate) overdraft: u64,
    /// It executes without preemption, so its siblings wait.
    pub(crate) protected: bool,
    pub(crate) open: VecDeque<OpenJob>,
    pub(crate) current: Option<CurrentJob>,

    // Releases. The arrival of `first_index` is `first`: the first of all, or the first after a
    // change; unknown until it comes where the model does not give it.
    pub(crate) first: Option<Instant>,
    pub(crate) first_index: u64,
    pub(crate) next_index: u64,
    /// Before this nothing is released: what was released before the last change is at its rate.
    pub(crate) zero_lag: Instant,
    /// The arrival of the last release, become a job or not.
    pub(crate) seen: Instant,
    /// Arrivals fed by the platform that are not released yet.
    pub(crate) fed: u64,
    /// A segment of a plan starts now: this instant is the arrival of its job.
    pub(crate) starts: Option<Instant>,

    // Budget, in ticks.
    pub(crate) budget: u64,
    pub(crate) debt: u64,
    /// The part of its debt that lasts from job to job.
    pub(crate) owed: u64,
    /// The busy window of the CPU in which it took its last allotment.
    pub(crate) window: u64,
    /// Its last allotment was a job's, so a grace was part of it.
    pub(crate) graced: bool,
    /// Its job has executed to the end of a budget, and has not been stopped for it yet.
    pub(crate) drained: bool,
    /// Its allotment is a job's, and it has not run on it yet.
    pub(crate) is_fresh: bool,
    /// Allotments granted by releases so far, and the last one taken.
    pub(crate) granted: u64,
    pub(crate) taken: u64,
}

impl Thread {
    /// A thread of scheduler `home` that comes into being at `from`.
    pub(crate) fn new(id: ThreadId, constraint: Constraint, home: usize, from: Instant) -> Thread {
        let first = Some(from.saturating_add(constraint.phase));
        Thread {
            id,
            constraint,
            home,
            queue: home,
            change: None,
            dead: false,
            ready: false,
            wants: false,
            blocked: false,
            awaits: false,
            changed: None,
            blocker: None,
            background: matches!(constraint.class, Class::Aperiodic),
            waits_on: None,
            ceiling: None,
            request: None,
            in_section: false,
            overdraft: 0,
            protected: false,
            open: VecDeque::new(),
            current: None,
            first: first.filter(|_| is_clocked(&constraint)),
            first_index: 0,
            next_index: 0,
            zero_lag: Instant::ZERO,
            seen: Instant::ZERO,
            fed: 0,
            starts: None,
            budget: 0,
            debt: 0,
            owed: 0,
            window: 0,
            graced: false,
            drained: false,
            is_fresh: false,
            granted: 0,
            taken: 0,
        }
    }

    /// Whether the core releases its jobs by itself.
    pub(crate) fn is_clocked(&self) -> bool {
        is_clocked(&self.constraint)
    }

    /// By which key its own parameters and its job queue it.
    pub(crate) fn own_key(&self) -> Key {
        let dates = |c: CurrentJob| c.deferred.unwrap_or((c.job.arrival, c.job.deadline));
        let (release, deadline) = self.current.map_or((Instant::ZERO, Instant::MAX), dates);
        Key {
            background: self.background,
            priority: self.constraint.priority,
            deadline,
            release,
            rank: self.constraint.order,
        }
    }

    /// Work of one allotment, in ticks.
    pub(crate) fn allotment(&self) -> u64 {
        self.constraint.class.budget().unwrap_or_default().ticks()
    }

    /// Where job `index` arrives by the clock; `None` when unknown, or never.
    pub(crate) fn arrival_of(&self, index: u64) -> Option<Instant> {
        let nth = index.checked_sub(self.first_index)?;
        let first = self.first?;
        match self.constraint.class.min_separation() {
            Some(period) => first.checked_add(Span::from_ticks(period.ticks().checked_mul(nth)?)),
            None => (nth == 0).then_some(first),
        }
    }

    /// The absolute deadline of a release.
    pub(crate) fn deadline_of(&self, arrival: Instant) -> Instant {
        let relative = self.constraint.class.relative_deadline();
        relative.map_or(Instant::MAX, |relative| arrival.saturating_add(relative))
    }

    /// A release grants an allotment. What piles up behind a job that lost its guarantee lapses.
    pub(crate) fn grant(&mut self) -> u64 {
        self.granted += 1;
        if self.background && self.current.is_some() {
            self.taken = self.granted;
        }
        self.granted
    }

    /// The thread turns to a job: its budget is the job's own allotment, or what the job before
    /// left of a later one.
    pub(crate) fn take_allotment(&mut self, job: &OpenJob, (grace, window): (u64, u64)) {
        let renewed = matches!(self.constraint.class, Class::Reservation { .. });
        if self.taken < job.allotment || renewed {
            self.debt = 0;
            self.budget = self.settle_debt(grace, window);
            self.taken = job.allotment;
        } else {
            self.defer();
        }
    }

    /// The rest of an allotment that it takes now, less its debts and the grace that the last one
    /// used.
    pub(crate) fn settle_debt(&mut self, grace: u64, window: u64) -> u64 {
        let full = self.allotment();
        let mut debt = core::mem::take(&mut self.debt);
        let had_one = core::mem::replace(&mut self.graced, self.constraint.class.runs_per_job());
        let is_same = !self.graced || core::mem::replace(&mut self.window, window) == window;
        if is_same {
            debt = debt.saturating_add(self.owed);
        }
        if had_one && is_same {
            debt = debt.saturating_add(grace.saturating_sub(self.budget));
        }
        if !self.graced {
            return full;
        }
        self.owed = debt.saturating_sub(full);
        self.is_fresh = true;
        full.saturating_sub(debt)
    }

    /// Its job lives on the allotment of the last release from now on: the log states which.
    pub(crate) fn defer(&mut self) {
        let (seen, deadline) = (self.seen, self.deadline_of(self.seen));
        let goes_on = self.change.is_none() && seen < self.constraint.until;
        let known = self.is_clocked() && goes_on;
        if let Some(current) = &mut self.current {
            let job = current.job;
            let dates = (seen.max(job.arrival), deadline.max(job.deadline));
            current.lives_on = Some((dates, known));
        }
    }

    /// Its change is in force.
    pub(crate) fn turns_to_its_change(&mut self) {
        let released = self.first.is_some() && self.next_index > self.first_index;
        let deadline = self.deadline_of(self.seen);
        if released && deadline < Instant::MAX {
            let separation = self.constraint.class.min_separation().unwrap_or_default();
            let next = self.seen.saturating_add(separation);
            self.zero_lag = self.zero_lag.max(deadline).max(next);
        }
        (self.current, self.first) = (None, None);
        // Allotments of the time before are not counted against the new releases.
        (self.granted, self.taken) = (self.next_index, self.next_index);
        self.constraint = self.change.take().unwrap_or(self.constraint);
        self.background = matches!(self.constraint.class, Class::Aperiodic);
    }

    /// The earliest arrival of its first job after a change.
    pub(crate) fn not_before(&self) -> Option<Instant> {
        let phase = self.constraint.phase;
        match (self.constraint.fed, self.is_clocked()) {
            (true, _) => None,
            (_, true) => Some(self.zero_lag.saturating_add(phase)),
            (_, false) => Some(self.zero_lag),
        }
    }

    /// How many releases could have come up to `now`; `None`: as many as were fed, or unknown.
    pub(crate) fn opportunities(&self, now: Instant) -> Option<u64> {
        let since = now.checked_since(self.first.filter(|_| !self.constraint.fed)?)?;
        let separation = self.constraint.class.min_separation();
        Some(separation.map_or(0, |s| since.ticks() / s.ticks().max(1)) + 1)
    }
}

fn is_clocked(constraint: &Constraint) -> bool {
    !constraint.fed && !matches!(constraint.class, Class::Sporadic { .. })
}
