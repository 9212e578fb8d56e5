//! `punctual doctor`: findings for people, programs and shells.

use crate::common::{assert_obeys, code, json, output, stdout};

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
    assert!(findings["measured"]["switch_ns"].as_u64() > Some(0));
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
