//! Time that the machine takes for itself: overheads, missing time, limits and reserves.

use alloc::string::String;
use alloc::vec::Vec;

use crate::time::{Ns, Span, Work};

/// A share of a processor in parts per million, 0 to 1,000,000.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Share(u32);

impl Share {
    /// The whole processor.
    pub const WHOLE: Share = Share(1_000_000);

    /// A share of `ppm` parts per million; `None` above the whole.
    pub const fn try_from_ppm(ppm: u32) -> Option<Share> {
        if ppm <= 1_000_000 {
            Some(Share(ppm))
        } else {
            None
        }
    }

    /// Parts per million.
    pub const fn ppm(self) -> u32 {
        self.0
    }
}

/// Overhead terms, limits and reserves. A key that a file leaves out is zero, or 100 %.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Machine {
    /// One switch from thread to thread; each job pays two (in and out).
    pub switch: Work<Ns>,
    /// One timer entry; each release pays one, on the CPU of its task, whatever runs there. A
    /// release that falls on one of another task pays [`Machine::release_in_entry`] instead.
    pub timer: Work<Ns>,
    /// The timer of a budget is set anew when a job is done; each job pays for it, above all.
    /// A timer that is left behind fires: jobs that suspend themselves and reservations pay one
    /// [`Machine::timer`] instead.
    pub budget_timer: Work<Ns>,
    /// One preemption by signal; each job causes at most one, and pays it.
    pub preemption: Work<Ns>,
    /// Caches to fill again after a preemption; each job pays one.
    pub cache_delay: Work<Ns>,
    /// The clocks of any two CPUs never differ by more.
    pub clock_error: Span<Ns>,
    /// Time that the machine takes from everybody, unasked (SMIs, hypervisor, host interrupts).
    pub missing_time: Option<Reserve>,
    /// Upper limits on what is admitted.
    pub limits: Limits,
    /// Supply set aside above all tasks: explicit servers with a budget and a period, e.g. the
    /// slices given back to Linux' fair server, or Nautilus' sporadic and aperiodic shares.
    pub reserves: Vec<Reserve>,
}

impl Machine {
    /// These terms and those of another description of the same machine, term by term: overheads
    /// and reserves of both, the lower limit, and the other's missing time where this has none.
    /// A reserve never takes more than all there is: a machine that is taken altogether is refused
    /// by the analysis, not called meaningless.
    #[must_use]
    pub fn with(&self, other: &Machine) -> Machine {
        let mut sum = self.clone();
        sum.switch = sum.switch.saturating_add(other.switch);
        sum.timer = sum.timer.saturating_add(other.timer);
        sum.budget_timer = sum.budget_timer.saturating_add(other.budget_timer);
        sum.preemption = sum.preemption.saturating_add(other.preemption);
        sum.cache_delay = sum.cache_delay.saturating_add(other.cache_delay);
        sum.clock_error = sum.clock_error.saturating_add(other.clock_error);
        sum.missing_time = sum.missing_time.or_else(|| other.missing_time.clone());
        sum.limits.utilization = sum.limits.utilization.min(other.limits.utilization);
        let capped = other.reserves.iter().cloned().map(|mut reserve| {
            reserve.budget = reserve.budget.min(reserve.period.as_work());
            reserve
        });
        sum.reserves
            .extend(capped.filter(|reserve| !reserve.budget.is_zero()));
        sum
    }

    /// The share of a release in the timer entry of another task: a sixteenth, for it lengthens the
    /// entry, and the core serves at most 64 releases in one (design note 0032).
    pub fn release_in_entry(&self) -> Work<Ns> {
        Work::from_ns(self.timer.as_ns().div_ceil(16))
    }

    /// The cost of one stretch of execution beyond its work: a switch in and one out, a preemption,
    /// the caches to fill again.
    pub fn stretch(&self) -> Work<Ns> {
        let parts = [self.switch, self.preemption, self.cache_delay];
        parts.into_iter().fold(self.switch, Work::saturating_add)
    }

    /// The room that budgets have beyond the work of jobs, where each stretch of execution of a
    /// task is counted with these costs.
    pub fn funding(&self, stretches: Vec<Work<Ns>>) -> Funding {
        Funding {
            stretches,
            again: self.stretch(),
            section: self
                .stretch()
                .saturating_add(self.timer)
                .saturating_add(self.budget_timer),
            grace: self.timer.saturating_add(self.timer),
            stop: self.timer.max(self.preemption),
            entry: self.timer,
            cache_delay: self.cache_delay,
        }
    }
}

/// The room that budgets have on a machine beyond the work of jobs, and the cost of stopping a job
/// whose budget is used up.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Funding {
    /// By task: the costs that are counted for the first stretch of execution of a job.
    pub stretches: Vec<Work<Ns>>,
    /// The costs of each further stretch: after a suspension, or a lock that may have to wait.
    pub again: Work<Ns>,
    /// A critical section may be charged so much beyond its length: a stretch, and timer entries
    /// inside it.
    pub section: Work<Ns>,
    /// So much more a job may execute, for it may be charged with timer entries that it has not
    /// caused: two. Its thread owes the part that it uses to its next allotment.
    pub grace: Work<Ns>,
    /// From the end of a budget to the next job's first instruction: a timer entry or a preemption.
    /// The thread owes it, too.
    pub stop: Work<Ns>,
    /// An entry for releases. It is counted with them, so the thread that it interrupts gets it
    /// back.
    pub entry: Work<Ns>,
    /// The part of a stretch that a job does not execute itself if it preempts another: the caches
    /// that the other fills again, on its own budget.
    pub cache_delay: Work<Ns>,
}

impl Funding {
    /// A task may take so much once, beyond the costs that are counted for its releases.
    pub fn overrun(&self) -> Work<Ns> {
        self.grace.saturating_add(self.stop)
    }
}

/// At most `budget` of supply taken in any window of `period`, at any time, above all tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reserve {
    /// The name under which it appears in explanations.
    pub name: String,
    /// Supply taken per period.
    pub budget: Work<Ns>,
    /// Smallest distance between the starts of two takings.
    pub period: Span<Ns>,
}

/// Upper limits on the utilization that is admitted on each CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Everything with a guarantee together, reserves included.
    pub utilization: Share,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            utilization: Share::WHOLE,
        }
    }
}
