//! Help, version and schemas of every command.

use crate::common::{code, json, output, stdout};

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
    let others = ["help", "bench", "compare", "conform", "sweep"];
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
