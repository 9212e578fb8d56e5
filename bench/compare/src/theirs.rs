//! A round of threads of the kernel.

use std::sync::atomic::AtomicBool;

use punctual::Workloads;
use punctual_rivals::periodic::{self, Class, Options, Outcome, Seen};
use punctual_rivals::periodic::{Task as Thread, Work as Doing};

use crate::counterfactual::{self, Missed};
use crate::ours::shipped;
use crate::round::{Round, TaskRound};
use crate::subject::{Periodic, Subject, Work};

/// Runs the subject as threads of a class for one round. From `runaway` on (a task and a job) that
/// task never ends.
///
/// # Errors
/// Why the kernel refuses.
pub(crate) fn round(
    subject: &Subject,
    class: Class,
    (duration, stop): (u64, &AtomicBool),
    runaway: Option<(usize, u64)>,
) -> Result<Round, String> {
    let mut workloads = shipped();
    let mut threads = Vec::new();
    for (at, task) in subject.tasks.iter().enumerate() {
        let from = runaway.filter(|(of, _)| *of == at).map(|(_, job)| job);
        threads.push(thread(task, from, &mut workloads)?);
    }
    let options = Options {
        class,
        duration,
        grace: subject.longest_deadline(),
        stop,
    };
    let outcome = periodic::run(threads, &options)?;
    let mut round = Round {
        processor_ns: outcome.processor_ns,
        mismatches: workloads.check().map(|oracle| oracle.mismatches),
        remarks: remarks(&outcome),
        ..Round::default()
    };
    let missed: Vec<Missed> = subject
        .tasks
        .iter()
        .zip(&outcome.tasks)
        .map(|(task, seen)| missed(task, seen, duration))
        .collect();
    let is_judged = class == Class::Fifo;
    let mut excused = vec![(None, None); missed.len()];
    if is_judged {
        match counterfactual::judge(subject, &outcome.tasks, &missed, (duration, stop)) {
            Ok(judged) => {
                round.missing_ns = Some(judged.missing_ns);
                let pairs = judged.excused.into_iter().zip(judged.excused_at_most);
                excused = pairs.map(|(seen, most)| (Some(seen), Some(most))).collect();
            }
            Err(why) => round.remarks.push(format!("nothing is excused: {why}")),
        }
    }
    let tasks = subject
        .tasks
        .iter()
        .zip(&outcome.tasks)
        .zip(&missed)
        .zip(excused);
    round.tasks = tasks
        .map(|(((task, seen), missed), excused)| {
            let over = seen
                .jobs
                .iter()
                .filter_map(|job| Some(job.end? - job.release));
            let starts = seen.jobs.iter().map(|job| job.start - job.release);
            TaskRound {
                jobs: task.releases(duration),
                misses: missed.len() as u64,
                excused: excused.0,
                excused_at_most: excused.1,
                responses: over.collect(),
                starts: starts.collect(),
            }
        })
        .collect();
    Ok(round)
}

fn thread(
    task: &Periodic,
    runaway: Option<u64>,
    workloads: &mut Workloads,
) -> Result<Thread, String> {
    let work = match (&task.work, runaway) {
        (Work::Burn(ns), Some(from)) => Doing::RunAway(*ns, from),
        (Work::Function(_), Some(from)) => Doing::RunAway(0, from),
        (Work::Burn(ns), None) => Doing::Burn(*ns),
        (Work::Function(name), None) => {
            let mut step = workloads
                .resolve(name)
                .map_err(|why| format!("function `{}` {}", why.name, why.reason))?;
            Doing::Call(Box::new(move |job, arrival_ns| {
                step(punctual::JobContext { job, arrival_ns });
            }))
        }
    };
    Ok(Thread {
        cpu: task.host as usize,
        priority: i32::try_from(task.priority).unwrap_or(1),
        period: task.period,
        phase: task.phase,
        relative_deadline: task.relative_deadline,
        runtime: task.wcet,
        skips: task.skips,
        work,
    })
}

/// The releases that were not over by their deadlines, or never came about.
fn missed(task: &Periodic, seen: &Seen, duration: u64) -> Missed {
    let mut jobs = seen.jobs.iter().peekable();
    let releases = (0..task.releases(duration)).map(|k| task.phase + k * task.period);
    let late = releases.filter(|release| {
        let job = jobs.next_if(|job| job.release == *release);
        let end = job.and_then(|job| job.end);
        end.is_none_or(|end| end > release + task.relative_deadline)
    });
    late.collect()
}

fn remarks(outcome: &Outcome) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(why) = &outcome.unlocked {
        remarks.push(format!("memory is not locked: {why}"));
    }
    if outcome.tasks.iter().any(|seen| seen.panicked) {
        remarks.push("a body panicked, and its thread ended".into());
    }
    let lost: u64 = outcome.tasks.iter().map(|seen| seen.gaps_lost).sum();
    if lost > 0 {
        remarks.push(format!("{lost} gaps were not kept: there was no room"));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_rivals::periodic::Job;

    #[test]
    fn late_and_absent_jobs_are_missed() {
        let task = Periodic {
            name: "t".into(),
            cpu: 0,
            host: 0,
            period: 10,
            phase: 3,
            relative_deadline: 8,
            wcet: 5,
            skips: false,
            work: Work::Burn(5),
            priority: 50,
        };
        let job = |release, end| Job {
            release,
            start: release,
            end,
        };
        let seen = Seen {
            // In time to the instant, late by one, (skipped), cut off by the end.
            jobs: vec![job(3, Some(11)), job(13, Some(22)), job(33, None)],
            ..Seen::default()
        };
        assert_eq!(missed(&task, &seen, 40), [13, 23, 33]);
    }
}
