//! The `punctual` command as a program of its own. What is installed begins in `front/installed`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(punctual_tools::command())
}
