//! The examples as steps: each gets the verdict that the guide promises.
//!
//! They use what the tests before them have built.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step::{Outcome, Tally, Tests, run_logged};
use crate::workspace::Workspace;

/// Examples that exist to be refused; all others are admitted, and met in virtual time.
const REFUSED: [&str; 2] = ["avionics-one-cpu.toml", "waters2019.toml"];

/// Examples of several files, which measure: each is asked for one short round, and where its plot
/// goes.
const MEASURING: [&str; 1] = ["composability"];

/// Checks every description in `examples/`, simulates the admitted ones, and runs the programs.
pub(crate) fn run(tally: &mut Tally, workspace: &Workspace) {
    let folder = workspace.root.join("examples");
    let found =
        files(&folder, ".toml").and_then(|descriptions| Ok((descriptions, files(&folder, ".rs")?)));
    let (names, programs) = match found {
        Ok(found) => found,
        Err(error) => {
            let message = format!("{}: {error}", folder.display());
            return tally.run("examples", |_| Outcome::Failed(message));
        }
    };
    for name in names {
        check_description(tally, workspace, &folder, &name);
    }
    for program in programs {
        run_program(tally, workspace, program.trim_end_matches(".rs"), &[]);
    }
    for name in MEASURING {
        let plot = workspace.log_folder().join(format!("{name}.svg"));
        let arguments = [plot.into_os_string(), "1".into(), "1".into()];
        run_program(tally, workspace, name, &arguments);
    }
}

/// One description: its verdict, and if it is admitted its run in virtual time.
fn check_description(tally: &mut Tally, workspace: &Workspace, folder: &Path, name: &str) {
    let path = folder.join(name);
    if REFUSED.contains(&name) {
        return tally.run(&format!("examples/{name}: refused"), |tests| {
            punctual(workspace, "check", &path, 1, tests)
        });
    }
    tally.run(
        &format!("examples/{name}: admitted, met in sim"),
        |tests| match punctual(workspace, "check", &path, 0, tests) {
            Outcome::Passed(_) => punctual(workspace, "sim", &path, 0, tests),
            other => other,
        },
    );
}

/// One program that uses the library, for real.
fn run_program(tally: &mut Tally, workspace: &Workspace, name: &str, arguments: &[OsString]) {
    tally.run(&format!("examples/{name}: runs here"), |tests| {
        let mut command = Command::new(built(workspace).join("examples").join(name));
        command.args(arguments);
        run_logged(
            workspace.log_folder(),
            &format!("example-{name}"),
            command,
            tests,
        )
    });
}

/// Where `cargo test` has left the command and the example programs: built once is enough.
fn built(workspace: &Workspace) -> PathBuf {
    workspace.target.join("debug")
}

/// The names of the files in `folder` with this ending, in order.
pub(crate) fn files(folder: &Path, ending: &str) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(ending) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Runs `punctual VERB FILE`; passes when it exits with `expected`.
fn punctual(
    workspace: &Workspace,
    verb: &str,
    file: &Path,
    expected: i32,
    tests: &mut Tests,
) -> Outcome {
    let binary = built(workspace).join("punctual");
    let mut command = Command::new("sh");
    // The shell turns the expected exit code into success and names any other.
    command.arg("-c").arg(format!(
        "\"$1\" \"$2\" \"$3\"; code=$?; [ $code -eq {expected} ] || \
         {{ echo \"exit code $code where {expected} is right\"; exit 1; }}"
    ));
    command.arg("sh").arg(binary).arg(verb).arg(file);
    run_logged(
        workspace.log_folder(),
        &format!("example-{verb}"),
        command,
        tests,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_that_must_be_refused_is_there() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
        let names = files(&folder, ".toml").expect("the examples folder can be read");
        for name in REFUSED {
            assert!(names.iter().any(|found| found == name), "{name} is gone");
        }
    }
}
