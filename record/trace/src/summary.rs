//! The summary of a run: verdict, tasks, CPUs, misses with their causes. One value for all outputs.
//!
//! Serialized, it is the JSON of `sim`, `run` and `replay` (`punctual schema run`); displayed, it
//! is the table at the end of a run; the page and the exit code come from it too.

mod cause;
mod change;
mod counterfactual;
mod display;
mod figures;
mod gang;
mod graph;
mod group;
mod miss;
mod observed;
mod requirement;
mod starts;
mod starved;
mod supply;
mod taken;
mod tree;
mod waiting;

use punctual_model::TaskId;

use crate::behavior::Behavior;
use crate::boundary::Boundaries;
use crate::log::Log;
use crate::quantiles::Quantiles;

pub use cause::Cause;
pub use change::ChangeReport;
pub use counterfactual::Counterfactual;
pub use gang::GangReport;
pub use graph::{ActorReport, GraphReport, LongFiring};
pub use group::GroupReport;
pub use requirement::RequirementReport;
pub use starts::StartReport;
pub use supply::{FellBack, ResourceReport, SchedulerReport};
pub use taken::{TakenBy, ThreadShare};

/// Version of the JSON.
pub const FORMAT: u32 = 1;
/// Most misses listed one by one; the rest is counted.
pub const MAX_LISTED_MISSES: usize = 100_000;

/// How a run went.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RunReport {
    /// Version of this structure.
    pub format: u32,
    /// On time or not.
    pub verdict: RunVerdict,
    /// `real-time`, `best-effort` or `virtual`.
    pub mode: &'static str,
    /// `sim`, `linux`, ...
    pub platform: String,
    /// What ran it.
    pub tool: String,
    /// The file or program.
    pub source: String,
    /// Seed of everything drawn at random.
    pub seed: u64,
    /// Releases in [0, this) were covered.
    pub duration_ns: u64,
    /// How long the run took until its last job was over.
    pub elapsed_ns: u64,
    /// Why it ended before its time.
    pub stopped: Option<String>,
    /// What the machine refused.
    pub lost_capabilities: Vec<String>,
    /// What went wrong in the work itself.
    pub faults: Vec<String>,
    /// Fingerprint of the machine.
    pub machine: Vec<Fact>,
    /// In the order of the file.
    pub tasks: Vec<TaskReport>,
    /// In the order of the file.
    pub cpus: Vec<CpuReport>,
    /// Schedulers below CPUs, by CPU and place.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub schedulers: Vec<SchedulerReport>,
    /// Resources, by CPU.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub resources: Vec<ResourceReport>,
    /// The lines of `[require]`.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub requirements: Vec<RequirementReport>,
    /// The graphs, in the order of the file.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub graphs: Vec<GraphReport>,
    /// The supersteps of gangs, in the order of the file.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub gangs: Vec<GangReport>,
    /// The planned groups, in the order of the file.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub groups: Vec<GroupReport>,
    /// What changed while it ran, in the order of time.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub changes: Vec<ChangeReport>,
    /// Every late job, in order of CPU and release.
    pub misses: Vec<Miss>,
    /// Misses beyond [`MAX_LISTED_MISSES`].
    pub misses_not_listed: u64,
    /// Why nothing could be excused: the run cannot be played again without its missing time.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub unexcused: Option<String>,
    /// What a workload found when it compared itself with its reference.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub oracle: Option<OracleReport>,
}

/// The verdict of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum RunVerdict {
    /// Every deadline and every requirement was kept, no job was lost or skipped, every admitted
    /// change was done, and results are those of the reference. Gangs without barriers were kept
    /// in step, and no guaranteed group was late.
    Met,
    /// Something was not.
    Missed,
    /// Nothing of that is there in the run without the missing time ([`Counterfactual`]).
    Excused,
}

impl RunVerdict {
    /// The worse of two: missed, excused, met.
    pub fn worse(self, other: RunVerdict) -> RunVerdict {
        match (self, other) {
            (RunVerdict::Missed, _) | (_, RunVerdict::Missed) => RunVerdict::Missed,
            (RunVerdict::Excused, _) | (_, RunVerdict::Excused) => RunVerdict::Excused,
            (RunVerdict::Met, RunVerdict::Met) => RunVerdict::Met,
        }
    }

    /// The word in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            RunVerdict::Met => "met",
            RunVerdict::Missed => "missed",
            RunVerdict::Excused => "excused",
        }
    }
}

/// One line of the fingerprint.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Fact {
    /// What.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// One task.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TaskReport {
    /// From the file.
    pub name: String,
    /// Name of its CPU.
    pub cpu: String,
    /// Name of its scheduler, if it is not the CPU's own.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub scheduler: Option<String>,
    /// Releases covered: completed, late and unfinished ones.
    pub jobs: u64,
    /// Late ones, excused or not.
    pub misses: u64,
    /// Late ones that missing time excuses.
    pub excused: u64,
    /// Jobs that used their budget and were not done.
    pub overruns: u64,
    /// Releases dropped because the job before was unfinished.
    pub skipped: u64,
    /// Releases dropped because the backlog was full.
    pub lost: u64,
    /// Jobs with a deadline that were neither over nor late when the run ended.
    pub unfinished: u64,
    /// Responses of all completed jobs, from arrival to completion, in nanoseconds.
    pub response_ns: Quantiles,
    /// Bound with the terms of the file alone.
    pub bound_ns: Option<u64>,
    /// Bound with this machine's terms.
    pub machine_bound_ns: Option<u64>,
    /// `exact`, `sufficient` or `simulated`.
    pub exactness: Option<String>,
    /// The terms of the bound.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub explanation: Option<String>,
    /// The terms of the machine's bound.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub machine_explanation: Option<String>,
    /// Where its work is a program: the processor time that this had in the run.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub program: Option<ProgramTime>,
}

/// The processor time of a program that is the work of a task, by the kernel's account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ProgramTime {
    /// All of it, its children's included, in nanoseconds.
    pub processor_ns: u64,
    /// How long the task had the CPU: the program's turns, those included in which it waited.
    pub turns_ns: u64,
    /// So much at least it had beyond these, in time that nobody had a claim to.
    pub beyond_ns: u64,
}

/// One CPU.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct CpuReport {
    /// Its name in the file.
    pub id: String,
    /// The host CPU.
    pub host: Option<u32>,
    /// Its policy.
    pub policy: &'static str,
    /// Its admitted utilization with the terms of the file alone.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub utilization_percent: Option<f64>,
    /// The same with this machine's terms.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub machine_utilization_percent: Option<f64>,
    /// Entries that decided something.
    pub decisions: u64,
    /// Times the processor changed hands, to and from idle included.
    pub switches: u64,
    /// Switches away from a thread that was still ready, and did not yield.
    pub preemptions: u64,
    /// Time executed by threads.
    pub executed_ns: u64,
    /// Preemptions that had to wait.
    pub deferrals: u64,
    /// How long these waited.
    pub deferral_ns: Quantiles,
    /// The longest of these waits.
    pub deferred_max_ns: u64,
    /// The longest delay from an armed instant to the entry.
    pub late_max_ns: u64,
    /// Time taken from below, in total.
    pub missing_time_ns: u64,
    /// The longest single gap of it.
    pub missing_time_max_ns: u64,
    /// The ones who took it.
    pub missing_time_by: TakenBy,
    /// Time given back voluntarily to the rest of the system.
    pub given_back_ns: u64,
    /// How missing time was measured; empty: not at all.
    pub missing_method: String,
    /// What that may be off by, per gap.
    pub missing_error_ns: u64,
    /// The boundaries of its slots; `None`: they were not measured.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub boundaries: Option<Boundaries>,
    /// From when on nothing was recorded.
    pub lost_from_ns: Option<u64>,
    /// What the platform counted further.
    pub counters: Vec<Counter>,
}

/// Something that a platform counted.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Counter {
    /// What.
    pub name: String,
    /// How many.
    pub value: u64,
}

/// A late job and why.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Miss {
    /// Whose.
    pub task: String,
    /// Its place among the tasks.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub task_index: Option<TaskId>,
    /// Name of its CPU.
    pub cpu: String,
    /// Number within its task, from 0.
    pub job: u64,
    /// When it arrived.
    pub release_ns: u64,
    /// From its deadline to its completion (or to the end of the run); negative for a job that
    /// ended early without being done.
    pub lateness_ns: i64,
    /// Missing time alone makes it late: without it the job is on time.
    pub excused: bool,
    /// Why.
    pub cause: Cause,
    /// The figures behind the cause, in words.
    pub detail: String,
}

/// What a workload found when it compared itself with its reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct OracleReport {
    /// Steps compared.
    pub steps: u64,
    /// Steps that differed.
    pub mismatches: u64,
}

impl TaskReport {
    /// Whether an observed response exceeds the bound that holds on this machine: then something
    /// happened that the analysis was not told of.
    pub fn exceeds_bound(&self) -> bool {
        let bound = self.machine_bound_ns.or(self.bound_ns);
        matches!((self.response_ns.max, bound), (Some(max), Some(bound)) if max > bound)
    }
}

impl RunReport {
    /// Summarizes a log. Nothing is excused: that takes the run without the missing time
    /// ([`RunReport::judged`]). O(records · log records) in time; all responses are kept for exact
    /// quantiles.
    pub fn new(log: &Log) -> RunReport {
        RunReport::of_behaviors(log, &Behavior::of_all(log), None)
    }

    /// Summarizes a log; the same run without the missing time decides what is excused. Costs as
    /// much as [`RunReport::new`].
    pub fn judged(log: &Log, runs: &Counterfactual) -> RunReport {
        RunReport::of_behaviors(log, &Behavior::of_all(log), Some(runs))
    }

    pub(crate) fn of_behaviors(
        log: &Log,
        behaviors: &[Behavior],
        runs: Option<&Counterfactual>,
    ) -> RunReport {
        let misses = miss::Misses::of(log, behaviors, runs);
        let tasks = figures::tasks(log, behaviors, &misses.excused);
        let requirements = requirement::requirements(log, behaviors, runs);
        let changes = change::changes(log);
        let mut graphs = graph::graphs(log);
        for (of_graph, report) in log.graphs.iter().enumerate().zip(&mut graphs) {
            let found = starts::starts(log, behaviors, of_graph);
            for (actor, starts) in report.actors.iter_mut().zip(found) {
                actor.starts = starts;
            }
        }
        let stopped: Vec<String> = graphs.iter().filter_map(GraphReport::fault).collect();
        let whole = log.header.stopped.is_none() && !log.is_cut();
        let end_ns = whole.then_some(log.header.duration.as_ns());
        let undone = changes.iter().any(|change| change.is_owed(end_ns));
        let verdict = match undone {
            true => RunVerdict::Missed,
            false => verdict(log, &tasks, &requirements, runs),
        };
        let verdict = graphs
            .iter()
            .fold(verdict, |all, graph| all.worse(graph.verdict));
        let gangs = gang::gangs(log, behaviors);
        let groups = group::groups(log);
        let broken = groups.iter().any(group::GroupReport::is_broken);
        let verdict = match broken || gangs.iter().any(|gang| gang.not_in_step) {
            true => RunVerdict::Missed,
            false => verdict,
        };
        let end = behaviors.iter().map(|b| b.end).max().unwrap_or_default();
        let h = &log.header;
        RunReport {
            format: FORMAT,
            verdict,
            mode: h.mode.name(),
            platform: h.platform.clone(),
            tool: h.tool.clone(),
            source: h.source.clone(),
            seed: h.seed,
            duration_ns: h.duration.as_ns(),
            elapsed_ns: log.ns(end.ticks()),
            stopped: h.stopped.clone(),
            lost_capabilities: h.lost.clone(),
            faults: h.faults.iter().cloned().chain(stopped).collect(),
            machine: figures::facts(&h.machine),
            tasks,
            cpus: figures::cpus(log, behaviors),
            schedulers: supply::schedulers(log, behaviors),
            resources: supply::resources(log, behaviors),
            requirements,
            graphs,
            gangs,
            groups,
            changes,
            misses: misses.listed,
            misses_not_listed: misses.not_listed,
            unexcused: None,
            oracle: log.oracle.map(|o| OracleReport {
                steps: o.steps,
                mismatches: o.mismatches,
            }),
        }
    }

    /// On time or not.
    pub fn verdict(&self) -> RunVerdict {
        self.verdict
    }

    /// Exit code of a command that ends with this report (doc/guide/README.md): 3 when the
    /// recording ended before the run or the work itself failed, 1 for the verdict missed, else 0.
    pub fn exit_code(&self) -> u8 {
        let cut = self.cpus.iter().any(|cpu| cpu.lost_from_ns.is_some());
        if self.verdict == RunVerdict::Missed {
            1
        } else if cut || !self.faults.is_empty() {
            3
        } else {
            0
        }
    }
}

/// The worst of all that decides.
fn verdict(
    log: &Log,
    tasks: &[TaskReport],
    requirements: &[RequirementReport],
    runs: Option<&Counterfactual>,
) -> RunVerdict {
    let judge = |broken: bool, excused: bool| match (broken, excused) {
        (false, _) => RunVerdict::Met,
        (true, true) => RunVerdict::Excused,
        (true, false) => RunVerdict::Missed,
    };
    let of_task = |(at, task): (usize, &TaskReport)| {
        let late = judge(task.misses > 0, task.misses == task.excused);
        let excused = runs.is_some_and(|runs| runs.excuses_drops(at));
        let gone = judge(task.lost + task.skipped > 0, excused);
        late.worse(gone)
    };
    let of_tasks = tasks.iter().enumerate().map(of_task);
    let of_requirements = requirements.iter().map(|r| r.verdict);
    let wrong = log.oracle.is_some_and(|oracle| oracle.mismatches > 0);
    let all = of_tasks.chain(of_requirements);
    all.fold(judge(wrong, false), RunVerdict::worse)
}
