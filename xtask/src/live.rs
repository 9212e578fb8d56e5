//! The live tests once more as an ordinary user, without root's privileges.
//!
//! Under stock Linux most users may neither raise a scheduling class nor lock much memory. What
//! Punctual does then (run on, and say what was lost) is tested by running the same test binaries
//! as `nobody`. They are built before, as the calling user, and only executed here.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::step::{Outcome, Tally, run_logged};
use crate::workspace::Workspace;

/// Folders of the packages with tests that schedule for real; the empty one is the facade's.
const LIVE_FOLDERS: [&str; 7] = [
    "platform/linux-io",
    "platform/linux",
    "platform/direct",
    "runtime/thread",
    "runtime/capi/library",
    "front/command",
    "",
];

/// Programs of these packages that have nothing to do with privileges: those in virtual time, and
/// those that step from instruction to instruction, which execute the same code for every user.
const LEFT_OUT: [&str; 2] = ["every_instruction", "virtual_time"];

/// User and group of `nobody` on Linux (the kernel's overflow ids).
const NOBODY: &str = "65534";

/// A test binary, the name of its source, and the folder that cargo would run it in.
struct Binary {
    path: PathBuf,
    name: String,
    folder: PathBuf,
}

/// Builds the live tests and runs each binary as `nobody`.
pub(crate) fn run_as_nobody(workspace: &Workspace) -> bool {
    let start = Instant::now();
    let mut tally = Tally::default();
    let mut binaries = Vec::new();
    tally.run("build the live tests", |_| match build(workspace) {
        Ok(found) => {
            binaries = found;
            Outcome::Passed(format!("{} binaries", binaries.len()))
        }
        Err(output) => Outcome::Failed(output),
    });
    let home = std::env::temp_dir().join(format!("punctual-nobody-{}", std::process::id()));
    for binary in &binaries {
        let stem = binary
            .path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        tally.run(&format!("as nobody: {stem}"), |tests| {
            match prepare(workspace, &home) {
                Ok(switch) => run_logged(
                    workspace.log_folder(),
                    &format!("nobody-{stem}"),
                    as_nobody(switch, binary, &home),
                    tests,
                ),
                Err(reason) => Outcome::Skipped(reason),
            }
        });
    }
    // Left-overs in a temporary folder harm nobody; the tests' verdict stands.
    let _ = fs::remove_dir_all(&home);
    tally.finish(start)
}

/// Asks cargo to build, and where it put the binaries.
fn build(workspace: &Workspace) -> Result<Vec<Binary>, String> {
    let mut command = workspace.cargo();
    // The whole workspace: with fewer packages cargo would choose other features and build anew.
    command.args([
        "test",
        "--workspace",
        "--no-run",
        "--message-format=json-render-diagnostics",
    ]);
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let binaries = text
        .lines()
        .filter_map(|line| test_binary(&serde_json::from_str(line).ok()?));
    let is_live = |binary: &Binary| {
        let mut folders = LIVE_FOLDERS.iter();
        folders.any(|folder| same_path(&binary.folder, &workspace.root.join(folder)))
            && !LEFT_OUT.contains(&binary.name.as_str())
    };
    Ok(binaries.filter(is_live).collect())
}

/// The test binary that a message of cargo announces, if it announces one.
fn test_binary(message: &Value) -> Option<Binary> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let path = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?)
        .parent()?
        .to_path_buf();
    let name = message["target"]["name"].as_str()?.to_owned();
    Some(Binary { path, name, folder })
}

/// Whether two paths have the same parts (`a/b` and `a/b/` do).
fn same_path(a: &Path, b: &Path) -> bool {
    a.components().eq(b.components())
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

fn as_nobody(switch: &[&str], binary: &Binary, home: &Path) -> Command {
    let mut command = setpriv(switch);
    command.arg(&binary.path).current_dir(&binary.folder);
    command
        .env("HOME", home)
        .env("TMPDIR", home)
        .env("CARGO_MANIFEST_DIR", &binary.folder);
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn test_binaries_are_told_from_other_artefacts() {
        let artefact = |test: bool| {
            json!({
                "reason": "compiler-artifact",
                "profile": { "test": test },
                "target": { "name": "live" },
                "executable": "/t/debug/deps/live-1",
                "manifest_path": "/p/platform/linux/Cargo.toml",
            })
        };
        let binary = test_binary(&artefact(true)).expect("a test binary");
        assert_eq!(binary.folder, Path::new("/p/platform/linux"));
        assert_eq!(binary.name, "live");
        assert!(test_binary(&artefact(false)).is_none());
        assert!(test_binary(&json!({ "reason": "build-finished" })).is_none());
    }
}
