//! `punctual import`: a graph of SDF3 as a system file.

use std::path::PathBuf;

use crate::input;
use clap::ValueHint;
use punctual_terminal::ending::{Ended, Ending, Failure};
use punctual_terminal::output;

/// Prints a graph in the XML of SDF3 as a system file
///
/// A unit of time becomes a nanosecond, and every actor gets a CPU of its own: say where they
/// execute, and in which slots.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 printed; 2 the file has mistakes; 3 nothing could be written.\n\n\
    Examples:\n  \
    punctual import h263decoder.xml > decoder.toml\n  \
    punctual check decoder.toml"
)]
pub(crate) struct Args {
    /// The XML file: an SDF or CSDF graph; `-` is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

pub(crate) fn execute(args: &Args) -> Ended {
    let text = input::text(&args.file)?;
    let origin = args.file.display().to_string();
    let system = punctual_spec::read_sdf3(&text, &origin).map_err(Failure::diagnostics)?;
    output::print(punctual_spec::write(&system).trim_end())?;
    Ok(Ending::Good)
}
