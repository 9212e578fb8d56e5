//! The examples as steps: each gets the verdict that the guide promises.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::step::{Outcome, Tally, Tests, run_logged};
use crate::test::log_folder;
use crate::workspace::Workspace;

/// Examples that exist to be refused; all others are admitted, and met in virtual time.
const REFUSED: [&str; 2] = ["avionics-one-cpu.toml", "waters2019.toml"];

/// Checks every description in `examples/`, and simulates the admitted ones.
pub(crate) fn run(tally: &mut Tally, workspace: &Workspace) {
    let folder = workspace.root.join("examples");
    let names = match descriptions(&folder) {
        Ok(names) => names,
        Err(error) => {
            let message = format!("{}: {error}", folder.display());
            return tally.run("examples", |_| Outcome::Failed(message));
        }
    };
    tally.run("build the command for the examples", |tests| {
        let mut command = workspace.cargo();
        // The profile of the tests: nothing is built twice.
        command.args(["build", "--profile", "test", "--package", "punctual-tools"]);
        run_logged(log_folder(workspace), "examples-build", command, tests)
    });
    for name in names {
        let refused = REFUSED.contains(&name.as_str());
        let promise = if refused {
            "refused"
        } else {
            "admitted, met in sim"
        };
        tally.run(&format!("examples/{name}: {promise}"), |tests| {
            let path = folder.join(&name);
            let checked = punctual(
                workspace,
                "check",
                &path,
                if refused { 1 } else { 0 },
                tests,
            );
            match checked {
                Outcome::Passed(_) if !refused => punctual(workspace, "sim", &path, 0, tests),
                other => other,
            }
        });
    }
}

/// The names of the `.toml` files in `folder`, in order.
fn descriptions(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".toml") {
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
    let binary = workspace.target.join("debug").join("punctual");
    let mut command = Command::new("sh");
    // The shell turns the expected exit code into success and names any other.
    command.arg("-c").arg(format!(
        "\"$1\" \"$2\" \"$3\"; code=$?; [ $code -eq {expected} ] || \
         {{ echo \"exit code $code where {expected} is right\"; exit 1; }}"
    ));
    command.arg("sh").arg(binary).arg(verb).arg(file);
    run_logged(
        log_folder(workspace),
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
        let names = descriptions(&folder).expect("the examples folder can be read");
        for name in REFUSED {
            assert!(names.iter().any(|found| found == name), "{name} is gone");
        }
    }
}
