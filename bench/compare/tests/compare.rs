//! `punctual compare`, seen from outside: rows, counts, exit codes, and nothing left behind.

#[allow(dead_code)] // Each of its users needs another part of it.
#[path = "../../../front/command/tests/cli/common.rs"]
mod common;

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use common::{Folder, assert_obeys, code, hearing, json, output, punctual, stderr, stdout};
use serde_json::Value;

/// Two tasks that an unoptimised build on a loaded machine carries, too.
const SYSTEM: &str = "[system]\ncpus = [0]\n[cpu.0]\npolicy = \"fixed-priority\"\n\
    [task.fast]\nclass = \"periodic\"\non = \"cpu.0\"\nperiod = \"10ms\"\nwcet = \"500us\"\n\
    priority = 2\nwork = { burn = \"100us\" }\n\
    [task.slow]\nclass = \"periodic\"\non = \"cpu.0\"\nperiod = \"30ms\"\nwcet = \"2ms\"\n\
    phase = \"5ms\"\npriority = 1\nwork = { burn = \"500us\" }\n";

/// Whether a comparison can be made here; if not, it says why.
fn can_compare(done: &Output) -> bool {
    let told = stderr(done);
    let one_cpu = code(done) == 3 && told.contains("compare keeps one CPU free");
    if one_cpu {
        eprintln!("SKIPPED: there is no CPU to be left free: {told}");
    }
    !one_cpu
}

fn of<'a>(report: &'a Value, name: &str) -> &'a Value {
    let rivals = report["rivals"].as_array().expect("a list");
    let found = rivals.iter().find(|rival| rival["name"] == name);
    found.unwrap_or_else(|| panic!("no row of {name}: {report:#}"))
}

#[test]
fn every_rival_has_a_row_with_the_jobs_of_the_file() {
    let folder = Folder::new("compare-rows");
    let file = folder.write("two.toml", SYSTEM);
    let page = folder.path("page.html");
    let done = output(&[
        "compare",
        &file,
        "--rounds",
        "1",
        "--for",
        "300ms",
        "--force",
        "--json",
        "--load",
        "cpu,fork,memory,network",
        "--runaway",
        "fast",
        "--report",
        &page,
    ]);
    if !can_compare(&done) {
        return;
    }
    assert!([0, 1].contains(&code(&done)), "{}", stderr(&done));
    let report = json(&done);
    assert_obeys(&report, "compare");
    assert_eq!(report["urgent"], "fast");
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    agree(&done, &report, &page);
    for word in [
        "Rivals",
        "Ratios",
        "SCHED_DEADLINE",
        "loops for ever",
        "Rounds",
    ] {
        assert!(page.contains(word), "{word}");
    }
    for name in ["Punctual", "SCHED_FIFO", "SCHED_DEADLINE"] {
        let row = of(&report, name);
        if let Some(why) = row["refused"].as_str() {
            assert_ne!(name, "Punctual");
            eprintln!("SKIPPED: {name}: {why}");
            continue;
        }
        // At 0, 10, ... 290 ms, and at 5, 35, ... 275 ms.
        let jobs: Vec<u64> = row["tasks"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|task| task["jobs"].as_u64())
            .collect();
        assert_eq!(jobs, [30, 10], "{name}");
        assert_eq!(row["jobs"], 40);
        let misses = row["misses"].as_u64().expect("a count");
        assert!(misses <= 40 && row["own_misses"].as_u64().is_none_or(|own| own <= misses));
        assert!(row["processor_ns"].as_u64() > Some(0));
        let rounds = row["rounds"].as_array().expect("a list");
        assert_eq!((rounds.len(), rounds[0]["jobs"].as_u64()), (1, Some(40)));
        // Nothing can respond before it has done its work.
        let fastest = row["response_ns"]["p50"].as_u64();
        assert!(fastest.is_none_or(|ns| ns >= 100_000), "{row:#}");
    }
    let runaway = report["runaway"]["rivals"].as_array().expect("a list");
    assert_eq!(runaway.len(), 3);
    let fifo = &runaway[1];
    if fifo["refused"].is_null() {
        // The slow task has three releases in the calm, and never another chance.
        assert!(fifo["misses_of_others"].as_u64() > Some(0), "{fifo:#}");
        assert_eq!(fifo["other_tasks"], serde_json::json!(["slow"]));
    }
}

/// A fact of the report about where it comes from.
fn fact<'a>(report: &'a Value, name: &str) -> Option<&'a str> {
    let facts = report["machine"].as_array()?;
    facts.iter().find(|fact| fact["name"] == name)?["value"].as_str()
}

/// Terms of a machine that is twice as slow as any.
const PLATFORM: &str = "[measured]\nprocessor = \"another\"\n\
    [machine]\nswitch = \"1us\"\ntimer = \"2us\"\npreemption = \"3us\"\n";

#[test]
fn several_files_have_a_line_each_and_a_sum_with_the_terms_of_a_platform_file() {
    let folder = Folder::new("compare-several");
    let file = folder.write("two.toml", SYSTEM);
    let platform = folder.write("here.toml", PLATFORM);
    let words = |form: &str| {
        let words = format!("compare {file} {file} --rounds 1 --for 200ms --platform {platform}");
        let words = format!("{words} --force{form}");
        output(&words.split(' ').collect::<Vec<_>>())
    };
    let done = words(" --json -q");
    if !can_compare(&done) {
        return;
    }
    let report = json(&done);
    assert_obeys(&report, "compare");
    assert_eq!(code(&done), i32::from(report["verdict"] == "missed"));
    let files = report["files"].as_array().expect("a list");
    assert_eq!(files.len(), 2);
    let terms = fact(&files[0], "terms").expect("their origin");
    assert!(
        terms.contains("here.toml") && terms.contains("`another` there"),
        "{terms}"
    );
    for sum in report["sum"]["rivals"].as_array().expect("a list") {
        let name = sum["name"].as_str().expect("a name");
        let each = |key: &str| -> u64 {
            let counts = files.iter().filter_map(|one| of(one, name)[key].as_u64());
            counts.sum()
        };
        assert_eq!(sum["jobs"].as_u64(), Some(each("jobs")), "{name}");
        assert_eq!(sum["misses"].as_u64(), Some(each("misses")), "{name}");
    }
    let done = words(" -q");
    let text = stdout(&done);
    let (_, sum) = text.split_once("files\n").expect("a sum");
    assert!(sum.contains("sum ") && sum.contains("Punctual"), "{text}");
    let word = text.lines().find_map(|line| line.strip_suffix(": 2 files"));
    assert_eq!(code(&done), i32::from(word == Some("MISSED")), "{text}");
}

/// The exit code, the JSON and the page have one verdict, and say where they come from.
fn agree(done: &Output, report: &Value, page: &str) {
    assert_eq!(code(done), i32::from(report["verdict"] == "missed"));
    let verdict = report["verdict"].as_str().expect("a verdict");
    assert!(page.contains(&format!("<span class=\"verdict\">{verdict}<")));
    let command = fact(report, "command").expect("where it comes from");
    assert!(command.starts_with("punctual compare ") && !command.contains("--report"));
    let date = fact(report, "date").expect("a date");
    assert!(page.contains(date) && fact(report, "host").is_some());
}

/// The program by a path of its own, which tells its children from those of other tests.
fn alone(folder: &Folder) -> String {
    let program = folder.path("punctual-compare");
    let built = env!("CARGO_BIN_EXE_punctual-compare");
    if fs::hard_link(built, &program).is_err() {
        fs::copy(built, &program).expect("a copy");
    }
    program
}

/// Processes that are load of a program with this path.
fn load_of(program: &str) -> usize {
    let processes = fs::read_dir("/proc").expect("proc").flatten();
    let words = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    words
        .filter(|words| {
            let words = String::from_utf8_lossy(words);
            words.starts_with(program) && words.contains("--be-load")
        })
        .count()
}

/// A comparison that takes a minute, with two children; waits until these are there.
fn long_comparison(program: &str, file: &str) -> Child {
    let mut child = hearing(program)
        .args([file, "--rounds", "100", "--for", "200ms", "--force"])
        .args(["--load", "cpu,network"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let is_over = |child: &mut Child| child.try_wait().is_ok_and(|ended| ended.is_some());
    within_ten_seconds(|| load_of(program) == 2 || is_over(&mut child));
    child
}

fn within_ten_seconds(mut is_so: impl FnMut() -> bool) -> bool {
    (0..100).any(|_| {
        thread::sleep(Duration::from_millis(100));
        is_so()
    })
}

#[test]
fn ended_in_the_midst_it_tells_what_was_finished_and_leaves_no_load() {
    let folder = Folder::new("compare-stop");
    let file = folder.write("two.toml", SYSTEM);
    let program = alone(&folder);
    for signal in ["-INT", "-TERM", "-HUP"] {
        let child = long_comparison(&program, &file);
        let load = load_of(&program);
        let id = child.id().to_string();
        let told = Command::new("kill").args([signal, &id]).status();
        let done = child.wait_with_output().expect("its end");
        if !can_compare(&done) {
            return;
        }
        assert!(told.is_ok_and(|told| told.success()));
        assert_eq!((load, code(&done)), (2, 130), "{signal}: {}", stderr(&done));
        let text = stdout(&done);
        assert!(text.contains("(of 100 wanted)"), "{text}");
        assert_eq!(load_of(&program), 0, "{signal}");
    }
}

#[test]
fn killed_outright_it_leaves_no_load() {
    let folder = Folder::new("compare-kill");
    let file = folder.write("two.toml", SYSTEM);
    let program = alone(&folder);
    let mut child = long_comparison(&program, &file);
    let load = load_of(&program);
    child.kill().expect("it may be killed");
    let done = child.wait_with_output().expect("its end");
    if done.status.code() == Some(3) {
        eprintln!("SKIPPED: {}", stderr(&done));
        return;
    }
    assert_eq!(load, 2);
    assert!(within_ten_seconds(|| load_of(&program) == 0));
}

#[test]
fn what_cannot_be_compared_is_bad_input() {
    let folder = Folder::new("compare-bad");
    let other =
        SYSTEM
            .replacen("periodic", "sporadic", 1)
            .replacen("period =", "min-separation =", 1);
    let other = folder.write(
        "sporadic.toml",
        &other.replacen("priority = 2", "priority = 2\ndeadline = \"10ms\"", 1),
    );
    let file = folder.write("two.toml", SYSTEM);
    for (arguments, told) in [
        (vec!["compare", "/no/such/file.toml"], "/no/such/file.toml"),
        (vec!["compare", &other], "`fast` is not periodic"),
        (
            vec!["compare", &file, "--load", "disk"],
            "possible values: cpu, fork",
        ),
        (
            vec!["compare", &file, "--runaway", "nobody"],
            "the tasks are fast, slow",
        ),
        (
            vec!["compare", &file, "--cpu", "9999"],
            "CPU 9999 is none of those",
        ),
        (vec!["compare", &file, "--rounds", "0"], "--rounds"),
        (
            vec!["compare", &file, &file, "--runaway", "fast"],
            "about one file",
        ),
        (vec!["compare", &file, "--platform", &file], "two.toml"),
    ] {
        let done = output(&arguments);
        assert_eq!(code(&done), 2, "{arguments:?}: {}", stderr(&done));
        assert!(
            stderr(&done).contains(told),
            "{arguments:?}: {}",
            stderr(&done)
        );
    }
    let done = output(&["compare", &file, "--report", &file]);
    assert_eq!(code(&done), 2, "its own input is no place for the page");
    let done = output(&["compare", "/no/such/file.toml", "--json"]);
    assert_obeys(&json(&done), "error");
}

#[test]
fn a_system_that_is_refused_is_not_compared_unless_forced() {
    let folder = Folder::new("compare-refused");
    let file = folder.write(
        "two.toml",
        &SYSTEM.replace("wcet = \"500us\"", "wcet = \"10ms\""),
    );
    let done = output(&[
        "compare", &file, "--rounds", "1", "--for", "100ms", "--json",
    ]);
    if !can_compare(&done) {
        return;
    }
    assert_eq!(code(&done), 1, "{}", stderr(&done));
    let told = json(&done);
    assert_obeys(&told, "error");
    assert!(
        told["error"]
            .as_str()
            .is_some_and(|told| told.contains("Punctual refuses"))
    );
    assert!(
        told["help"]
            .as_str()
            .is_some_and(|told| told.contains("--force"))
    );
    // Before the hours of the first file, which would be lost.
    let good = folder.write("good.toml", SYSTEM);
    let platform = folder.write("here.toml", PLATFORM);
    let words = format!("compare {good} {file} --rounds 1000 --for 60s --platform {platform}");
    let done = output(&words.split(' ').collect::<Vec<_>>());
    let told = stderr(&done);
    assert_eq!((code(&done), stdout(&done)), (1, String::new()), "{told}");
    assert!(told.contains("Punctual refuses"), "{told}");
}

#[test]
fn an_ordinary_user_gets_the_reason_in_place_of_the_figures() {
    let folder = Folder::new("compare-ordinary");
    let file = folder.write("two.toml", SYSTEM);
    let mut command = punctual(&[]);
    let program = command.get_program().to_owned();
    command = Command::new("setpriv");
    command.args([
        "--bounding-set=-sys_nice,-ipc_lock",
        "--inh-caps=-all",
        "--",
    ]);
    command.arg(program);
    command.args([
        &file, "--rounds", "1", "--for", "100ms", "--force", "--json",
    ]);
    let Ok(done) = command.output() else {
        eprintln!("SKIPPED: there is no setpriv to give privileges up with");
        return;
    };
    if stderr(&done).contains("setpriv:") {
        eprintln!("SKIPPED: {}", stderr(&done));
        return;
    }
    if !can_compare(&done) {
        return;
    }
    let report = json(&done);
    assert_obeys(&report, "compare");
    let best_effort = of(&report, "Punctual")["remarks"].to_string();
    if !best_effort.contains("best effort") {
        eprintln!("SKIPPED: real-time priority is permitted to everybody here");
        return;
    }
    for name in ["SCHED_FIFO", "SCHED_DEADLINE"] {
        let why = of(&report, name)["refused"].as_str().expect("a reason");
        assert!(why.contains("not permitted"), "{why}");
    }
    assert_eq!(of(&report, "Punctual")["jobs"], 14);
}

#[test]
fn its_help_has_examples_under_the_name_that_users_type() {
    let help = output(&["compare", "--help"]);
    assert_eq!(code(&help), 0);
    let text = stdout(&help);
    assert!(
        text.contains("Examples:") && text.contains("punctual compare "),
        "{text}"
    );
    assert!(!text.contains("be-load"), "{text}");
}

/// The program that is tried, and its arguments: those behind the name of the command.
fn program<'a>(arguments: &'a [&'a str]) -> (&'static str, &'a [&'a str]) {
    let program = env!("CARGO_BIN_EXE_punctual-compare");
    match arguments {
        [] => (program, arguments),
        [command, rest @ ..] => {
            assert_eq!(*command, "compare");
            (program, rest)
        }
    }
}

/// The schema that `punctual schema SUBJECT` prints.
fn schema(subject: &str) -> serde_json::Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../front/command/schema");
    let text = std::fs::read_to_string(format!("{folder}/{subject}.json")).expect("a schema");
    serde_json::from_str(&text).expect("JSON")
}
