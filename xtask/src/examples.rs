//! The examples as steps: each gets the verdict that the guide promises.
//!
//! They use what the tests before them have built: the command, and programs beside it.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::step::{Outcome, Tally, Tests, run_logged};
use crate::workspace::Workspace;

/// Examples that exist to be refused; all others are admitted, and met in virtual time.
const REFUSED: [&str; 3] = [
    "avionics-one-cpu.toml",
    "live-tree-refused.toml",
    "waters2019.toml",
];

/// Examples of several files, which measure: each is asked for one short round, and where its plot
/// goes.
const MEASURING: [&str; 1] = ["composability"];

/// Checks every description in `examples/`, and simulates the admitted ones.
pub(crate) fn check(tally: &mut Tally, workspace: &Workspace, commands: &Path) {
    let folder = workspace.root.join("examples");
    let Some(names) = found(tally, &folder, ".toml") else {
        return;
    };
    let check = |names: &[String], tally: &mut Tally| {
        for name in names {
            check_description(tally, workspace, commands, &folder.join(name));
        }
    };
    let (some, others) = names.split_at(names.len() / 2);
    tally.beside(|tally| check(some, tally), |tally| check(others, tally));
}

/// Runs the programs in `examples/`, for real.
pub(crate) fn run(tally: &mut Tally, workspace: &Workspace, commands: &Path) {
    let folder = workspace.root.join("examples");
    let Some(programs) = found(tally, &folder, ".rs") else {
        return;
    };
    for program in programs {
        let program = commands
            .join("examples")
            .join(program.trim_end_matches(".rs"));
        run_program(tally, workspace, &program, &[]);
    }
    for name in MEASURING {
        let plot = workspace.log_folder().join(format!("{name}.svg"));
        let arguments = [plot.into_os_string(), "1".into(), "1".into()];
        let program = commands.join("examples").join(name);
        run_program(tally, workspace, &program, &arguments);
    }
}

/// The names of the files with this ending; `None`: a step has failed for want of them.
fn found(tally: &mut Tally, folder: &Path, ending: &str) -> Option<Vec<String>> {
    let found = files(folder, ending);
    let failed = |error| format!("{}: {error}", folder.display());
    match found.map_err(failed) {
        Ok(names) => Some(names),
        Err(message) => {
            tally.run("examples", |_| Outcome::Failed(message));
            None
        }
    }
}

/// One description: its verdict, and if it is admitted its run in virtual time.
fn check_description(tally: &mut Tally, workspace: &Workspace, commands: &Path, path: &Path) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let answers =
        |verb, code, tests: &mut Tests| punctual(workspace, (commands, verb, path), code, tests);
    if REFUSED.contains(&&*name) {
        return tally.run(&format!("examples/{name}: refused"), |tests| {
            answers("check", 1, tests)
        });
    }
    tally.run(
        &format!("examples/{name}: admitted, met in sim"),
        |tests| match answers("check", 0, tests) {
            Outcome::Passed(_) => answers("sim", 0, tests),
            other => other,
        },
    );
}

/// One program that uses the library, for real.
fn run_program(tally: &mut Tally, workspace: &Workspace, program: &Path, arguments: &[OsString]) {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    tally.run(&format!("examples/{name}: runs here"), |tests| {
        let mut command = Command::new(program);
        command.args(arguments);
        run_logged(
            workspace.log_folder(),
            &format!("example-{name}"),
            command,
            tests,
        )
    });
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

/// Runs `punctual VERB FILE` from a folder; passes when it exits with `expected`.
fn punctual(
    workspace: &Workspace,
    (commands, verb, file): (&Path, &str, &Path),
    expected: i32,
    tests: &mut Tests,
) -> Outcome {
    let binary = commands.join("punctual");
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let mut command = Command::new("sh");
    // The shell turns the expected exit code into success and names any other.
    command.arg("-c").arg(format!(
        "\"$1\" \"$2\" \"$3\"; code=$?; [ $code -eq {expected} ] || \
         {{ echo \"exit code $code where {expected} is right\"; exit 1; }}"
    ));
    command.arg("sh").arg(binary).arg(verb).arg(file);
    run_logged(
        workspace.log_folder(),
        &format!("example-{name}-{verb}"),
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
