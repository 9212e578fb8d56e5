//! Every example for real, for a moment: flown, recorded and replayed.
//!
//! How punctual it is depends on what else the machine does just now. What must hold all the same:
//! the command ends with a verdict, every miss has a cause, the reference agrees with what was
//! computed, and the recording replays decision by decision. The reference may differ where the
//! report says that members were not kept in step.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::replays::prepare;
use crate::step::{Outcome, Tally};
use crate::workspace::Workspace;

/// How long each of them flies.
const FOR: &str = "2s";

/// Flies every description in `examples/`, with the command that the tests have built in
/// `commands`.
pub(crate) fn run(tally: &mut Tally, workspace: &Workspace, commands: &Path) {
    let folder = workspace.log_folder().join("flights");
    let punctual = commands.join("punctual");
    match prepare(workspace, &folder) {
        Ok(names) => {
            for name in names {
                tally.run(&format!("examples/{name}: flies for {FOR}"), |_| {
                    fly(&punctual, &folder, &name)
                });
            }
        }
        Err(message) => tally.run("examples: fly", |_| Outcome::Failed(message)),
    }
}

fn fly(punctual: &Path, folder: &Path, name: &str) -> Outcome {
    let log = folder.join(name).with_extension("log");
    let command = |verb: &str, file: &Path| {
        let mut command = Command::new(punctual);
        command.arg(verb).arg(file).args(["--json", "--quiet"]);
        command
    };
    let mut flight = command("run", &folder.join(name));
    // Also those that exist to be refused.
    flight.args(["--force", "--for", FOR, "--record"]).arg(&log);
    let report = match answer(&mut flight, &[0, 1]) {
        Ok(report) => report,
        Err(said) if said.contains("has no host CPU") => {
            return Outcome::Passed("names no host CPU: in virtual time alone".to_owned());
        }
        Err(said) if said.contains("in virtual time only") => {
            return Outcome::Passed("has groups: in virtual time alone".to_owned());
        }
        Err(said) if said.contains("cannot be used here") => return Outcome::Skipped(said),
        Err(said) => return Outcome::Failed(said),
    };
    if let Some(wrong) = wrong_with(&report) {
        return Outcome::Failed(wrong);
    }
    let again = match answer(&mut command("replay", &log), &[0, 1]) {
        Ok(again) => again,
        Err(said) => return Outcome::Failed(format!("replay: {said}")),
    };
    let replay = &again["replay"];
    if replay["identical"] != Value::Bool(true) {
        // The log stays, to be looked at.
        return Outcome::Failed(format!("{}: the replay differs: {replay}", log.display()));
    }
    // One that differs not is of no use any more; if it stays, nobody minds.
    let _ = fs::remove_file(&log);
    Outcome::Passed(report["verdict"].as_str().unwrap_or_default().to_owned())
}

/// What no load of the machine excuses.
fn wrong_with(report: &Value) -> Option<String> {
    let verdict = report["verdict"].as_str().unwrap_or_default();
    if !["met", "missed", "excused"].contains(&verdict) {
        return Some(format!("no verdict of a run: {report}"));
    }
    let mut misses = report["misses"].as_array().into_iter().flatten();
    if let Some(miss) = misses.find(|miss| miss["cause"].as_str().is_none_or(str::is_empty)) {
        return Some(format!("a miss without a cause: {miss}"));
    }
    // Where time takes the place of barriers, a member whose CPU was away reads what is not there
    // yet. It says so, and the run is not met.
    let mut gangs = report["gangs"].as_array().into_iter().flatten();
    let is_told = verdict == "missed" && gangs.any(|told| told["not_in_step"] == true);
    let mismatches = report["oracle"]["mismatches"].as_u64().unwrap_or(0);
    (mismatches > 0 && !is_told).then(|| format!("{mismatches} mismatches with the reference"))
}

/// What a command says in JSON, if it ends with one of these codes; else how it ended and what it
/// said on standard error.
fn answer(command: &mut Command, codes: &[i32]) -> Result<Value, String> {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&stderr);
    let told = String::from_utf8_lossy(&stdout);
    if !status.code().is_some_and(|code| codes.contains(&code)) || said.contains("panicked at") {
        return Err(format!("{status}: {said}{told}"));
    }
    serde_json::from_str(&told).map_err(|error| format!("{error}: {told}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flight_that_missed_is_right_and_one_without_causes_or_with_mismatches_is_not() {
        let flight = |text: &str| wrong_with(&serde_json::from_str(text).expect("JSON"));
        let caused = r#"{"verdict": "missed", "misses": [{"cause": "blocked"}]}"#;
        assert_eq!(flight(caused), None);
        assert_eq!(
            flight(r#"{"verdict": "met", "oracle": {"mismatches": 0}}"#),
            None
        );
        let told = r#"{"verdict": "missed", "gangs": [{"not_in_step": true}], "oracle": {"mismatches": 1}}"#;
        assert_eq!(flight(told), None);
        for wrong in [
            r#"{"verdict": "refused"}"#,
            r#"{"verdict": "met", "gangs": [{"not_in_step": true}], "oracle": {"mismatches": 1}}"#,
            r#"{"verdict": "missed", "gangs": [{"not_in_step": false}], "oracle": {"mismatches": 1}}"#,
            r#"{"verdict": "missed", "misses": [{"task": "a"}]}"#,
            r#"{"verdict": "met", "oracle": {"mismatches": 1}}"#,
        ] {
            assert!(flight(wrong).is_some(), "{wrong}");
        }
    }
}
