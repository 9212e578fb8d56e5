//! The `punctual` command: one file of `src/` per command.
//!
//! Results go to standard output, everything else to standard error. Exit codes of every command: 0
//! admitted, met or excused; 1 refused or missed; 2 bad input; 3 failure of the run itself; 130
//! ended by Ctrl-C, but for runs that have begun, whose code says what was seen until then.
#![forbid(unsafe_code)]

mod beside;
mod certify;
mod certify_graphs;
mod certify_plan;
mod changes;
mod check;
mod diff;
mod doctor;
mod export;
mod faults;
mod flags;
mod for_c;
mod gangs;
mod gangs_page;
mod graphs;
mod graphs_page;
mod hyperperiod_text;
mod import;
mod input;
mod logfile;
mod omp;
mod omp_record;
mod omp_timeline;
mod outcome;
mod pages;
mod patience;
mod plans;
mod plans_page;
mod platform_file;
mod progress;
mod replay;
mod report;
mod run;
mod schema;
mod sim;
mod suggest;
mod task_table;
mod to_sdf3;
mod verdict_json;
mod verdict_page;
mod verdict_text;
mod verify;
mod what_if;
mod words;
mod workloads;

use clap::{CommandFactory, Parser, Subcommand};
use punctual_terminal::ending::Ended;

/// User-level hard-real-time scheduling: admitted before it runs, proved afterwards.
#[derive(Debug, Parser)]
#[command(
    name = "punctual",
    version,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 admitted, met or excused; 1 refused or missed; 2 bad input; \
                  3 failure of the run itself; 130 ended by Ctrl-C (run, sim and replay, once \
                  they have begun: by what was seen until then).\n\n\
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
    Omp(omp::Args),
    Import(import::Args),
    Export(to_sdf3::Args),
    /// Measures every primitive and its rivals on this machine
    Bench(beside::Args),
    /// Compares a system under Punctual with the same as threads of the kernel
    Compare(beside::Args),
    /// Looks for a history that breaks a policy, and shows the shortest
    Conform(beside::Args),
    /// Studies which share of random task sets each policy admits, and plots it
    Sweep(beside::Args),
    /// Studies the costs of gangs, and how well they keep in step
    Study(beside::Args),
    Schema(schema::Args),
    Pages(pages::Args),
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
            Command::Omp(args) => omp::execute(args),
            Command::Import(args) => import::execute(args),
            Command::Export(args) => to_sdf3::execute(args),
            Command::Bench(args) => beside::execute("bench", args),
            Command::Compare(args) => beside::execute("compare", args),
            Command::Conform(args) => beside::execute("conform", args),
            Command::Sweep(args) => beside::execute("sweep", args),
            Command::Study(args) => beside::execute("study", args),
            Command::Schema(args) => schema::execute(args),
            Command::Pages(args) => pages::execute(args),
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
            Command::Bench(args)
            | Command::Compare(args)
            | Command::Conform(args)
            | Command::Study(args)
            | Command::Sweep(args) => args.json(),
            Command::Omp(_)
            | Command::Import(_)
            | Command::Export(_)
            | Command::Schema(_)
            | Command::Pages(_) => false,
        }
    }
}

/// The definition of the command line.
pub fn definition() -> clap::Command {
    Cli::command()
}

/// The whole command, with the arguments of this process: the code for the shell.
pub fn command() -> u8 {
    punctual_terminal::code(|cli: &Cli| cli.command.execute(), |cli| cli.command.json())
}
