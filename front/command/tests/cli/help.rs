//! Help, version and schemas of every command.

use crate::common::{Folder, assert_obeys, code, example, json, output, stderr, stdout};

/// The commands that `punctual --help` lists.
fn commands() -> Vec<String> {
    let help = stdout(&output(&["--help"]));
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = list.take_while(|line| !line.is_empty());
    names
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect()
}

#[test]
fn every_command_has_help_with_examples() {
    let commands = commands();
    assert!(commands.contains(&"check".to_owned()), "{commands:?}");
    // The last are programs of their own, and print their own help.
    let others = ["help", "bench", "compare", "conform", "study", "sweep"];
    for command in commands
        .iter()
        .filter(|command| !others.contains(&command.as_str()))
    {
        let help = output(&[command, "--help"]);
        assert_eq!(code(&help), 0, "{command}");
        let text = stdout(&help);
        assert!(text.contains("Examples:"), "{command}: {text}");
        assert!(text.contains("Exit codes"), "{command}: {text}");
        assert!(
            text.contains(&format!("punctual {command} ")),
            "{command}: {text}"
        );
    }
}

#[test]
fn the_version_is_told() {
    let told = stdout(&output(&["--version"]));
    assert_eq!(told.trim(), concat!("punctual ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_schema_of_the_file_is_the_default() {
    let schema = json(&output(&["schema"]));
    assert_eq!(schema["properties"]["task"]["type"], "object");
    assert_eq!(schema, json(&output(&["schema", "file"])));
    assert_eq!(code(&output(&["schema", "nonsense"])), 2);
}

#[test]
fn man_pages_and_completions_know_every_command() {
    let folder = Folder::new("pages");
    let written = output(&["pages", &folder.path("share")]);
    assert_eq!(code(&written), 0);
    let paths = stdout(&written);
    for name in ["check", "run", "verify", "pages"] {
        assert!(
            paths.contains(&format!("/man/man1/punctual-{name}.1\n")),
            "{paths}"
        );
    }
    for path in paths.lines() {
        let text = std::fs::read_to_string(path).expect("a page");
        assert!(text.contains("punctual"), "{path}");
    }
    let bash = folder.path("share/bash-completion/completions/punctual");
    let bash = std::fs::read_to_string(bash).expect("completions");
    assert!(bash.contains("--certificate") && bash.contains("--explain"));
    assert_eq!(code(&output(&["pages", "/proc/nowhere"])), 3);
}

#[test]
fn a_mistake_of_a_command_line_is_json_for_programs() {
    for wrong in [
        &["check", "--json"][..],
        &["check", "--jsn", "--json", "x.toml"],
    ] {
        let found = output(wrong);
        assert_eq!(code(&found), 2);
        let value = json(&found);
        assert!(value["error"].as_str().is_some_and(|text| !text.is_empty()));
        assert!(
            value["help"]
                .as_str()
                .is_some_and(|text| text.contains("Usage"))
        );
    }
    assert!(stdout(&output(&["check"])).is_empty());
}

#[test]
fn a_duration_is_told_its_unit_and_may_be_hours() {
    let two = example("two-tasks.toml");
    let told = output(&["sim", &two, "--for", "10"]);
    assert_eq!(code(&told), 2);
    assert!(stderr(&told).contains("write \"10s\""), "{}", stderr(&told));
    let told = output(&["sim", &two, "--for", "10", "--json"]);
    let error = json(&told);
    assert_obeys(&error, "error");
    assert!(
        error["error"]
            .as_str()
            .is_some_and(|said| said.contains("write \"10s\""))
    );
    for (time, ns) in [("1min", 60_000_000_000_u64), ("0.02h", 72_000_000_000)] {
        let done = output(&["sim", &two, "--for", time, "--json"]);
        assert_eq!(json(&done)["duration_ns"], ns, "{time}");
    }
}

#[test]
fn a_misuse_is_json_for_those_who_read_json() {
    for arguments in [
        &["check", "--nope", "--json"][..],
        &["run", "--json"],
        &["verify", "a", "b", "c", "--json"],
    ] {
        let told = output(arguments);
        assert_eq!(code(&told), 2, "{arguments:?}");
        assert_obeys(&json(&told), "error");
    }
}
