//! `punctual run`: order, counts and files on this machine, whatever else it is doing.

use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use crate::common::{
    Folder, assert_obeys, code, example, hearing, json, output, punctual, run_until, send, stderr,
    stdout,
};

/// Two tasks that nearly any machine admits, loaded or not, on a CPU that is there.
const EASY: &str = r#"
[system]
cpus = ["c"]
[cpu.c]
host = 0
policy = "fixed-priority"
[task.fast]
class = "periodic"
on = "cpu.c"
period = "50ms"
wcet = "1ms"
priority = 2
work = { burn = "100us" }
[task.slow]
class = "periodic"
on = "cpu.c"
period = "100ms"
wcet = "2ms"
priority = 1
after = ["fast"]
work = { burn = "200us" }
[run]
for = "500ms"
"#;

/// 0 or 1: on a machine of others, a deadline can be missed for reasons of theirs.
fn assert_ran(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(code(output) <= 1, "{}{said}", stdout(output));
}

#[test]
fn a_run_covers_the_releases_of_its_time_and_reports_as_documented() {
    let folder = Folder::new("run-easy");
    let file = folder.write("easy.toml", EASY);
    let done = output(&["run", &file, "--force", "--json"]);
    assert_ran(&done);
    let report = json(&done);
    assert_obeys(&report, "run");
    assert!(["real-time", "best-effort"].contains(&report["mode"].as_str().expect("text")));
    assert_eq!(report["duration_ns"], 500_000_000);
    assert_eq!(report["tasks"][0]["jobs"], 10);
    assert_eq!(report["tasks"][1]["jobs"], 5);
    assert!(
        report["tasks"][0]["bound_ns"].as_u64() < report["tasks"][0]["machine_bound_ns"].as_u64()
    );
    let virtually = json(&output(&["sim", &file, "--json"]));
    for task in [0, 1] {
        assert_eq!(
            report["tasks"][task]["jobs"],
            virtually["tasks"][task]["jobs"]
        );
    }
}

#[test]
fn a_run_with_slots_tells_its_boundaries() {
    let file = example("mixed-frame.toml");
    // An ordinary user's run has the CPU for as much of the time as others leave.
    let seen = run_until(&[&file, "--force", "--json"], |done| {
        assert_ran(done);
        let report = json(done);
        assert_obeys(&report, "run");
        let seen = &report["cpus"][0]["boundaries"];
        (seen["work_ns"]["n"].as_u64() > Some(10)).then(|| seen.clone())
    });
    assert_eq!(seen["declared_ns"], 100_000);
    assert!(seen["over_timer"].is_u64(), "{seen}");
}

#[test]
fn the_flight_equals_its_reference_for_real() {
    let file = example("rosace.toml");
    let done = output(&["run", &file, "--for", "500ms", "--force", "--json"]);
    assert_ran(&done);
    let report = json(&done);
    assert_obeys(&report, "run");
    assert_eq!(report["oracle"]["steps"], 100);
    assert_eq!(report["oracle"]["mismatches"], 0);
}

#[test]
fn a_recorded_run_can_be_reported_later() {
    let folder = Folder::new("run-record");
    let file = folder.write("easy.toml", EASY);
    let [log, page, again] = ["easy.log", "a.html", "b.html"].map(|name| folder.path(name));
    let flags = ["--record", &log, "--report", &page, "--json", "--force"];
    let done = punctual(&["run", &file])
        .args(flags)
        .output()
        .expect("starts");
    assert_ran(&done);
    let reported = output(&["report", &log, "--json", "--out", &again]);
    assert_eq!(code(&reported), code(&done));
    assert_eq!(json(&reported), json(&done));
    let read = |path: &str| std::fs::read_to_string(path).expect("written");
    assert_eq!(read(&page), read(&again));
    assert_eq!(
        stdout(&output(&["report", &log])).trim_end(),
        read(&page).trim_end()
    );
}

#[test]
fn what_is_not_admitted_does_not_run_and_leaves_no_files() {
    let folder = Folder::new("run-refused");
    let file = folder.write(
        "hard.toml",
        &EASY.replace("wcet = \"1ms\"", "wcet = \"49.9ms\""),
    );
    let trace = folder.path("trace.txt");
    let refused = output(&["run", &file, "--json", "--trace", &trace]);
    assert_eq!(code(&refused), 1);
    let verdict = json(&refused);
    assert_obeys(&verdict, "check");
    assert_eq!(verdict["verdict"], "refused");
    assert_eq!(verdict, json(&output(&["check", &file, "--json"])));
    assert!(!Path::new(&trace).exists());
    let forced = output(&["run", &file, "--json", "--force", "--for", "100ms"]);
    assert_ran(&forced);
    assert_eq!(json(&forced)["tasks"][0]["jobs"], 2);
}

#[test]
fn a_cpu_without_a_host_cannot_run_for_real() {
    let folder = Folder::new("run-host");
    let file = folder.write("virtual.toml", &EASY.replace("host = 0\n", ""));
    let told = output(&["run", &file, "--json"]);
    assert_eq!(code(&told), 2);
    assert_obeys(&json(&told), "error");
    let file = folder.write("far.toml", &EASY.replace("host = 0", "host = 9999"));
    let told = output(&["run", &file, "--json"]);
    assert_eq!(code(&told), 3);
    assert_obeys(&json(&told), "error");
}

#[test]
fn without_a_duration_there_is_nothing_to_run() {
    let folder = Folder::new("run-duration");
    let file = folder.write("endless.toml", &EASY.replace("for = \"500ms\"\n", ""));
    for command in ["run", "sim"] {
        let told = output(&[command, &file, "--json"]);
        assert_eq!(code(&told), 2);
        assert!(
            json(&told)["help"]
                .as_str()
                .is_some_and(|help| help.contains("--for"))
        );
    }
}

/// Starts the command, waits until it has opened its log, and sends it a signal.
fn interrupted(command: &str, flags: &[&str], signal: &str) -> (Output, String) {
    let folder = Folder::new(&format!("{command}-interrupt{signal}"));
    let file = folder.write("easy.toml", EASY);
    let log = folder.path("log");
    let asked = punctual(&[command, &file, "--json", "--record", &log]);
    let mut started = hearing(asked.get_program());
    started
        .args(asked.get_args())
        .args(flags)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = started.spawn().expect("starts");
    let mut looks = 0;
    while !Path::new(&log).exists() && looks < 6_000 {
        std::thread::sleep(Duration::from_millis(10));
        looks += 1;
    }
    // Long enough to be under way, on most machines; the test holds in any case.
    std::thread::sleep(Duration::from_millis(300));
    let id = child.id();
    send(signal, id);
    // One that does not hear it is ended, and the test fails.
    let (ended, hears) = std::sync::mpsc::channel::<()>();
    let guard = std::thread::spawn(move || {
        if hears.recv_timeout(Duration::from_secs(120)) == Err(RecvTimeoutError::Timeout) {
            send("-KILL", id);
        }
    });
    let output = child.wait_with_output().expect("ends");
    drop(ended);
    guard.join().expect("sent, if at all");
    (output, std::fs::read_to_string(&log).expect("recorded"))
}

#[test]
fn ctrl_c_ends_a_run_early_with_its_report_and_files() {
    ends_early_with_its_report_and_files("-INT");
}

#[test]
fn a_closed_terminal_and_a_shutdown_end_a_run_as_ctrl_c_does() {
    ends_early_with_its_report_and_files("-HUP");
    ends_early_with_its_report_and_files("-TERM");
}

fn ends_early_with_its_report_and_files(signal: &str) {
    let (output, log) = interrupted("run", &["--for", "600s", "--force"], signal);
    assert_ran(&output);
    let report = json(&output);
    assert_obeys(&report, "run");
    assert_eq!(report["stopped"], "stopped by request");
    assert!(report["tasks"][0]["jobs"].as_u64() < Some(12_000));
    assert!(
        log.ends_with("end-of-log\n"),
        "{}",
        log.lines().last().unwrap_or("")
    );
}

/// Every command reads what is there, and says that it is not all.
fn reads_the_prefix(log: &str) {
    let told = output(&["report", log, "--json"]);
    let report = json(&told);
    assert_obeys(&report, "run");
    let stopped = report["stopped"].as_str().expect("said");
    assert!(
        stopped.starts_with("this log ends before the run did"),
        "{stopped}"
    );
    assert!(report["cpus"][0]["lost_from_ns"].as_u64() > Some(0));
    assert!(code(&told) == 3 || report["verdict"] == "missed");
    assert!(stderr(&told).contains("this log ends before the run did"));
    let replayed = output(&["replay", log, "--json"]);
    assert_obeys(&json(&replayed), "replay");
    assert_eq!(json(&replayed)["replay"]["identical"], true);
    assert!(code(&replayed) == 3 || json(&replayed)["verdict"] == "missed");
    let same = json(&output(&["diff", log, log, "--json"]));
    assert_obeys(&same, "diff");
    assert_eq!(same["prefixes"], serde_json::json!([true, true]));
}

#[test]
fn a_run_that_is_killed_leaves_a_log_up_to_there_that_says_so() {
    killed("run --for 600s --force");
}

#[test]
fn a_simulation_that_is_killed_leaves_a_log_up_to_there_that_says_so() {
    killed("sim --for 10000000s");
}

/// Ends a command that records once there is something in its log.
fn killed(words: &str) {
    let (verb, _) = words.split_once(' ').expect("a verb");
    let folder = Folder::new(&format!("{verb}-killed"));
    let file = folder.write("easy.toml", EASY);
    let log = folder.path("log");
    let mut words: Vec<&str> = words.split(' ').collect();
    words.extend([file.as_str(), "-q", "--record", log.as_str()]);
    let mut child = punctual(&words).spawn().expect("starts");
    let lines = || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.lines().filter(|line| line.starts_with("= ")).count()
    };
    let mut looks = 0;
    while lines() < 20 && looks < 6_000 {
        std::thread::sleep(Duration::from_millis(10));
        looks += 1;
    }
    child.kill().expect("killed");
    let _ = child.wait();
    reads_the_prefix(&log);
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_run() {
    on_a_full_disk("run --for 2s --force");
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_simulation() {
    on_a_full_disk("sim --for 60s");
}

fn on_a_full_disk(words: &str) {
    let (verb, _) = words.split_once(' ').expect("a verb");
    let folder = Folder::new(&format!("{verb}-full"));
    let file = folder.write("easy.toml", EASY);
    let log = folder.path("log");
    // A file of 16 KiB at most, in blocks of 512 bytes, stands for the full disk.
    let limited = format!(
        "trap '' XFSZ; ulimit -f 32; exec {} {words} {file} --json --record {log}",
        env!("CARGO_BIN_EXE_punctual")
    );
    let ran = std::process::Command::new("sh")
        .args(["-c", &limited])
        .output()
        .expect("a shell");
    let report = json(&ran);
    assert_obeys(&report, "run");
    assert!(report["stopped"].is_null(), "the run goes on to its end");
    assert!(report["elapsed_ns"].as_u64() > Some(0));
    let lost = report["cpus"][0]["lost_from_ns"].as_u64();
    assert!(
        lost > Some(0) && lost < report["duration_ns"].as_u64(),
        "{lost:?}"
    );
    let fault = report["faults"][0].as_str().expect("said");
    assert!(fault.contains("could not be written"), "{fault}");
    assert!(code(&ran) == 3 || report["verdict"] == "missed");
    reads_the_prefix(&log);
}

#[test]
fn ctrl_c_ends_a_simulation_early_with_its_report() {
    let (output, _) = interrupted("sim", &["--for", "10000000s"], "-HUP");
    let report = json(&output);
    assert_obeys(&report, "sim");
    assert_eq!(report["stopped"], "stopped by request");
    // A shorter run: its code says what was seen.
    assert_eq!((code(&output), &report["verdict"]), (0, &"met".into()));
}
