//! `cargo xtask soak`: random live runs under chaos, with every checker on.
//!
//! The work is done by the crate `soak`, built with optimisation; this starts it.

use std::path::PathBuf;

use clap::Args;

use crate::step::passes_in_the_open;
use crate::workspace::Workspace;

#[derive(Args)]
pub(crate) struct SoakOptions {
    /// How long, in minutes
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// Seed of the first round; the next has the next number
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only the round of --seed
    #[arg(long)]
    once: bool,
    /// Length of a round, in milliseconds
    #[arg(long)]
    round_ms: Option<u64>,
    /// Only on this host CPU
    #[arg(long)]
    cpu: Option<u32>,
    /// Do not ask for real-time priority
    #[arg(long)]
    best_effort: bool,
    /// Nothing from outside: no signals, stops and hogs
    #[arg(long)]
    calm: bool,
    /// Write the records of a round that was violated here, in the text form
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
}

/// Runs with the terminal as its own; whether nothing was violated.
pub(crate) fn run(workspace: &Workspace, options: &SoakOptions) -> bool {
    let mut command = workspace.cargo();
    command.args(["run", "--quiet", "--release", "--package", "punctual-soak"]);
    command.arg("--");
    command.args(["--minutes", &options.minutes.to_string()]);
    command.args(["--seed", &options.seed.to_string()]);
    command.args(options.once.then_some("--once"));
    command.args(options.best_effort.then_some("--best-effort"));
    command.args(options.calm.then_some("--calm"));
    if let Some(ms) = options.round_ms {
        command.args(["--round-ms", &ms.to_string()]);
    }
    if let Some(cpu) = options.cpu {
        command.args(["--cpu", &cpu.to_string()]);
    }
    if let Some(path) = &options.keep {
        command.arg("--keep").arg(path);
    }
    passes_in_the_open(command)
}
