//! The run without the missing time, which decides whether a miss is excused.
//!
//! The same arrivals, the same executed work and the same policy, without the time that was taken
//! from below; releases that a gap delayed come when they were due. A gap can delay a job by more
//! than its own length, because it then meets other releases: no sum over a busy window tells that,
//! but the run does. It is played in virtual time by a part above this one (`punctual::judge`).
//!
//! Virtual time has no late timers, and schedulers decide in no time there. So the run is played
//! with the missing time, too: a deadline that is kept even there was broken by something else. A
//! job that such a delay moved into a gap is the exception: it is done before the gap there. Its
//! own record tells: without the gaps in which it was ready it is on time.

use std::collections::BTreeMap;

use punctual_model::{Instant, Requirement};

use super::cause::{Cause, Inquiry};
use super::figures;
use super::observed::Observed;
use crate::behavior::{Behavior, JobRecord};
use crate::log::Log;

/// A run in virtual time, with its missing time and without it.
#[derive(Clone, Debug)]
pub struct Counterfactual {
    with: Played,
    without: Played,
}

#[derive(Clone, Debug)]
struct Played {
    log: Log,
    behaviors: Vec<Behavior>,
    /// Lost and skipped releases by task.
    dropped: Vec<u64>,
}

impl Counterfactual {
    /// A recorded run played again with its missing time, and without it: CPUs and threads are
    /// those of the record. O(records · log records).
    pub fn new(with: Log, without: Log) -> Counterfactual {
        let played = |log: Log| {
            let behaviors = Behavior::of_all(&log);
            let tasks = figures::tasks(&log, &behaviors, &[]);
            let dropped = tasks.iter().map(|task| task.lost + task.skipped);
            Played {
                dropped: dropped.collect(),
                log,
                behaviors,
            }
        };
        Counterfactual {
            with: played(with),
            without: played(without),
        }
    }

    pub(super) fn of_cpu(&self, cpu: usize) -> Option<Fates<'_>> {
        Some(Fates {
            with: self.with.of_cpu(cpu)?,
            without: self.without.of_cpu(cpu)?,
        })
    }

    /// Whether missing time alone drops releases of a task.
    pub(super) fn excuses_drops(&self, task: usize) -> bool {
        let dropped = |played: &Played| played.dropped.get(task).copied();
        dropped(&self.with) > Some(0) && dropped(&self.without) == Some(0)
    }

    /// Whether missing time alone breaks a requirement.
    pub(super) fn excuses(&self, requirement: &Requirement) -> bool {
        let within = requirement.within().as_ns();
        let seen =
            |played: &Played| Observed::new(&played.log, &played.behaviors).seen(requirement);
        seen(&self.with).is_some_and(|ns| ns > within)
            && seen(&self.without).is_some_and(|ns| ns <= within)
    }
}

impl Played {
    fn of_cpu(&self, cpu: usize) -> Option<Jobs<'_>> {
        let jobs = &self.behaviors.get(cpu)?.jobs;
        let key = |job: &JobRecord| (job.thread.index(), job.arrival);
        let numbered = jobs.iter().enumerate();
        Some(Jobs {
            inquiry: Inquiry::new(&self.log, &self.behaviors, cpu),
            places: numbered.map(|(at, job)| (key(job), at)).collect(),
        })
    }
}

/// One CPU of both runs.
pub(super) struct Fates<'a> {
    with: Jobs<'a>,
    without: Jobs<'a>,
}

/// One CPU of a run.
struct Jobs<'a> {
    inquiry: Inquiry<'a>,
    /// Jobs by thread and arrival: releases that are lost shift their numbers.
    places: BTreeMap<(usize, Instant), usize>,
}

/// The fate of a job that missed when no time is taken.
#[derive(Clone, Copy)]
pub(super) enum Fate {
    /// It is done so many ticks before its deadline.
    OnTime { early: u64 },
    /// It is late, or short of its slice, by so many ticks.
    Late { by: u64, cause: Cause },
    /// It would be on time, but so it would with the missing time: something else made it late.
    NotByMissingTime,
    /// It does not come about.
    Unknown,
}

impl<'a> Jobs<'a> {
    fn find(&self, job: &JobRecord) -> Option<&'a JobRecord> {
        let place = self.places.get(&(job.thread.index(), job.arrival))?;
        self.inquiry.behavior.jobs.get(*place)
    }

    fn misses(&self, job: &JobRecord) -> bool {
        job.missed(self.inquiry.behavior.end)
    }
}

impl Fates<'_> {
    /// The fate of a job that missed in the record, of which `inquiry` is.
    pub(super) fn of(&self, inquiry: &Inquiry<'_>, job: &JobRecord) -> Fate {
        let (Some(with), Some(without)) = (self.with.find(job), self.without.find(job)) else {
            return Fate::Unknown;
        };
        if self.without.misses(without) {
            let without_gaps = &self.without.inquiry;
            return Fate::Late {
                by: without_gaps.needed(without),
                cause: without_gaps.cause(without, &without_gaps.all_delays(without)),
            };
        }
        if !self.with.misses(with) && !inquiry.late_by_gaps_alone(job) {
            return Fate::NotByMissingTime;
        }
        without.ended.map_or(Fate::Unknown, |ended| Fate::OnTime {
            early: without.absolute_deadline.since(ended).ticks(),
        })
    }
}
