//! `punctual check`: says before anything runs whether it will be on time, and why.

use std::path::PathBuf;

use punctual_model::Reserve;

use crate::ending::{Ended, Ending};
use crate::verdict_json::VerdictJson;
use crate::{input, output, suggest, verdict_text};

/// Says whether a system will be on time, and why
///
/// Uses only what the file states: overheads, reserves and missing time that are absent are 0.
/// `run` adds this machine's measured terms.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 admitted; 1 refused; 2 the file has mistakes.\n\n\
    Examples:\n  \
    punctual check examples/two-tasks.toml\n  \
    punctual check plant.toml --json | jq '.tasks[] | {name, response_bound_ns}'\n  \
    punctual check plant.toml --suggest priorities\n  \
    punctual check plant.toml --missing-time 500us/10ms   # would it hold on a machine like this?"
)]
pub(crate) struct Args {
    /// The system file
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
    /// Look for parameters with which it is admitted, and print what has to change
    #[arg(long, value_enum, value_name = "WHAT")]
    suggest: Option<suggest::Wanted>,
}

pub(crate) fn execute(args: &Args) -> Ended {
    let mut system = input::load(&args.file)?.system;
    if let Some(missing) = &args.missing_time {
        system.machine.missing_time = Some(missing.clone());
    }
    if let Some(wanted) = args.suggest {
        return suggest::execute(&system, wanted, args.json);
    }
    let verdict = input::admit(&system)?;
    let coloured = output::colour_stdout();
    if args.json {
        output::print_json(&VerdictJson::new(&system, &verdict))?;
    } else if args.quiet {
        output::print(verdict_text::headline(&system, &verdict, coloured))?;
    } else {
        output::print(verdict_text::render(&system, &verdict, coloured))?;
    }
    Ok(Ending::of(verdict.admitted))
}
