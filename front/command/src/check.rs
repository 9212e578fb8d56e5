//! `punctual check`: says before anything runs whether it will be on time, and why.

use std::path::PathBuf;

use clap::ValueHint;
use punctual_analysis::Verdict;
use punctual_model::{Reserve, System, TaskId};

use crate::changes::Judged;
use crate::patience::Patience;
use crate::{
    certify, certify_graphs, certify_plan, hyperperiod_text, input, suggest, verdict_json,
};
use punctual_terminal::ending::{Ended, Ending, Failure};
use punctual_terminal::interrupt::Interrupt;
use punctual_terminal::output;
use punctual_terminal::output::PromisedFile;
use punctual_terminal::platform::Given;

/// Says whether a system will be on time, and why
///
/// The verdict rests on the file alone: overheads, reserves and missing time that it does not state
/// are 0. `run` adds this machine's measured terms; --platform adds those of a file.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 admitted; 1 refused; 2 the file has mistakes; 3 no certificate could be written.\n\n\
    Examples:\n  \
    punctual check examples/two-tasks.toml\n  \
    punctual check plant.toml --json | jq '.tasks[] | {name, response_bound_ns}'\n  \
    punctual check plant.toml --suggest priorities\n  \
    punctual check plant.toml --explain planner\n  \
    punctual check plant.toml --certificate plant.json\n  \
    punctual check plant.toml --missing-time 500us/10ms   # would it hold on a machine like this?"
)]
pub(crate) struct Args {
    /// The system file; `-` is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Print the verdict as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the answer alone
    #[arg(long, short)]
    quiet: bool,
    /// Declare missing time: at most so much in any window of that length, e.g. 500us/10ms
    #[arg(long, value_name = "BUDGET/PERIOD", value_parser = input::missing_time)]
    missing_time: Option<Reserve>,
    /// Add the terms of a machine, as `punctual doctor --measure --platform` writes them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    platform: Option<PathBuf>,
    /// Look for parameters with which the system is admitted, and print the changes
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with_all = ["simulate", "certificate"])]
    suggest: Option<suggest::Wanted>,
    /// Also simulate every job until the schedule repeats, where the arrivals are known
    #[arg(long)]
    simulate: bool,
    /// Print every term of the bound of this task; a verdict folds sums of more than 64 terms
    #[arg(long, value_name = "TASK", conflicts_with_all = ["suggest", "simulate", "certificate"])]
    explain: Option<String>,
    /// Write a certificate of the verdict, for `punctual verify`
    #[arg(long, value_name = "OUT.json")]
    certificate: Option<PathBuf>,
}

pub(crate) fn execute(args: &Args) -> Ended {
    let interrupt = Interrupt::listen()?;
    let begin = || Patience::begin("checking", args.quiet, &interrupt);
    let mut patience = Some(begin()?);
    let mut system = input::load(&args.file)?.system;
    if let Some(missing) = &args.missing_time {
        system.machine.missing_time = Some(missing.clone());
    }
    let given = args.platform.as_deref().map(Given::load).transpose()?;
    if let Some(given) = &given {
        system.machine = punctual::terms_on(&system, &given.machine).map_err(input::no_verdict)?;
        if !args.quiet {
            output::remark(format!(
                "remark: with the terms of {}",
                given.origin.describe()
            ));
        }
    }
    refuse_changes(&system, args)?;
    if let Some(name) = &args.explain {
        return explain(&system, name, args.json);
    }
    if let Some(wanted) = args.suggest {
        return suggest::execute(&system, wanted, args.json);
    }
    let judged = Judged::new(system)?;
    if let Some(path) = &args.certificate {
        input::refuse_overwriting(path, &args.file)?;
        PromisedFile::refuse_wrong(path)?;
        let certificate = certificate(&judged.system, &judged.verdict)?;
        // Ctrl-C leaves no half of a file.
        drop(patience.take());
        PromisedFile::open(path)?.fill(|out| out.write_all(certificate.as_bytes()))?;
        patience = Some(begin()?);
    }
    if args.simulate {
        hyperperiod_text::print(&judged.system, &judged.verdict, args.json)?;
    } else if args.json {
        let origin = given.map(|given| given.origin);
        let origin = origin.map(|origin| origin.json());
        output::print_json(&judged.json().with("platform", origin))?;
    } else {
        judged.print(args.quiet)?;
    }
    drop(patience);
    Ok(Ending::of(judged.admitted()))
}

/// One bound with all of its terms, whatever the rest of the system is.
fn explain(system: &System, name: &str, json: bool) -> Ended {
    let mut names = (0_u32..).map(TaskId).zip(&system.tasks);
    let Some((task, _)) = names.find(|(_, task)| task.name == name) else {
        let failure = Failure::input(format!("there is no task `{name}` in this file"));
        return Err(failure.with_help("`check` without --explain lists all tasks"));
    };
    let row = punctual_analysis::explained(system, task).map_err(input::no_verdict)?;
    let Some(row) = row else {
        return Err(Failure::input(format!(
            "`{name}` has no row in the verdict"
        )));
    };
    match json {
        true => output::print_json(&verdict_json::of_task(system, &row))?,
        false => output::print(format!("{name}: {}", row.explanation))?,
    }
    let allowed = row.relative_deadline;
    let late = allowed.is_some_and(|allowed| row.response_bound.is_none_or(|b| b > allowed));
    Ok(Ending::of(!late))
}

/// Suggestions, simulations of a hyperperiod and certificates speak of one system.
fn refuse_changes(system: &System, args: &Args) -> Result<(), Failure> {
    if args.simulate && !system.graphs.is_empty() {
        let what = "--simulate counts jobs, and nothing executes graphs yet";
        return Err(Failure::input(what).with_help("check it without this"));
    }
    let asked = args.simulate || args.suggest.is_some();
    if asked && !system.groups.is_empty() {
        let what = "--simulate and --suggest speak of tasks, and not of planned groups";
        return Err(Failure::input(what).with_help("check it without this"));
    }
    let why = "this file changes its system while it runs";
    let help = "take its [change] sections out, or check it without this";
    let flags = [
        (args.suggest.is_some(), "--suggest"),
        (args.simulate, "--simulate"),
        (args.explain.is_some(), "--explain"),
    ];
    let flag = flags.iter().find(|(asked, _)| *asked);
    let failure = match (system.changes.is_empty(), flag, &args.certificate) {
        (true, ..) | (false, None, None) => return Ok(()),
        (false, Some((_, flag)), _) => {
            Failure::input(format!("{flag} speaks of one system: {why}"))
        }
        (false, None, Some(_)) => Failure::run(format!("not certified: {why}")),
    };
    Err(failure.with_help(help))
}

/// The text of a certificate. A verdict that cannot be certified is a failure: the file was asked
/// for.
fn certificate(system: &System, verdict: &Verdict) -> Result<String, Failure> {
    let none =
        |why| Failure::run(why).with_help("without --certificate the verdict itself is printed");
    let text = match (system.groups.is_empty(), system.graphs.is_empty()) {
        (false, false) => {
            let why = "not certified: groups and graphs in one system".to_owned();
            return Err(none(why));
        }
        (false, true) => {
            serde_json::to_string_pretty(&certify_plan::issue(system, verdict).map_err(none)?)
        }
        (true, false) => {
            serde_json::to_string(&certify_graphs::issue(system, verdict).map_err(none)?)
        }
        (true, true) => {
            serde_json::to_string_pretty(&certify::issue(system, verdict).map_err(none)?)
        }
    };
    text.map_err(|error| none(format!("not certified: {error}")))
}
