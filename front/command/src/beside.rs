//! Commands that are programs of their own: `punctual bench` starts `punctual-bench`.
//!
//! They are built and installed beside this command, so that nobody who runs a system has to
//! build what measures and verifies Punctual itself.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use punctual_terminal::ending::{Ended, Failure};

/// What the program is told; it prints its own help.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// Arguments of the program, which prints them with --help
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    arguments: Vec<OsString>,
}

impl Args {
    /// Whether a failure is told to a program.
    pub(crate) fn json(&self) -> bool {
        self.arguments.iter().any(|argument| argument == "--json")
    }
}

/// Replaces this process by the program `punctual-NAME`: the one in the same folder, else the one
/// on the PATH. Returns only when it cannot be started.
pub(crate) fn execute(name: &str, args: &Args) -> Ended {
    let program = format!("punctual-{name}");
    let failed = Command::new(place(&program)).args(&args.arguments).exec();
    let failure = Failure::run(format!("`{program}` does not start: {failed}"));
    Err(match failed.kind() {
        ErrorKind::NotFound => failure.with_help(format!(
            "it stands beside `punctual` once it is installed (`cargo xtask install --all`) or built \
             (`cargo build --release --package {}`)",
            package(name)
        )),
        _ => failure,
    })
}

/// The package that has the program.
fn package(name: &str) -> &str {
    match name {
        "bench" => "punctual-bench",
        "compare" => "punctual-compare",
        _ => "punctual-lab",
    }
}

fn place(program: &str) -> PathBuf {
    let here = std::env::current_exe().ok();
    let beside = here.map(|here| here.with_file_name(program));
    match beside {
        Some(beside) if beside.is_file() => beside,
        _ => PathBuf::from(program),
    }
}
