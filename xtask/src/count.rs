//! `cargo xtask count`: instructions per operation, held against ceilings.
//!
//! The work is done by the program in `bench/count`, built with optimisation; this starts it.

use clap::Args;

use crate::step::passes_in_the_open;
use crate::workspace::Workspace;

#[derive(Args)]
pub(crate) struct CountOptions {
    /// Only the rows whose names contain this
    filter: Option<String>,
    /// Write what is counted into the file of ceilings
    #[arg(long)]
    set: bool,
    /// Count what is not found in a cache of 1 MiB among 100,000 threads: some minutes
    #[arg(long)]
    misses: bool,
    /// The profile to build with; the ceilings are those of `release`
    #[arg(long, default_value = "release")]
    profile: String,
}

/// Whether every row is at or below its ceiling.
pub(crate) fn run(workspace: &Workspace, options: &CountOptions) -> bool {
    let mut command = workspace.cargo();
    command.args(["run", "--quiet", "--package", "punctual-count"]);
    command.args(["--profile", &options.profile, "--"]);
    command.args(options.filter.as_deref());
    command.args(options.set.then_some("--set"));
    command.args(options.misses.then_some("--misses"));
    passes_in_the_open(command)
}
