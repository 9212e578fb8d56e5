//! `punctual omp`: a program of OpenMP on Punctual's library.
//!
//! The library has the name of libgomp, so the loader takes it when its folder comes first.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueHint;
use punctual_terminal::ending::{Ended, Ending, Failure};
use punctual_terminal::output;

use crate::{input, omp_record, omp_timeline};

/// The file that the loader looks for.
const LIBRARY: &str = "libgomp.so.1";
/// Where it stands, from the folder of the command.
const INSTALLED: &str = "../lib/punctual/openmp";
/// The loader looks in these folders first.
const VARIABLE: &str = "LD_LIBRARY_PATH";

/// Runs a program of OpenMP that gcc compiled, on a library that leaves no CPU idle
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: those of the program; 2 no such library or record; 3 the program does not start. \
    With --draw, 1: a carrier was idle while an item waited unstarted.\n\n\
    Examples:\n  \
    punctual omp ./program 1000\n  \
    PUNCTUAL_OMP_TSC=strict punctual omp ./program   # keep the task scheduling constraint\n  \
    PUNCTUAL_OMP_TRACE=record punctual omp ./program # write a record, to be drawn\n  \
    punctual omp --draw record > timeline.svg        # several ones below each other"
)]
pub(crate) struct Args {
    /// The folder with libgomp.so.1; by default the one that is installed with the command
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    library: Option<PathBuf>,
    /// Draws records of PUNCTUAL_OMP_TRACE as svg; says whether a carrier was idle in vain
    #[arg(long, value_name = "RECORD", num_args = 1.., conflicts_with_all = ["library", "words"], value_hint = ValueHint::FilePath)]
    draw: Vec<PathBuf>,
    /// The program and its arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required_unless_present = "draw",
        value_name = "PROGRAM"
    )]
    words: Vec<OsString>,
}

/// Replaces this process by the program. Returns only when it cannot be started.
pub(crate) fn execute(args: &Args) -> Ended {
    if !args.draw.is_empty() {
        return draw(&args.draw);
    }
    let folder = folder(args.library.as_deref())?;
    let mut path = OsString::from(&folder);
    if let Some(before) = std::env::var_os(VARIABLE).filter(|before| !before.is_empty()) {
        path.push(":");
        path.push(before);
    }
    let Some((program, arguments)) = args.words.split_first() else {
        return Err(Failure::input("which program?"));
    };
    let failed = Command::new(program)
        .args(arguments)
        .env(VARIABLE, path)
        .exec();
    let program = program.to_string_lossy();
    Err(Failure::run(format!(
        "`{program}` does not start: {failed}"
    )))
}

/// Prints the timeline of records, and what they say beside it.
fn draw(paths: &[PathBuf]) -> Ended {
    let mut records = Vec::new();
    for path in paths {
        let shown = path.display().to_string();
        let text = input::text(path)?;
        let record =
            omp_record::read(&text).map_err(|error| Failure::input(format!("{shown}: {error}")))?;
        records.push((shown, record));
    }
    let named: Vec<_> = records
        .iter()
        .map(|(name, record)| (name.as_str(), record))
        .collect();
    output::print(omp_timeline::draw(&named))?;
    let mut idle = 0;
    for (name, record) in named {
        let findings = record.check();
        let (items, looks, sleeps) = (findings.items, findings.looks, findings.sleeps);
        let missed = findings.idle.len();
        output::remark(format!(
            "{name}: {items} items offered, {looks} looks in vain, {sleeps} sleeps; \
             idle while an item waited: {missed}"
        ));
        findings.idle.iter().take(10).for_each(output::remark);
        idle += missed;
    }
    Ok(Ending::of(idle == 0))
}

/// The folder of the library, as the loader may look for it from anywhere.
fn folder(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let installed = || {
        let here = std::env::current_exe().ok()?;
        Some(here.parent()?.join(INSTALLED))
    };
    let folder = named.map(Path::to_path_buf).or_else(installed);
    let folder = folder.unwrap_or_else(|| PathBuf::from(INSTALLED));
    if !folder.join(LIBRARY).is_file() {
        let message = format!("there is no `{LIBRARY}` in {}", folder.display());
        let help = "`cargo xtask install` puts it beside the command; `--library FOLDER` names another place";
        return Err(Failure::input(message).with_help(help.to_owned()));
    }
    folder
        .canonicalize()
        .map_err(|error| Failure::input(format!("{}: {error}", folder.display())))
}
