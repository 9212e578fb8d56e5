//! `punctual doctor`: findings for people, programs and shells.

use serde_json::Value;

use crate::common::{Folder, assert_obeys, code, example, json, output, stderr, stdout};

#[test]
fn findings_are_told_as_documented_and_every_bad_one_is_explained() {
    let done = output(&["doctor", "--json"]);
    assert_eq!(code(&done), 0);
    let findings = json(&done);
    assert_obeys(&findings, "doctor");
    let probes = findings["probes"].as_array().expect("a list");
    for name in [
        "scheduling-class",
        "rt-throttling",
        "fair-server",
        "clock",
        "missing-time",
    ] {
        assert!(probes.iter().any(|probe| probe["name"] == name), "{name}");
    }
    let bad = probes.iter().any(|probe| probe["status"] == "fail");
    assert_eq!(
        findings["verdict"],
        if bad { "best-effort" } else { "real-time" }
    );
    assert!(probes.iter().all(|probe| probe["why"] != ""));
}

#[test]
fn measurements_come_when_they_are_asked_for() {
    let findings = json(&output(&[
        "doctor",
        "--measure",
        "--for",
        "100ms",
        "--json",
    ]));
    assert_obeys(&findings, "doctor");
    assert!(findings["measured"]["observed_ns"].as_u64() >= Some(100_000_000));
    let measured = &findings["measured"];
    let all = [&measured["terms"], &measured["not_measured"]];
    let found = all.map(|list| list.as_array().map_or(0, Vec::len));
    assert_eq!(found.iter().sum::<usize>(), 9, "{measured:#}");
    let terms = measured["terms"].as_array().expect("a list").iter();
    for term in terms {
        assert!(term["samples"].as_u64() > Some(0), "{term}");
        assert!(
            term["proposed_ns"].as_u64() <= term["max_ns"].as_u64(),
            "{term}"
        );
    }
}

#[test]
fn the_mending_commands_are_a_shell_script() {
    let done = output(&["doctor", "--fix-script"]);
    assert_eq!(code(&done), 0);
    let script = stdout(&done);
    assert!(script.starts_with("#!/bin/sh\n"));
    let status = std::process::Command::new("sh")
        .args(["-n", "-c", &script])
        .status();
    assert!(status.expect("a shell").success(), "{script}");
}

#[test]
fn a_platform_file_of_doctor_is_used_by_check_and_run_which_say_so() {
    let folder = Folder::new("platform-file");
    let file = folder.path("here.toml");
    let arguments = ["doctor", "--measure", "--for", "50ms", "--platform"];
    let done = output(&[&arguments[..], &[file.as_str()]].concat());
    assert_eq!(code(&done), 0, "{}", stderr(&done));
    let written = std::fs::read_to_string(&file).expect("written");
    assert!(written.contains("[measured]") && written.contains("[machine]"));

    // Whatever was measured: a busy machine may have terms that refuse any system.
    let two = example("two-tasks.toml");
    let verdict = json(&output(&["check", &two, "--json", "--platform", &file]));
    assert_obeys(&verdict, "check");
    assert_eq!(verdict["platform"]["file"], file);
    let without = json(&output(&["check", &two, "--json"]));
    assert_eq!(without["platform"], Value::Null);
    let run = [
        "run",
        &two,
        "--for",
        "100ms",
        "--json",
        "--force",
        "--platform",
    ];
    let done = output(&[&run[..], &[file.as_str()]].concat());
    let report = json(&done);
    assert_obeys(&report, "run");
    let machine = report["machine"].as_array().expect("a list");
    let terms = machine.iter().find(|fact| fact["name"] == "terms");
    let from = terms.expect("named")["value"].as_str().expect("a text");
    assert!(from.starts_with(&format!("from {file}, ")), "{from}");
    assert!(stderr(&done).contains("with the terms of"));
}

#[test]
fn the_platform_file_of_another_machine_is_used_and_told_to_be_one() {
    let folder = Folder::new("platform-elsewhere");
    let text = "[measured]\nprocessor = \"Abacus\"\n[machine]\nswitch = \"1us\"\n";
    let file = folder.write("there.toml", text);
    let two = example("two-tasks.toml");
    let done = output(&["check", &two, "--platform", &file, "--json"]);
    assert_eq!(code(&done), 0);
    let verdict = json(&done);
    assert_eq!(verdict["tasks"][0]["response_bound_ns"], 2_002_000);
    let differences = verdict["platform"]["differences"].to_string();
    assert!(differences.contains("`Abacus` there"), "{differences}");
    assert!(stderr(&done).contains("not measured on this machine as it is"));
    let missing = differences.contains("it does not say which kernel");
    assert!(missing, "{differences}");

    // A file that declares missing time of its own is overruled by the command line.
    let counted = "missing-time = { budget = \"1ms\", period = \"10ms\" }";
    let own = folder.write("own.toml", &format!("[machine]\n{counted}\n"));
    let bound = |more: &[&str]| {
        let verdict = json(&output(&[&["check", &two, "--json"], more].concat()));
        verdict["tasks"][0]["response_bound_ns"].as_u64()
    };
    let asked = ["--missing-time", "2ms/10ms"];
    assert_eq!(bound(&["--platform", &own]), Some(3_000_000));
    assert_eq!(
        bound(&[&["--platform", &own], &asked[..]].concat()),
        bound(&asked)
    );
}

#[test]
fn mistakes_of_a_platform_file_are_shown_with_their_line_and_nothing_runs() {
    let folder = Folder::new("platform-mistakes");
    let two = example("two-tasks.toml");
    let cases = [
        (
            "[machine]\nswich = \"1us\"\n",
            ":2",
            "did you mean `switch`?",
        ),
        ("[machine]\nswitch = \"1parsec\"\n", ":2", "1parsec"),
        ("[measured]\ncpu = 1\n[machine]\n", ":2", "this is no text"),
        (
            "[machine]\n\n[task.a]\n",
            ":3",
            "`task` has no place in a platform file",
        ),
        ("", ":1", "no [machine] section"),
    ];
    for (text, line, said) in cases {
        let file = folder.write("wrong.toml", text);
        for verb in ["check", "run"] {
            let done = output(&[verb, &two, "--platform", &file]);
            let place = format!("{file}{line}");
            assert_eq!((code(&done), stdout(&done)), (2, String::new()), "{text}");
            let told = stderr(&done);
            assert!(told.contains(&place) && told.contains(said), "{told}");
        }
    }
    let done = output(&["check", &two, "--platform", &folder.path("absent.toml")]);
    assert_eq!(code(&done), 2);
    assert!(stderr(&done).contains("there is no such file"));
    let done = output(&["doctor", "--platform", &folder.path("out.toml")]);
    assert_eq!(code(&done), 2, "--platform without --measure");
    let there = folder.path("no-folder/out.toml");
    let done = output(&["doctor", "--measure", "--platform", &there]);
    assert_eq!(code(&done), 3);
}

#[test]
fn samples_of_missing_time_are_counted_by_admission() {
    let folder = Folder::new("samples");
    let file = folder.write("terms.toml", "[machine]\ntimer = \"10us\"\n");
    let two = example("two-tasks.toml");
    let run = [
        "run",
        &two,
        "--for",
        "50ms",
        "--json",
        "--force",
        "--platform",
        &file,
    ];
    let bound = |more: &[&str]| {
        let report = json(&output(&[&run[..], more].concat()));
        assert_obeys(&report, "run");
        let task = &report["tasks"][0];
        (task["bound_ns"].as_u64(), task["machine_bound_ns"].as_u64())
    };
    // Releases of both tasks: one timer entry, and a sixteenth. An overrun that has begun: three.
    assert_eq!(bound(&[]), (Some(2_000_000), Some(2_040_625)));
    // Three samples fall into that at most, and behind each a timer may fire early.
    assert_eq!(
        bound(&["--sample", "1ms"]),
        (Some(2_000_000), Some(2_100_625))
    );
    // What is asked for beyond reason is neither done nor counted, and that is said.
    let most = bound(&["--sample", "50us"]);
    assert_eq!(bound(&["--sample", "1us"]), most);
    let done = output(&[&run[..], &["--sample", "1us"]].concat());
    assert!(
        stderr(&done).contains("looks every 50us"),
        "{}",
        stderr(&done)
    );
}
