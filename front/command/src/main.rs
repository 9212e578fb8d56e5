//! The `punctual` command: one file of `src/` per command.
//!
//! Results go to standard output, everything else to standard error. Exit codes of every command: 0
//! admitted, met or excused; 1 refused or missed; 2 bad input; 3 failure of the run itself; 130
//! ended by Ctrl-C, but for runs, whose code says what was seen until then.
#![forbid(unsafe_code)]

mod bench;
mod certify;
mod check;
mod conform;
mod diff;
mod doctor;
mod ending;
mod export;
mod faults;
mod flags;
mod for_c;
mod input;
mod interrupt;
mod logfile;
mod machine;
mod outcome;
mod output;
mod platform_file;
mod progress;
mod replay;
mod report;
mod run;
mod schema;
mod second_opinion;
mod sim;
mod suggest;
mod sweep;
mod table;
mod task_table;
mod verdict_json;
mod verdict_page;
mod verdict_text;
mod verify;
mod what_if;
mod workloads;

use std::io::ErrorKind;
use std::process::ExitCode;

use clap::error::ErrorKind as Usage;
use clap::{Parser, Subcommand};

use ending::{Ended, Failure};

/// User-level hard-real-time scheduling: admitted before it runs, proved afterwards.
#[derive(Debug, Parser)]
#[command(
    name = "punctual",
    version,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 admitted, met or excused; 1 refused or missed; 2 bad input; \
                  3 failure of the run itself; 130 ended by Ctrl-C (run, sim and replay: by what \
                  was seen until then).\n\n\
                  Start here:\n  \
                  punctual check examples/two-tasks.toml\n  \
                  punctual run examples/rosace.toml --for 10s"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Args),
    Verify(verify::Args),
    Sim(sim::Args),
    Run(run::Args),
    Report(report::Args),
    Replay(replay::Args),
    Diff(diff::Args),
    Doctor(doctor::Args),
    Bench(bench::Args),
    Conform(conform::Args),
    Sweep(sweep::Args),
    Schema(schema::Args),
}

impl Command {
    fn execute(&self) -> Ended {
        match self {
            Command::Check(args) => check::execute(args),
            Command::Verify(args) => verify::execute(args),
            Command::Sim(args) => sim::execute(args),
            Command::Run(args) => run::execute(args),
            Command::Report(args) => report::execute(args),
            Command::Replay(args) => replay::execute(args),
            Command::Diff(args) => diff::execute(args),
            Command::Doctor(args) => doctor::execute(args),
            Command::Bench(args) => bench::execute(args),
            Command::Conform(args) => conform::execute(args),
            Command::Sweep(args) => sweep::execute(args),
            Command::Schema(args) => schema::execute(args),
        }
    }

    /// Whether a failure is told to a program.
    fn json(&self) -> bool {
        match self {
            Command::Check(args) => args.json,
            Command::Verify(args) => args.json,
            Command::Sim(args) => args.flags.outputs.json,
            Command::Run(args) => args.flags.outputs.json,
            Command::Report(args) => args.json,
            Command::Replay(args) => args.outputs.json,
            Command::Diff(args) => args.json,
            Command::Doctor(args) => args.json,
            Command::Bench(args) => args.json,
            Command::Conform(args) => args.json,
            Command::Sweep(args) => args.json(),
            Command::Schema(_) => false,
        }
    }
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match cli.command.execute() {
        Ok(ending) => ending.code(),
        Err(failure) => tell(&failure, cli.command.json()),
    }
}

fn tell(failure: &Failure, json: bool) -> ExitCode {
    output::remark(failure.render(output::colour_stderr()));
    // When the failure is that nothing can be written, trying again tells nobody anything new.
    if json {
        let _ = output::print_json(&failure.json());
    }
    failure.code()
}

/// Help and version are results, everything else is bad input.
fn usage(error: &clap::Error) -> ExitCode {
    let asked = matches!(error.kind(), Usage::DisplayHelp | Usage::DisplayVersion);
    match error.print() {
        Err(lost) if asked && lost.kind() != ErrorKind::BrokenPipe => {
            let failure = Failure::run(format!("cannot write to standard output: {lost}"));
            tell(&failure, false)
        }
        _ if asked => ExitCode::SUCCESS,
        _ => Failure::input("").code(),
    }
}
