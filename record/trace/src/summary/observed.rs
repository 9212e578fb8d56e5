//! Responses, their differences, and chains, as seen in a run.

use punctual_model::{Instant, Requirement, TaskId};

use crate::behavior::{Behavior, JobRecord};
use crate::log::Log;

/// The jobs of a run by task.
pub(super) struct Observed<'a> {
    log: &'a Log,
    behaviors: &'a [Behavior],
    /// CPU and place of each job, by task.
    jobs: Vec<Vec<(usize, usize)>>,
    /// When each job executed first, by CPU and place.
    begun: Vec<Vec<Option<Instant>>>,
}

impl<'a> Observed<'a> {
    pub(super) fn new(log: &'a Log, behaviors: &'a [Behavior]) -> Observed<'a> {
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
    pub(super) fn seen(&self, requirement: &Requirement) -> Option<u64> {
        match requirement {
            Requirement::Response { task, within } => self.longest(*task, within.as_ns()),
            Requirement::Chain { tasks, within } => self.latency(tasks, within.as_ns()),
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
    /// hand to the first job of the next that began after the completion. One that is not at its
    /// end when the run is counts as soon as it is longer than allowed. O(jobs · log jobs).
    fn latency(&self, tasks: &[TaskId], within: u64) -> Option<u64> {
        let (first, rest) = tasks.split_first()?;
        let hops: Vec<Vec<(Instant, Instant)>> = rest.iter().map(|t| self.by_start(*t)).collect();
        let mut longest = None;
        let end = self.behaviors.iter().map(|b| b.end).max()?;
        for (_, job) in self.of(*first) {
            let Some(completed) = completion(job) else {
                continue;
            };
            let effect = hops.iter().try_fold(completed, |seen, jobs| {
                let next = jobs.partition_point(|(start, _)| *start < seen);
                jobs.get(next).map(|(_, over)| *over)
            });
            let way = |until: Instant| self.log.ns(until.since(job.arrival).ticks());
            let open = Some(way(end)).filter(|ns| *ns > within);
            let way = effect.map(way).or(open);
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
