//! `punctual replay`: identical, or the first difference.

use std::process::{Command, Output};

use serde_json::Value;

use crate::common::{Folder, assert_obeys, code, example, json, output, run_until, stdout};

/// Records a run of an example.
fn record(folder: &Folder, command: &str, name: &str, time: &str) -> String {
    let log = folder.path(&format!("{command}-{name}.log"));
    let file = example(name);
    let done = output(&[command, &file, "--for", time, "-q", "--record", &log]);
    assert!(code(&done) <= 1, "{}", stdout(&done));
    log
}

/// Records a live run with decisions enough. A machine of others may let it miss.
fn record_live(folder: &Folder, name: &str) -> String {
    let log = folder.path(&format!("run-{name}.log"));
    let file = example(name);
    run_until(&[&file, "-q", "--force", "--record", &log], |done| {
        assert!(code(done) <= 1, "{}", stdout(done));
        let told = json(&output(&["replay", &log, "--json"]));
        (told["replay"]["decisions"].as_u64() > Some(50)).then_some(())
    });
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
        let log = record_live(&folder, name);
        let told = output(&["replay", &log, "--json"]);
        let found = finding(&told);
        // A busy machine may make a run miss; its replay then says so, too.
        let missed = json(&told)["verdict"] == "missed";
        assert_eq!(code(&told), i32::from(missed), "{name}: {found}");
        assert_eq!(found["identical"], true, "{name}");
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
    let first = lines.iter().position(|line| *line == "records 0");
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
    assert_eq!(code(&told), 1);
    assert_eq!(json(&told)["replay"]["identical"], true);
    assert_eq!(json(&told)["misses"], json(&run)["misses"]);
    assert_eq!(json(&told)["misses"][0]["cause"], "overrun");
}

#[test]
fn what_is_no_log_is_bad_input() {
    let folder = Folder::new("replay-bad");
    let missing = folder.path("missing");
    let torn = folder.write("torn", "punctual-log 5\nplatform sim\n");
    for file in [example("two-tasks.toml"), missing, torn] {
        let told = output(&["replay", &file, "--json"]);
        assert_eq!(code(&told), 2, "{file}");
        assert_obeys(&json(&told), "error");
    }
}

/// Fixed priorities that nobody keeps, however they are given: EDF does.
const FULL: &str = r#"
[system]
cpus = ["c"]
[cpu.c]
policy = "fixed-priority"
[task.short]
class = "periodic"
on = "cpu.c"
period = "10ms"
wcet = "5ms"
priority = 2
[task.long]
class = "periodic"
on = "cpu.c"
period = "14ms"
wcet = "7ms"
priority = 1
[run]
for = "700ms"
"#;

#[test]
fn what_if_answers_as_the_other_policy_would_have_from_the_start() {
    let folder = Folder::new("replay-what-if");
    let [log, answer, page] = ["run.log", "edf.log", "edf.html"].map(|name| folder.path(name));
    let file = folder.write("full.toml", FULL);
    assert_eq!(code(&output(&["sim", &file, "--record", &log])), 1);
    let edf = FULL.replace("fixed-priority", "edf");
    let edf = folder.write("edf.toml", &edf);
    let expected = json(&output(&["sim", &edf, "--json"]));
    let flags = [
        "--policy", "c=edf", "--json", "--record", &answer, "--report", &page,
    ];
    let told = output(&[&["replay", log.as_str()][..], &flags].concat());
    assert_eq!(code(&told), 0);
    let report = json(&told);
    assert_obeys(&report, "replay");
    assert_eq!(report["verdict"], "met");
    assert_eq!(report["what_if"]["policies"][0], "c=edf");
    for task in [0, 1] {
        let (seen, wanted) = (&report["tasks"][task], &expected["tasks"][task]);
        assert_eq!(seen["response_ns"], wanted["response_ns"]);
        let beside = &report["what_if"]["tasks"][task];
        assert_eq!(beside["now"]["response_ns"], wanted["response_ns"]);
        assert!(beside["before"]["jobs"].as_u64() > Some(0));
    }
    let people = stdout(&output(&["replay", &log, "--policy", "edf"]));
    assert!(people.starts_with("what if edf?"), "{people}");
    assert!(std::fs::read_to_string(&page).is_ok_and(|html| html.starts_with("<!doctype html>")));
    assert_eq!(
        code(&output(&["replay", &answer])),
        0,
        "the answer is a log"
    );
}

#[test]
fn a_duration_that_a_log_claims_takes_no_memory() {
    let folder = Folder::new("replay-memory");
    let log = folder.path("run.log");
    let file = folder.write("full.toml", FULL);
    output(&["sim", &file, "--record", &log]);
    let text = std::fs::read_to_string(&log).expect("a log");
    let lines = text
        .lines()
        .map(|line| match line.starts_with("duration ") {
            true => format!("duration {}\n", 1_u64 << 55),
            false => format!("{line}\n"),
        });
    let longer = folder.write("longer.log", &lines.collect::<String>());
    let words = ["replay", &longer, "--policy", "edf"];
    let (program, arguments) = crate::program(&words);
    let mut limited = Command::new("sh");
    limited.args(["-c", r#"ulimit -v 1000000 && exec "$0" "$@""#]);
    limited.arg(program).args(arguments);
    let told = limited.output().expect("a shell");
    assert_eq!(code(&told), 0, "{told:?}");
}

#[test]
fn what_if_the_policy_were_the_same_reproduces_the_responses() {
    let folder = Folder::new("replay-same");
    let log = record(&folder, "sim", "rosace.toml", "500ms");
    let told = output(&["replay", &log, "--policy", "fixed-priority", "--json"]);
    let found = &json(&told)["what_if"];
    for task in found["tasks"].as_array().expect("a list") {
        assert_eq!((&task["longer"], &task["shorter"]), (&0.into(), &0.into()));
        assert_eq!(task["before"], task["now"]);
    }
    assert_eq!(found["assumed_jobs"], 0);
}

#[test]
fn policies_that_are_unknown_or_unsuitable_are_bad_input_with_words() {
    let folder = Folder::new("replay-policies");
    let log = record(&folder, "sim", "two-tasks.toml", "50ms");
    let slots = record(&folder, "sim", "greedy-neighbour.toml", "50ms");
    for (log, policy, word) in [
        (&log, "wfq", "edf"),
        (&log, "tdm", "slots"),
        (&log, "mars=edf", "mars"),
        (&log, "round-robin:0ms", "round-robin"),
        (&log, "edf:1ms", "option"),
        (&slots, "edf", "slots"),
    ] {
        let told = output(&["replay", log, "--policy", policy, "--json"]);
        assert_eq!(code(&told), 2, "{policy}");
        let error = json(&told);
        assert_obeys(&error, "error");
        let said = format!("{} {}", error["error"], error["help"]);
        assert!(said.contains(word), "{policy}: {said}");
    }
}

/// The log is wrong, and not the command: a job of no work is none.
#[test]
fn a_log_whose_tables_make_no_schedulers_is_bad_input() {
    let folder = Folder::new("replay-tables");
    let log = record(&folder, "sim", "two-tasks.toml", "50ms");
    let text = std::fs::read_to_string(&log).expect("a log");
    let lines = text.lines().map(|line| {
        let mut words: Vec<&str> = line.split(' ').collect();
        if let ["thread", "0", "periodic", _, wcet, ..] = words.as_mut_slice() {
            *wcet = "0";
        }
        words.join(" ") + "\n"
    });
    let broken = folder.write("broken.log", &lines.collect::<String>());
    let told = output(&["replay", &broken, "--policy", "edf"]);
    assert_eq!(code(&told), 2);
    let said = String::from_utf8_lossy(&told.stderr);
    assert!(said.contains("make no schedulers"), "{said}");
}

#[test]
fn two_logs_are_compared_choice_by_choice_and_job_by_job() {
    let folder = Folder::new("diff");
    let file = folder.write("full.toml", FULL);
    let [a, b, c] = ["a.log", "b.log", "c.log"].map(|name| folder.path(name));
    for (log, seconds) in [(&a, "700ms"), (&b, "700ms")] {
        let done = output(&["sim", &file, "--for", seconds, "-q", "--record", log]);
        assert_eq!(code(&done), 1);
    }
    let same = output(&["diff", &a, &b, "--json"]);
    assert_eq!(code(&same), 0);
    assert_obeys(&json(&same), "diff");
    assert_eq!(json(&same)["identical"], true);
    let answered = output(&["replay", &a, "--policy", "edf", "-q", "--record", &c]);
    assert_eq!(code(&answered), 0);
    let other = output(&["diff", &a, &c, "--json"]);
    assert_eq!(code(&other), 1);
    let found = json(&other);
    assert_obeys(&found, "diff");
    let cpu = &found["cpus"][0];
    assert_eq!(
        cpu["policies"],
        serde_json::json!(["fixed-priority", "edf"])
    );
    // At 10 ms `short` preempts `long` under fixed priorities, and under EDF it does not: so one
    // goes back to the first job of `long`, and the other on to its second.
    let other = &cpu["first_other"];
    let seen = |run: &str| (other[run]["who"].clone(), other[run]["job"].clone());
    assert_eq!(seen("after"), ("short".into(), 1.into()));
    assert_eq!(seen("before"), ("long".into(), 0.into()));
    assert_eq!(seen("now"), ("long".into(), 1.into()));
    assert_eq!(other["before"]["at_ns"], 15_000_000);
    assert_eq!(other["now"]["at_ns"], 17_000_000);
    assert!(found["tasks"][0]["longer"].as_u64() > Some(0));
    assert!(found["tasks"][1]["shorter"].as_u64() > Some(0));
    let people = stdout(&output(&["diff", &a, &c]));
    assert!(people.starts_with("different\n") && people.contains("in the second run"));
    assert_eq!(code(&output(&["diff", &a, &file])), 2);
}
