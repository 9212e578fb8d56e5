//! `cargo xtask replay-all`: every example recorded live and replayed, as it was and under EDF.
//!
//! Prints one table row per example. Passes when every replay is identical to its recording.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use clap::Args;
use serde_json::Value;

use crate::examples::files;
use crate::step::passes_in_the_open;
use crate::workspace::Workspace;

/// How the functions of the example in C are built: `cc ... -o OUT IN`.
/// Examples with this beginning have graphs. Another policy over their threads, which never end a
/// job, says nothing.
const GRAPHS: &str = "graph-";

const C_FLAGS: [&str; 5] = ["-std=c11", "-O2", "-shared", "-fPIC", "-o"];

#[derive(Args)]
pub(crate) struct ReplayOptions {
    /// How long each example is recorded, in seconds
    #[arg(long, default_value_t = 10)]
    seconds: u32,
}

/// A row of the table, and whether it speaks against us.
struct Row {
    cells: [String; 6],
    differs: bool,
}

/// Records and replays each example in turn; whether all replays were identical.
pub(crate) fn run(workspace: &Workspace, options: &ReplayOptions) -> bool {
    let mut build = workspace.cargo();
    build.args([
        "build",
        "--quiet",
        "--release",
        "--package",
        "punctual-tools",
    ]);
    if !passes_in_the_open(build) {
        return false;
    }
    let folder = workspace.log_folder().join("replays");
    let names = match prepare(workspace, &folder) {
        Ok(names) => names,
        Err(message) => {
            eprintln!("xtask: {message}");
            return false;
        }
    };
    let punctual = workspace.target.join("release").join("punctual");
    println!("| example | seconds | jobs | decisions | run | replay | what if EDF |");
    println!("|---|---|---|---|---|---|---|");
    let mut all_identical = true;
    for name in names {
        let row = record_and_replay(&punctual, &folder, &name, options.seconds);
        let [seconds, jobs, decisions, run, replay, edf] = row.cells;
        println!("| {name} | {seconds} | {jobs} | {decisions} | {run} | {replay} | {edf} |");
        all_identical &= !row.differs;
    }
    all_identical
}

/// Copies the descriptions to where logs and shared objects may be written; their names.
pub(crate) fn prepare(workspace: &Workspace, folder: &Path) -> Result<Vec<String>, String> {
    let examples = workspace.root.join("examples");
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error| format!("{path}: {error}")
    };
    fs::create_dir_all(folder.join("c")).map_err(failed(folder))?;
    let mut names = files(&examples, ".toml").map_err(failed(&examples))?;
    names.retain(|name| !name.starts_with(GRAPHS));
    for name in &names {
        fs::copy(examples.join(name), folder.join(name)).map_err(failed(&examples.join(name)))?;
    }
    let mut cc = Command::new("cc");
    cc.args(C_FLAGS);
    cc.arg(folder.join("c/libtasks.so"))
        .arg(examples.join("c/tasks.c"));
    // Without a compiler that example says what it lacks, in its own row.
    let _ = cc.status();
    Ok(names)
}

/// Runs the example for real, replays its log, and asks what EDF would have done.
fn record_and_replay(punctual: &Path, folder: &Path, name: &str, seconds: u32) -> Row {
    let log = folder.join(name).with_extension("log");
    let command = |verb: &str, file: &PathBuf| {
        let mut command = Command::new(punctual);
        command.arg(verb).arg(file).args(["--json", "--quiet"]);
        command
    };
    let mut run = command("run", &folder.join(name));
    // Some exist to be refused: they are recorded all the same.
    run.arg("--force")
        .args(["--for", &format!("{seconds}s")])
        .arg("--record")
        .arg(&log);
    let recorded = match answer(&mut run) {
        Ok(recorded) => recorded,
        Err(why) => return Row::without_log(why),
    };
    let again = answer(&mut command("replay", &log));
    let (replay, differs) = match &again {
        Ok(again) if again["replay"]["identical"] == Value::Bool(true) => {
            ("identical".into(), false)
        }
        Ok(again) => (
            format!("DIFFERENT: {}", again["replay"]["difference"]),
            true,
        ),
        Err(why) => (format!("FAILED: {why}"), true),
    };
    let edf = match answer(command("replay", &log).args(["--policy", "edf"])) {
        Ok(edf) => verdict(&edf),
        Err(why) => format!("refused: {why}"),
    };
    // A log takes tens of megabytes; one that differs is kept.
    if !differs {
        let _ = fs::remove_file(&log);
    }
    let ns = recorded["elapsed_ns"].as_u64().unwrap_or(0);
    let sum = |list: &str, key: &str| {
        let rows = recorded[list].as_array().into_iter().flatten();
        rows.filter_map(|row| row[key].as_u64())
            .sum::<u64>()
            .to_string()
    };
    let seconds = format!("{}.{}", ns / 1_000_000_000, ns / 100_000_000 % 10);
    let (jobs, decisions) = (sum("tasks", "jobs"), sum("cpus", "decisions"));
    Row {
        cells: [seconds, jobs, decisions, verdict(&recorded), replay, edf],
        differs,
    }
}

impl Row {
    /// An example that this machine cannot run: it has too few CPUs, or no compiler.
    fn without_log(why: String) -> Row {
        let none = || "–".to_string();
        Row {
            cells: [none(), none(), none(), why, none(), none()],
            differs: false,
        }
    }
}

/// The verdict of a run, with the number of its misses.
fn verdict(report: &Value) -> String {
    let verdict = report["verdict"].as_str().unwrap_or("?");
    let tasks = report["tasks"].as_array().into_iter().flatten();
    match tasks
        .filter_map(|task| task["misses"].as_u64())
        .sum::<u64>()
    {
        0 => verdict.to_string(),
        n => format!("{verdict} ({n})"),
    }
}

/// What a command says in JSON; an error is what it says of its failure, in one line.
fn answer(command: &mut Command) -> Result<Value, String> {
    let Output { stdout, stderr, .. } = command.output().map_err(|error| error.to_string())?;
    match serde_json::from_slice::<Value>(&stdout) {
        Ok(said) => match said["error"].as_str() {
            Some(error) => Err(error.to_string()),
            None => Ok(said),
        },
        Err(_) => {
            let said = String::from_utf8_lossy(&stderr);
            let first = said.lines().next();
            Err(first.unwrap_or("it said nothing").to_string())
        }
    }
}
