//! A run of one CPU as segments and jobs: who executed when.
//!
//! Names are those of Prosa's `behavior` folder (`service_during`); the predicates that judge a run
//! are in `punctual-rules`.
//!
//! ```text
//!   entry          entry                entry
//!     |== execution ==|= execution =|xxxxx|      xxxxx  missing time stands at the end of the
//!     t0              t1            .     t2            interval that it was reported for
//! ```
//!
//! Where inside its interval missing time lay is not known; at the instants of entries every
//! function here is exact.

mod build;
mod supply;

use std::collections::BTreeMap;

use punctual_kern::{MissingCause, Outcome, Taker};
use punctual_model::{Instant, Span, ThreadId, Work};

use crate::log::Log;

pub use supply::NodeRecord;

/// A run of one CPU.
#[derive(Clone, Debug, Default)]
pub struct Behavior {
    /// Who executed when, in order of time, disjoint.
    pub segments: Vec<Segment>,
    /// Every released job, in order of release.
    pub jobs: Vec<JobRecord>,
    /// Time that was charged to nobody, in order, disjoint.
    pub missing: Vec<Missing>,
    /// Stretches in which a job was not ready although it was pending, in order of their ends.
    pub waits: Vec<Waiting>,
    /// Stretches in which a thread held a resource, in order of their ends.
    pub holds: Vec<Hold>,
    /// Stretches in which a server had used its budget, in order of their ends.
    pub starved: Vec<Starved>,
    /// The budgets that servers had left, in order of time.
    pub budgets: Vec<BudgetLeft>,
    /// Stretches in which a scheduler decided on its own supply, in order, disjoint.
    pub deciding: Vec<Deciding>,
    /// The schedulers by place; the CPU's own is the first.
    pub nodes: Vec<NodeRecord>,
    /// How many places threads have had.
    pub places: usize,
    /// What was counted of threads of which something was.
    pub threads: BTreeMap<ThreadId, ThreadCounts>,
    /// Entries that decided something (all but the announcements of missing time).
    pub decisions: u64,
    /// Times the processor changed hands, to or from idle included.
    pub switches: u64,
    /// Switches away from a thread that was still ready, and did not yield.
    pub preemptions: u64,
    /// The longest delay from an armed instant to the next entry.
    pub late_max: Span,
    /// The instant up to which the run is known.
    pub end: Instant,
}

/// A stretch of execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Who.
    pub thread: ThreadId,
    /// Which job, as an index into [`Behavior::jobs`].
    pub job: Option<usize>,
    /// From here.
    pub start: Instant,
    /// To here, exclusive.
    pub end: Instant,
}

/// A stretch of time that was charged to nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Missing {
    /// From here.
    pub start: Instant,
    /// To here, exclusive.
    pub end: Instant,
    /// Why.
    pub cause: MissingCause,
    /// The one that stole it.
    pub taker: Taker,
    /// Whose execution it interrupted, as an index into [`Behavior::jobs`]; `None`: nobody's.
    pub during: Option<usize>,
    /// The entry that it was reported with, and that ended the interval.
    pub entry: Instant,
}

/// A stretch in which a job waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// Which job, as an index into [`Behavior::jobs`].
    pub job: usize,
    /// From here.
    pub start: Instant,
    /// To here, exclusive.
    pub end: Instant,
    /// What for.
    pub reason: WaitReason,
}

/// What a pending job waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitReason {
    /// A wake-up or a timeout, by its own request.
    Request,
    /// Its predecessors.
    Predecessors,
    /// Budget of its own.
    Budget,
    /// A resource, by its number on the shard.
    Resource(u32),
    /// A budget of its scheduler that the section which it is about to begin fits into.
    Supply,
}

/// A stretch in which a thread held a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hold {
    /// Who.
    pub thread: ThreadId,
    /// Which, by its number on the shard.
    pub resource: u32,
    /// From here.
    pub start: Instant,
    /// To here, exclusive.
    pub end: Instant,
    /// Longer than declared.
    pub overran: bool,
}

/// A stretch in which a scheduler's server had used its budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Starved {
    /// The place of the scheduler.
    pub node: usize,
    /// From here.
    pub start: Instant,
    /// To here, exclusive.
    pub end: Instant,
}

/// The budget that a scheduler's server had left at an instant. It becomes less only while the
/// subtree executes, and more at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BudgetLeft {
    /// The place of the scheduler.
    pub node: usize,
    /// When.
    pub at: Instant,
    /// How much.
    pub budget: Work,
}

/// A stretch in which a scheduler decided on its own supply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deciding {
    /// The place of the scheduler.
    pub node: usize,
    /// From here.
    pub start: Instant,
    /// To here, exclusive.
    pub end: Instant,
}

/// Releases of a thread that became no job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ThreadCounts {
    /// Dropped because the job before was unfinished (`late = "skip"`).
    pub skipped: u64,
    /// Dropped because the backlog was full.
    pub lost: u64,
}

/// A released job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobRecord {
    /// Whose.
    pub thread: ThreadId,
    /// Number within its thread.
    pub index: u64,
    /// From where its response is measured.
    pub arrival: Instant,
    /// [`Instant::MAX`] without one.
    pub absolute_deadline: Instant,
    /// The entry that released it.
    pub released: Instant,
    /// When it was ready for the first time.
    pub started: Option<Instant>,
    /// When it was over.
    pub ended: Option<Instant>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// Its thread was created while the run went on, and ended in this job of its own will: the
    /// job is as done as the thread wanted it, though the core calls it aborted.
    pub last: bool,
    /// Work received, as the core counted it at the end.
    pub received: Work,
    /// It used its budget and was not done.
    pub overran: bool,
    /// From when on it ran below all real-time work.
    pub demoted: Option<Instant>,
    /// How long it waited by its own request.
    pub suspended: Span,
    /// How long it waited for its predecessors.
    pub held_back: Span,
    /// How long it had no budget.
    pub throttled: Span,
    /// How long it waited for resources.
    pub locked_out: Span,
    /// How long it waited for a budget of its scheduler that its section fits into.
    pub postponed: Span,
    /// The place of its scheduler.
    pub home: usize,
}

impl JobRecord {
    /// From arrival to completion; `None` while it is not complete, or when it never was.
    pub fn response_time(&self) -> Option<Span> {
        match self.outcome? {
            Outcome::Aborted if self.last => Some(self.ended?.since(self.arrival)),
            Outcome::Done | Outcome::Stopped => Some(self.ended?.since(self.arrival)),
            Outcome::Aborted | Outcome::Short => None,
        }
    }

    /// Whether the job counts as late in a run that ended at `end`: over after its deadline, not
    /// over with its deadline behind it, ended before it was done, or short of its slice.
    pub fn missed(&self, end: Instant) -> bool {
        if self.absolute_deadline == Instant::MAX {
            return false;
        }
        match self.outcome {
            Some(Outcome::Aborted) if !self.last => true,
            Some(Outcome::Short) => true,
            _ => self.ended.unwrap_or(end) > self.absolute_deadline,
        }
    }
}

impl Behavior {
    /// What the log says about each CPU, in order. O(records · log jobs).
    pub(crate) fn of_all(log: &Log) -> Vec<Behavior> {
        let cpus = 0..log.cpus.len();
        cpus.map(|cpu| Behavior::new(log, cpu)).collect()
    }

    /// What the log says about CPU `cpu` (its place in the tables). O(records · log jobs).
    pub fn new(log: &Log, cpu: usize) -> Behavior {
        build::build(log, cpu)
    }

    /// Work that `thread` received in [`from`, `to`) (Prosa: `service_during`).
    pub fn service_during(&self, thread: ThreadId, from: Instant, to: Instant) -> Work {
        self.sum(from, to, |s| s.thread == thread)
    }

    /// Work that job number `job` of [`Behavior::jobs`] received in [`from`, `to`).
    pub fn job_service_during(&self, job: usize, from: Instant, to: Instant) -> Work {
        self.sum(from, to, |s| s.job == Some(job))
    }

    /// Time in [`from`, `to`) that was charged to nobody because of `cause`. O(log gaps + gaps
    /// in the interval).
    pub fn missing_during(&self, from: Instant, to: Instant, cause: MissingCause) -> Span {
        self.sum_of_gaps(from, to, |gap| gap.cause == cause)
    }

    /// Time in [`from`, `to`) that `taker` stole. O(log gaps + gaps in the interval).
    pub fn taken_during(&self, from: Instant, to: Instant, taker: Taker) -> Span {
        self.sum_of_gaps(from, to, |gap| {
            gap.cause == MissingCause::Stolen && gap.taker == taker
        })
    }

    fn sum_of_gaps(&self, from: Instant, to: Instant, wanted: impl Fn(&Missing) -> bool) -> Span {
        let first = self.missing.partition_point(|gap| gap.end <= from);
        let gaps = self.missing[first..]
            .iter()
            .take_while(|gap| gap.start < to);
        let ticks = gaps
            .filter(|gap| wanted(gap))
            .map(|gap| overlap((gap.start, gap.end), from, to));
        Span::from_ticks(ticks.sum())
    }

    /// The segments that overlap [`from`, `to`), in order. O(log segments).
    pub fn segments_in(&self, from: Instant, to: Instant) -> &[Segment] {
        let first = self.segments.partition_point(|s| s.end <= from);
        let last = self.segments.partition_point(|s| s.start < to);
        self.segments.get(first..last).unwrap_or_default()
    }

    fn sum(&self, from: Instant, to: Instant, wanted: impl Fn(&Segment) -> bool) -> Work {
        let segments = self.segments_in(from, to).iter().filter(|s| wanted(s));
        let ticks = segments.map(|s| overlap((s.start, s.end), from, to));
        Work::from_ticks(ticks.sum())
    }
}

/// Ticks that two intervals share.
fn overlap(of: (Instant, Instant), from: Instant, to: Instant) -> u64 {
    of.1.min(to).since(of.0.max(from)).ticks()
}
