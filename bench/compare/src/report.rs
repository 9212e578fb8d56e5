//! The comparison as one value, for text, JSON and the page.

use punctual_terminal::origin;
use punctual_terminal::output::JSON_FORMAT;
use punctual_trace::{Fact, RunVerdict};
use serde::Serialize;

use crate::load::Kind;
use crate::ours::Setting;
use crate::round::{Figures, Rival, Series};
use crate::runaway::Runaway;
use crate::sign::SignTest;
use crate::subject::Subject;

/// The output of `compare`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Report {
    format: u32,
    /// Punctual's over all rounds.
    pub(crate) verdict: RunVerdict,
    pub(crate) source: String,
    pub(crate) machine: Vec<Fact>,
    /// Of each rival in each round.
    pub(crate) duration_ns: u64,
    pub(crate) rounds_wanted: u32,
    /// Rounds that every rival has finished.
    pub(crate) rounds: usize,
    pub(crate) load: Vec<Kind>,
    /// The CPUs of this machine.
    pub(crate) cpus: Vec<u32>,
    /// The most urgent task.
    pub(crate) urgent: String,
    /// Where the priorities under SCHED_FIFO come from.
    pub(crate) priorities: String,
    pub(crate) rivals: Vec<Figures>,
    pub(crate) against: Vec<Against>,
    pub(crate) runaway: Option<Runaway>,
    pub(crate) remarks: Vec<String>,
}

/// Punctual's figures over those of one rival; `None` where the rival's are 0 or unknown.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Against {
    pub(crate) rival: Rival,
    pub(crate) misses_ratio: Option<f64>,
    pub(crate) own_misses_ratio: Option<f64>,
    /// Of the 99th percentiles of the most urgent task.
    pub(crate) p99_ratio: Option<f64>,
    pub(crate) processor_ratio: Option<f64>,
    /// Over all misses of each round.
    pub(crate) sign_test: SignTest,
}

impl Report {
    pub(crate) fn new(
        subject: &Subject,
        setting: &Setting,
        (rounds_wanted, load): (u32, &[Kind]),
        series: &[Series],
        runaway: Option<Runaway>,
    ) -> Report {
        let rivals: Vec<Figures> = series.iter().map(|one| Figures::of(one, subject)).collect();
        let ours = rivals.iter().find(|one| one.name == Rival::Punctual);
        let theirs = || rivals.iter().filter(|one| one.name != Rival::Punctual);
        let ran = |one: &&Figures| one.refused.is_none() && !one.rounds.is_empty();
        let against = ours
            .into_iter()
            .flat_map(|ours| theirs().filter(ran).map(|theirs| Against::of(ours, theirs)));
        Report {
            format: JSON_FORMAT,
            verdict: verdict(series),
            source: setting.source.clone(),
            machine: machine(setting),
            duration_ns: setting.duration,
            rounds_wanted,
            rounds: ours.map_or(0, |ours| ours.rounds.len()),
            load: load.to_vec(),
            cpus: subject.hosts(),
            urgent: subject
                .tasks
                .get(subject.urgent)
                .map(|t| t.name.clone())
                .unwrap_or_default(),
            priorities: subject.priorities.into(),
            against: against.collect(),
            runaway,
            remarks: remarks(subject),
            rivals,
        }
    }
}

/// Where the figures come from: the command, the date, the host, the terms of admission.
pub(crate) fn machine(setting: &Setting) -> Vec<Fact> {
    let fact = |(name, value)| Fact { name, value };
    let mut facts: Vec<Fact> = origin::of_run("punctual compare")
        .into_iter()
        .map(fact)
        .collect();
    facts.push(fact((
        "terms".into(),
        format!("from {}", setting.terms.from),
    )));
    facts
}

/// The worst of Punctual's rounds. None at all is nothing to be content with.
fn verdict(series: &[Series]) -> RunVerdict {
    let ours = series.iter().filter(|one| one.rival == Rival::Punctual);
    let rounds = ours.flat_map(|one| &one.rounds);
    let all = rounds.filter_map(|round| round.verdict);
    all.reduce(RunVerdict::worse).unwrap_or(RunVerdict::Missed)
}

impl Against {
    fn of(ours: &Figures, theirs: &Figures) -> Against {
        let ratio = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) if b > 0 => Some(a as f64 / b as f64),
            _ => None,
        };
        let misses = |of: &Figures| -> Vec<u64> { of.rounds.iter().map(|r| r.misses).collect() };
        Against {
            rival: theirs.name,
            misses_ratio: ratio(Some(ours.misses), Some(theirs.misses)),
            own_misses_ratio: ratio(ours.own_misses, theirs.own_misses),
            p99_ratio: ratio(ours.response_ns.p99, theirs.response_ns.p99),
            processor_ratio: ratio(Some(ours.processor_ns), Some(theirs.processor_ns)),
            sign_test: SignTest::of(&misses(ours), &misses(theirs)),
        }
    }
}

/// Limits of the figures.
fn remarks(subject: &Subject) -> Vec<String> {
    let mut remarks = vec![
        format!("SCHED_FIFO: {}; pinned", subject.priorities),
        "SCHED_DEADLINE: runtime = wcet without a margin, deadline and period of the file; not \
         pinned, because the kernel refuses that, so it has every CPU and no judge of its misses"
            .into(),
        "a thread of the kernel sees gaps inside its jobs and no late wake-up: the lower of two own \
         figures takes late wake-ups of an idle CPU (over 100 us) for missing time"
            .into(),
        "processor time is that of the whole process during the rounds, preparation included"
            .into(),
    ];
    remarks.extend(subject.remarks.iter().cloned());
    remarks
}
