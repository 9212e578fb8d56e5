//! Values of the command line that several commands take.

use std::io::Error;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use punctual_model::{Ns, Span};

use crate::ending::Failure;

/// The text of a file or a pipe. A device is refused: some of them never end.
pub fn text(path: &Path) -> Result<String, Failure> {
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

/// A duration of the command line.
pub fn duration(text: &str) -> Result<Span<Ns>, String> {
    match punctual_spec::parse_duration(text)? {
        Span::ZERO => Err("a duration of zero covers nothing".into()),
        span => Ok(span),
    }
}

/// A command never replaces its own input.
pub fn refuse_overwriting(output: &Path, input: &Path) -> Result<(), Failure> {
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
