//! The built `punctual` command, seen from outside: exit codes, output, files.

mod agree;
mod beside;
mod c_functions;
mod c_policy;
mod check;
mod common;
mod doctor;
mod findings;
mod gangs;
mod graph_fixes;
mod graphs;
mod groups;
mod help;
mod replay;
mod report;
mod run;
mod sim;
mod standard_input;

/// The program that is tried, and its arguments.
fn program<'a>(arguments: &'a [&'a str]) -> (&'static str, &'a [&'a str]) {
    (env!("CARGO_BIN_EXE_punctual"), arguments)
}

/// What `punctual schema SUBJECT` prints.
fn schema(subject: &str) -> serde_json::Value {
    common::json(&common::output(&["schema", subject]))
}
