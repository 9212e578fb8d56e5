//! `cargo xtask loom`: the words that CPUs and signals share, in every order.
//!
//! The work is done by the crate `interleave`, built with optimisation; this starts it. Its tests
//! do the same in every run of all tests.

use crate::step::passes_in_the_open;
use crate::workspace::Workspace;

/// Runs with the terminal as its own; whether everything held and every mistake was noticed.
pub(crate) fn run(workspace: &Workspace) -> bool {
    let mut command = workspace.cargo();
    command.args(["run", "--quiet", "--release"]);
    command.args(["--package", "punctual-interleave"]);
    passes_in_the_open(command)
}
