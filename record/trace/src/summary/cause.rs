//! Why a job was late: what delayed it in its busy window, by amount.
//!
//! The *busy window* of a job reaches back from its completion to the last instant at which no job
//! of its urgency or a higher one was pending (Lehoczky 1990); what happened before cannot have
//! delayed it. Missing time that delayed the job there (`excuse`) is taken out first: if the
//! lateness disappears with it, the miss is excused. Else the cause is the first of the list below
//! that alone would make the lateness disappear, or else the largest of them. Given-back time is
//! the system's own choice and excuses nothing.

use std::fmt::Write;

use punctual_kern::{MissingCause, Outcome};
use punctual_model::{Instant, Priority, Readable, readable};

use super::{MAX_LISTED_MISSES, Miss};
use crate::behavior::{Behavior, JobRecord, WaitReason, Waiting};
use crate::log::Log;

/// How many jobs a busy window is followed back over, and how many segments are added up. A window
/// cut off here is shorter than the true one, so it excuses less, never more.
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
    /// More urgent jobs executed.
    HigherPriority,
    /// The entry that released it came late.
    LateTimer,
    /// Preemption had to wait for code that cannot be interrupted.
    Deferral,
    /// It waited for predecessors, for a resource, for less urgent work that could not be
    /// preempted, or for supply of its scheduler, which may have gone into deciding.
    Blocked,
    /// Page faults (reported by platforms that can tell).
    PageFault,
    /// It waited by its own request.
    Suspension,
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
            Cause::Unattributed => "unattributed",
        }
    }
}

/// All misses with their causes, at most [`MAX_LISTED_MISSES`] of them, and how many more there
/// are.
pub(super) fn misses(log: &Log, behaviors: &[Behavior]) -> (Vec<Miss>, u64) {
    let mut all = Vec::new();
    let mut more = 0;
    for (cpu, behavior) in behaviors.iter().enumerate() {
        let mut windows = None;
        for (at, job) in behavior.jobs.iter().enumerate() {
            if !job.missed(behavior.end) {
                continue;
            }
            if all.len() == MAX_LISTED_MISSES {
                more += 1;
                continue;
            }
            let inquiry = windows.get_or_insert_with(|| Inquiry::new(log, behaviors, cpu));
            all.push(inquiry.explain(at));
        }
    }
    (all, more)
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
    /// Jobs that are not over, and what they have not had of their budgets.
    unfinished: Vec<(usize, u64)>,
}

/// What delayed a job, in ticks.
#[derive(Default)]
struct Delays {
    missing: u64,
    given_back: u64,
    own: u64,
    urgent: u64,
    /// The thread that interfered most, and its share.
    worst: Option<(usize, u64)>,
    less_urgent: u64,
    /// Ready while its server had no budget, or outside of its slots.
    unsupplied: u64,
    /// Schedulers above it decided, on the supply that they share with it.
    deciding: u64,
    /// Other schedulers decided, before it.
    others_deciding: u64,
    late_release: u64,
    overran: bool,
    /// Without budget, by this job and those of its thread before it.
    unfunded: u64,
    /// In time by this much once missing time is taken out; `None`: still late.
    without: Option<u64>,
}

impl<'a> Inquiry<'a> {
    fn new(log: &'a Log, all: &'a [Behavior], cpu: usize) -> Self {
        let behavior = &all[cpu];
        let mut by_arrival: Vec<usize> = (0..behavior.jobs.len()).collect();
        by_arrival.sort_by_key(|&at| behavior.jobs[at].arrival);
        let mut latest = Vec::with_capacity(by_arrival.len());
        let mut last = Instant::ZERO;
        for &at in &by_arrival {
            last = last.max(behavior.jobs[at].ended.unwrap_or(behavior.end));
            latest.push(last);
        }
        let mut inquiry = Inquiry {
            log,
            all,
            cpu,
            behavior,
            by_arrival,
            latest,
            unfinished: Vec::new(),
        };
        inquiry.unfinished = inquiry.find_unfinished();
        inquiry
    }

    fn find_unfinished(&self) -> Vec<(usize, u64)> {
        let b = self.behavior;
        let mut executed = vec![0_u64; b.jobs.len()];
        for segment in &b.segments {
            if let Some(executed) = segment.job.and_then(|at| executed.get_mut(at)) {
                *executed += segment.end.since(segment.start).ticks();
            }
        }
        let open = (0..b.jobs.len()).filter(|&at| b.jobs[at].ended.is_none());
        let wanted = |at: usize| self.budget(&b.jobs[at]).saturating_sub(executed[at]);
        open.map(|at| (at, wanted(at))).collect()
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
            late_release: job.released.since(job.arrival).ticks(),
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
                delays.own += ticks;
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
                let lacks = !blocks && self.may_lack_supply(job, Some(home));
                let kind = match lacks {
                    true => &mut delays.unsupplied,
                    false => &mut delays.less_urgent,
                };
                *kind += end.since(start).ticks();
            }
        }
        self.add_deciding(&mut delays, job, to);
        delays.unsupplied += self.idle_while_ready(job, job.released.max(from), to);
        delays.unfunded = self.unfunded(job, from, to);
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
            } else if self.may_lack_supply(job, Some(deciding.node)) {
                &mut delays.unsupplied
            } else {
                &mut delays.others_deciding
            };
            *kind += ticks;
        }
    }

    /// How long the thread of `job` had no budget, or ran demoted, within the window.
    fn unfunded(&self, job: &JobRecord, from: Instant, to: Instant) -> u64 {
        let waits = &self.behavior.waits;
        let first = waits.partition_point(|wait| wait.end <= from);
        let own = |wait: &&Waiting| {
            let of = &self.behavior.jobs[wait.job];
            wait.reason == WaitReason::Budget && of.thread == job.thread
        };
        let waits = waits[first..].iter().take(MAX_WINDOW).filter(own);
        let throttled = waits.map(|w| w.end.min(to).since(w.start.max(from)).ticks());
        let demoted = job.demoted.map_or(0, |at| to.since(at).ticks());
        throttled.sum::<u64>() + demoted
    }

    fn explain(&self, at: usize) -> Miss {
        let job = &self.behavior.jobs[at];
        let end = job.ended.unwrap_or(self.behavior.end);
        let start = self.stretch_start(job);
        let mut delays = self.delays(job, self.window_start(job).min(start), end);
        delays.missing = self.excuse(job, start, end);
        let lateness = end.signed_since(job.absolute_deadline);
        let late = u64::try_from(lateness).unwrap_or(0);
        let short = job.outcome == Some(Outcome::Short);
        let excused = match job.outcome {
            Some(Outcome::Short) => delays.missing >= self.shortfall(job),
            Some(Outcome::Done | Outcome::Stopped) => {
                delays.without = self.early_without_missing(job, &delays, (start, end));
                late <= delays.missing || delays.without.is_some()
            }
            None => {
                delays.without = self.early_without_missing(job, &delays, (start, end));
                delays.without.is_some()
            }
            Some(Outcome::Aborted) => false,
        };
        let needed = if short { self.shortfall(job) } else { late };
        let cause = if excused {
            Cause::MissingTime
        } else if job.outcome == Some(Outcome::Aborted) && !job.last {
            Cause::Unattributed
        } else {
            self.cause(job, &delays, needed)
        };
        Miss {
            task: self.log.task_name(self.cpu, job.thread).into(),
            task_index: self.log.task_of(self.cpu, job.thread),
            cpu: self.log.cpus[self.cpu].name.clone(),
            job: job.index,
            release_ns: self.log.ns(job.arrival.ticks()),
            lateness_ns: self.signed_ns(lateness),
            excused,
            cause,
            detail: self.detail(job, &delays, (start, needed), excused),
        }
    }

    /// By how much `job` would have been in time without the missing time of its busy window.
    fn early_without_missing(
        &self,
        job: &JobRecord,
        delays: &Delays,
        window: (Instant, Instant),
    ) -> Option<u64> {
        // On a server or in slots, a gap takes more than its length: what is left is not laid out
        // again, so nothing is excused that subtraction does not excuse.
        if delays.missing == 0 || delays.overran || self.is_supplied(job) {
            return None;
        }
        let mut others = delays.less_urgent + delays.given_back + job.suspended.ticks();
        if job.ended.is_none() {
            if self.unfinished.len() > MAX_WINDOW {
                return None;
            }
            others = others.saturating_add(self.unfinished_work(job));
        }
        let over = self.without_missing(job, window, others)?;
        let early = job.absolute_deadline.checked_since(over)?;
        Some(early.ticks())
    }

    /// The most that jobs at least as urgent as `job`, itself included, still want at the end of
    /// the run: what they have not had of their budgets.
    fn unfinished_work(&self, job: &JobRecord) -> u64 {
        let open = self.unfinished.iter();
        let urgent = open.filter(|(at, _)| self.is_urgent(&self.behavior.jobs[*at], job));
        urgent
            .map(|(_, wanted)| *wanted)
            .fold(0, u64::saturating_add)
    }

    /// What a reservation did not get of its slice.
    fn shortfall(&self, job: &JobRecord) -> u64 {
        self.budget(job).saturating_sub(job.received.ticks())
    }

    /// One allotment of the thread of `job`, in ticks.
    fn budget(&self, job: &JobRecord) -> u64 {
        let tables = self.log.tables.cpus.get(self.cpu);
        let thread = tables.and_then(|tables| tables.threads.get(job.thread.index()));
        let budget = thread.and_then(|(_, constraint)| constraint.class.budget());
        budget.unwrap_or_default().ticks()
    }

    fn cause(&self, job: &JobRecord, delays: &Delays, late: u64) -> Cause {
        let deferred = self.log.cpus[self.cpu].counters.deferred_max_ns;
        let entry = if delays.late_release > 0 && self.log.ns(delays.late_release) <= deferred {
            Cause::Deferral
        } else {
            Cause::LateTimer
        };
        let overrun = if delays.overran {
            delays.own.max(delays.unfunded)
        } else {
            0
        };
        let waited = job.held_back.max(job.locked_out).ticks();
        let supply = delays.unsupplied + delays.deciding + job.postponed.ticks();
        let blocked = waited.max(delays.less_urgent) + supply;
        let amounts = [
            (Cause::Overrun, overrun),
            (Cause::Suspension, job.suspended.ticks()),
            (entry, delays.late_release),
            (Cause::Blocked, blocked),
            (
                Cause::HigherPriority,
                delays.urgent + delays.others_deciding,
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

    fn detail(
        &self,
        job: &JobRecord,
        delays: &Delays,
        (start, late): (Instant, u64),
        excused: bool,
    ) -> String {
        let ns = |ticks: u64| readable(self.log.ns(ticks));
        let mut text = String::new();
        let what = ill(job.outcome, ns(late));
        let missing = delays.missing;
        let _ = write!(
            text,
            "{what}; busy window from {}: missing {}",
            ns(start.ticks()),
            ns(missing)
        );
        let subtracted = late <= missing && job.ended.is_some();
        if let Some(early) = delays.without.filter(|_| !subtracted) {
            let window = "without it the same work is done";
            let _ = write!(
                text,
                "; {window} {} before the deadline: excused",
                ns(early)
            );
            return text;
        }
        if excused {
            let _ = write!(text, "; {} - {} <= 0: excused", ns(late), ns(missing));
            return text;
        }
        if missing > 0 {
            let left = late.saturating_sub(missing);
            let _ = write!(text, ", without it still {} late", ns(left));
        }
        let parts = [
            ("own work", delays.own),
            ("more urgent work", delays.urgent),
            ("less urgent work", delays.less_urgent),
            ("given back", delays.given_back),
            ("without budget", delays.unfunded),
            ("suspended", job.suspended.ticks()),
            ("waiting for predecessors", job.held_back.ticks()),
            ("waiting for resources", job.locked_out.ticks()),
            ("without supply", delays.unsupplied),
            ("its schedulers deciding", delays.deciding),
            ("other schedulers deciding", delays.others_deciding),
            (
                "waiting for a budget that its section fits into",
                job.postponed.ticks(),
            ),
            ("released late by", delays.late_release),
        ];
        for (name, ticks) in parts.into_iter().filter(|(_, ticks)| *ticks > 0) {
            let _ = write!(text, ", {name} {}", ns(ticks));
            self.name_culprit(&mut text, name, (job, delays));
        }
        if delays.overran {
            text.push_str(", over its budget");
        }
        text
    }

    /// Who or what is behind a part of a delay.
    fn name_culprit(&self, text: &mut String, part: &str, (job, delays): (&JobRecord, &Delays)) {
        let _ = match part {
            "more urgent work" => delays.worst.map(|(thread, share)| {
                let task = self.log.place_name(self.cpu, thread);
                write!(text, " (`{task}` {})", readable(self.log.ns(share)))
            }),
            "waiting for resources" => self
                .last_lock(job)
                .map(|(resource, holder)| write!(text, " (`{resource}`, held by `{holder}`)")),
            "without supply" => self
                .supplier(job)
                .map(|place| write!(text, " of `{}`", self.log.node_name(self.cpu, place))),
            _ => None,
        };
    }

    fn signed_ns(&self, ticks: i64) -> i64 {
        let ns = i64::try_from(self.log.ns(ticks.unsigned_abs())).unwrap_or(i64::MAX);
        if ticks < 0 { -ns } else { ns }
    }
}

/// What is wrong with a job that ended so.
fn ill(outcome: Option<Outcome>, late: Readable) -> String {
    match outcome {
        Some(Outcome::Aborted) => "its thread ended before it was done".into(),
        Some(Outcome::Short) => format!("{late} short of its slice"),
        Some(_) => format!("{late} late"),
        None => format!("{late} late and not complete when the run ended"),
    }
}
