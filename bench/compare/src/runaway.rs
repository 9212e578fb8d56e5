//! A body that loops for ever, under each rival: how many other tasks miss because of it.

use std::sync::atomic::AtomicBool;

use punctual::{Error, System};
use punctual_model::WorkSource;
use punctual_rivals::periodic::Class;
use serde::Serialize;

use crate::ours::{self, Setting, shipped};
use crate::round::{Rival, Round};
use crate::subject::{Subject, Work};
use crate::theirs;

/// The longest that this part takes for each rival.
const LONGEST_NS: u64 = 1_000_000_000;
/// The first job after this never ends.
const CALM_NS: u64 = 250_000_000;
/// The name of the looping body among the functions of a run.
const FUNCTION: &str = "compare::runaway";
/// The looping body burns in such pieces: between them the end of the run is seen.
const PIECE_NS: u64 = 1_000_000;

/// The runaway and its victims, by rival.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Runaway {
    pub(crate) task: String,
    pub(crate) duration_ns: u64,
    /// The first job that does not end.
    pub(crate) from_job: u64,
    pub(crate) rivals: Vec<Victims>,
}

/// The cost of it under one rival.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Victims {
    pub(crate) name: Rival,
    pub(crate) refused: Option<String>,
    /// Misses of the task itself.
    pub(crate) misses_of_task: u64,
    /// Other tasks with misses that missing time does not excuse, as far as that can be judged.
    pub(crate) other_tasks: Vec<String>,
    /// Misses of all others, and their jobs.
    pub(crate) misses_of_others: u64,
    pub(crate) jobs_of_others: u64,
}

/// Lets task `at` run away under each rival.
pub(crate) fn run(subject: &Subject, setting: &Setting, at: usize) -> Result<Runaway, Error> {
    let duration = setting.duration.min(LONGEST_NS);
    let task = &subject.tasks[at];
    let calm = CALM_NS.min(duration / 4);
    let from = calm.saturating_sub(task.phase).div_ceil(task.period.max(1));
    let mut rivals = Vec::new();
    for rival in Rival::ALL {
        if setting.stop.load(std::sync::atomic::Ordering::Relaxed) {
            break;
        }
        let round = match rival {
            Rival::Punctual => Ok(punctual(subject, setting, (at, from), duration)?),
            Rival::Fifo => threads(subject, Class::Fifo, (duration, &setting.stop), (at, from)),
            Rival::Deadline => threads(
                subject,
                Class::Deadline,
                (duration, &setting.stop),
                (at, from),
            ),
        };
        rivals.push(victims(rival, round, subject, at));
    }
    Ok(Runaway {
        task: task.name.clone(),
        duration_ns: duration,
        from_job: from,
        rivals,
    })
}

fn threads(
    subject: &Subject,
    class: Class,
    until: (u64, &AtomicBool),
    runaway: (usize, u64),
) -> Result<Round, String> {
    theirs::round(subject, class, until, Some(runaway))
}

fn punctual(
    subject: &Subject,
    setting: &Setting,
    (at, from): (usize, u64),
    duration: u64,
) -> Result<Round, Error> {
    let mut system: System = subject.system.clone();
    system.tasks[at].work = Some(WorkSource::Function(FUNCTION.into()));
    let burn = match subject.tasks[at].work {
        Work::Burn(ns) => ns,
        Work::Function(_) => 0,
    };
    let body = move |job: punctual::JobContext| match job.job < from {
        true => punctual::job::burn_ns(burn),
        false => loop {
            punctual::job::burn_ns(PIECE_NS);
        },
    };
    let mut workloads = shipped().with_function(FUNCTION, Box::new(body));
    let setting = Setting {
        duration,
        ..setting.clone()
    };
    ours::round(subject, &system, &setting, &mut workloads)
}

fn victims(rival: Rival, round: Result<Round, String>, subject: &Subject, at: usize) -> Victims {
    let (round, refused) = match round {
        Ok(round) => (round, None),
        Err(why) => (Round::default(), Some(why)),
    };
    let others = || {
        let all = round.tasks.iter().zip(&subject.tasks).enumerate();
        all.filter(move |(index, _)| *index != at)
            .map(|(_, pair)| pair)
    };
    let hurt = others().filter(|(task, _)| task.misses > task.excused.unwrap_or(0));
    Victims {
        name: rival,
        refused,
        misses_of_task: round.tasks.get(at).map_or(0, |task| task.misses),
        other_tasks: hurt.map(|(_, task)| task.name.clone()).collect(),
        misses_of_others: others().map(|(task, _)| task.misses).sum(),
        jobs_of_others: others().map(|(task, _)| task.jobs).sum(),
    }
}
