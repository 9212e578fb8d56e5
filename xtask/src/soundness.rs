//! `cargo xtask soundness`: random systems, admitted and then simulated.
//!
//! The work is done by the crate `soundness`; this starts it, built with optimisation.

use std::fs;
use std::path::Path;
use std::process::Command;

use clap::Args;

use crate::step::{Outcome, Tally, passes_in_the_open, run_logged};
use crate::workspace::Workspace;

/// What a push is held against.
const SYSTEMS_OF_A_PUSH: u64 = 10_000;
const GRAPHS_OF_A_PUSH: u64 = 3_000;
/// Gangs that every push judges.
const GANGS_OF_A_PUSH: u64 = 300;
/// Systems with planned groups that every push judges.
const GROUPS_OF_A_PUSH: u64 = 10_000;

#[derive(Args)]
pub(crate) struct SoundnessOptions {
    /// How many systems
    #[arg(long, default_value_t = SYSTEMS_OF_A_PUSH)]
    systems: u64,
    /// Seed of everything; a seed and the number of a system give that system
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also let wrong analyses be judged: each must be found
    #[arg(long)]
    mutants: bool,
    /// Only these features of systems, separated by commas; all when left out
    #[arg(long, value_name = "FEATURE,...")]
    features: Option<String>,
    /// Judge so many graphs instead of systems of tasks
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["systems", "features", "only"])]
    graphs: Option<u64>,
    /// Judge so many gangs instead of systems of tasks
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["systems", "features", "only", "graphs"])]
    gangs: Option<u64>,
    /// Judge so many systems with planned groups instead of systems of tasks
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["systems", "features", "only", "graphs", "gangs"])]
    groups: Option<u64>,
    /// Only this system, with its verdict
    #[arg(long, value_name = "NUMBER")]
    only: Option<u64>,
}

/// Runs with the terminal as its own; whether nothing was violated.
pub(crate) fn run(workspace: &Workspace, options: &SoundnessOptions) -> bool {
    let mut command = command(workspace);
    let kinds = [
        ("--graphs", options.graphs),
        ("--gangs", options.gangs),
        ("--groups", options.groups),
        ("--systems", Some(options.systems)),
    ];
    if let Some((kind, count)) = kinds
        .iter()
        .find_map(|(kind, count)| Some((kind, (*count)?)))
    {
        command.args([kind, &*count.to_string()]);
    }
    command.args(["--seed", &options.seed.to_string()]);
    command.args(options.mutants.then_some("--mutants"));
    if let Some(features) = &options.features {
        command.args(["--features", features]);
    }
    if let Some(only) = options.only {
        command.args(["--only", &only.to_string()]);
    }
    passes_in_the_open(command)
}

/// Systems as a step of all tests, with its last line as the remark. It is the program that the
/// tests have built, in `commands`: to optimise it further takes three times as long as it then
/// runs.
pub(crate) fn systems(tally: &mut Tally, workspace: &Workspace, commands: &Path) {
    step(tally, workspace, commands, ("systems", SYSTEMS_OF_A_PUSH));
}

/// The same for everything else that is drawn.
pub(crate) fn others(tally: &mut Tally, workspace: &Workspace, commands: &Path) {
    for drawn in [
        ("graphs", GRAPHS_OF_A_PUSH),
        ("gangs", GANGS_OF_A_PUSH),
        ("groups", GROUPS_OF_A_PUSH),
    ] {
        step(tally, workspace, commands, drawn);
    }
}

fn step(tally: &mut Tally, workspace: &Workspace, commands: &Path, (kind, count): (&str, u64)) {
    let title = format!("soundness: {count} random {kind}, wrong analyses");
    tally.run(&title, |tests| {
        let mut command = Command::new(commands.join("soundness"));
        command.args([&format!("--{kind}"), &count.to_string(), "--mutants"]);
        let folder = workspace.log_folder();
        let name = format!("soundness-{kind}");
        let log = folder.join(format!("{name}.log"));
        match run_logged(folder, &name, command, tests) {
            Outcome::Passed(_) => {
                let output = fs::read_to_string(log).unwrap_or_default();
                Outcome::Passed(output.lines().last().unwrap_or_default().to_string())
            }
            other => other,
        }
    });
}

fn command(workspace: &Workspace) -> Command {
    let mut command = workspace.cargo();
    command.args(["run", "--quiet", "--release"]);
    command.args([
        "--package",
        "punctual-soundness",
        "--bin",
        "soundness",
        "--",
    ]);
    command
}
