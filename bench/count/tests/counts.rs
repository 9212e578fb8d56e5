//! The same program takes the same instructions, whenever and wherever it is counted.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::process::Command;

/// The output of a count of these rows. Ceilings are for builds with optimisation, so none are
/// looked for: the file is named from the top of the workspace, and tests run in the folder of the
/// crate.
fn count(filter: &str) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_punctual-count"))
        .arg(filter)
        .output()
        .expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), text)
}

#[test]
fn two_counts_of_one_operation_are_equal() {
    let (_, first) = count("core.yield.fixed_priority.2");
    let (_, second) = count("core.yield.fixed_priority.2");
    assert_eq!(first, second);
    let row = first.lines().nth(1).expect("a row");
    let instructions = row.split_whitespace().nth(1).and_then(|n| n.parse().ok());
    assert!(instructions.is_some_and(|n: u64| n > 100), "{row}");
}

#[test]
fn a_row_without_a_ceiling_fails() {
    let (code, text) = count("core.yield.edf.2");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("HAS NO CEILING"), "{text}");
}

#[test]
fn a_filter_that_no_row_contains_is_an_error() {
    assert_eq!(count("no such row").0, Some(3));
}
