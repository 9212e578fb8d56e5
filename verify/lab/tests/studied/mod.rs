//! What the tests of studies share.

use std::process::Output;

use serde_json::Value;

use crate::common::{Folder, assert_obeys, code, json, output};

/// Prices of no machine, so that a study is the same everywhere.
pub(crate) const COSTS: &str = "machine = \"a machine of tests\"\nline-ps = 90000\nstep-ps = 5000\n\
    admission-ns = [20000, 21000, 22000, 23000, 24000, 25000, 26000, 27000, 28000, 29000, 30000]\n\
    element-ps = 2000\nentry-ns = 500\nswitch-ns = 50\ntimer-ns = 1000\npreemption-ns = 5000\nlate-ns = 2000\n\
    clock-error-ns = 100\n";

pub(crate) fn study(folder: &Folder, arguments: &[&str]) -> Output {
    let costs = folder.write("costs.toml", COSTS);
    let mut all = vec!["study"];
    all.extend(arguments);
    // Plans have no prices.
    if !arguments
        .iter()
        .any(|argument| argument.starts_with("plan-") || *argument == "slots")
    {
        all.extend(["--costs", &costs]);
    }
    output(&all)
}

pub(crate) fn rows(summary: &Value) -> Vec<(String, Vec<u64>, Vec<u64>)> {
    let numbers = |value: &Value| {
        let all = value.as_array().expect("numbers").iter();
        all.map(|n| n.as_u64().expect("a number"))
            .collect::<Vec<u64>>()
    };
    let of = |row: &Value| {
        let name = row["name"].as_str().expect("a name").to_owned();
        (name, numbers(&row["at"]), numbers(&row["values"]))
    };
    summary["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .map(of)
        .collect()
}

/// The JSON of a study whose file of results does not exist yet, and its drawing.
pub(crate) fn answered(folder: &Folder, name: &str, arguments: &[&str]) -> (Value, String) {
    let (out, plot) = (
        folder.path(&format!("{name}.jsonl")),
        folder.path(&format!("{name}.svg")),
    );
    let mut all = arguments.to_vec();
    all.extend(["--out", &out, "--plot", &plot, "--json"]);
    let ended = study(folder, &all);
    assert_eq!(
        code(&ended),
        0,
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    let summary = json(&ended);
    assert_obeys(&summary, "study");
    assert_eq!(summary["complete"], true);
    (summary, std::fs::read_to_string(&plot).expect("a drawing"))
}

/// The program that is tried, and its arguments: those behind the name of the command.
pub(crate) fn program<'a>(arguments: &'a [&'a str]) -> (&'static str, &'a [&'a str]) {
    assert_eq!(arguments[0], "study");
    (env!("CARGO_BIN_EXE_punctual-study"), &arguments[1..])
}

/// The schema that `punctual schema SUBJECT` prints.
pub(crate) fn schema(subject: &str) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../front/command/schema");
    let text = std::fs::read_to_string(format!("{folder}/{subject}.json")).expect("a schema");
    serde_json::from_str(&text).expect("JSON")
}
