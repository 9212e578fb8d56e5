//! `punctual sim`: equal seeds give equal bytes, faults show, files are written.

use crate::common::{Folder, assert_obeys, code, example, json, output, punctual, stdout};

#[test]
fn two_tasks_of_ten_seconds_are_a_thousand_and_five_hundred_jobs() {
    let done = output(&["sim", &example("two-tasks.toml"), "--for", "10s", "--json"]);
    assert_eq!(code(&done), 0);
    let report = json(&done);
    assert_obeys(&report, "sim");
    assert_eq!(report["mode"], "virtual");
    assert_eq!(report["duration_ns"], 10_000_000_000_u64);
    assert_eq!(report["tasks"][0]["jobs"], 1_000);
    assert_eq!(report["tasks"][1]["jobs"], 500);
    assert_eq!(report["tasks"][1]["bound_ns"], 7_000_000);
}

#[test]
fn the_flight_equals_its_reference_in_virtual_time() {
    let done = output(&["sim", &example("rosace.toml"), "--for", "1s", "--json"]);
    assert_eq!(code(&done), 0);
    let report = json(&done);
    assert_obeys(&report, "run");
    assert_eq!(report["oracle"]["steps"], 200);
    assert_eq!(report["oracle"]["mismatches"], 0);
}

#[test]
fn equal_seeds_give_equal_bytes_and_other_seeds_other_bytes() {
    let folder = Folder::new("sim-seed");
    let file = example("two-tasks.toml");
    let trace = |name: &str, seed: &str| {
        let path = folder.path(name);
        let fault = "missing-time=500us/7ms";
        let done = output(&[
            "sim", &file, "--for", "1s", "--seed", seed, "--fault", fault, "--trace", &path,
            "--json",
        ]);
        assert!(code(&done) < 2);
        (std::fs::read(path).expect("written"), done.stdout)
    };
    assert_eq!(trace("a.txt", "5"), trace("b.txt", "5"));
    assert_ne!(trace("a.txt", "5").0, trace("c.txt", "6").0);
}

#[test]
fn a_response_over_its_requirement_is_a_miss_in_every_form() {
    let folder = Folder::new("required");
    let (log, page) = (folder.path("late.log"), folder.path("late.html"));
    let file = example("two-tasks.toml");
    let flags = ["sim", &file, "--for", "1s"];
    let fault = [
        "--fault",
        "overrun=slow:1.9",
        "--record",
        &log,
        "--report",
        &page,
    ];
    let late = output(&[&flags[..], &fault].concat());
    let broken = "required response of slow 8ms: ";
    assert_eq!(code(&late), 1);
    assert!(stdout(&late).starts_with("MISSED: "), "{}", stdout(&late));
    assert!(stdout(&late).contains(broken), "{}", stdout(&late));
    let other = folder.path("again.html");
    let quiet = stdout(&output(&["report", &log, "-q", "--out", &other]));
    assert!(
        quiet.starts_with("MISSED: ") && quiet.contains(broken),
        "{quiet}"
    );
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains(broken) && page.contains("missed"));
    for command in ["report", "replay"] {
        let again = output(&[command, &log, "--json"]);
        assert_eq!(code(&again), 1);
        let required = &json(&again)["requirements"][0];
        assert_eq!(required["requirement"], "response");
        assert_eq!(required["verdict"], "missed");
        assert_eq!(json(&again)["verdict"], "missed");
    }
    let fine = output(&flags);
    assert!(fine.stderr.is_empty());
    assert_eq!(code(&fine), 0);
}

#[test]
fn missing_time_excuses_a_broken_requirement_but_not_strictly() {
    let file = example("two-tasks.toml");
    let fault = "missing-time=200ms/3s";
    let flags = ["sim", &file, "--for", "10s", "--fault", fault];
    let excused = output(&[&flags[..], &["--json"]].concat());
    let report = json(&excused);
    assert_eq!((code(&excused), &report["verdict"]), (0, &"excused".into()));
    assert_eq!(report["requirements"][0]["verdict"], "excused");
    let misses = report["misses"].as_array().expect("a list");
    assert_eq!(misses.len(), 99);
    assert!(misses.iter().all(|miss| miss["cause"] == "missing-time"));
    let quiet = output(&[&flags[..], &["-q", "--strict"]].concat());
    assert_eq!(code(&quiet), 1);
    assert!(stdout(&quiet).contains("99 late by missing-time"));
}

#[test]
fn an_overrun_of_one_task_is_counted_as_its_own() {
    let file = example("two-tasks.toml");
    let done = output(&[
        "sim",
        &file,
        "--for",
        "1s",
        "--fault",
        "overrun=slow:4",
        "--json",
    ]);
    assert_eq!(
        code(&done),
        1,
        "jobs of 12 ms on a budget of 5 ms in 20 ms cannot be on time"
    );
    let report = json(&done);
    assert_obeys(&report, "sim");
    assert_eq!(report["verdict"], "missed");
    assert_eq!(report["tasks"][0]["misses"], 0);
    assert!(
        report["misses"]
            .as_array()
            .expect("a list")
            .iter()
            .all(|m| m["cause"] == "overrun")
    );
}

#[test]
fn faults_and_durations_that_mean_nothing_are_bad_input() {
    let file = example("two-tasks.toml");
    for wrong in [
        &["--fault", "overrun=nobody:2"][..],
        &["--fault", "crash=slow"],
        &["--fault", "missing-time=1ms/10ms@elsewhere"],
        &["--fault", "gremlins"],
        &["--for", "10"],
        &["--for", "0s"],
        &["--seed", "x"],
        &["--trace", &file],
    ] {
        let told = punctual(&["sim", &file])
            .args(wrong)
            .output()
            .expect("starts");
        assert_eq!(code(&told), 2, "{wrong:?}");
        assert_eq!(stdout(&told), "");
        assert!(!told.stderr.is_empty());
    }
}

#[test]
fn a_function_that_nobody_registered_is_told_with_its_line() {
    let folder = Folder::new("sim-function");
    let text = std::fs::read_to_string(example("rosace.toml")).expect("there");
    let file = folder.write(
        "wrong.toml",
        &text.replace("rosace::engine", "rosace::motor"),
    );
    let told = output(&["sim", &file, "--for", "1s", "--json"]);
    assert_eq!(code(&told), 2);
    let failure = json(&told);
    assert_obeys(&failure, "error");
    assert!(
        failure["diagnostics"][0]["line"].as_u64() > Some(1),
        "{failure:#}"
    );
    assert!(
        failure["diagnostics"][0]["help"]
            .as_str()
            .is_some_and(|h| h.contains("engine"))
    );
}

#[test]
fn a_trace_takes_the_form_of_its_ending() {
    let folder = Folder::new("sim-trace");
    let [csv, perfetto, text, log] = ["t.csv", "t.pftrace", "t.txt", "log"].map(|n| folder.path(n));
    let file = example("two-tasks.toml");
    let mut command = punctual(&["sim", &file, "--for", "100ms", "--quiet"]);
    command.args([
        "--trace", &csv, "--trace", &perfetto, "--trace", &text, "--record", &log,
    ]);
    let done = command.output().expect("starts");
    assert_eq!(code(&done), 0);
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
    let read = |path: &str| std::fs::read(path).expect("written");
    let first_line = |bytes: &[u8]| {
        String::from_utf8_lossy(bytes)
            .lines()
            .next()
            .unwrap_or("")
            .to_owned()
    };
    assert!(first_line(&read(&csv)).starts_with("Task,Job,Period,Response"));
    assert_eq!(first_line(&read(&text)), "punctual-log 5");
    assert_eq!(read(&text), read(&log));
    // A Perfetto trace is a list of packets: field 1, with a length.
    assert_eq!(read(&perfetto).first(), Some(&0x0a));
}

#[test]
fn files_that_cannot_be_written_are_told_before_anything_runs() {
    let file = example("two-tasks.toml");
    let told = output(&[
        "sim",
        &file,
        "--for",
        "1s",
        "--trace",
        "/nonexistent/t.csv",
        "--json",
    ]);
    assert_eq!(code(&told), 3);
    assert_obeys(&json(&told), "error");
    let folder = Folder::new("full");
    let page = folder.path("kept.html");
    let files = ["--trace", "/dev/full", "--report", &page];
    let full = output(&[&["sim", &file, "--for", "1s"][..], &files].concat());
    assert_eq!(code(&full), 3);
    assert!(String::from_utf8_lossy(&full.stderr).contains("/dev/full"));
    // Neither the verdict nor the other file is lost with it.
    assert!(stdout(&full).starts_with("met: "), "{}", stdout(&full));
    assert!(std::fs::read_to_string(page).is_ok_and(|page| page.contains("met")));
}

#[test]
fn what_decisions_cost_is_no_fault_where_nobody_decides_on_its_own_supply() {
    let fault = ["--fault", "decision-cost=1us"];
    let inline = example("two-tasks.toml");
    let refused = output(&["sim", &inline, "--for", "100ms", fault[0], fault[1]]);
    assert_eq!(code(&refused), 2);
    let own_time = example("compose-decoders.toml");
    let done = output(&["sim", &own_time, "--for", "100ms", fault[0], fault[1]]);
    assert_eq!(code(&done), 0);
}

#[test]
fn a_crash_is_the_cause_of_the_job_that_it_ends() {
    let file = example("rosace.toml");
    let fault = "crash=elevator@50";
    let done = output(&["sim", &file, "--for", "1s", "--fault", fault, "--json"]);
    let report = json(&done);
    assert_eq!(code(&done), 1);
    let misses = report["misses"].as_array().expect("misses");
    assert_eq!(misses.len(), 1, "{misses:?}");
    assert_eq!(misses[0]["cause"], "aborted");
    let said = misses[0]["detail"].as_str().unwrap_or("");
    assert!(
        said.starts_with("its thread ended before it was done"),
        "{said}"
    );
    assert_obeys(&report, "sim");
}
