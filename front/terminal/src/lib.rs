//! The parts that all commands share: how one starts, prints, fails and ends.
//!
//! Results go to standard output, everything else to standard error. Exit codes of every command: 0
//! admitted, met or excused; 1 refused or missed; 2 bad input; 3 failure of the run itself; 130
//! ended by Ctrl-C, but for runs, whose code says what was seen until then.
#![forbid(unsafe_code)]

pub mod ending;
pub mod input;
pub mod interrupt;
pub mod json;
pub mod machine;
pub mod origin;
pub mod output;
pub mod platform;
pub mod table;

use std::io::ErrorKind;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind as Usage;

use ending::{Ended, Failure};

/// The whole of a command's `main`: reads the command line, executes it, prints a failure.
/// `wants_json` tells whether a program reads the output.
pub fn run<A: Parser>(execute: fn(&A) -> Ended, wants_json: fn(&A) -> bool) -> ExitCode {
    ExitCode::from(code(execute, wants_json))
}

/// The same, for a `main` that is not in Rust: the code for the shell.
pub fn code<A: Parser>(execute: fn(&A) -> Ended, wants_json: fn(&A) -> bool) -> u8 {
    let args = match parsed::<A>() {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    match execute(&args) {
        Ok(ending) => ending.code(),
        Err(failure) => report(&failure, wants_json(&args)),
    }
}

fn parsed<A: Parser>() -> Result<A, clap::Error> {
    let mut command = A::command();
    let given = command.try_get_matches_from_mut(std::env::args_os())?;
    input::one_standard_input(&command, &given)?;
    A::from_arg_matches(&given).map_err(|error| error.format(&mut command))
}

fn report(failure: &Failure, json: bool) -> u8 {
    output::remark(failure.render(output::colour_stderr()));
    // A second try to write would fail as the first did, and tell nobody anything new.
    if json && !failure.is_beside_result() {
        let _ = output::print_json(&failure.json());
    }
    failure.code()
}

/// Help and version are results, everything else is bad input.
fn usage(error: &clap::Error) -> u8 {
    let asked = matches!(error.kind(), Usage::DisplayHelp | Usage::DisplayVersion);
    match error.print() {
        Err(lost) if asked && lost.kind() != ErrorKind::BrokenPipe => {
            let failure = Failure::run(format!("cannot write to standard output: {lost}"));
            report(&failure, false)
        }
        _ if asked => 0,
        _ => {
            let failure = misuse(&error.render().to_string());
            // A program that asked for JSON reads JSON, also where the rest was not understood.
            if std::env::args_os().skip(1).any(|arg| arg == "--json") {
                let _ = output::print_json(&failure.json());
            }
            failure.code()
        }
    }
}

/// What is wrong with a command line, and what to write instead.
fn misuse(text: &str) -> Failure {
    let (what, help) = text.split_once("\n\n").unwrap_or((text, ""));
    let what = what.strip_prefix("error: ").unwrap_or(what).trim();
    match help.trim() {
        "" => Failure::input(what),
        help => Failure::input(what).with_help(help),
    }
}
