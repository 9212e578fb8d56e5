//! `punctual diff`: two recorded runs beside each other.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::ValueHint;
use punctual_model::readable;
use punctual_trace::{Choice, CpuDiff, Diff, Log, diff};
use serde::Serialize;

use crate::{logfile, task_table};
use punctual_terminal::ending::{Ended, Ending};
use punctual_terminal::output;

/// Compares two recorded runs: the first different choice, and the change of the responses
///
/// Choices are compared in their order, not by their instants, and responses job by job. The logs
/// may be of other machines, other policies or other work; the output names the parts that only one
/// of them has.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 identical, to the tick; 1 different; 2 bad input.\n\n\
    Examples:\n  \
    punctual diff monday.log tuesday.log\n  \
    punctual replay flight.log --policy edf --record edf.log; punctual diff flight.log edf.log\n  \
    punctual diff a.log b.log --json"
)]
pub(crate) struct Args {
    /// The first log; `-` is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    before: PathBuf,
    /// The second log; `-` is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    now: PathBuf,
    /// Print the differences as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Say only whether they are identical
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn execute(args: &Args) -> Ended {
    let logs = [logfile::load(&args.before)?, logfile::load(&args.now)?];
    let found = diff(&logs[0], &logs[1]);
    if args.json {
        output::print_json(&DiffJson {
            format: output::JSON_FORMAT,
            prefixes: logs.each_ref().map(Log::is_prefix),
            diff: &found,
        })?;
    } else if args.quiet {
        output::print(headline(&found))?;
    } else {
        output::print(to_text(&found).trim_end())?;
    }
    Ok(Ending::of(found.identical))
}

/// What `diff --json` prints.
#[derive(Serialize)]
struct DiffJson<'a> {
    format: u32,
    /// Whether the first and the second log end before their runs did.
    prefixes: [bool; 2],
    #[serde(flatten)]
    diff: &'a Diff,
}

fn headline(diff: &Diff) -> &'static str {
    let same_choices = |cpu: &CpuDiff| cpu.first_other.is_none() && cpu.policies[0].is_some();
    match diff.identical {
        true => "identical",
        false if diff.cpus.iter().all(same_choices) => "different, with the same choices",
        false => "different",
    }
}

fn to_text(diff: &Diff) -> String {
    let mut text = format!("{}\n", headline(diff));
    for cpu in &diff.cpus {
        let _ = write!(text, "  cpu {}: ", cpu.name);
        describe(&mut text, cpu);
        text.push('\n');
    }
    let _ = write!(text, "\n{}", task_table::render(&diff.tasks));
    text
}

fn describe(text: &mut String, cpu: &CpuDiff) {
    let [before, now] = match cpu.policies {
        [Some(before), Some(now)] => [before, now],
        [Some(_), None] => return text.push_str("in the first run only"),
        _ => return text.push_str("in the second run only"),
    };
    match before == now {
        true => text.push_str(before),
        false => {
            let _ = write!(text, "{before} > {now}");
        }
    }
    let equal = cpu.equal_choices;
    if cpu.identical {
        let _ = write!(text, ", identical in {equal} choices");
        return;
    }
    let Some(other) = &cpu.first_other else {
        let _ = write!(text, ", {equal} choices are the same, at other instants");
        return;
    };
    let _ = write!(text, ", the first {equal} choices are the same");
    if let Some(after) = &other.after {
        let _ = write!(text, "\n    then, after {}:", name(after));
    }
    for (run, choice) in [("first", &other.before), ("second", &other.now)] {
        let choice = choice.as_ref().map_or_else(|| "its end".into(), name);
        let _ = write!(text, "\n      in the {run} run {choice}");
    }
}

fn name(choice: &Choice) -> String {
    let at = readable(choice.at_ns);
    match (&choice.who, choice.job) {
        (Some(who), Some(job)) => format!("{who} job {job} at {at}"),
        (Some(who), None) => format!("{who} at {at}"),
        _ => format!("nobody at {at}"),
    }
}
