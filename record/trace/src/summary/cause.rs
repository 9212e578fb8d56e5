//! Why a job was late: what delayed it in its busy window, by amount.
//!
//! The *busy window* of a job reaches back from its completion to the last instant at which no job
//! of its urgency or a higher one was pending (Lehoczky 1990); what happened before cannot have
//! delayed it. Whether the miss is excused is not decided here but by the run without the missing
//! time ([`Counterfactual`]). A miss that is there without it, too, has the cause that it has
//! there. Else the cause is the first of the list below that alone would make the lateness
//! disappear, or else the largest of them.

use punctual_kern::{MissingCause, Outcome, Source};
use punctual_model::{Class, Instant, Priority, Work};

use crate::behavior::{Behavior, JobRecord, WaitReason};
use crate::log::Log;

/// How many jobs a busy window is followed back over, and how many segments are added up. A window
/// cut off here is shorter than the true one: it may lack what delayed the job most.
pub(super) const MAX_WINDOW: usize = 4_096;

/// Why a job was late.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Cause {
    /// Time taken from below.
    MissingTime,
    /// It, or a job of its own thread before it, needed more than its budget.
    Overrun,
    /// More urgent jobs executed, those of its own thread before it included.
    HigherPriority,
    /// The entry that released it, or ended its slice, came late.
    LateTimer,
    /// Preemption had to wait for code that cannot be interrupted.
    Deferral,
    /// It, or a job of its own thread before it, waited: for predecessors, for a resource, for less
    /// urgent work that could not be preempted, or for supply of its scheduler, which may have gone
    /// into deciding.
    Blocked,
    /// Page faults (reported by platforms that can tell).
    PageFault,
    /// It, or a job of its own thread before it, waited by its own request.
    Suspension,
    /// Its thread ended before it was done.
    Aborted,
    /// Nothing in the log explains it.
    Unattributed,
}

impl Cause {
    /// The word in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::MissingTime => "missing-time",
            Cause::Overrun => "overrun",
            Cause::HigherPriority => "higher-priority",
            Cause::LateTimer => "late-timer",
            Cause::Deferral => "deferral",
            Cause::Blocked => "blocked",
            Cause::PageFault => "page-fault",
            Cause::Suspension => "suspension",
            Cause::Aborted => "aborted",
            Cause::Unattributed => "unattributed",
        }
    }
}

/// One CPU with what is needed to find busy windows.
pub(super) struct Inquiry<'a> {
    pub(super) log: &'a Log,
    pub(super) all: &'a [Behavior],
    pub(super) cpu: usize,
    pub(super) behavior: &'a Behavior,
    /// Jobs by arrival, and the latest completion among those up to each.
    by_arrival: Vec<usize>,
    latest: Vec<Instant>,
}

/// What delayed a job, in ticks.
#[derive(Default)]
pub(super) struct Delays {
    /// Where the busy window begins.
    pub(super) start: Instant,
    pub(super) missing: u64,
    pub(super) given_back: u64,
    pub(super) own: u64,
    /// Jobs of its thread before it.
    pub(super) earlier: u64,
    pub(super) urgent: u64,
    /// The thread that interfered most, and its share.
    pub(super) worst: Option<(usize, u64)>,
    pub(super) less_urgent: u64,
    /// Ready while its server had no budget, or outside of its slots.
    pub(super) unsupplied: u64,
    /// Schedulers above it decided, on the supply that they share with it.
    pub(super) deciding: u64,
    /// Other schedulers decided, before it.
    pub(super) others_deciding: u64,
    pub(super) late_release: u64,
    /// The entry that ended its slice came late: a reservation ran on so long.
    pub(super) late_end: u64,
    pub(super) overran: bool,
    pub(super) waits: Waits,
}

/// How long a job and those of its thread before it waited in its busy window, in ticks.
#[derive(Clone, Copy, Default)]
pub(super) struct Waits {
    /// Without budget, or below all real-time work after it.
    pub(super) unfunded: u64,
    pub(super) suspended: u64,
    /// For predecessors.
    pub(super) held_back: u64,
    /// For resources.
    pub(super) locked_out: u64,
    /// For a budget of its scheduler that its section fits into.
    pub(super) postponed: u64,
}

impl Waits {
    /// Time in which the thread was not ready. O(1).
    pub(super) fn not_ready(&self) -> u64 {
        let all = [self.unfunded, self.suspended, self.held_back];
        let all = all.into_iter().chain([self.locked_out, self.postponed]);
        all.fold(0, u64::saturating_add)
    }
}

impl<'a> Inquiry<'a> {
    pub(super) fn new(log: &'a Log, all: &'a [Behavior], cpu: usize) -> Self {
        let behavior = &all[cpu];
        let mut by_arrival: Vec<usize> = (0..behavior.jobs.len()).collect();
        by_arrival.sort_by_key(|&at| behavior.jobs[at].arrival);
        let mut latest = Vec::with_capacity(by_arrival.len());
        let mut last = Instant::ZERO;
        for &at in &by_arrival {
            last = last.max(behavior.jobs[at].ended.unwrap_or(behavior.end));
            latest.push(last);
        }
        Inquiry {
            log,
            all,
            cpu,
            behavior,
            by_arrival,
            latest,
        }
    }

    /// Whether `other` is at least as urgent as `job`, so that it can delay it.
    pub(super) fn is_urgent(&self, other: &JobRecord, job: &JobRecord) -> bool {
        if other.thread == job.thread {
            return other.index <= job.index;
        }
        self.goes_first(other, job)
    }

    /// The priority of the thread of a job.
    pub(super) fn priority(&self, job: &JobRecord) -> Priority {
        let tables = self.log.tables.cpus.get(self.cpu);
        let thread = tables.and_then(|tables| tables.threads.get(job.thread.index()));
        thread.map_or(Priority::LOWEST, |(_, constraint)| constraint.priority)
    }

    /// Start of the busy window of `job`, as far as pending jobs reach.
    fn window_start(&self, job: &JobRecord) -> Instant {
        let jobs = &self.behavior.jobs;
        let mut start = job.arrival;
        let end = self
            .by_arrival
            .partition_point(|&at| jobs[at].arrival <= job.arrival);
        for at in (end.saturating_sub(MAX_WINDOW)..end).rev() {
            if self.latest[at] <= start {
                break;
            }
            let other = &jobs[self.by_arrival[at]];
            let over = other.demoted.or(other.ended).unwrap_or(self.behavior.end);
            if over > start && other.arrival < start && self.is_urgent(other, job) {
                start = other.arrival;
            }
        }
        start
    }

    fn delays(&self, job: &JobRecord, from: Instant, to: Instant) -> Delays {
        let given_back = MissingCause::GivenBack;
        let mut delays = Delays {
            given_back: self.behavior.missing_during(from, to, given_back).ticks(),
            late_release: self.late_entry(job),
            late_end: self.late_end(job),
            overran: job.overran,
            ..Delays::default()
        };
        let mut shares: Vec<u64> = Vec::new();
        let segments = self.behavior.segments_in(from, to);
        let recent = segments.len().saturating_sub(MAX_WINDOW);
        for segment in &segments[recent..] {
            let ticks = segment.end.min(to).since(segment.start.max(from)).ticks();
            let other = segment.job.map(|at| &self.behavior.jobs[at]);
            let urgent = other.is_some_and(|other| self.is_urgent(other, job));
            if segment.thread == job.thread {
                let is_earlier = other.is_some_and(|other| other.index < job.index);
                *(if is_earlier {
                    &mut delays.earlier
                } else {
                    &mut delays.own
                }) += ticks;
                delays.overran |= other.is_some_and(|other| other.overran);
            } else if urgent {
                delays.urgent += ticks;
                let index = segment.thread.index();
                if shares.len() <= index {
                    shares.resize(index + 1, 0);
                }
                shares[index] += ticks;
            } else if segment.end > job.released {
                let (start, end) = (job.released.max(segment.start), segment.end.min(to));
                let home = other.map_or(0, |other| other.home);
                let blocks = self.held_something(segment.thread.index(), start, end);
                let lacks = !blocks && self.may_lack_supply(job, home);
                let kind = match lacks {
                    true => &mut delays.unsupplied,
                    false => &mut delays.less_urgent,
                };
                *kind += end.since(start).ticks();
            }
        }
        self.add_deciding(&mut delays, job, to);
        delays.unsupplied += self.idle_while_ready(job, job.released.max(from), to);
        delays.waits = self.waits(job, from, to);
        delays.waits.unfunded += job.demoted.map_or(0, |at| to.since(at).ticks());
        let most = shares.iter().enumerate().max_by_key(|(_, ticks)| **ticks);
        delays.worst = most.map(|(thread, ticks)| (thread, *ticks));
        delays
    }

    /// Adds what schedulers of own time executed while `job` was there, up to `to`.
    fn add_deciding(&self, delays: &mut Delays, job: &JobRecord, to: Instant) {
        let from = job.released;
        let all = &self.behavior.deciding;
        let first = all.partition_point(|deciding| deciding.end <= from);
        let above = self.lineage(job.home);
        for deciding in all[first..].iter().take_while(|d| d.start < to) {
            let ticks = deciding.end.min(to).since(deciding.start.max(from)).ticks();
            let kind = if above.contains(&deciding.node) {
                &mut delays.deciding
            } else if self.may_lack_supply(job, deciding.node) {
                &mut delays.unsupplied
            } else {
                &mut delays.others_deciding
            };
            *kind += ticks;
        }
    }

    /// By how much the release of `job` came late for another reason than missing time.
    fn late_entry(&self, job: &JobRecord) -> u64 {
        let (from, to) = (job.arrival, job.released);
        let gaps = self.behavior.missing_during(from, to, MissingCause::Stolen);
        to.since(from).saturating_sub(gaps).ticks()
    }

    /// How long the thread of `job` waited within the window, by reason.
    pub(super) fn waits(&self, job: &JobRecord, from: Instant, to: Instant) -> Waits {
        let mut waited = Waits::default();
        let waits = &self.behavior.waits;
        let first = waits.partition_point(|wait| wait.end <= from);
        for wait in waits[first..].iter().take(MAX_WINDOW) {
            if self.behavior.jobs[wait.job].thread != job.thread || wait.start >= to {
                continue;
            }
            *match wait.reason {
                WaitReason::Budget => &mut waited.unfunded,
                WaitReason::Request => &mut waited.suspended,
                WaitReason::Predecessors => &mut waited.held_back,
                WaitReason::Resource(_) => &mut waited.locked_out,
                WaitReason::Supply => &mut waited.postponed,
            } += wait.end.min(to).since(wait.start.max(from)).ticks();
        }
        waited
    }

    /// Ticks from the deadline of a job to its completion, or to the end of the run.
    pub(super) fn lateness(&self, job: &JobRecord) -> i64 {
        self.over(job).signed_since(job.absolute_deadline)
    }

    pub(super) fn over(&self, job: &JobRecord) -> Instant {
        job.ended.unwrap_or(self.behavior.end)
    }

    /// What is too much or too little about a missed job, in ticks.
    pub(super) fn needed(&self, job: &JobRecord) -> u64 {
        match job.outcome {
            Some(Outcome::Short) => self.shortfall(job),
            _ => u64::try_from(self.lateness(job)).unwrap_or(0),
        }
    }

    /// What delayed a job in its busy window.
    pub(super) fn all_delays(&self, job: &JobRecord) -> Delays {
        let (start, end) = (self.window_start(job), self.over(job));
        let stolen = self
            .behavior
            .missing_during(start, end, MissingCause::Stolen);
        let elsewhere = self.predecessors_lost(job, end);
        Delays {
            start,
            missing: stolen.ticks().max(elsewhere),
            ..self.delays(job, start, end)
        }
    }

    /// Whether `job` is late by no more than what was taken between its arrival and its end while
    /// it was ready: laid out without those gaps, and nothing else changed, it is on time.
    pub(super) fn late_by_gaps_alone(&self, job: &JobRecord) -> bool {
        let (from, to) = (job.arrival, self.over(job));
        let taken = self.behavior.missing_during(from, to, MissingCause::Stolen);
        let ready = taken
            .ticks()
            .saturating_sub(self.waits(job, from, to).not_ready());
        job.outcome != Some(Outcome::Short) && ready >= self.needed(job)
    }

    /// What a reservation got beyond its slice, because the entry that ends it came late.
    fn late_end(&self, job: &JobRecord) -> u64 {
        match self.class(job) {
            Some(class) if !class.runs_per_job() => {
                job.received.saturating_sub(self.budget(job)).ticks()
            }
            _ => 0,
        }
    }

    /// What a reservation did not get of its slice.
    fn shortfall(&self, job: &JobRecord) -> u64 {
        self.budget(job).saturating_sub(job.received).ticks()
    }

    /// One allotment of the thread of `job`.
    fn budget(&self, job: &JobRecord) -> Work {
        let budget = self.class(job).and_then(Class::budget);
        budget.unwrap_or_default()
    }

    fn class(&self, job: &JobRecord) -> Option<&Class> {
        let threads = &self.log.tables.cpus.get(self.cpu)?.threads;
        let (_, constraint) = threads.get(job.thread.index())?;
        Some(&constraint.class)
    }

    /// The cause of a miss by the amounts of its delays.
    pub(super) fn cause(&self, job: &JobRecord, delays: &Delays) -> Cause {
        if job.outcome == Some(Outcome::Aborted) && !job.last {
            return Cause::Aborted;
        }
        let late = self.needed(job);
        let deferred = self.log.cpus[self.cpu].counters.deferred_max_ns;
        let entry = if delays.late_release > 0 && self.log.ns(delays.late_release) <= deferred {
            Cause::Deferral
        } else {
            Cause::LateTimer
        };
        let overrun = if delays.overran {
            (delays.own + delays.earlier).max(delays.waits.unfunded)
        } else {
            0
        };
        let waited = delays.waits.held_back.max(delays.waits.locked_out);
        let supply = delays.unsupplied + delays.deciding + delays.waits.postponed;
        let blocked = waited.max(delays.less_urgent) + supply;
        let amounts = [
            (Cause::Overrun, overrun),
            (Cause::Suspension, delays.waits.suspended),
            (entry, delays.late_release.max(delays.late_end)),
            (Cause::Blocked, blocked),
            (
                Cause::HigherPriority,
                delays.urgent + delays.earlier + delays.others_deciding,
            ),
            (Cause::MissingTime, delays.missing),
        ];
        let alone = amounts
            .iter()
            .find(|(_, amount)| *amount > 0 && *amount >= late);
        let largest = amounts.iter().rev().max_by_key(|(_, amount)| *amount);
        match alone.or(largest) {
            Some((cause, amount)) if *amount > 0 => *cause,
            _ => Cause::Unattributed,
        }
    }

    /// The most that any CPU of a predecessor lost while `job` waited for it.
    fn predecessors_lost(&self, job: &JobRecord, ready: Instant) -> u64 {
        if ready <= job.arrival {
            return 0;
        }
        let cpus = self.predecessor_cpus(job.thread.index());
        let lost = cpus.into_iter().filter_map(|cpu| self.all.get(cpu));
        let lost = lost.map(|b| b.missing_during(job.arrival, ready, MissingCause::Stolen));
        lost.max().unwrap_or_default().ticks()
    }

    /// The CPUs of all direct and indirect predecessors of a thread. O(precedences).
    fn predecessor_cpus(&self, thread: usize) -> Vec<usize> {
        let tables = &self.log.tables.cpus;
        let mut seen = vec![(self.cpu, thread)];
        let mut at = 0;
        while let Some(&(cpu, thread)) = seen.get(at) {
            at += 1;
            let edges = tables[cpu].edges.iter();
            for (_, edge) in edges.filter(|(to, _)| *to as usize == thread) {
                let from = match edge.from {
                    Source::Local(thread) => Some((cpu, thread.index())),
                    Source::Remote { slot } => behind_slot(tables, cpu, slot),
                };
                seen.extend(from.filter(|from| !seen.contains(from)));
            }
        }
        let mut cpus: Vec<usize> = seen.iter().skip(1).map(|(cpu, _)| *cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }
}

/// The CPU and the thread whose news arrive in a slot of `cpu`.
fn behind_slot(
    tables: &[punctual_tables::CpuTables],
    cpu: usize,
    slot: u32,
) -> Option<(usize, usize)> {
    let here = tables[cpu].cpu;
    tables.iter().enumerate().find_map(|(there, one)| {
        let mut all = one.notifications.iter();
        let found = all.find(|(_, to, s)| (*to, *s) == (here, slot))?;
        Some((there, found.0 as usize))
    })
}
