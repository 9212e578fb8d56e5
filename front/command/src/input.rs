//! From a path on the command line to a system, and from a system to its verdict.

use std::io::Error;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use punctual_analysis::{AnalysisError, Verdict};
use punctual_model::{Reserve, Span, System};
use punctual_spec::Description;

use crate::ending::Failure;

/// Reads a system file.
pub(crate) fn load(path: &Path) -> Result<Description, Failure> {
    punctual_spec::load(path).map_err(|error| Failure::diagnostics(error.diagnostics().to_vec()))
}

/// The text of a file or a pipe. A device is refused: some of them never end.
pub(crate) fn text(path: &Path) -> Result<String, Failure> {
    let cannot = |why: &dyn std::fmt::Display| {
        Failure::input(format!("cannot read {}: {why}", path.display()))
    };
    let io = |error: Error| cannot(&error);
    let kind = std::fs::metadata(path).map_err(io)?.file_type();
    if kind.is_char_device() || kind.is_block_device() {
        return Err(cannot(&"it is a device"));
    }
    std::fs::read_to_string(path).map_err(io)
}

/// Asks the analysis. No verdict is a property of the input: its numbers are too large or too
/// close.
pub(crate) fn admit(system: &System) -> Result<Verdict, Failure> {
    punctual_analysis::admit(system)
        .map_err(|error: AnalysisError| Failure::input(format!("no verdict: {error}")))
}

/// A duration of the command line.
pub(crate) fn duration(text: &str) -> Result<Span, String> {
    match punctual_spec::parse_duration(text)? {
        Span::ZERO => Err("a duration of zero covers nothing".into()),
        span => Ok(span),
    }
}

/// `--missing-time 500us/10ms`: at most so much in any window of that length.
pub(crate) fn missing_time(text: &str) -> Result<Reserve, String> {
    let (budget, period) = text
        .split_once('/')
        .ok_or("write how much in how long, such as 500us/10ms")?;
    let (budget, period) = (duration(budget)?, duration(period)?);
    if budget >= period {
        return Err("all of the time would be missing".into());
    }
    Ok(Reserve {
        name: "missing-time".into(),
        budget: budget.as_work(),
        period,
    })
}

/// A command never replaces its own input.
pub(crate) fn refuse_overwriting(output: &Path, input: &Path) -> Result<(), Failure> {
    match (output.canonicalize(), input.canonicalize()) {
        (Ok(a), Ok(b)) if a == b && a.is_file() => {
            let lost = format!(
                "{} would be overwritten, and it is the input",
                output.display()
            );
            Err(Failure::input(lost).with_help("name another file"))
        }
        _ => Ok(()),
    }
}
