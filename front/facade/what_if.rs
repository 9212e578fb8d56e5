//! Another policy over the arrivals and the work of a recorded run, in virtual time.
//!
//! Kept from the record: when jobs arrived, the work that each received, what it asked of the
//! scheduler meanwhile, how long it waited by its own request, and the time that the machine took.
//! The order of execution is decided again. Other costs of switching are not in it.

mod effort;
mod policies;
mod recording;

use std::collections::BTreeSet;
use std::fmt;

use punctual_kern::TraceEvent;
use punctual_model::{Instant, Span, Trust};
use punctual_policy::AnyPolicy;
use punctual_sim::{CpuInput, Recording, SimError};
use punctual_tables::Tables;
use punctual_trace::{CpuLog, Log, Mode, Record};

use crate::assemble::{room_again, room_of_answer, tool};
use crate::{Error, Progress, children};
use effort::{Counting, PER_RELEASE, Watch, most_often};
pub use policies::PolicyChange;

/// A recorded run under another policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WhatIf {
    /// The run under another policy, in virtual time and in the ticks of the recorded run. It has
    /// bounds only if no policy was changed: they are proven for the policy of the run.
    pub log: Log,
    /// Jobs whose work is not in the record, because they were not over at its end or did not come
    /// about: these took their whole budget.
    pub assumed_jobs: u64,
}

/// Why there is no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum WhatIfError {
    /// The log names no such CPU or scheduler.
    Unknown {
        /// The scheduler that was asked for.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// The policy cannot stand there.
    Unsuitable {
        /// The CPU or the scheduler.
        on: String,
        /// Why not.
        why: String,
    },
    /// Something in the log depends on who ran when, beyond what can be decided again.
    Entangled {
        /// The instant of the first such event, in ticks.
        at: Instant,
        /// The event in words.
        what: &'static str,
    },
    /// The log does not have the CPUs of its tables.
    OtherCpus,
    /// It takes more than a run with such a record can: the log was changed, or the turns of a
    /// policy are far too short.
    TooLong {
        /// Most steps that it may take. A job that is released counts as several.
        most: u64,
        /// In words: the task, the turn or the budget that comes most often by its tables, if
        /// anything comes by itself.
        often: Option<String>,
    },
    /// The same run again writes more than twice its record, which says that it is whole.
    OtherRecord {
        /// As for [`WhatIfError::TooLong`].
        often: Option<String>,
    },
    /// Virtual time or memory refused.
    Run(Error),
}

impl fmt::Display for WhatIfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhatIfError::Unknown { name, .. } => {
                write!(f, "no CPU or scheduler of the log is named `{name}`")
            }
            WhatIfError::Unsuitable { on, why } => write!(f, "on {on}: {why}"),
            WhatIfError::Entangled { at, what } => write!(
                f,
                "{what} while it ran (first at tick {}): played again, that may go otherwise",
                at.ticks()
            ),
            WhatIfError::OtherCpus => write!(f, "the log does not have the CPUs of its tables"),
            WhatIfError::TooLong { most, often } => {
                write!(
                    f,
                    "played again, the run takes more than the {most} steps that its record \
                     allows, where a job counts as {PER_RELEASE}"
                )?;
                often.iter().try_for_each(|often| write!(f, ": {often}"))
            }
            WhatIfError::OtherRecord { often } => {
                write!(f, "played again, the run writes more than twice its record")?;
                often.iter().try_for_each(|often| write!(f, ": {often}"))
            }
            WhatIfError::Run(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for WhatIfError {}

impl From<Error> for WhatIfError {
    fn from(error: Error) -> Self {
        WhatIfError::Run(error)
    }
}

impl From<SimError> for WhatIfError {
    fn from(error: SimError) -> Self {
        WhatIfError::Run(Error::Sim(error))
    }
}

/// Plays `log` again without the time that was taken from below: same arrivals, same executed work,
/// same policies. Releases that a gap delayed come when they were due. O(records · log threads).
///
/// # Errors
/// As [`what_if`].
pub fn without_missing_time(log: &Log) -> Result<WhatIf, WhatIfError> {
    without_missing_time_while(log, &mut |_| true)
}

/// The same until `progress` returns `false`.
pub(crate) fn without_missing_time_while(
    log: &Log,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<WhatIf, WhatIfError> {
    answer(log, &[], Recording::without_stolen_time, progress)
}

/// Replays the arrivals and the work of `log` with the policies of its tables after `changes`.
/// Without changes it reproduces the run, up to what a live machine did late. O(records · log
/// threads).
///
/// `progress` is called now and then; when it returns `false`, it ends early.
///
/// # Errors
/// A change that means nothing, a log with changes while it ran, no memory.
pub fn what_if(
    log: &Log,
    changes: &[PolicyChange],
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<WhatIf, WhatIfError> {
    answer(log, changes, |recording| recording, progress)
}

fn answer(
    log: &Log,
    changes: &[PolicyChange],
    prepare: impl Fn(Recording) -> Recording,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<WhatIf, WhatIfError> {
    if log.cpus.len() != log.tables.cpus.len() {
        return Err(WhatIfError::OtherCpus);
    }
    let mut tables = log.tables.clone();
    policies::change(log, &mut tables, changes)?;
    let changed = tables != log.tables;
    let end = recorded_until(log);
    for (_, constraint) in tables.cpus.iter_mut().flat_map(|cpu| &mut cpu.threads) {
        constraint.until = constraint.until.min(end);
    }
    let mut recordings = Vec::new();
    let mut assumed_jobs = 0;
    for (cpu, records) in tables.cpus.iter().zip(&log.cpus) {
        let (recording, open) = recording::read((cpu, records), !log.changes.is_empty())?;
        assumed_jobs += open;
        recordings.push(prepare(recording));
    }
    let known = known_jobs(&tables, &recordings);
    let answer = play(log, (tables, changed), recordings, progress)?;
    let answer = describe(log, answer, changed);
    assumed_jobs += unknown_jobs(&answer, &known);
    Ok(WhatIf {
        log: answer,
        assumed_jobs,
    })
}

/// Until when everything is in the record: a run that ended early or a full recorder cuts it.
fn recorded_until(log: &Log) -> Instant {
    let lost = log.cpus.iter().filter_map(|cpu| cpu.lost_from);
    let ended = log.header.stopped.is_some().then_some(log.header.end);
    lost.chain(ended).min().unwrap_or(Instant::MAX)
}

type Outcome = (Tables, punctual_sim::Outcome<Counting>);

fn play(
    log: &Log,
    (tables, changed): (Tables, bool),
    recordings: Vec<Recording>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, WhatIfError> {
    let mut watch = Watch::new(log, progress);
    let mut inputs = Vec::new();
    let mut codes = Vec::new();
    let cpus = tables.cpus.iter().zip(&log.cpus);
    for ((cpu, recorded), recording) in cpus.zip(&recordings) {
        let shard = cpu
            .build_for(&recording.plan, AnyPolicy::new)
            .map_err(Error::Config)?;
        let recorded = recorded.records.bytes();
        let room = match changed {
            true => room_of_answer(recorded),
            false => room_again(recorded),
        };
        inputs.push(CpuInput {
            shard,
            sink: watch.recorder(room),
        });
        let nodes = (1_u16..).zip(&cpu.nodes);
        let own_time = nodes.filter(|(_, node)| node.terms.trust == Trust::OwnTime);
        let code = |(place, node)| {
            let later = children::built_in_later(cpu, &recording.plan, place);
            children::code(cpu, place, node, None).followed_by(later)
        };
        codes.push(own_time.map(code).collect());
    }
    let horizon = Instant::ZERO.saturating_add(log.header.duration.ticks_up(log.tables.frequency));
    // The record may claim to cover more than it does; what its last instant released is in it.
    let horizon = horizon.min(log.header.end.saturating_add(Span::from_ticks(1)));
    let outcome =
        punctual_sim::run_recorded(&tables, recordings, inputs, codes, horizon, &mut watch)?;
    let often = || most_often(log, &tables, horizon);
    if let Some(most) = watch.passed() {
        let often = often();
        return Err(WhatIfError::TooLong { most, often });
    }
    // The same run again writes what its whole record has, but for details.
    let is_whole = log.cpus.iter().all(|cpu| cpu.lost_from.is_none());
    let is_cut = outcome.cpus.iter().any(|cpu| cpu.sink.is_full());
    if !changed && is_whole && is_cut {
        return Err(WhatIfError::OtherRecord { often: often() });
    }
    let mut refused = outcome.cpus.iter().filter_map(|cpu| cpu.sink.refused());
    if let Some(bytes) = refused.next() {
        return Err(Error::OutOfMemory { bytes }.into());
    }
    Ok((tables, outcome))
}

/// The log of the answer.
fn describe(log: &Log, (tables, outcome): Outcome, changed: bool) -> Log {
    let mut header = log.header.clone();
    let recorded = format!("{}, {}", header.platform, header.mode.name());
    header
        .machine
        .insert(0, ("arrivals and work of".into(), recorded));
    header.lost.clear();
    header.end = outcome.end;
    if outcome.stopped {
        header.stopped = Some("stopped by request".into());
    }
    header.platform = "sim".into();
    header.mode = Mode::Virtual;
    header.tool = tool();
    let mut answer = Log {
        header,
        tables,
        tasks: log.tasks.clone(),
        schedulers: log.schedulers.clone(),
        resources: log.resources.clone(),
        requirements: log.requirements.clone(),
        changes: log.changes.clone(),
        // Its threads do what they did, but nobody fires again.
        graphs: Vec::new(),
        gangs: log.gangs.clone(),
        groups: Vec::new(),
        requests: Vec::new(),
        cpus: Vec::new(),
        oracle: None,
    };
    if changed {
        for task in &mut answer.tasks {
            (task.bound, task.machine_bound) = (None, None);
        }
        for gang in &mut answer.gangs {
            gang.bound = None;
        }
    }
    for (cpu, recorded) in outcome.cpus.into_iter().zip(&log.cpus) {
        let mut one = CpuLog {
            name: recorded.name.clone(),
            lost_from: cpu.sink.lost_from(),
            records: cpu.sink.records(),
            ..CpuLog::default()
        };
        if !changed {
            one.utilization_ppm = recorded.utilization_ppm;
            one.machine_utilization_ppm = recorded.machine_utilization_ppm;
        }
        answer.cpus.push(one);
    }
    answer
}

/// By CPU, thread and job: whether its work is in the record.
type Jobs = BTreeSet<(usize, usize, u64)>;

fn known_jobs(tables: &Tables, recordings: &[Recording]) -> Jobs {
    let mut known = Jobs::new();
    for (cpu, (recording, tables)) in recordings.iter().zip(&tables.cpus).enumerate() {
        let threads = recording.threads.iter().zip(&tables.threads).enumerate();
        for (index, (thread, _)) in threads.filter(|(_, (_, t))| t.1.class.runs_per_job()) {
            known.extend(thread.jobs.keys().map(|job| (cpu, index, *job)));
        }
    }
    known
}

fn unknown_jobs(answer: &Log, known: &Jobs) -> u64 {
    let mut unknown = 0;
    for (cpu, (records, tables)) in answer.cpus.iter().zip(&answer.tables.cpus).enumerate() {
        for (_, record) in &records.records {
            if let Record::Trace(TraceEvent::Started { thread, job, .. }) = record {
                let at = thread.index();
                let constraint = tables.threads.get(at).map(|(_, constraint)| constraint);
                let counts = constraint.is_some_and(|c| c.class.runs_per_job());
                unknown += u64::from(counts && !known.contains(&(cpu, at, job)));
            }
        }
    }
    unknown
}
