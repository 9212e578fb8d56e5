//! What the system requires beyond deadlines: seen, compared, and judged like a miss.

use std::fmt;

use punctual_model::{Instant, Requirement, TaskId, readable};

use super::RunVerdict;
use super::counterfactual::Counterfactual;
use crate::behavior::{Behavior, JobRecord};
use crate::log::Log;

/// A line of `[require]` and what the run made of it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RequirementReport {
    /// `response`, `chain` or `jitter`.
    pub requirement: &'static str,
    /// Names of its tasks; of a chain in its order.
    pub tasks: Vec<String>,
    /// Most that is allowed.
    pub within_ns: u64,
    /// Most that was seen; `None`: nothing was.
    pub seen_ns: Option<u64>,
    /// Kept, broken, or broken by missing time alone.
    pub verdict: RunVerdict,
}

impl fmt::Display for RequirementReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, tasks) = (self.requirement, self.tasks.join(" > "));
        let within = readable(self.within_ns);
        let verdict = self.verdict.name();
        match self.seen_ns.map(readable) {
            Some(seen) => write!(f, "required {kind} of {tasks} {within}: {seen}, {verdict}"),
            None => write!(f, "required {kind} of {tasks} {within}: not seen"),
        }
    }
}

/// All requirements of the system.
pub(super) fn requirements(
    log: &Log,
    behaviors: &[Behavior],
    without: Option<&Counterfactual>,
) -> Vec<RequirementReport> {
    let observed = Observed::new(log, behaviors);
    let again = without.map(|without| Observed::new(&without.log, &without.behaviors));
    let judge = |requirement: &Requirement| {
        let (tasks, within) = (requirement.tasks(), requirement.within().as_ns());
        let seen = observed.seen(requirement);
        let verdict = match seen {
            Some(seen) if seen > within => {
                let late = observed.late_entries(tasks);
                let kept = |again: &Observed<'_>| {
                    let without = again.seen(requirement);
                    without.is_some_and(|ns| ns.saturating_add(late) <= within)
                };
                match again.as_ref().is_some_and(kept) {
                    true => RunVerdict::Excused,
                    false => RunVerdict::Missed,
                }
            }
            _ => RunVerdict::Met,
        };
        RequirementReport {
            requirement: requirement.name(),
            tasks: tasks.iter().map(|task| name(log, *task)).collect(),
            within_ns: within,
            seen_ns: seen,
            verdict,
        }
    };
    log.requirements.iter().map(judge).collect()
}

fn name(log: &Log, task: TaskId) -> String {
    let info = log.tasks.get(task.index());
    info.map_or_else(|| "?".into(), |info| info.name.clone())
}

/// The jobs of a run by task.
struct Observed<'a> {
    log: &'a Log,
    behaviors: &'a [Behavior],
    /// CPU and place of each job, by task.
    jobs: Vec<Vec<(usize, usize)>>,
    /// When each job executed first, by CPU and place.
    begun: Vec<Vec<Option<Instant>>>,
}

impl<'a> Observed<'a> {
    fn new(log: &'a Log, behaviors: &'a [Behavior]) -> Observed<'a> {
        let mut jobs = vec![Vec::new(); log.tasks.len()];
        for (cpu, behavior) in behaviors.iter().enumerate() {
            for (at, job) in behavior.jobs.iter().enumerate() {
                let task = log.task_of(cpu, job.thread);
                if let Some(jobs) = task.and_then(|task| jobs.get_mut(task.index())) {
                    jobs.push((cpu, at));
                }
            }
        }
        let begun = behaviors.iter().map(first_executed).collect();
        Observed {
            log,
            behaviors,
            jobs,
            begun,
        }
    }

    fn of(&self, task: TaskId) -> impl Iterator<Item = (usize, &JobRecord)> {
        let places = self.jobs.get(task.index()).into_iter().flatten();
        places.map(|&(cpu, at)| (cpu, &self.behaviors[cpu].jobs[at]))
    }

    /// The most of what a requirement limits, in nanoseconds.
    fn seen(&self, requirement: &Requirement) -> Option<u64> {
        match requirement {
            Requirement::Response { task, within } => self.longest(*task, within.as_ns()),
            Requirement::Chain { tasks, .. } => self.latency(tasks),
            Requirement::Jitter { task, .. } => {
                let responses = || self.of(*task).filter_map(|(_, job)| job.response_time());
                let (longest, shortest) = (responses().max()?, responses().min()?);
                Some(self.log.ns(longest.saturating_sub(shortest).ticks()))
            }
        }
    }

    /// The longest response. A job that is not over counts as soon as it is longer than allowed.
    fn longest(&self, task: TaskId, within: u64) -> Option<u64> {
        let response = |(cpu, job): (usize, &JobRecord)| match job.response_time() {
            Some(response) => Some(self.log.ns(response.ticks())),
            None if job.ended.is_some() => None,
            None => {
                let so_far = self.behaviors[cpu].end.since(job.arrival);
                Some(self.log.ns(so_far.ticks())).filter(|ns| *ns > within)
            }
        };
        self.of(task).filter_map(response).max()
    }

    /// The longest way of an effect: from the arrival of a job of the first task, from hand to
    /// hand to the first job of the next that began after the completion. O(jobs · log jobs).
    fn latency(&self, tasks: &[TaskId]) -> Option<u64> {
        let (first, rest) = tasks.split_first()?;
        let hops: Vec<Vec<(Instant, Instant)>> = rest.iter().map(|t| self.by_start(*t)).collect();
        let mut longest = None;
        for (_, job) in self.of(*first) {
            let Some(completed) = completion(job) else {
                continue;
            };
            let effect = hops.iter().try_fold(completed, |seen, jobs| {
                let next = jobs.partition_point(|(start, _)| *start < seen);
                jobs.get(next).map(|(_, over)| *over)
            });
            let way = effect.map(|seen| self.log.ns(seen.since(job.arrival).ticks()));
            longest = longest.max(way);
        }
        longest
    }

    /// Start and completion of the jobs of a task that were done, by start.
    fn by_start(&self, task: TaskId) -> Vec<(Instant, Instant)> {
        let places = self.jobs.get(task.index()).into_iter().flatten();
        let done = places.filter_map(|&(cpu, at)| {
            let over = completion(&self.behaviors[cpu].jobs[at])?;
            Some((self.begun[cpu][at]?, over))
        });
        let mut all: Vec<_> = done.collect();
        all.sort_unstable();
        all
    }

    /// By how much releases of these tasks came late for other reasons than missing time, at most
    /// and added up, in nanoseconds.
    fn late_entries(&self, tasks: &[TaskId]) -> u64 {
        let most = |task: &TaskId| {
            let late = self
                .of(*task)
                .map(|(cpu, job)| self.behaviors[cpu].late_entry(job));
            self.log.ns(late.max().unwrap_or(0))
        };
        tasks.iter().map(most).fold(0, u64::saturating_add)
    }
}

fn first_executed(behavior: &Behavior) -> Vec<Option<Instant>> {
    let mut begun = vec![None; behavior.jobs.len()];
    for segment in &behavior.segments {
        if let Some(begun) = segment.job.and_then(|at| begun.get_mut(at)) {
            let _ = Option::get_or_insert(begun, segment.start);
        }
    }
    begun
}

fn completion(job: &JobRecord) -> Option<Instant> {
    let _ = job.response_time()?;
    job.ended
}
