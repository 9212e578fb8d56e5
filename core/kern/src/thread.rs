//! A thread as the core sees it: state, job, budget.

use core::mem::offset_of;

use punctual_model::{Class, Constraint, Instant, Mode, OnOverrun, Span, ThreadId, Work};
use punctual_order::{Attributes, Band};

use crate::pending::{List, Pool};
use crate::traits::Traits;

/// A thread is in exactly one state (invariant I1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum State {
    /// It has no job.
    Idle,
    /// It wants the processor.
    Ready,
    /// It has the processor.
    Running,
    /// It waits: by its own request, or for predecessors.
    Blocked,
    /// Its budget is exhausted.
    Throttled,
    /// It wants or has the processor, and a wake-up has come before it blocked.
    Woken,
    /// It has ended.
    #[default]
    Dead,
}

/// The job a thread is working on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Job {
    pub(crate) index: u64,
    pub(crate) arrival: Instant,
    pub(crate) absolute_deadline: Instant,
    /// The deadline by which a policy orders it: later than its own while it lives on a later
    /// budget.
    pub(crate) scheduling_deadline: Instant,
    /// The arrival by which a policy orders it: likewise that of its budget.
    pub(crate) scheduling_arrival: Instant,
    pub(crate) received: Work,
    pub(crate) overran: bool,
    pub(crate) stop: bool,
    /// Its guarantee is settled (reservation: slice received or given up; once: size received).
    pub(crate) settled: bool,
    /// A reservation that blocked in this period did not want its whole slice.
    pub(crate) gave_up: bool,
}

impl Job {
    pub(crate) fn new(index: u64, arrival: Instant, deadline: Instant) -> Job {
        Job {
            index,
            arrival,
            absolute_deadline: deadline,
            scheduling_deadline: deadline,
            scheduling_arrival: arrival,
            received: Work::ZERO,
            overran: false,
            stop: false,
            settled: false,
            gave_up: false,
        }
    }
}

/// What a platform may know about the current job of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobView {
    /// Number of the job within its thread, from 0.
    pub index: u64,
    /// When it arrived.
    pub arrival: Instant,
    /// Its absolute deadline; [`Instant::MAX`] without one.
    pub absolute_deadline: Instant,
    /// Work received up to the last entry.
    pub received: Work,
    /// Budget left at the last entry; `None`: unlimited.
    pub budget: Option<Work>,
    /// It has used its budget at least once.
    pub overran: bool,
    /// It is to end at its next scheduling point.
    pub stop: bool,
}

/// Two equal ones of a thread mean that a [`JobView`] would be the same, work and budget aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobStamp {
    /// The number of the job, which is below 2^48, and flags below.
    word: u64,
}

impl JobStamp {
    /// No thread, or no job.
    pub const NONE: JobStamp = JobStamp { word: u64::MAX };

    /// A number that is no stamp's [`JobStamp::word`]: no flags are like that.
    pub const NO_WORD: u64 = u64::MAX - 1;

    /// The stamp as a number: another one for each of the first 2^48 jobs of a thread. At a million
    /// jobs a second, these are nearly nine years.
    #[inline]
    pub const fn word(self) -> u64 {
        self.word
    }

    #[inline]
    pub(crate) fn of(t: &Thread) -> JobStamp {
        match &t.job {
            Some(job) => JobStamp {
                // The flags stand side by side, and are read as one.
                word: job.index << 16
                    | u64::from(u16::from_le_bytes([job.overran.into(), job.stop.into()])),
            },
            None => JobStamp::NONE,
        }
    }
}

/// The parts of an allotment that are not for work: see [`Capacity`](punctual_order::Capacity).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    pub(crate) grace: Work,
    pub(crate) stop: Work,
    pub(crate) entry: Work,
    /// In which busy window of the CPU: debts end with it.
    pub(crate) window: u64,
    pub(crate) cache_delay: Work,
}

/// A place in the table of what few threads have ([`crate::rare`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot(pub(crate) u32);

impl Slot {
    pub(crate) const NONE: Slot = Slot(u32::MAX);
}

impl Default for Slot {
    fn default() -> Self {
        Slot::NONE
    }
}

/// One place of the thread table: four cache lines. Only `shard` changes it, and `rare` the flags
/// that say what is there.
///
/// The first line has the state, and what tells which ways are open; the second the job; the third
/// and the beginning of the fourth the constraint. The rest is for releases and allotments. With a
/// thousand threads each line is fetched from the second level or beyond.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(crate) struct Thread {
    pub(crate) generation: u32,
    pub(crate) state: State,
    /// It has let its equals go first, and has not been told to its policy again since.
    pub(crate) gave_way: bool,
    /// Its job has executed to the end of the budget.
    pub(crate) has_drained: bool,
    /// A change waits.
    pub(crate) changes: bool,

    // One word: see `is_plainly_queued`; the second half is looked at alone, too: see `is_free`.
    pub(crate) band: Band,
    /// In the ready set: holds exactly in the states Ready, Running and Woken.
    pub(crate) queued: bool,
    /// The first that it preempts gets a part of its budget, for cold caches. Not once it has run.
    pub(crate) owes_delay: bool,
    /// It holds a resource that keeps its siblings away.
    pub(crate) shields: bool,
    /// How many resources it holds.
    pub(crate) held: u16,
    /// It asks for a resource.
    pub(crate) asks: bool,
    pub(crate) in_section: bool,

    // One word: see `goes_behind_its_equals`.
    /// The band in which it is queued: that of its effective priority.
    pub(crate) place: Band,
    pub(crate) key: Key,
    /// As its constraint says: it has slices.
    pub(crate) has_slices: bool,
    pub(crate) wake_pending: bool,

    /// How many predecessors its job waits for.
    pub(crate) unsatisfied: u32,

    /// Where its rare things are ([`crate::rare`]).
    pub(crate) rare: Slot,
    /// It inherits; its runtime says a ceiling.
    pub(crate) inherits: bool,
    pub(crate) has_ceiling: bool,
    /// While it is blocked: by its own request and nothing else, with no time-out and no lock.
    pub(crate) waits_plainly: bool,
    pub(crate) traits: Traits,

    // Allotments are counted from 1; `taken` <= `granted`.
    pub(crate) budget: Work,
    pub(crate) backlog: List,
    /// Index of the next release; all smaller ones are released, skipped or lost.
    pub(crate) next_index: u64,
    /// Next release by the clock, or earliest release allowed by the minimum separation.
    pub(crate) next_release: Instant,

    pub(crate) job: Option<Job>,
    pub(crate) debt: Work,
    pub(crate) constraint: Constraint,

    pub(crate) granted: u64,
    pub(crate) taken: u64,
    pub(crate) last_arrival: Instant,
    /// The grace that jobs before have used, and the cost of stopping them.
    pub(crate) owed: Work,
    /// The busy window of the CPU in which it took its last allotment.
    pub(crate) window: u64,
    pub(crate) first_arrival: Instant,
    /// Index of the job that arrives at `first_arrival`.
    pub(crate) first_index: u64,
}

/// What an entry looks at is in these lines, and no thread has a fifth.
const _: () = {
    assert!(size_of::<Thread>() == 4 * 64 && align_of::<Thread>() == 64);
    assert!(offset_of!(Thread, job) == 64 && size_of::<Option<Job>>() <= 64);
    assert!(offset_of!(Thread, budget) < 64 && offset_of!(Thread, next_index) < 64);
    assert!(offset_of!(Thread, constraint) == 128);
    // What is read as one word stands in one. Where a thread is of the usual kind, none of them is
    // zero: the compiler looks at the bytes of a word one by one where it is compared with zero.
    assert!(Band::RealTime as u8 == 0 && Key::Own as u8 == 1);
    assert!(offset_of!(Thread, band) == 8 && offset_of!(Thread, in_section) == 15);
    assert!(offset_of!(Thread, place) == 16 && offset_of!(Thread, wake_pending) == 19);
};

/// Whether the key by which a thread is queued has been reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Key {
    /// It is the thread's own.
    #[default]
    Own = 1,
    /// It may be another.
    Differs = 2,
    /// It is to be reported at the end of the entry.
    Pending = 3,
}

/// A resource that a thread asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LockRequest {
    /// Which of the shard's uses.
    pub(crate) of: u32,
    pub(crate) mode: Mode,
    pub(crate) until: Option<Instant>,
}

impl Thread {
    #[inline]
    pub(crate) fn id(&self, index: usize) -> ThreadId {
        ThreadId::new(u32::try_from(index).unwrap_or(u32::MAX), self.generation)
    }

    /// It may be queued by another key than its own.
    pub(crate) fn mark_key(&mut self) {
        if self.key == Key::Own {
            self.key = Key::Differs;
        }
    }

    /// Whether it waits for predecessors, and for nothing else.
    pub(crate) fn awaits_predecessors(&self) -> bool {
        self.state == State::Blocked && self.unsatisfied > 0
    }

    /// Where its jobs stand until their budgets are used up.
    pub(crate) fn own_band(&self) -> Band {
        match self.constraint.class.is_real_time() {
            true => Band::RealTime,
            false => Band::Background,
        }
    }

    /// It takes this one of its allotments, for a job that begins or `goes_on`. A reservation takes
    /// the whole. A job gets it less the debts of its thread: the grace that the one before used,
    /// the cost of stopping it, and, if it goes on, its work beyond the budget.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn take_allotment(&mut self, allotment: u64, costs: Costs, goes_on: bool) {
        let had_one = self.taken > 0;
        self.taken = allotment;
        let full = self.constraint.class.budget().unwrap_or_default();
        let debt = core::mem::take(&mut self.debt);
        if !self.traits.has(Traits::RUNS_PER_JOB) {
            self.budget = full;
            return;
        }
        let is_same = core::mem::replace(&mut self.window, costs.window) == costs.window;
        let mut owed = if is_same { self.owed } else { Work::ZERO };
        if had_one && is_same {
            owed = owed.saturating_add(costs.grace.saturating_sub(self.budget));
        }
        if goes_on {
            owed = owed.saturating_add(debt);
        }
        self.budget = full.saturating_sub(owed);
        self.owed = owed.saturating_sub(full);
        self.owes_delay = !costs.cache_delay.is_zero();
    }

    /// It has been charged with work that is not its own.
    pub(crate) fn give_back(&mut self, work: Work) {
        let beyond = self.debt.min(work);
        self.debt = self.debt.saturating_sub(beyond);
        self.budget = self.budget.saturating_add(work.saturating_sub(beyond));
        self.has_drained &= self.budget.is_zero();
    }

    /// Its job is stopped. That costs so much if it has used up a budget, and did not find it so.
    pub(crate) fn owe(&mut self, cost: Work) {
        if core::mem::take(&mut self.has_drained) {
            self.owed = self.owed.saturating_add(cost);
        }
    }

    /// Index of the oldest job that is not done; the next release when all are.
    pub(crate) fn frontier(&self, pool: &Pool) -> u64 {
        if self.state == State::Dead {
            return u64::MAX;
        }
        if let Some(job) = self.job.as_ref().filter(|job| !job.settled) {
            return job.index;
        }
        pool.first(&self.backlog)
            .map_or(self.next_index, |job| job.index)
    }

    /// The number of its job.
    #[inline]
    pub(crate) fn job_index(&self) -> u64 {
        self.job.as_ref().map_or(0, |job| job.index)
    }

    /// Whether its job lives on the allotment of a later release.
    pub(crate) fn is_deferred(&self) -> bool {
        self.job.as_ref().is_some_and(|job| {
            job.scheduling_deadline != job.absolute_deadline
                || job.scheduling_arrival != job.arrival
        })
    }

    /// How urgent it is by itself.
    #[inline]
    pub(crate) fn own_attributes(&self) -> Attributes {
        let (release, absolute_deadline) = match &self.job {
            Some(job) => (job.scheduling_arrival, job.scheduling_deadline),
            None => (Instant::ZERO, Instant::MAX),
        };
        Attributes {
            priority: self.constraint.priority,
            absolute_deadline,
            release,
            order: self.constraint.order,
        }
    }

    /// Books what the thread has executed: to its job, and to its budget if it runs on one.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn book(&mut self, executed: Work) {
        if let Some(job) = &mut self.job {
            job.received = job.received.saturating_add(executed);
        }
        if self.is_budgeted() {
            if self.budget <= executed {
                let owed = executed.saturating_sub(self.budget);
                self.debt = self.debt.saturating_add(owed);
                self.has_drained |= !self.budget.is_zero();
            }
            self.budget = self.budget.saturating_sub(executed);
        }
    }

    /// [`Thread::book`] before the end of the budget. No job receives more than there are ticks.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn book_fast(&mut self, executed: Work) {
        self.book_before_end(executed, self.is_budgeted());
    }

    /// The same where it is known whether the thread runs on a budget.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn book_before_end(&mut self, executed: Work, on_budget: bool) {
        debug_assert_eq!(on_budget, self.is_budgeted());
        let executed = executed.ticks();
        if let Some(job) = &mut self.job {
            job.received = Work::from_ticks(job.received.ticks().wrapping_add(executed));
        }
        if on_budget {
            debug_assert!(executed < self.budget.ticks() || executed == 0);
            self.budget = Work::from_ticks(self.budget.ticks().wrapping_sub(executed));
        }
    }

    /// Whether it stays ahead of its equals when it yields: it holds a resource or inherits.
    #[inline]
    pub(crate) fn keeps_its_place(&self) -> bool {
        self.held > 0 || self.inherits
    }

    /// Whether it has slices, of which it gives up the rest when it yields.
    #[inline]
    pub(crate) fn is_reservation(&self) -> bool {
        debug_assert_eq!(self.has_slices, has_slices(&self.constraint));
        self.has_slices
    }

    /// Whether it only goes behind its equals when it yields: it is as urgent as by itself, has no
    /// slice to give up, and nothing has to be looked into.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn goes_behind_its_equals(&self) -> bool {
        debug_assert_eq!(self.has_slices, has_slices(&self.constraint));
        let (slices, woken) = (self.has_slices.into(), self.wake_pending.into());
        let word = [self.place as u8, self.key as u8, slices, woken];
        let usual = [Band::RealTime as u8, Key::Own as u8, 0, 0];
        self.is_plainly_queued() && u32::from_le_bytes(word) == u32::from_le_bytes(usual)
    }

    /// Whether it is in the ready set, runs on a budget, pays nobody for being preempted, keeps
    /// nobody away, and is free.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_plainly_queued(&self) -> bool {
        let (queued, delay) = (self.queued.into(), self.owes_delay.into());
        let [low, high] = self.held.to_le_bytes();
        let (asks, section) = (self.asks.into(), self.in_section.into());
        let first = [self.band as u8, queued, delay, self.shields.into()];
        let [band, queued, delay, shields] = first;
        let word = [band, queued, delay, shields, low, high, asks, section];
        let usual = [Band::RealTime as u8, 1, 0, 0, 0, 0, 0, 0];
        u64::from_le_bytes(word) == u64::from_le_bytes(usual)
    }

    /// Whether it neither waits for a lock nor holds one, and lets others in between.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_free(&self) -> bool {
        let [low, high] = self.held.to_le_bytes();
        u32::from_le_bytes([low, high, self.asks.into(), self.in_section.into()]) == 0
    }

    /// Whether it is ready as this thread, on a budget, and nothing has to be looked into before it
    /// runs.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn runs_fast(&self, id: ThreadId) -> bool {
        self.generation == id.generation() && self.is_plainly_queued()
    }

    /// Whether it is the thread that `id` names, and ready.
    #[inline]
    pub(crate) fn is_ready_as(&self, id: ThreadId) -> bool {
        self.queued && self.generation == id.generation()
    }

    /// Whether nothing has to be looked into before it runs: it waits for no lock and holds none,
    /// and pays nobody for being preempted.
    #[inline]
    pub(crate) fn may_run_fast(&self) -> bool {
        self.is_free() && !self.owes_delay
    }

    /// Whether the thread runs on a budget right now.
    #[inline]
    pub(crate) fn is_budgeted(&self) -> bool {
        self.band == Band::RealTime
    }

    /// What it may execute before its overrun rule is asked: what is left of its budget, or of
    /// what a job may receive that has none and is to be stopped all the same.
    #[inline]
    pub(crate) fn allowance(&self) -> Option<Work> {
        if self.is_budgeted() {
            return Some(self.budget);
        }
        self.until_stop()
    }

    /// What a job below all real-time work may still receive before it is told to stop; `None`: its
    /// rule is another, or it has been told.
    #[inline]
    fn until_stop(&self) -> Option<Work> {
        if self.constraint.on_overrun != OnOverrun::Stop {
            return None;
        }
        let wcet = match self.constraint.class {
            Class::Periodic { wcet, .. } | Class::Sporadic { wcet, .. } => wcet,
            _ => return None,
        };
        let job = self.job.as_ref().filter(|job| !job.stop)?;
        Some(wcet.saturating_sub(job.received))
    }

    /// Whether it waits for somebody to wake it: not for predecessors, a resource or supply.
    #[inline]
    pub(crate) fn awaits_wake(&self) -> bool {
        self.state == State::Blocked && self.unsatisfied == 0 && !self.asks
    }

    /// Whether a wake-up is all that keeps it from running, and nothing has to be looked into when
    /// it goes on: it has budget of its own, and is as urgent as by itself.
    #[inline]
    pub(crate) fn resumes_fast(&self) -> bool {
        self.state == State::Blocked && self.waits_plainly && self.is_itself()
    }

    /// Whether it is blocked or ready on budget of its own, as urgent as by itself, and goes on as
    /// it is.
    #[inline]
    pub(crate) fn is_itself(&self) -> bool {
        debug_assert!(self.key != Key::Own || !self.inherits);
        self.key == Key::Own && self.is_budgeted() && !self.budget.is_zero() && !self.changes
    }

    /// Whether a pending change keeps further jobs from being released. (A reservation goes on to
    /// the end of its period.)
    pub(crate) fn is_closed(&self) -> bool {
        self.changes && !matches!(self.constraint.class, Class::Reservation { .. })
    }

    /// Whether it is an endless body that nothing is promised to (any more): such a body can
    /// change at once, where a job is to be completed first. Not while it holds a resource.
    pub(crate) fn can_change_at_once(&self) -> bool {
        self.band == Band::Background && !self.traits.has(Traits::RUNS_PER_JOB) && self.held == 0
    }

    /// The absolute deadline of a job that arrives at `arrival`.
    #[inline]
    pub(crate) fn deadline_of(&self, arrival: Instant) -> Instant {
        match self.constraint.class.relative_deadline() {
            Some(d) => arrival.saturating_add(d),
            None => Instant::MAX,
        }
    }

    /// How many jobs have arrived at or before `at` (`strict`: before `at`), where the parameters
    /// alone tell; `None` for arrivals that only history knows.
    pub(crate) fn arrivals_until(&self, at: Instant, strict: bool) -> Option<u64> {
        let period = match self.constraint.class {
            Class::Periodic { period, .. } | Class::Reservation { period, .. } => Some(period),
            Class::Once { .. } => None,
            Class::Sporadic { .. } | Class::Aperiodic => return None,
        };
        Some(self.first_index + count_arrivals(self.first_arrival, period, at, strict))
    }
}

/// Whether work under this constraint has slices.
#[inline]
pub(crate) fn has_slices(constraint: &Constraint) -> bool {
    matches!(constraint.class, Class::Reservation { .. })
}

/// Arrivals at `first` + k·`period` (or only at `first`) up to `at`, exclusive when `strict`.
pub(crate) fn count_arrivals(
    first: Instant,
    period: Option<Span>,
    at: Instant,
    strict: bool,
) -> u64 {
    if at < first || (strict && at == first) {
        return 0;
    }
    let elapsed = at.since(first).ticks() - u64::from(strict);
    match period {
        Some(period) => elapsed / period.ticks() + 1,
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_counted_with_and_without_the_instant_itself() {
        let (at, ten) = (Instant::from_ticks, Some(Span::from_ticks(10)));
        let count = |t, strict| count_arrivals(at(5), ten, at(t), strict);
        assert_eq!(
            [0, 4, 5, 14, 15, 16].map(|t| count(t, false)),
            [0, 0, 1, 1, 2, 2]
        );
        assert_eq!(
            [0, 5, 6, 15, 16, 25].map(|t| count(t, true)),
            [0, 0, 1, 1, 2, 2]
        );
        assert_eq!(count_arrivals(at(5), None, at(500), false), 1);
    }
}
