//! What `sim`, `run` and `report` do with a run: print it, write it down, choose the exit code.

use punctual::{Error, WorkSource};
use punctual_model::{Fault, SchedulerId, TaskId};
use punctual_spec::Description;
use punctual_trace::{Log, RunReport, RunVerdict};

use crate::flags::{Outputs, Promised};
use punctual_terminal::ending::{Ended, Ending, Failure};
use punctual_terminal::interrupt::Interrupt;
use punctual_terminal::output;

/// Prints the report, keeps the promised files.
pub(crate) fn tell(log: &Log, report: &RunReport, outputs: &Outputs, promised: Promised) -> Ended {
    // The files first: a reader of standard output that left must not cost them. Nor does a file
    // that cannot be written cost the verdict.
    let kept = promised.keep(log, report);
    print(report, outputs.json, outputs.quiet)?;
    kept.map_err(Failure::beside_result)?;
    Ok(ending_of(report, outputs.strict))
}

/// Judges a run. Ctrl-C ends the judgement with the facts of the run, excusing nothing.
pub(crate) fn judge(log: &Log, interrupt: &Interrupt) -> RunReport {
    // One that ended the run has been obeyed.
    interrupt.rearm();
    punctual::judge_while(log, &mut || !interrupt.is_wanted())
}

/// What a report says; strictly, an excuse counts as a miss.
pub(crate) fn ending_of(report: &RunReport, strict: bool) -> Ending {
    match report.exit_code() {
        0 if strict && report.verdict == RunVerdict::Excused => Ending::Bad,
        0 => Ending::Good,
        1 => Ending::Bad,
        _ => Ending::Broken,
    }
}

/// The verdict and its reasons in one line.
pub(crate) fn verdict_line(report: &RunReport) -> String {
    let text = report.to_string();
    let head = text.lines().next().unwrap_or("");
    match report.reasons() {
        reasons if reasons.is_empty() => head.into(),
        reasons => format!("{head}: {}", reasons.join("; ")),
    }
}

/// Prints the report for people or for programs.
pub(crate) fn print(report: &RunReport, json: bool, quiet: bool) -> Result<(), Failure> {
    if json {
        return output::print_json(report);
    }
    if quiet {
        output::print(verdict_line(report))
    } else {
        output::print(report.to_string().trim_end())
    }
}

/// A run that did not come about, as bad input or as a failure.
pub(crate) fn failure(error: &Error, description: &Description) -> Failure {
    let about = |place: Fault, message, help| {
        Failure::diagnostics(vec![description.diagnostic(&place, message, help)])
    };
    match error {
        Error::UnknownFunction(unknown) => {
            let named = |work: &Option<WorkSource>| matches!(work, Some(WorkSource::Function(name)) if *name == unknown.name);
            let tasks = (0_u32..).zip(&description.system.tasks);
            let task = tasks
                .filter(|(_, task)| named(&task.work))
                .map(|(id, _)| TaskId(id))
                .last();
            let message = format!("function `{}` {}", unknown.name, unknown.reason);
            let help = match unknown.known.as_slice() {
                [] => "nothing is registered in this program".into(),
                known => format!("registered: {}", known.join(", ")),
            };
            let place = task.map_or(Fault::System, |task| Fault::Task(task, "work"));
            about(place, message, help)
        }
        Error::Foreign { task, error } => {
            let help = "build it, or name it relative to the file (doc/guide/05-c-functions.md)";
            about(Fault::Task(*task, "work"), error.to_string(), help.into())
        }
        Error::PolicyCode { scheduler, .. } => {
            let mut ids = (0_u16..).zip(&description.system.schedulers);
            let id = ids.find(|(_, s)| s.name == *scheduler);
            let place = id.map_or(Fault::System, |(id, _)| {
                Fault::Scheduler(SchedulerId(id), "code")
            });
            let help = "build it, or name it relative to the file (doc/guide/14-a-policy-in-c.md)";
            about(place, error.to_string(), help.into())
        }
        Error::Program { task, error } => {
            let help = "install it, or name it with a path relative to the file";
            about(Fault::Task(*task, "work"), error.to_string(), help.into())
        }
        Error::Application(_) => Failure::input(error.to_string())
            .with_help("`punctual check` analyses it, `punctual sim` executes it in virtual time"),
        Error::NoDuration => Failure::input("neither the file nor the command says how long")
            .with_help("add `--for 10s`, or `for = \"10s\"` in [run] of the file"),
        Error::Analysis(_) | Error::Refused(_) | Error::Sim(_) => Failure::input(error.to_string()),
        Error::NoHost(_) | Error::SegmentFunction { .. } => Failure::input(error.to_string()),
        Error::Group(_) => Failure::input(error.to_string())
            .with_help("`punctual check` plans them, `punctual sim` executes them in virtual time"),
        Error::Run(_) => Failure::run(error.to_string())
            .with_help("`punctual doctor` says what this machine lacks"),
        _ => Failure::run(error.to_string()),
    }
}
