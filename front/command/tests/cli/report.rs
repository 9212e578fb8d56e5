//! `punctual report`: pages of verdicts, and logs that are none.

use crate::common::{Folder, assert_obeys, code, example, json, output, stderr, stdout};

#[test]
fn a_system_file_becomes_a_page_with_its_verdict() {
    let folder = Folder::new("report-verdict");
    let page = folder.path("page.html");
    let file = example("waters2019.toml");
    let told = output(&["report", &file, "--out", &page]);
    assert_eq!(code(&told), 1);
    assert!(stdout(&told).starts_with("refused"));
    let html = std::fs::read_to_string(&page).expect("written");
    assert!(html.starts_with("<!doctype html>") && html.contains("Planner may take 12.437ms"));
    assert!(!html.contains("http"), "it loads nothing");
    assert_eq!(
        stdout(&output(&["report", &file])).trim_end(),
        html.trim_end()
    );
}

#[test]
fn a_log_that_is_changed_or_has_no_records_is_bad_input() {
    let folder = Folder::new("report-cut");
    let log = folder.path("log");
    let file = example("two-tasks.toml");
    assert_eq!(
        code(&output(&[
            "sim", &file, "--for", "50ms", "-q", "--record", &log
        ])),
        0
    );
    let text = std::fs::read_to_string(&log).expect("written");
    for (name, content) in [
        ("cut", text[..text.len() / 20].to_owned()),
        ("first", "punctual-log 5\n".to_owned()),
        (
            "version",
            text.replacen("punctual-log 5", "punctual-log 99", 1),
        ),
        ("noise", text.replacen("end-of-log", "\u{1}\nend-of-log", 1)),
    ] {
        let told = output(&["report", &folder.write(name, &content), "--json"]);
        assert_eq!(code(&told), 2, "{name}");
        assert_obeys(&json(&told), "error");
    }
    assert_eq!(
        code(&output(&["report", &log, "--out", &log])),
        2,
        "it overwrites its input"
    );
    assert_eq!(std::fs::read_to_string(&log).expect("there"), text);
    assert_eq!(
        code(&output(&["report", &folder.path("missing"), "--json"])),
        2
    );
    assert_eq!(
        code(&output(&[
            "report",
            &file,
            "--trace",
            &folder.path("t.csv")
        ])),
        2
    );
}

#[test]
fn a_log_becomes_a_trace_afterwards() {
    let folder = Folder::new("report-trace");
    let [log, now, later] = ["log", "now.csv", "later.csv"].map(|name| folder.path(name));
    let file = example("two-tasks.toml");
    let done = output(&[
        "sim", &file, "--for", "1s", "-q", "--record", &log, "--trace", &now,
    ]);
    assert_eq!(code(&done), 0);
    assert_eq!(code(&output(&["report", &log, "--trace", &later])), 0);
    let read = |path: &str| std::fs::read_to_string(path).expect("written");
    assert_eq!(read(&now), read(&later));
}

#[test]
fn a_page_that_cannot_be_written_costs_neither_the_verdict_nor_its_json() {
    let folder = Folder::new("report-full");
    let [log, page] = ["log", "page.html"].map(|name| folder.path(name));
    let file = example("two-tasks.toml");
    let made = output(&["sim", &file, "--for", "100ms", "--record", &log]);
    assert_eq!(code(&made), 0);
    for words in [
        format!("report {log} --out {page}"),
        format!("report {file} --out {page}"),
        format!("replay {log} --report {page}"),
        format!("replay {log} --policy edf --report {page}"),
        format!("sim {file} --for 100ms --report {page}"),
    ] {
        // A file of 512 bytes at most stands for the full disk.
        let program = env!("CARGO_BIN_EXE_punctual");
        let limited = format!("trap '' XFSZ; ulimit -f 1; exec {program} {words} --json");
        let done = std::process::Command::new("sh")
            .args(["-c", &limited])
            .output();
        let done = done.expect("a shell");
        assert_eq!(code(&done), 3, "{words}");
        let verdict = json(&done)["verdict"].clone();
        assert!(
            verdict == "met" || verdict == "admitted",
            "{words}: {verdict}"
        );
        assert!(stderr(&done).contains("cannot write"), "{words}");
    }
}
