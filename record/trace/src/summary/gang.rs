//! Gangs in a run: how far apart the members started, beside the bound.

use std::collections::BTreeMap;
use std::fmt;

use punctual_model::{Clock, TaskId, ThreadId, readable};

use crate::behavior::Behavior;
use crate::gangs::GangInfo;
use crate::log::Log;
use crate::quantiles::Quantiles;

/// One superstep of a gang.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct GangReport {
    /// The gang's name, with that of the superstep.
    pub name: String,
    /// Names of its tasks.
    pub members: Vec<String>,
    /// The difference between the first and the last start of a member, at each arrival at which
    /// all of them started, in nanoseconds of true time.
    pub skew_ns: Quantiles,
    /// Arrivals at which only some members started.
    pub incomplete: u64,
    /// The bound of the verdict; `None`: there is none.
    pub bound_ns: Option<u64>,
    /// Arrivals with a difference above the bound.
    pub beyond: u64,
    /// The bound counts with clocks that differ by at most this.
    pub clock_error_ns: u64,
    /// The first arrival at which the clocks of two members differed by more: from then on nothing
    /// says that the bound is kept.
    pub clocks_differ_from_ns: Option<u64>,
    /// Jobs that were not over, as far as the clock of their member can tell, when the next
    /// superstep began without a barrier.
    pub late_ends: u64,
    /// The arrival of the first of them.
    pub late_from_ns: Option<u64>,
    /// The barrier behind it was left out without proof: the result is unsafe.
    pub forced: bool,
    /// Time alone was to keep it from the next superstep, and may not have: the result is that of
    /// a gang not kept in step.
    pub not_in_step: bool,
}

impl fmt::Display for GangReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quantiles { p50, p99, max, n } = self.skew_ns;
        let ns = |value: Option<u64>| value.map_or("-".into(), |ns| readable(ns).to_string());
        write!(
            f,
            "gang {}: {} members, {n} arrivals, skew p50 {}, p99 {}, max {}, bound {}",
            self.name,
            self.members.len(),
            ns(p50),
            ns(p99),
            ns(max),
            ns(self.bound_ns)
        )?;
        if self.beyond > 0 {
            write!(f, "; BEYOND the bound at {} arrivals", self.beyond)?;
        }
        if self.incomplete > 0 {
            let some = self.incomplete;
            write!(f, "; only some members started at {some} arrivals")?;
        }
        if let Some(from) = self.clocks_differ_from_ns {
            let error = readable(self.clock_error_ns);
            write!(
                f,
                "; from {} on clocks differ by more than {error}, and the bound is not kept",
                readable(from)
            )?;
        }
        if self.late_ends > 0 {
            let (late, from) = (self.late_ends, ns(self.late_from_ns));
            write!(
                f,
                "; {late} ends came when the next superstep had begun, the first of the arrival at {from}"
            )?;
        }
        if self.not_in_step {
            write!(f, "; NOT KEPT IN STEP")?;
        }
        if self.forced {
            write!(f, "; UNSAFE: its barrier was left out without proof")?;
        }
        Ok(())
    }
}

/// All gangs of a run. O(segments · log) of their CPUs.
pub(super) fn gangs(log: &Log, behaviors: &[Behavior]) -> Vec<GangReport> {
    log.gangs
        .iter()
        .map(|gang| report(log, behaviors, gang))
        .collect()
}

/// The starts of one member: the CPU's clock, and the first dispatch for each arrival.
struct Starts {
    clock: Clock,
    by_arrival: BTreeMap<u64, u64>,
}

/// The place of a task: its CPU and its thread there.
fn place(log: &Log, task: TaskId) -> Option<(usize, ThreadId)> {
    let mut cpus = log.tables.cpus.iter().enumerate();
    cpus.find_map(|(cpu, tables)| {
        let at = tables.threads.iter().position(|(id, _)| *id == task)?;
        Some((cpu, ThreadId::new(u32::try_from(at).ok()?, 0)))
    })
}

fn starts(log: &Log, behaviors: &[Behavior], task: TaskId) -> Option<Starts> {
    let (cpu, thread) = place(log, task)?;
    let behavior = behaviors.get(cpu)?;
    let mut by_arrival = BTreeMap::new();
    for segment in behavior.segments.iter().filter(|s| s.thread == thread) {
        if let Some(job) = segment.job.and_then(|job| behavior.jobs.get(job)) {
            let arrival = log.ns(job.arrival.ticks());
            by_arrival
                .entry(arrival)
                .or_insert(log.ns(segment.start.ticks()));
        }
    }
    Some(Starts {
        clock: log.cpus.get(cpu)?.clock,
        by_arrival,
    })
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// The greatest difference of some instants.
fn spread(instants: impl Iterator<Item = i64> + Clone) -> u64 {
    let (first, last) = (instants.clone().min(), instants.max());
    first
        .zip(last)
        .map_or(0, |(first, last)| last.abs_diff(first))
}

fn report(log: &Log, behaviors: &[Behavior], gang: &GangInfo) -> GangReport {
    let members = gang.members.iter();
    let starts = members.map(|task| starts(log, behaviors, *task));
    let starts: Vec<Starts> = starts.flatten().collect();
    let mut arrivals: Vec<u64> = starts
        .iter()
        .flat_map(|s| s.by_arrival.keys().copied())
        .collect();
    arrivals.sort_unstable();
    arrivals.dedup();
    let horizon = log.header.duration.as_ns();
    let mut report = GangReport {
        name: gang.name.clone(),
        members: names(log, gang),
        skew_ns: Quantiles::default(),
        incomplete: 0,
        bound_ns: gang.bound.map(punctual_model::Span::as_ns),
        beyond: 0,
        clock_error_ns: gang.clock_error.as_ns(),
        clocks_differ_from_ns: log.header.clocks_apart.map(|from| from.as_ns()),
        late_ends: 0,
        late_from_ns: None,
        forced: gang.forced,
        not_in_step: false,
    };
    let mut skews = Vec::new();
    for arrival in arrivals.into_iter().filter(|arrival| *arrival < horizon) {
        let truly = starts.iter().filter_map(|member| {
            let start = member.by_arrival.get(&arrival)?;
            Some(member.clock.truly(signed(*start)))
        });
        let due = starts
            .iter()
            .map(|member| member.clock.truly(signed(arrival)));
        if spread(due) > report.clock_error_ns {
            let from = report.clocks_differ_from_ns.get_or_insert(arrival);
            *from = arrival.min(*from);
        }
        if truly.clone().count() < gang.members.len() {
            report.incomplete += 1;
            continue;
        }
        let skew = spread(truly);
        report.beyond += u64::from(report.bound_ns.is_some_and(|bound| skew > bound));
        skews.push(skew);
    }
    report.skew_ns = Quantiles::of(&mut skews);
    late_ends(log, behaviors, gang, &mut report);
    report
}

/// Counts the ends that came too late for a superstep that begins without a barrier.
fn late_ends(log: &Log, behaviors: &[Behavior], gang: &GangInfo, report: &mut GangReport) {
    let Some(within) = gang.ends_within else {
        return;
    };
    for task in &gang.members {
        let place = place(log, *task);
        let found = place.and_then(|(cpu, thread)| Some((behaviors.get(cpu)?, thread)));
        let Some((behavior, thread)) = found else {
            continue;
        };
        for job in behavior.jobs.iter().filter(|job| job.thread == thread) {
            let arrival = log.ns(job.arrival.ticks());
            let end = job.ended.unwrap_or(behavior.end);
            if log.ns(end.ticks()).saturating_sub(arrival) > within.as_ns() {
                report.late_ends += 1;
                let first = report.late_from_ns.get_or_insert(arrival);
                *first = arrival.min(*first);
            }
        }
    }
    report.not_in_step = report.late_ends > 0 || report.clocks_differ_from_ns.is_some();
}

fn names(log: &Log, gang: &GangInfo) -> Vec<String> {
    let name = |task: &TaskId| {
        let info = log.tasks.get(task.index());
        info.map_or_else(|| "?".into(), |info| info.name.clone())
    };
    gang.members.iter().map(name).collect()
}
