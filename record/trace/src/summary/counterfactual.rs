//! The run without the missing time: what decides whether a miss is excused.
//!
//! The same arrivals, the same executed work and the same policy, without the time that was taken
//! from below; releases that a gap delayed come when they were due. A gap can delay a job by more
//! than its own length, because it then meets other releases: no sum over a busy window tells that,
//! but the run does. It is played in virtual time by a part above this one (`punctual::judge`).

use std::collections::BTreeMap;

use punctual_kern::MissingCause;

use super::cause::{Cause, Inquiry};
use crate::behavior::{Behavior, JobRecord};
use crate::log::Log;

/// A run without its missing time.
#[derive(Clone, Debug)]
pub struct Counterfactual {
    pub(super) log: Log,
    pub(super) behaviors: Vec<Behavior>,
}

impl Counterfactual {
    /// `log` is a recorded run played again without missing time: CPUs, threads and numbers of jobs
    /// are those of the record. O(records · log records).
    pub fn new(log: Log) -> Counterfactual {
        let behaviors = Behavior::of_all(&log);
        Counterfactual { log, behaviors }
    }

    pub(super) fn of_cpu(&self, cpu: usize) -> Option<Without<'_>> {
        let jobs = &self.behaviors.get(cpu)?.jobs;
        let numbered = jobs.iter().enumerate();
        Some(Without {
            inquiry: Inquiry::new(&self.log, &self.behaviors, cpu),
            places: numbered
                .map(|(at, job)| ((job.thread.index(), job.index), at))
                .collect(),
        })
    }
}

/// One CPU of it.
pub(super) struct Without<'a> {
    inquiry: Inquiry<'a>,
    /// Jobs by thread and number.
    places: BTreeMap<(usize, u64), usize>,
}

/// What becomes of a job that missed when no time is taken.
#[derive(Clone, Copy)]
pub(super) enum Fate {
    /// It is done so many ticks before its deadline.
    OnTime { early: u64 },
    /// It is late, or short of its slice, by so many ticks.
    Late { by: u64, cause: Cause },
    /// It would be on time, but nothing was taken, or its release came later than that explains.
    LateEntry,
    /// It does not come about.
    Unknown,
}

impl Without<'_> {
    /// What becomes of `job`, which missed in the run of `record`.
    pub(super) fn fate(&self, record: &Inquiry<'_>, job: &JobRecord) -> Fate {
        let b = self.inquiry.behavior;
        let place = self.places.get(&(job.thread.index(), job.index));
        let Some(again) = place.map(|&at| &b.jobs[at]) else {
            return Fate::Unknown;
        };
        if again.missed(b.end) {
            return Fate::Late {
                by: self.inquiry.needed(again),
                cause: self.inquiry.cause(again, &self.inquiry.all_delays(again)),
            };
        }
        let Some(ended) = again.ended else {
            return Fate::Unknown;
        };
        let early = again.absolute_deadline.since(ended).ticks();
        let late_entry = record.behavior.late_entry(job);
        let late_entry = late_entry.saturating_sub(wait_for_release(again));
        match early.checked_sub(late_entry) {
            Some(early) if record.is_anything_missing(job) => Fate::OnTime { early },
            _ => Fate::LateEntry,
        }
    }
}

/// Ticks from the arrival of a job to its release.
fn wait_for_release(job: &JobRecord) -> u64 {
    job.released.since(job.arrival).ticks()
}

impl Behavior {
    /// By how many ticks the release of a job came late for another reason than missing time.
    pub(super) fn late_entry(&self, job: &JobRecord) -> u64 {
        let gaps = self.missing_during(job.arrival, job.released, MissingCause::Stolen);
        wait_for_release(job).saturating_sub(gaps.ticks())
    }
}

impl Inquiry<'_> {
    /// Whether time was taken from any CPU before `job` was over.
    fn is_anything_missing(&self, job: &JobRecord) -> bool {
        let before = |b: &Behavior| {
            let until = job.ended.unwrap_or(b.end);
            let mut gaps = b.missing.iter().take_while(|gap| gap.start < until);
            gaps.any(|gap| gap.cause == MissingCause::Stolen)
        };
        self.all.iter().any(before)
    }
}
