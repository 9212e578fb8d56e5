//! The list of misses, each with its cause and the figures behind it in words.

use std::fmt::Write;

use punctual_kern::{MissingCause, Outcome};
use punctual_model::{Readable, readable};

use super::cause::{Cause, Delays, Inquiry};
use super::counterfactual::{Counterfactual, Fate, Fates};
use super::{MAX_LISTED_MISSES, Miss, TakenBy};
use crate::behavior::{Behavior, JobRecord, Missing};
use crate::log::Log;

/// The misses of a run.
pub(super) struct Misses {
    /// With their causes, at most [`MAX_LISTED_MISSES`] of them.
    pub(super) listed: Vec<Miss>,
    /// More than those.
    pub(super) not_listed: u64,
    /// Excused ones by task, listed or not.
    pub(super) excused: Vec<u64>,
}

impl Misses {
    pub(super) fn of(log: &Log, behaviors: &[Behavior], runs: Option<&Counterfactual>) -> Misses {
        let mut misses = Misses {
            listed: Vec::new(),
            not_listed: 0,
            excused: vec![0; log.tasks.len()],
        };
        for (cpu, behavior) in behaviors.iter().enumerate() {
            let mut windows = None;
            for job in behavior.jobs.iter().filter(|job| job.missed(behavior.end)) {
                let (inquiry, fates) = windows.get_or_insert_with(|| {
                    let fates = runs.and_then(|runs| runs.of_cpu(cpu));
                    (Inquiry::new(log, behaviors, cpu), fates)
                });
                misses.add(inquiry, job, fates.as_ref());
            }
        }
        misses
    }

    fn add(&mut self, inquiry: &Inquiry<'_>, job: &JobRecord, fates: Option<&Fates<'_>>) {
        let fate = fates.map(|fates| fates.of(inquiry, job));
        if matches!(fate, Some(Fate::OnTime { .. })) {
            let task = inquiry.log.task_of(inquiry.cpu, job.thread);
            if let Some(excused) = task.and_then(|task| self.excused.get_mut(task.index())) {
                *excused += 1;
            }
        }
        if self.listed.len() == MAX_LISTED_MISSES {
            self.not_listed += 1;
        } else {
            self.listed.push(inquiry.explain(job, fate));
        }
    }
}

impl Inquiry<'_> {
    fn explain(&self, job: &JobRecord, fate: Option<Fate>) -> Miss {
        let lateness = self.lateness(job);
        let delays = self.all_delays(job);
        let cause = match fate {
            Some(Fate::OnTime { .. }) => Cause::MissingTime,
            Some(Fate::Late { cause, .. }) => cause,
            // Time that was taken is not why: what is dropped without it is no better there.
            Some(Fate::NotByMissingTime | Fate::Unknown) => self.cause(
                job,
                &Delays {
                    missing: 0,
                    ..delays
                },
            ),
            None => self.cause(job, &delays),
        };
        Miss {
            task: self.log.task_name(self.cpu, job.thread).into(),
            task_index: self.log.task_of(self.cpu, job.thread),
            cpu: self.log.cpus[self.cpu].name.clone(),
            job: job.index,
            release_ns: self.log.ns(job.arrival.ticks()),
            lateness_ns: self.signed_ns(lateness),
            excused: matches!(fate, Some(Fate::OnTime { .. })),
            cause,
            detail: self.detail(job, &delays, fate),
        }
    }

    fn detail(&self, job: &JobRecord, delays: &Delays, fate: Option<Fate>) -> String {
        let ns = |ticks: u64| readable(self.log.ns(ticks));
        let mut text = ill(job.outcome, ns(self.needed(job)));
        let (start, missing) = (ns(delays.start.ticks()), delays.missing);
        let _ = write!(text, "; busy window from {start}: missing {}", ns(missing));
        let window = (delays.start, self.over(job));
        let by = TakenBy::during(self.log, (self.cpu, self.behavior), window).to_string();
        if !by.is_empty() {
            let _ = write!(text, " ({by})");
        }
        let _ = match fate {
            Some(Fate::OnTime { early }) => {
                let early = ns(early);
                let _ = write!(
                    text,
                    "; without it done {early} before the deadline: excused"
                );
                return text;
            }
            Some(Fate::Late { by, .. }) => write!(text, ", without it still {}", ns(by)),
            Some(Fate::NotByMissingTime) => write!(text, ", which alone does not make it late"),
            Some(Fate::Unknown) | None => Ok(()),
        };
        let parts = [
            ("own work", delays.own),
            ("earlier jobs of its own", delays.earlier),
            ("more urgent work", delays.urgent),
            ("less urgent work", delays.less_urgent),
            ("given back", delays.given_back),
            ("without budget", delays.waits.unfunded),
            ("suspended", delays.waits.suspended),
            ("waiting for predecessors", delays.waits.held_back),
            ("waiting for resources", delays.waits.locked_out),
            ("without supply", delays.unsupplied),
            ("its schedulers deciding", delays.deciding),
            ("other schedulers deciding", delays.others_deciding),
            (
                "waiting for a budget that its section fits into",
                delays.waits.postponed,
            ),
            ("released late by", delays.late_release),
            ("its slice ended late by", delays.late_end),
        ];
        for (name, ticks) in parts.into_iter().filter(|(_, ticks)| *ticks > 0) {
            let _ = write!(text, ", {name} {}", ns(ticks));
            self.name_culprit(&mut text, name, (job, delays));
        }
        if delays.overran {
            text.push_str(", over its budget");
            let taken = self.taken_inside(job, delays);
            if taken > 0 {
                let _ = write!(text, ", possibly taken: {} was, in its midst", ns(taken));
            }
        }
        text
    }

    /// Ticks that are known to have been taken in the midst of the jobs of its thread that overran.
    /// A platform that samples sees the end of such a hole alone: more of it may be in their work.
    fn taken_inside(&self, job: &JobRecord, delays: &Delays) -> u64 {
        let behavior = self.behavior;
        if self.log.cpus[self.cpu].counters.missing_method.is_empty() {
            return 0;
        }
        let overran = |at: usize| {
            let other = behavior.jobs.get(at);
            other.is_some_and(|other| other.thread == job.thread && other.overran)
        };
        let end = job.ended.unwrap_or(behavior.end);
        let window = |m: &&Missing| m.end > delays.start && m.start < end;
        let missing = behavior.missing.iter().filter(window);
        let inside = missing.filter(|m| m.during.is_some_and(overran));
        let stolen = inside.filter(|m| m.cause == MissingCause::Stolen);
        stolen.map(|m| m.end.since(m.start).ticks()).sum()
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

/// The fault of a job that ended so.
fn ill(outcome: Option<Outcome>, late: Readable) -> String {
    match outcome {
        Some(Outcome::Aborted) => "its thread ended before it was done".into(),
        Some(Outcome::Short) => format!("{late} short of its slice"),
        Some(_) => format!("{late} late"),
        None => format!("{late} late and not complete when the run ended"),
    }
}
