//! `cargo xtask storm`: the storm on the C library in full, by the test that CI runs in short.

use clap::Args;

use crate::step;
use crate::workspace::Workspace;

/// What the test reads the number of its calls from.
const OPERATIONS: &str = "PUNCTUAL_STORM_OPERATIONS";

#[derive(Args)]
pub(crate) struct StormOptions {
    /// How many calls into the C library, all threads together
    #[arg(long, default_value_t = 10_000_000)]
    operations: u64,
}

/// Runs the test, built with optimisation; whether it passed.
pub(crate) fn run(workspace: &Workspace, options: &StormOptions) -> bool {
    let mut command = workspace.cargo();
    command.args([
        "test",
        "--quiet",
        "--release",
        "--package",
        "punctual-linux-io",
    ]);
    command.args([
        "--test",
        "libc_storm",
        "--",
        "--nocapture",
        "--test-threads=1",
    ]);
    command.env(OPERATIONS, options.operations.to_string());
    step::passes_in_the_open(command)
}
