//! A round of Punctual: a live run, judged like any other.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual::trace::Behavior;
use punctual::trace::Log;
use punctual::{Error, GivenTerms, LiveOptions, RunReport, Span, System, Workloads};
use punctual_rivals::periodic::processor_time;
use punctual_rosace::RosaceWorkload;

use crate::round::{Round, TaskRound};
use crate::subject::Subject;

/// How each round runs.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) duration: u64,
    pub(crate) force: bool,
    pub(crate) terms: GivenTerms,
    pub(crate) source: String,
    pub(crate) base: PathBuf,
    pub(crate) stop: Arc<AtomicBool>,
}

/// The workloads that come with the command, fresh: their state serves one round.
pub(crate) fn shipped() -> Workloads {
    Workloads::new().with(RosaceWorkload::new())
}

/// Runs `system`, which has the tasks of the subject, for one round.
pub(crate) fn round(
    subject: &Subject,
    system: &System,
    setting: &Setting,
    workloads: &mut Workloads,
) -> Result<Round, Error> {
    let options = LiveOptions {
        duration: Some(Span::from_ns(setting.duration)),
        force: setting.force,
        stop: Arc::clone(&setting.stop),
        source: setting.source.clone(),
        base: setting.base.clone(),
        terms: Some(setting.terms.clone()),
        ..LiveOptions::default()
    };
    let before = processor_time();
    let log = punctual::run(system, &options, workloads, &mut |_| true)?;
    let processor_ns = processor_time().saturating_sub(before);
    // A round that is cut off is not told, so nobody waits for its judgement.
    let report = punctual::judge_while(&log, &mut || !setting.stop.load(Ordering::Relaxed));
    Ok(Round {
        tasks: tasks(subject, &log, &report, setting.duration),
        processor_ns,
        missing_ns: Some(report.cpus.iter().map(|cpu| cpu.missing_time_ns).sum()),
        mismatches: report.oracle.map(|oracle| oracle.mismatches),
        verdict: Some(report.verdict),
        remarks: remarks(&log, &report),
    })
}

fn tasks(subject: &Subject, log: &Log, report: &RunReport, duration: u64) -> Vec<TaskRound> {
    let mut rounds: Vec<TaskRound> = Vec::new();
    for (periodic, told) in subject.tasks.iter().zip(&report.tasks) {
        let jobs = periodic.releases(duration);
        rounds.push(TaskRound {
            jobs,
            // What was lost or skipped, or never released, is not among the jobs that are told.
            misses: told.misses + jobs.saturating_sub(told.jobs),
            excused: Some(told.excused),
            // Punctual looks at its own wake-ups.
            excused_at_most: Some(told.excused),
            ..TaskRound::default()
        });
    }
    for cpu in 0..log.cpus.len() {
        let behavior = Behavior::new(log, cpu);
        let mut first = vec![None; behavior.jobs.len()];
        for segment in &behavior.segments {
            if let Some(place) = segment.job.and_then(|job| first.get_mut(job)) {
                let _ = place.get_or_insert(segment.start);
            }
        }
        for (job, start) in behavior.jobs.iter().zip(first) {
            let task = log.task_of(cpu, job.thread);
            let Some(round) = task.and_then(|task| rounds.get_mut(task.index())) else {
                continue;
            };
            let ns = |span: Span| log.ns(span.ticks());
            round.responses.extend(job.response_time().map(ns));
            round
                .starts
                .extend(start.map(|at| ns(at.since(job.arrival))));
        }
    }
    rounds
}

fn remarks(log: &Log, report: &RunReport) -> Vec<String> {
    let mut remarks: Vec<String> = Vec::new();
    if report.mode == "best-effort" {
        remarks.push("best effort: without real-time priority or locked memory".into());
    }
    remarks.extend(log.header.lost.iter().cloned());
    remarks.extend(log.header.faults.iter().cloned());
    remarks.extend(
        report
            .unexcused
            .iter()
            .map(|why| format!("nothing is excused: {why}")),
    );
    if log.is_cut() {
        remarks.push("the recorder was full, so some jobs count as missed".into());
    }
    remarks
}
