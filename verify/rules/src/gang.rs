//! The members of a gang arrive at one instant, and start within the bound of their skew.

use std::collections::BTreeMap;

use punctual_model::{Clock, Instant, TaskId, ThreadId};
use punctual_trace::{Behavior, GangInfo, Log, Mode};

use crate::{Rule, Violation};

/// One member: its CPU, and by job number the arrival and the start by the clock of that CPU.
struct Member {
    cpu: usize,
    jobs: BTreeMap<u64, (Instant, Option<Instant>)>,
}

/// Holds the arrivals of every job number against each other. In virtual time without missing
/// time, late timers, overruns and changes it holds the starts against the bound, too, as long as
/// the clocks keep the error that the bound counts with.
pub(crate) fn judge(log: &Log, cpus: usize) -> Vec<Violation> {
    if log.gangs.is_empty() {
        return Vec::new();
    }
    let behaviors: Vec<Behavior> = (0..cpus).map(|cpu| Behavior::new(log, cpu)).collect();
    let mut violations = Vec::new();
    for gang in &log.gangs {
        let members = gang.members.iter();
        let members = members.filter_map(|task| member(log, &behaviors, *task));
        judge_gang(
            log,
            &behaviors,
            gang,
            &members.collect::<Vec<_>>(),
            &mut violations,
        );
    }
    violations
}

fn member(log: &Log, behaviors: &[Behavior], task: TaskId) -> Option<Member> {
    let mut cpus = log.tables.cpus.iter().enumerate().take(behaviors.len());
    let (cpu, thread) = cpus.find_map(|(cpu, tables)| {
        let at = tables.threads.iter().position(|(id, _)| *id == task)?;
        Some((cpu, ThreadId::new(u32::try_from(at).ok()?, 0)))
    })?;
    let behavior = &behaviors[cpu];
    let jobs = behavior.jobs.iter().enumerate();
    let jobs = jobs.filter(|(_, job)| job.thread == thread);
    let mut starts = BTreeMap::new();
    for segment in behavior.segments.iter().filter(|s| s.thread == thread) {
        if let Some(job) = segment.job {
            let _ = starts.entry(job).or_insert(segment.start);
        }
    }
    let jobs = jobs.map(|(at, job)| (job.index, (job.arrival, starts.get(&at).copied())));
    let jobs = jobs.collect();
    Some(Member { cpu, jobs })
}

fn judge_gang(
    log: &Log,
    behaviors: &[Behavior],
    gang: &GangInfo,
    members: &[Member],
    violations: &mut Vec<Violation>,
) {
    let Some(first) = members.first() else {
        return;
    };
    let mut broken = |cpu: usize, now: Instant, detail: String| {
        violations.push(Violation {
            rule: Rule::GangInStep,
            cpu: log.cpus[cpu].name.clone(),
            now,
            detail,
        });
    };
    let bound = gang
        .bound
        .filter(|_| is_undisturbed(log, behaviors, members));
    // By job number, the arrival at the first member that has it: one may lack jobs of the others.
    let jobs = members.iter().rev().flat_map(|member| &member.jobs);
    let arrivals: BTreeMap<u64, Instant> = jobs.map(|(at, (arrival, _))| (*at, *arrival)).collect();
    for (number, arrival) in &arrivals {
        for member in members {
            if let Some((other, _)) = member.jobs.get(number).filter(|(at, _)| at != arrival) {
                let (other, arrival) = (other.ticks(), arrival.ticks());
                let name = &gang.name;
                let detail =
                    format!("job {number} of {name} arrives at {other}, elsewhere at {arrival}");
                broken(member.cpu, Instant::from_ticks(other), detail);
            }
        }
        let due = members
            .iter()
            .map(|member| truly(log, member.cpu, *arrival));
        let kept = spread(due) <= gang.clock_error.as_ns();
        let starts = members.iter().map(|member| {
            let start = member.jobs.get(number)?.1?;
            Some(truly(log, member.cpu, start))
        });
        let starts: Option<Vec<i64>> = starts.collect();
        if let (true, Some(bound), Some(starts)) = (kept, bound, starts) {
            let skew = spread(starts.into_iter());
            if skew > bound.as_ns() + rounding(log, members) {
                let name = &gang.name;
                let detail = format!("skew of job {number} of {name}: {skew} ns, bound {bound:?}");
                broken(first.cpu, *arrival, detail);
            }
        }
    }
}

/// Whether nothing happened that the bound may not have been told of.
fn is_undisturbed(log: &Log, behaviors: &[Behavior], members: &[Member]) -> bool {
    let quiet = |member: &Member| {
        let behavior = &behaviors[member.cpu];
        behavior.missing.is_empty()
            && behavior.late_max.is_zero()
            && behavior.jobs.iter().all(|job| !job.overran)
    };
    log.header.mode == Mode::Virtual && log.changes.is_empty() && members.iter().all(quiet)
}

/// A clock that drifts shows whole nanoseconds.
fn rounding(log: &Log, members: &[Member]) -> u64 {
    let drifts = |member: &Member| log.cpus[member.cpu].clock.drift_ppb != 0;
    u64::from(members.iter().any(drifts))
}

/// The true time of an instant of a CPU, in nanoseconds.
pub(crate) fn truly(log: &Log, cpu: usize, at: Instant) -> i64 {
    let ns = i64::try_from(log.ns(at.ticks())).unwrap_or(i64::MAX);
    let clock = log.cpus.get(cpu).map_or(Clock::default(), |cpu| cpu.clock);
    clock.truly(ns)
}

fn spread(instants: impl Iterator<Item = i64>) -> u64 {
    let both = instants.fold(None, |found: Option<(i64, i64)>, at| {
        let (first, last) = found.unwrap_or((at, at));
        Some((first.min(at), last.max(at)))
    });
    both.map_or(0, |(first, last)| last.abs_diff(first))
}
