//! `punctual replay`: identical, or the first difference.

use std::process::Output;

use serde_json::Value;

use crate::common::{Folder, assert_obeys, code, example, json, output, stdout};

/// Records a run of an example; a machine of others may let it miss.
fn record(folder: &Folder, command: &str, name: &str, time: &str) -> String {
    let log = folder.path(&format!("{command}-{name}.log"));
    let file = example(name);
    let mut flags = vec![command, &file, "--for", time, "-q", "--record", &log];
    if command == "run" {
        flags.push("--force");
    }
    let done = output(&flags);
    assert!(code(&done) <= 1, "{}", stdout(&done));
    log
}

fn finding(done: &Output) -> Value {
    let report = json(done);
    assert_obeys(&report, "replay");
    report["replay"].clone()
}

#[test]
fn recorded_live_runs_of_examples_are_replayed_identically() {
    let folder = Folder::new("replay-live");
    for name in [
        "two-tasks.toml",
        "rosace.toml",
        "three-levels.toml",
        "inheritance-chain.toml",
        "greedy-neighbour.toml",
    ] {
        let log = record(&folder, "run", name, "300ms");
        let told = output(&["replay", &log, "--json"]);
        let found = finding(&told);
        assert_eq!(code(&told), 0, "{name}: {found}");
        assert_eq!(found["identical"], true, "{name}");
        assert!(found["decisions"].as_u64() > Some(50), "{name}: {found}");
        assert_eq!(found["events"], found["decisions"], "{name}");
        let first = stdout(&output(&["replay", &log, "-q"]));
        assert!(first.starts_with("identical: "), "{name}: {first}");
    }
}

#[test]
fn a_log_with_one_record_changed_differs_at_its_place() {
    let folder = Folder::new("replay-changed");
    let log = record(&folder, "sim", "two-tasks.toml", "200ms");
    let text = std::fs::read_to_string(&log).expect("recorded");
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.iter().position(|line| *line == "records");
    let first = first.expect("records") + 1;
    // Some decision in the middle that lets the first task run.
    let middle = lines.len() / 2;
    let chosen = lines[middle..]
        .iter()
        .position(|l| l.starts_with("= run 0 "));
    let at = middle + chosen.expect("the first task runs now and then");
    let mut changed: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    changed[at] = changed[at].replacen("= run 0", "= run 1", 1);
    let bad = folder.write("bad.log", &(changed.join("\n") + "\n"));
    let told = output(&["replay", &bad, "--json"]);
    assert_eq!(code(&told), 1);
    let found = finding(&told);
    assert_eq!(found["identical"], false);
    let difference = &found["difference"];
    assert_eq!(difference["record"], at - first);
    assert_eq!(difference["recorded"], changed[at].as_str());
    assert_eq!(difference["replayed"], lines[at]);
    let context = difference["context"].as_array().expect("a list");
    assert_eq!(context.last(), Some(&Value::from(lines[at - 1])));
    let people = stdout(&output(&["replay", &bad]));
    assert!(people.starts_with("DIFFERENT: CPU "), "{people}");
    assert!(people.contains(lines[at]) && people.contains(&changed[at]));
}

#[test]
fn a_recorded_miss_shows_its_cause_and_is_still_identical() {
    let folder = Folder::new("replay-miss");
    let log = folder.path("late.log");
    let file = example("two-tasks.toml");
    let fault = "overrun=slow:9";
    let flags = [
        "sim", &file, "--for", "1s", "--fault", fault, "--record", &log, "--json",
    ];
    let run = output(&flags);
    assert_eq!(code(&run), 1);
    let told = output(&["replay", &log, "--json"]);
    assert_eq!(code(&told), 0);
    assert_eq!(json(&told)["misses"], json(&run)["misses"]);
    assert_eq!(json(&told)["misses"][0]["cause"], "overrun");
}

#[test]
fn what_is_no_log_is_bad_input() {
    let folder = Folder::new("replay-bad");
    let missing = folder.path("missing");
    let torn = folder.write("torn", "punctual-log 1\nplatform sim\n");
    for file in [example("two-tasks.toml"), missing, torn] {
        let told = output(&["replay", &file, "--json"]);
        assert_eq!(code(&told), 2, "{file}");
        assert_obeys(&json(&told), "error");
    }
}
