//! `cargo xtask test`: everything that must hold before a push.

use std::process::Command;
use std::time::Instant;

use crate::api;
use crate::examples;
use crate::flights;
use crate::footprint;
use crate::install;
use crate::programs;
use crate::soundness;
use crate::step::{Outcome, Tally, run_logged};
use crate::tidy;
use crate::workspace::Workspace;

/// The microcontroller that the core must build for.
const EMBEDDED_TARGET: &str = "thumbv7em-none-eabihf";

/// Crates without `std`.
const EMBEDDED_PACKAGES: [&str; 6] = [
    "punctual-model",
    "punctual-kern",
    "punctual-policy",
    "punctual-tables",
    "punctual-child",
    "punctual-fifo",
];

/// Runs the steps; a failing step does not hide the ones behind it. `counter`: the program of
/// `cargo xtask count` is built, too, in time that the others leave.
pub(crate) fn run(workspace: &Workspace, quick: bool, counter: bool) -> bool {
    let start = Instant::now();
    let mut tally = Tally::default();
    if quick {
        read_sources(&mut tally, workspace);
        clippy(&mut tally, workspace);
        let tests = ["test", "--workspace", "--lib", "--bins", "--no-fail-fast"];
        cargo(&mut tally, workspace, "test", &tests, &[]);
        return tally.finish(start);
    }
    let mut built = None;
    // Reading the tree uses one CPU.
    tally.beside(
        |tally| read_sources(tally, workspace),
        |tally| built = programs::build_all(tally, workspace),
    );
    let Some(built) = built else {
        clippy(&mut tally, workspace);
        build_others(&mut tally, workspace);
        return tally.finish(start);
    };
    let commands = &built.commands;
    programs::run_in_virtual_time(&mut tally, workspace, &built);
    examples::check(&mut tally, workspace, commands);
    install::step(&mut tally, workspace, commands);
    programs::run_measuring(&mut tally, workspace, &built);
    // Tests in real time leave a CPU to itself for most of their time, and a flight mostly waits.
    tally.in_idle_time(
        |tally| {
            programs::run_in_real_time(tally, workspace, &built);
            examples::run(tally, workspace, commands);
            flights::run(tally, workspace, commands);
        },
        |tally| {
            clippy(tally, workspace);
            // The judges of systems and of wrong analyses use one CPU now and then, and cargo does.
            tally.beside(
                |tally| soundness::systems(tally, workspace, commands),
                |tally| {
                    build_others(tally, workspace);
                    soundness::others(tally, workspace, commands);
                },
            );
            if counter {
                let build = ["build", "--package=punctual-count", "--profile=release"];
                cargo(tally, workspace, "build-counter", &build, &[]);
            }
        },
    );
    tally.finish(start)
}

/// What is held against the sources alone.
fn read_sources(tally: &mut Tally, workspace: &Workspace) {
    let fmt = ["fmt", "--all", "--check"];
    cargo(tally, workspace, "fmt", &fmt, &[]);
    tally.run("tidy: the house rules", |_| tidy::step(workspace));
}

fn clippy(tally: &mut Tally, workspace: &Workspace) {
    let strict = ["--", "-D", "warnings"];
    let arguments = [&["clippy", "--workspace", "--all-targets"][..], &strict].concat();
    cargo(tally, workspace, "clippy", &arguments, &[]);
}

/// Builds that come beside commands and tests: documents with their examples, and parts for a
/// microcontroller.
fn build_others(tally: &mut Tally, workspace: &Workspace) {
    // Libraries only: the facade and the command share the name `punctual`.
    let doc = ["doc", "--workspace", "--no-deps", "--lib"];
    let strict = [("RUSTDOCFLAGS", "-D warnings")];
    cargo(tally, workspace, "doc", &doc, &strict);
    tally.run("api: the public items", |_| api::step(workspace));
    tally.run(&format!("build for {EMBEDDED_TARGET}"), |tests| {
        if let Err(reason) = ensure_embedded_target() {
            return Outcome::Skipped(reason);
        }
        let mut command = workspace.cargo();
        command.args(["build", "--target", EMBEDDED_TARGET]);
        command.args(EMBEDDED_PACKAGES.map(|package| format!("--package={package}")));
        run_logged(workspace.log_folder(), "embedded", command, tests)
    });
    weigh_graphs(tally, workspace);
    let in_pages = ["test", "--workspace", "--doc", "--no-fail-fast"];
    cargo(tally, workspace, "test-doc", &in_pages, &[]);
}

/// The code size of graphs alone.
pub(crate) fn weigh(workspace: &Workspace) -> bool {
    let mut tally = Tally::default();
    weigh_graphs(&mut tally, workspace);
    tally.finish(Instant::now())
}

fn weigh_graphs(tally: &mut Tally, workspace: &Workspace) {
    let step = |tests: &mut _| match ensure_embedded_target() {
        Ok(()) => footprint::step(workspace, EMBEDDED_TARGET, tests),
        Err(reason) => Outcome::Skipped(reason),
    };
    tally.run("code size of graphs there", step);
}

/// One step that is one cargo command.
fn cargo(
    tally: &mut Tally,
    workspace: &Workspace,
    name: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) {
    tally.run(&format!("cargo {}", arguments.join(" ")), |tests| {
        let mut command = workspace.cargo();
        command.args(arguments).envs(environment.iter().copied());
        run_logged(workspace.log_folder(), name, command, tests)
    });
}

/// Adds the embedded target when it is missing. An error is the reason why it cannot be had, which
/// is no fault of the tree.
fn ensure_embedded_target() -> Result<(), String> {
    let libraries = Command::new("rustc")
        .args(["--target", EMBEDDED_TARGET, "--print", "target-libdir"])
        .output()
        .map_err(|error| format!("rustc does not start: {error}"))?;
    let folder = String::from_utf8_lossy(&libraries.stdout)
        .trim()
        .to_string();
    if libraries.status.success() && std::path::Path::new(&folder).is_dir() {
        return Ok(());
    }
    let added = Command::new("rustup")
        .args(["target", "add", EMBEDDED_TARGET])
        .output()
        .map_err(|error| format!("the target is missing and rustup does not start: {error}"))?;
    if added.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&added.stderr);
    Err(format!(
        "`rustup target add {EMBEDDED_TARGET}` failed: {}",
        message.trim()
    ))
}
