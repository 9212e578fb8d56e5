//! `punctual schema`: the JSON Schema of the system file and of what each command prints.
//!
//! The schema of the file is made from the reader's own table of keys. Those of the outputs are
//! written by hand, because they are the contract, and tested against real output.

use clap::ValueEnum;
use serde_json::{Value, json};

use punctual_terminal::ending::{Ended, Ending, Failure};
use punctual_terminal::output;

/// Prints the JSON Schema of the system file, or of what a command prints with --json
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 printed; 2 no such schema; 3 nothing could be written.\n\n\
    Examples:\n  \
    punctual schema > punctual.schema.json   # for editors: completion and checks\n  \
    punctual schema check                    # what `punctual check --json` prints"
)]
pub(crate) struct Args {
    /// The command whose output the schema describes; by default the system file
    command: Option<Subject>,
}

/// What has a schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Subject {
    /// The system file
    File,
    /// The verdict of `check`, also of a `run` that is refused
    Check,
    /// The output of `verify`
    Verify,
    /// The output of `check --suggest`
    Suggest,
    /// The report of a simulation; the same as of `run`
    Sim,
    /// The report of `run`
    Run,
    /// The output of `report` for a log; the same as of `run`
    Report,
    /// The output of `replay`: the same, and the finding of the replay
    Replay,
    /// The output of `diff` for two logs
    Diff,
    /// The findings of `doctor`
    Doctor,
    /// The figures of `bench`
    Bench,
    /// The figures of `compare`
    Compare,
    /// The finding of `conform`
    Conform,
    /// The shares that `sweep` prints
    Sweep,
    /// The rows that `study` prints
    Study,
    /// The output of any command that fails (exit codes 2 and 3)
    Error,
}

pub(crate) fn execute(args: &Args) -> Ended {
    output::print_json(&schema(args.command.unwrap_or(Subject::File))?)?;
    Ok(Ending::Good)
}

fn schema(subject: Subject) -> Result<Value, Failure> {
    let text = match subject {
        Subject::File => return Ok(punctual_spec::schema()),
        Subject::Check => include_str!("../schema/check.json"),
        Subject::Verify => include_str!("../schema/verify.json"),
        Subject::Suggest => include_str!("../schema/suggest.json"),
        Subject::Sim | Subject::Run | Subject::Report => include_str!("../schema/run.json"),
        Subject::Replay => return of_replay(),
        Subject::Diff => return of_diff(),
        Subject::Bench => include_str!("../schema/bench.json"),
        Subject::Compare => include_str!("../schema/compare.json"),
        Subject::Doctor => include_str!("../schema/doctor.json"),
        Subject::Conform => include_str!("../schema/conform.json"),
        Subject::Sweep => include_str!("../schema/sweep.json"),
        Subject::Study => include_str!("../schema/study.json"),
        Subject::Error => include_str!("../schema/error.json"),
    };
    parse(text)
}

/// The report of a run, and what the replay found or what would have been.
fn of_replay() -> Result<Value, Failure> {
    let mut schema = parse(include_str!("../schema/run.json"))?;
    schema["title"] = Value::from("punctual replay --json");
    schema["properties"]["replay"] = parse(include_str!("../schema/replay.json"))?;
    let mut what_if = parse(include_str!("../schema/what_if.json"))?;
    what_if["properties"]["tasks"] = parse(include_str!("../schema/task_diffs.json"))?;
    schema["properties"]["what_if"] = what_if;
    schema["oneOf"] = json!([{ "required": ["replay"] }, { "required": ["what_if"] }]);
    Ok(schema)
}

fn of_diff() -> Result<Value, Failure> {
    let mut schema = parse(include_str!("../schema/diff.json"))?;
    schema["properties"]["tasks"] = parse(include_str!("../schema/task_diffs.json"))?;
    Ok(schema)
}

fn parse(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text)
        .map_err(|error| Failure::run(format!("this build carries a broken schema: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_is_one() {
        for &subject in Subject::value_variants() {
            let schema = schema(subject).expect("JSON");
            assert_eq!(
                jsonschema::meta::validate(&schema)
                    .err()
                    .map(|e| e.to_string()),
                None
            );
        }
    }
}
