//! The live tests once more as an ordinary user, without root's privileges.
//!
//! Under stock Linux most users may neither raise a scheduling class nor lock much memory. What
//! Punctual does then (run on, and say what was lost) is tested by running the same test binaries
//! as `nobody`. They are built before, as the calling user, and only executed here.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::programs::{Program, Use, build};
use crate::step::{Outcome, Tally};
use crate::workspace::Workspace;

/// User and group of `nobody` on Linux (the kernel's overflow ids).
const NOBODY: &str = "65534";

/// Builds the live tests and runs each binary as `nobody`.
pub(crate) fn run_as_nobody(workspace: &Workspace) -> bool {
    let start = Instant::now();
    let mut tally = Tally::default();
    let mut programs = Vec::new();
    tally.run("build the live tests", |_| match build(workspace) {
        Ok(built) => {
            programs = built.programs;
            programs.retain(|program| program.uses(workspace) == Use::Live);
            Outcome::Passed(format!("{} programs", programs.len()))
        }
        Err(output) => Outcome::Failed(output),
    });
    let home = std::env::temp_dir().join(format!("punctual-nobody-{}", std::process::id()));
    for program in &programs {
        let title = program.title(workspace);
        tally.run(&format!("as nobody: {title}"), |tests| {
            match prepare(workspace, &home) {
                Ok(switch) => {
                    let command = as_nobody(switch, program, &home);
                    program.run(workspace, "nobody", command, tests)
                }
                Err(reason) => Outcome::Skipped(reason),
            }
        });
    }
    // Left-overs in a temporary folder harm nobody; the tests' verdict stands.
    let _ = fs::remove_dir_all(&home);
    tally.finish(start)
}

/// Makes a home for `nobody` and finds a way to become that user. An error says why there is none.
fn prepare(workspace: &Workspace, home: &Path) -> Result<&'static [&'static str], String> {
    let user = fs::metadata("/proc/self")
        .map_err(|error| format!("/proc: {error}"))?
        .uid();
    if user != 0 {
        return Err("only root can become another user; the tests ran as you already".to_string());
    }
    fs::create_dir_all(home)
        .and_then(|()| fs::set_permissions(home, fs::Permissions::from_mode(0o1777)))
        .map_err(|error| format!("{}: {error}", home.display()))?;
    let plain: &[&str] = &[];
    // A clone inside a private folder is reachable only with this one capability, which lets its
    // holder read and nothing else.
    let reader = &[
        "--inh-caps=-all,+dac_read_search",
        "--ambient-caps=+dac_read_search",
    ];
    for switch in [plain, reader] {
        let mut probe = setpriv(switch);
        probe
            .args(["test", "-r"])
            .arg(workspace.root.join("Cargo.toml"));
        match probe.output() {
            Ok(output) if output.status.success() => return Ok(switch),
            Ok(_) => {}
            Err(error) => return Err(format!("setpriv does not start: {error}")),
        }
    }
    Err("`nobody` cannot read this folder, and setpriv cannot lend it the right".to_string())
}

fn setpriv(switch: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args([
        &format!("--reuid={NOBODY}"),
        &format!("--regid={NOBODY}"),
        "--clear-groups",
    ]);
    command.args(switch).arg("--");
    command
}

fn as_nobody(switch: &[&str], program: &Program, home: &Path) -> Command {
    let mut command = setpriv(switch);
    command
        .arg(&program.path)
        .env("HOME", home)
        .env("TMPDIR", home);
    program.started_by(command)
}
