//! `punctual replay LOG --policy ...`: the arrivals and the work of a run under another policy.

use std::fmt::Write as _;

use punctual::{Error, PolicyChange, WhatIfError, what_if};
use punctual_model::{Ns, PolicyKind, Span};
use punctual_trace::{Diff, Log, RunReport, TaskDiff, diff};
use serde::Serialize;

use crate::flags::{Outputs, Promised};
use crate::progress::Bar;
use crate::{input, task_table};
use punctual_terminal::ending::{Ended, Failure};
use punctual_terminal::interrupt::Interrupt;
use punctual_terminal::output;

/// The longest turn of round robin that is not told otherwise, as in system files.
const DEFAULT_TIMESLICE: Span<Ns> = Span::from_ms(10);

/// The words of `--policy`.
const POLICIES: &str =
    "fifo, round-robin (or round-robin:1ms), fixed-priority, non-preemptive, edf";

/// Answers, prints and writes down what would have been.
pub(crate) fn execute(
    log: &Log,
    policies: &[String],
    outputs: &Outputs,
    promised: Promised,
) -> Ended {
    let changes: Vec<PolicyChange> = policies
        .iter()
        .map(|text| parse(text))
        .collect::<Result<_, _>>()?;
    let interrupt = Interrupt::listen()?;
    let bar = Bar::new("replay", outputs.quiet);
    let answer = what_if(log, &changes, &mut |progress| {
        bar.show(progress);
        !interrupt.is_wanted()
    });
    bar.clear();
    let answer = answer.map_err(|error| failure(&error))?;
    let report = crate::outcome::judge(&answer.log, &interrupt);
    let kept = promised.keep(&answer.log, &report);
    let Diff { tasks, .. } = diff(log, &answer.log);
    let found = Found {
        policies: policies.to_vec(),
        assumed_jobs: answer.assumed_jobs,
        tasks,
    };
    if !outputs.quiet {
        remark(log, &changes);
    }
    if outputs.json {
        output::print_json(&WhatIfJson {
            report: &report,
            what_if: &found,
        })?;
    } else {
        output::print(found.to_text(&report, outputs.quiet).trim_end())?;
    }
    kept.map_err(Failure::beside_result)?;
    Ok(crate::outcome::ending_of(&report, outputs.strict))
}

/// What `replay --policy --json` prints.
#[derive(Serialize)]
struct WhatIfJson<'a> {
    #[serde(flatten)]
    report: &'a RunReport,
    what_if: &'a Found,
}

/// What would have been, beside what was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Found {
    policies: Vec<String>,
    assumed_jobs: u64,
    tasks: Vec<TaskDiff>,
}

impl Found {
    fn to_text(&self, report: &RunReport, quiet: bool) -> String {
        if quiet {
            return crate::outcome::verdict_line(report);
        }
        let mut text = format!("what if {}? ", self.policies.join(", "));
        let _ = writeln!(text, "As recorded > as it would have been:\n");
        text.push_str(&task_table::render(&self.tasks));
        if self.assumed_jobs > 0 {
            let _ = writeln!(
                text,
                "\n{} jobs are not in the record to their end: they took their whole budget",
                self.assumed_jobs
            );
        }
        let _ = write!(text, "\n{report}");
        text
    }
}

fn parse(text: &str) -> Result<PolicyChange, Failure> {
    let (on, word) = match text.rsplit_once('=') {
        Some((on, word)) => (Some(on.to_string()), word),
        None => (None, text),
    };
    let (word, option) = match word.split_once(':') {
        Some((word, option)) => (word, Some(option)),
        None => (word, None),
    };
    let policy = match (word, option) {
        ("fifo", None) => PolicyKind::Fifo,
        ("edf", None) => PolicyKind::EarliestDeadlineFirst,
        ("fixed-priority", None) => PolicyKind::FixedPriority { preemptive: true },
        ("non-preemptive", None) => PolicyKind::FixedPriority { preemptive: false },
        ("round-robin", None) => PolicyKind::RoundRobin {
            timeslice: DEFAULT_TIMESLICE,
        },
        ("round-robin", Some(slice)) => PolicyKind::RoundRobin {
            timeslice: input::duration(slice).map_err(|why| {
                Failure::input(format!("`{text}`: {why}")).with_help("write `round-robin:1ms`")
            })?,
        },
        ("tdm", _) => {
            return Err(Failure::input("tdm needs slots, which a log does not have")
                .with_help(format!("name one of {POLICIES}")));
        }
        ("fifo" | "edf" | "fixed-priority" | "non-preemptive", Some(_)) => {
            return Err(Failure::input(format!("{word} has no option"))
                .with_help("only round-robin has one, its timeslice"));
        }
        _ => {
            return Err(Failure::input(format!("no policy is named `{word}`"))
                .with_help(format!("name one of {POLICIES}")));
        }
    };
    Ok(PolicyChange { on, policy })
}

/// Priorities that nobody gave order nobody.
fn remark(log: &Log, changes: &[PolicyChange]) {
    let fixed = |c: &PolicyChange| matches!(c.policy, PolicyKind::FixedPriority { .. });
    if !changes.iter().any(fixed) {
        return;
    }
    for (cpu, tables) in log.cpus.iter().zip(&log.tables.cpus) {
        let mut priorities = tables
            .threads
            .iter()
            .map(|(_, constraint)| constraint.priority);
        let first = priorities.next();
        if tables.threads.len() > 1 && priorities.all(|priority| Some(priority) == first) {
            output::remark(format!(
                "remark: all tasks of {} have one priority in the log: the earlier release goes \
                 first",
                cpu.name
            ));
        }
    }
}

fn failure(error: &WhatIfError) -> Failure {
    match error {
        WhatIfError::Unknown { known, .. } => {
            Failure::input(error.to_string()).with_help(format!("the log has {}", known.join(", ")))
        }
        WhatIfError::Unsuitable { .. } => Failure::input(error.to_string())
            .with_help("name another policy, or where it applies: --policy NAME=edf"),
        WhatIfError::TooLong { .. } | WhatIfError::OtherRecord { .. } => {
            Failure::input(error.to_string()).with_help(
                "if that is not so in the system of the run, the log was changed: record it again; \
             else try longer turns, or record a shorter run",
            )
        }
        // The threads and schedulers are those of the log.
        WhatIfError::Run(Error::Config(refused)) => Failure::input(format!(
            "the tables of the log make no schedulers: {refused}"
        )),
        WhatIfError::Run(error) => Failure::run(error.to_string()),
        _ => Failure::input(error.to_string()),
    }
}
