//! Two runs beside each other: the first other choice of each CPU, and what became of responses.
//!
//! Two live runs never agree to the tick, so choices are compared in their order and without their
//! instants: which job was let run after which. Jobs are matched by task and number.

use std::collections::BTreeMap;

use punctual_kern::{Next, TraceEvent};
use punctual_model::{Instant, ThreadId};

use crate::behavior::Behavior;
use crate::log::Log;
use crate::quantiles::Quantiles;
use crate::record::{Iter, Record};
use crate::summary::RunReport;

/// How two runs differ.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Diff {
    /// Tables, promises and every record are equal: the same bytes but for what the logs say of
    /// themselves.
    pub identical: bool,
    /// CPUs of the same name, in the order of the first run.
    pub cpus: Vec<CpuDiff>,
    /// Tasks by name, in the order of the first run, then those of the second alone.
    pub tasks: Vec<TaskDiff>,
}

/// One CPU of both runs.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct CpuDiff {
    /// Its name.
    pub name: String,
    /// Its policy in both runs; absent: it was not there.
    pub policies: [Option<&'static str>; 2],
    /// Every record is equal, and so is every instant.
    pub identical: bool,
    /// Choices that are equal, from the start on.
    pub equal_choices: u64,
    /// The first choice that is not; `None`: all of them are equal.
    pub first_other: Option<OtherChoice>,
}

/// Where two runs part.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct OtherChoice {
    /// The last choice that is equal, as the first run made it.
    pub after: Option<Choice>,
    /// The first run's next; `None`: it ends there.
    pub before: Option<Choice>,
    /// The second run's.
    pub now: Option<Choice>,
}

/// Who was let run, and when.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Choice {
    /// From the start of the run.
    pub at_ns: u64,
    /// A task, a scheduler that decides on its own supply, or nobody.
    pub who: Option<String>,
    /// The job, of a task.
    pub job: Option<u64>,
}

/// One task of both runs.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TaskDiff {
    /// Its name.
    pub name: String,
    /// In the first run; `None`: it was not there.
    pub before: Option<TaskRun>,
    /// In the second run.
    pub now: Option<TaskRun>,
    /// Jobs that completed in both.
    pub compared: u64,
    /// How many of them took longer in the second run.
    pub longer: u64,
    /// How many took less.
    pub shorter: u64,
    /// The largest growth of the response of one job, or the least shrinkage; `None`: no job was
    /// compared.
    pub largest_growth: Option<Growth>,
}

/// What became of one task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TaskRun {
    /// Releases covered.
    pub jobs: u64,
    /// Late ones.
    pub misses: u64,
    /// Responses of all completed jobs.
    pub response_ns: Quantiles,
}

/// By how much a response changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Growth {
    /// The number of the job.
    pub job: u64,
    /// Its response in the first run.
    pub before_ns: u64,
    /// In the second.
    pub now_ns: u64,
}

/// Compares two runs. O(records · log jobs).
pub fn diff(before: &Log, now: &Log) -> Diff {
    let cpus = cpus(before, now);
    let same_frame = (&before.tables, &before.tasks, &before.header.duration)
        == (&now.tables, &now.tasks, &now.header.duration);
    Diff {
        identical: same_frame && cpus.iter().all(|cpu| cpu.identical),
        tasks: tasks(before, now),
        cpus,
    }
}

fn cpus(before: &Log, now: &Log) -> Vec<CpuDiff> {
    let names = |log: &Log| -> Vec<String> { log.cpus.iter().map(|c| c.name.clone()).collect() };
    let mut all = names(before);
    all.extend(
        names(now)
            .into_iter()
            .filter(|name| !names(before).contains(name)),
    );
    let place = |log: &Log, name: &str| log.cpus.iter().position(|cpu| cpu.name == name);
    let policy = |log: &Log, at: Option<usize>| Some(log.tables.cpus.get(at?)?.policy.name());
    let compare = |name: String| {
        let places = [place(before, &name), place(now, &name)];
        let policies = [policy(before, places[0]), policy(now, places[1])];
        let mut one = CpuDiff {
            name,
            policies,
            identical: false,
            equal_choices: 0,
            first_other: None,
        };
        if let [Some(a), Some(b)] = places {
            one.identical = before.cpus[a].records == now.cpus[b].records;
            one.compare(Choices::new(before, a), Choices::new(now, b));
        }
        one
    };
    all.into_iter().map(compare).collect()
}

impl CpuDiff {
    fn compare(&mut self, before: Choices<'_>, now: Choices<'_>) {
        let (mut before, mut now) = (before, now);
        let mut after = None;
        loop {
            let next = (before.next(), now.next());
            let same = |a: &Choice, b: &Choice| (&a.who, a.job) == (&b.who, b.job);
            match next {
                (None, None) => return,
                (Some(a), Some(b)) if same(&a, &b) => {
                    self.equal_choices += 1;
                    after = Some(a);
                }
                (before, now) => {
                    self.first_other = Some(OtherChoice { after, before, now });
                    return;
                }
            }
        }
    }
}

/// The choices of one CPU, each that differs from the one before it.
struct Choices<'a> {
    log: &'a Log,
    cpu: usize,
    records: Iter<'a>,
    /// The job of each thread, by the last start.
    jobs: Vec<Option<u64>>,
    last: Option<(Next, Option<u64>)>,
}

impl<'a> Choices<'a> {
    fn new(log: &'a Log, cpu: usize) -> Choices<'a> {
        Choices {
            log,
            cpu,
            records: log.cpus[cpu].records.iter(),
            jobs: Vec::new(),
            last: None,
        }
    }

    fn started(&mut self, thread: ThreadId, job: u64) {
        let index = thread.index();
        if self.jobs.len() <= index {
            self.jobs.resize(index + 1, None);
        }
        self.jobs[index] = Some(job);
    }

    fn choice(&self, now: Instant, next: Next, job: Option<u64>) -> Choice {
        let who = match next {
            Next::Thread(thread) => Some(self.log.task_name(self.cpu, thread)),
            Next::RunChild(node) => Some(self.log.node_name(self.cpu, node.index())),
            _ => None,
        };
        Choice {
            at_ns: self.log.ns(now.ticks()),
            who: who.map(str::to_string),
            job,
        }
    }
}

impl Iterator for Choices<'_> {
    type Item = Choice;

    fn next(&mut self) -> Option<Choice> {
        loop {
            match self.records.next()? {
                (_, Record::Trace(TraceEvent::Started { thread, job, .. })) => {
                    self.started(thread, job);
                }
                (now, Record::Decision(decision)) => {
                    let job = match decision.next {
                        Next::Thread(thread) => self.jobs.get(thread.index()).copied().flatten(),
                        _ => None,
                    };
                    if self.last != Some((decision.next, job)) {
                        self.last = Some((decision.next, job));
                        return Some(self.choice(now, decision.next, job));
                    }
                }
                _ => {}
            }
        }
    }
}

/// Responses by task and job, in nanoseconds.
type Responses = BTreeMap<String, BTreeMap<u64, u64>>;

fn responses(log: &Log, behaviors: &[Behavior]) -> Responses {
    let mut all = Responses::new();
    for (cpu, behavior) in behaviors.iter().enumerate() {
        for job in &behavior.jobs {
            if let Some(response) = job.response_time() {
                let name = log.task_name(cpu, job.thread).to_string();
                let response = log.ns(response.ticks());
                let _ = all.entry(name).or_default().insert(job.index, response);
            }
        }
    }
    all
}

fn tasks(before: &Log, now: &Log) -> Vec<TaskDiff> {
    let summary = |log: &Log| {
        let behaviors = Behavior::of_all(log);
        let report = RunReport::of_behaviors(log, &behaviors, None);
        (report, responses(log, &behaviors))
    };
    let [(first, first_jobs), (second, second_jobs)] = [summary(before), summary(now)];
    let run = |report: &RunReport, name: &str| {
        let task = report.tasks.iter().find(|task| task.name == name)?;
        Some(TaskRun {
            jobs: task.jobs,
            misses: task.misses,
            response_ns: task.response_ns,
        })
    };
    let mut names: Vec<&str> = first.tasks.iter().map(|t| t.name.as_str()).collect();
    for task in &second.tasks {
        if !names.contains(&task.name.as_str()) {
            names.push(&task.name);
        }
    }
    let none = BTreeMap::new();
    let compare = |name: &str| {
        let mut task = TaskDiff {
            name: name.to_string(),
            before: run(&first, name),
            now: run(&second, name),
            compared: 0,
            longer: 0,
            shorter: 0,
            largest_growth: None,
        };
        let [a, b] = [&first_jobs, &second_jobs].map(|jobs| jobs.get(name).unwrap_or(&none));
        task.compare(a, b);
        task
    };
    names.into_iter().map(compare).collect()
}

impl TaskDiff {
    fn compare(&mut self, before: &BTreeMap<u64, u64>, now: &BTreeMap<u64, u64>) {
        let growth = |g: &Growth| i128::from(g.now_ns) - i128::from(g.before_ns);
        for (&job, &before_ns) in before {
            let Some(&now_ns) = now.get(&job) else {
                continue;
            };
            self.compared += 1;
            self.longer += u64::from(now_ns > before_ns);
            self.shorter += u64::from(now_ns < before_ns);
            let one = Growth {
                job,
                before_ns,
                now_ns,
            };
            let largest = self.largest_growth.as_ref();
            if largest.is_none_or(|largest| growth(&one) > growth(largest)) {
                self.largest_growth = Some(one);
            }
        }
    }
}
