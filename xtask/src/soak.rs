//! `cargo xtask soak`: random live runs under chaos, with every checker on.
//!
//! The work is done by the crate `soak`, built with optimisation; this starts it.

use std::ffi::OsString;

use clap::Args;

use crate::step::passes_in_the_open;
use crate::workspace::Workspace;

#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct SoakOptions {
    /// What `soak` takes: `cargo xtask soak --help` lists it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Runs with the terminal as its own; whether nothing was violated.
pub(crate) fn run(workspace: &Workspace, options: &SoakOptions) -> bool {
    let mut command = workspace.cargo();
    command.args(["run", "--quiet", "--release", "--package", "punctual-soak"]);
    command.arg("--").args(&options.arguments);
    passes_in_the_open(command)
}
