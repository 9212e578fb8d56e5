//! Counts and quantiles of a run.

use super::{Counter, CpuReport, Fact, ProgramTime, TakenBy, TaskReport};
use crate::behavior::{Behavior, JobRecord};
use crate::log::{Bound, Counters, Log};
use crate::quantiles::Quantiles;
use punctual_kern::MissingCause;
use punctual_model::Instant;

/// One report per task, in the order of the file.
pub(super) fn tasks(log: &Log, behaviors: &[Behavior], excused: &[u64]) -> Vec<TaskReport> {
    let mut tasks: Vec<TaskReport> = log
        .tasks
        .iter()
        .map(|info| TaskReport {
            name: info.name.clone(),
            cpu: String::new(),
            scheduler: None,
            jobs: 0,
            misses: 0,
            excused: 0,
            overruns: 0,
            skipped: 0,
            lost: 0,
            unfinished: 0,
            response_ns: Quantiles::default(),
            bound_ns: info.bound.as_ref().map(|b| b.ns),
            machine_bound_ns: info.machine_bound.as_ref().map(|b| b.ns),
            exactness: info.bound.as_ref().map(|b| b.exactness.clone()),
            explanation: explanation(info.bound.as_ref()),
            machine_explanation: explanation(info.machine_bound.as_ref()),
            program: None,
        })
        .collect();
    let mut responses: Vec<Vec<u64>> = vec![Vec::new(); tasks.len()];
    for (cpu, behavior) in behaviors.iter().enumerate() {
        let threads = log
            .tables
            .cpus
            .get(cpu)
            .map_or(&[][..], |tables| &tables.threads);
        for (thread, (task, _)) in threads.iter().enumerate() {
            let Some(report) = tasks.get_mut(task.index()) else {
                continue;
            };
            report.cpu.clone_from(&log.cpus[cpu].name);
            let home = log.tables.cpus[cpu].homes.get(thread).copied();
            let home = home.map(usize::from).filter(|home| *home > 0);
            report.scheduler = home.map(|home| log.node_name(cpu, home).into());
        }
        for (thread, counts) in &behavior.threads {
            let task = log.task_of(cpu, *thread);
            if let Some(report) = task.and_then(|task| tasks.get_mut(task.index())) {
                report.skipped += counts.skipped;
                report.lost += counts.lost;
            }
        }
        for job in &behavior.jobs {
            let Some(task) = log.task_of(cpu, job.thread) else {
                continue;
            };
            let Some(report) = tasks.get_mut(task.index()) else {
                continue;
            };
            if report.cpu.is_empty() {
                report.cpu.clone_from(&log.cpus[cpu].name);
            }
            count(report, job, behavior);
            if let Some(response) = job.response_time() {
                responses[task.index()].push(log.ns(response.ticks()));
            }
        }
    }
    tell_programs(log, behaviors, &mut tasks);
    for (report, responses) in tasks.iter_mut().zip(&mut responses) {
        report.response_ns = Quantiles::of(responses);
    }
    for (report, excused) in tasks.iter_mut().zip(excused) {
        report.excused = *excused;
    }
    tasks
}

/// The processor time of the programs that are tasks, beside their turns.
fn tell_programs(log: &Log, behaviors: &[Behavior], tasks: &mut [TaskReport]) {
    for (cpu, behavior) in behaviors.iter().enumerate() {
        for &(task, processor_ns) in &log.cpus[cpu].counters.programs {
            let segments = behavior.segments.iter();
            let turns = segments.filter(|s| log.task_of(cpu, s.thread) == Some(task));
            let turns_ns = log.ns(turns.map(|s| s.end.since(s.start).ticks()).sum());
            tasks[task.index()].program = Some(ProgramTime {
                processor_ns,
                turns_ns,
                beyond_ns: processor_ns.saturating_sub(turns_ns),
            });
        }
    }
}

fn explanation(bound: Option<&Bound>) -> Option<String> {
    let words = bound.map(|bound| &bound.explanation);
    words.filter(|words| !words.is_empty()).cloned()
}

/// Parts per million as a percentage, rounded up to a tenth.
fn percent(ppm: u64) -> f64 {
    ppm.div_ceil(1_000) as f64 / 10.0
}

fn count(report: &mut TaskReport, job: &JobRecord, behavior: &Behavior) {
    report.jobs += 1;
    report.overruns += u64::from(job.overran);
    let missed = job.missed(behavior.end);
    report.misses += u64::from(missed);
    let has_deadline = job.absolute_deadline != Instant::MAX;
    report.unfinished += u64::from(has_deadline && job.ended.is_none() && !missed);
}

/// One report per CPU.
pub(super) fn cpus(log: &Log, behaviors: &[Behavior]) -> Vec<CpuReport> {
    let all = log.cpus.iter().zip(behaviors).zip(&log.tables.cpus);
    all.enumerate()
        .map(|(place, ((cpu, behavior), tables))| {
            let gaps = |cause: MissingCause| {
                let gaps = behavior.missing.iter().filter(move |m| m.cause == cause);
                gaps.map(|m| m.end.since(m.start).ticks())
            };
            let executed = behavior.segments.iter();
            let executed: u64 = executed.map(|s| s.end.since(s.start).ticks()).sum();
            CpuReport {
                id: cpu.name.clone(),
                host: cpu.host,
                policy: tables.policy.name(),
                utilization_percent: cpu.utilization_ppm.map(percent),
                machine_utilization_percent: cpu.machine_utilization_ppm.map(percent),
                decisions: behavior.decisions,
                switches: behavior.switches,
                preemptions: behavior.preemptions,
                executed_ns: log.ns(executed),
                deferrals: cpu.counters.deferrals,
                deferral_ns: deferral(&cpu.counters),
                deferred_max_ns: cpu.counters.deferred_max_ns,
                late_max_ns: log
                    .ns(behavior.late_max.ticks())
                    .max(cpu.counters.late_max_ns),
                missing_time_ns: log.ns(gaps(MissingCause::Stolen).sum()),
                missing_time_by: TakenBy::during(
                    log,
                    (place, behavior),
                    (Instant::ZERO, Instant::MAX),
                ),
                missing_time_max_ns: log.ns(gaps(MissingCause::Stolen).max().unwrap_or(0)),
                given_back_ns: log.ns(gaps(MissingCause::GivenBack).sum()),
                missing_method: cpu.counters.missing_method.clone(),
                missing_error_ns: cpu.counters.missing_error_ns,
                boundaries: cpu.counters.boundaries,
                lost_from_ns: cpu.lost_from.map(|at| log.ns(at.ticks())),
                counters: cpu.counters.others.iter().map(counter).collect(),
            }
        })
        .collect()
}

/// What the platform kept of its deferrals.
fn deferral(counters: &Counters) -> Quantiles {
    let waits = [
        counters.deferred_p50_ns,
        counters.deferred_p99_ns,
        counters.deferred_max_ns,
    ];
    Quantiles::seen(counters.deferrals, waits)
}

fn counter((name, value): &(String, u64)) -> Counter {
    Counter {
        name: name.clone(),
        value: *value,
    }
}

pub(super) fn facts(machine: &[(String, String)]) -> Vec<Fact> {
    let fact = |(name, value): &(String, String)| Fact {
        name: name.clone(),
        value: value.clone(),
    };
    machine.iter().map(fact).collect()
}
