//! `cargo xtask miri`: the portable code under Miri, which notices undefined behaviour.
//!
//! Miri interprets: it executes no assembly and few system calls, and takes a thousand times as
//! long. So of each crate those tests are named that it can execute in a minute or two; crates that
//! forbid unsafe code are sampled.

use std::process::{Command, Stdio};
use std::time::Instant;

use clap::Args;

use crate::step::{Outcome, Tally, run_logged};
use crate::workspace::Workspace;

/// The toolchain with Miri, the pinned one first.
const TOOLCHAINS: [&str; 2] = ["nightly-2026-05-20", "nightly"];

/// Addresses keep their provenance; clocks and files may be read.
const FLAGS: &str = "-Zmiri-strict-provenance -Zmiri-disable-isolation";

/// Tests of one crate that Miri can execute.
struct Part {
    package: &'static str,
    /// Parts of the names of its tests; none: all of them.
    only: &'static [&'static str],
    /// Parts of the names of those that are left out.
    without: &'static [&'static str],
}

const PARTS: [Part; 10] = [
    // All else is assembly.
    Part {
        package: "punctual-switch",
        only: &["gate::", "ring::"],
        without: &[],
    },
    // All else schedules for real, asks the processor, or has addresses as numbers from registers.
    Part {
        package: "punctual-linux",
        only: &[
            "cross_cpu::",
            "deferral::",
            "gaps::",
            "kicks::",
            "name::",
            "offset::tests::a_round",
            "overhead::tests",
            "post::",
            "probe::",
            "tls_reset::tests::a_part",
        ],
        // It sleeps in the kernel.
        without: &["a_sleeper_is_woken"],
    },
    // All else asks the kernel.
    Part {
        package: "punctual-linux-io",
        only: &["backoff::", "futex::", "transfer::"],
        without: &[],
    },
    // Admission is `analysis`.
    Part {
        package: "punctual-thread",
        only: &["registry::", "spread::", "timer::"],
        without: &[],
    },
    Part {
        package: "punctual-capi",
        only: &[],
        without: &[],
    },
    Part {
        package: "punctual-fifo",
        only: &[],
        without: &[],
    },
    Part {
        package: "punctual-kern",
        only: &[],
        without: &[],
    },
    Part {
        package: "punctual-trace",
        only: &[],
        without: &[],
    },
    // Samples of what forbids unsafe code.
    Part {
        package: "punctual-model",
        only: &[
            "listed_arrivals",
            "readable::",
            "time::",
            "validate::tests::a_",
        ],
        without: &["has_at_most_256"],
    },
    Part {
        package: "punctual-spec",
        only: &["nearest::", "platform::", "report::"],
        without: &[],
    },
];

#[derive(Args)]
pub(crate) struct MiriOptions {
    /// Only this crate, as `punctual-linux`
    package: Option<String>,
    /// Seconds that one crate may take
    #[arg(long, default_value_t = 600)]
    seconds: u32,
}

/// Runs the parts one after the other; whether none failed. Without Miri nothing is checked, which
/// is said loudly and is no failure.
pub(crate) fn run(workspace: &Workspace, options: &MiriOptions) -> bool {
    let start = Instant::now();
    let mut tally = Tally::default();
    let toolchain = TOOLCHAINS.into_iter().find(|name| has_miri(name));
    let wanted = |part: &&Part| match &options.package {
        Some(package) => part.package == package,
        None => true,
    };
    for part in PARTS.iter().filter(wanted) {
        tally.run(&format!("miri: {}", part.package), |tests| {
            let Some(toolchain) = toolchain else {
                let names = TOOLCHAINS.join(" nor ");
                let reason = format!(
                    "neither {names} has Miri; `rustup toolchain install {} --profile minimal \
                     --component miri,rust-src` adds it",
                    TOOLCHAINS[0]
                );
                return Outcome::Skipped(reason);
            };
            let command = command(workspace, toolchain, part, options.seconds);
            let name = format!("miri-{}", part.package);
            let before = tests.passed;
            let outcome = run_logged(workspace.log_folder(), &name, command, tests);
            match outcome {
                Outcome::Passed(_) if tests.passed == before => {
                    Outcome::Failed("none of the tests named here exists".to_owned())
                }
                other => other,
            }
        });
    }
    tally.finish(start)
}

/// A cargo of that toolchain, not of the one that runs this.
fn cargo(toolchain: &str, seconds: u32) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", &seconds.to_string()]);
    command.args(["rustup", "run", toolchain, "cargo", "miri"]);
    for inherited in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(inherited);
    }
    command
}

fn has_miri(toolchain: &str) -> bool {
    let mut command = cargo(toolchain, 60);
    command.arg("--version");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn command(workspace: &Workspace, toolchain: &str, part: &Part, seconds: u32) -> Command {
    let mut command = cargo(toolchain, seconds);
    command.current_dir(&workspace.root);
    command.args(["test", "--lib", "--package", part.package, "--"]);
    command.args(part.only);
    for name in part.without {
        command.args(["--skip", name]);
    }
    command.env("MIRIFLAGS", FLAGS);
    command
}
