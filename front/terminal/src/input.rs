//! Values of the command line that several commands take.

use std::io::{Error, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::OnceLock;

use clap::error::ErrorKind;
use clap::{ArgMatches, Command, ValueHint};
use punctual_model::{Ns, Span};
use punctual_spec::{Description, MAX_FILE_BYTES};

use crate::ending::Failure;

/// Its name in messages.
pub(crate) const STANDARD_INPUT: &str = "standard input";

/// The most that is read from standard input, in bytes.
const MOST: u64 = 1 << 30;

/// What stands on standard input to its end, if this path is `-`. It is read once: a command may
/// look at it as often as at a file.
pub fn standard_input(path: &Path) -> Option<Result<&'static [u8], Failure>> {
    static BYTES: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
    if path.as_os_str() != "-" {
        return None;
    }
    let read = || {
        let mut bytes = Vec::new();
        let length = std::io::stdin()
            .lock()
            .take(MOST + 1)
            .read_to_end(&mut bytes);
        match length {
            Ok(length) if length as u64 <= MOST => Ok(bytes),
            Ok(_) => Err("it is larger than 1 GiB".into()),
            Err(error) => Err(error.to_string()),
        }
    };
    Some(match BYTES.get_or_init(read) {
        Ok(bytes) => Ok(bytes),
        Err(why) => Err(Failure::input(format!("cannot read standard input: {why}"))),
    })
}

/// Reads a system file; `-` is standard input.
pub fn system(path: &Path) -> Result<Description, Failure> {
    let Some(bytes) = standard_input(path) else {
        let read = punctual_spec::load(path);
        return read.map_err(|error| Failure::diagnostics(error.diagnostics().to_vec()));
    };
    if bytes?.len() as u64 > MAX_FILE_BYTES {
        return Err(Failure::input("standard input is larger than 64 MiB"));
    }
    punctual_spec::parse(&text(path)?, STANDARD_INPUT).map_err(Failure::diagnostics)
}

/// Standard input is read once, so one argument may be `-`. Files to be read are those whose hint
/// says so ([`ValueHint::FilePath`]).
pub(crate) fn one_standard_input(
    mut command: &Command,
    mut given: &ArgMatches,
) -> Result<(), clap::Error> {
    while let Some((name, of_it)) = given.subcommand() {
        let Some(inner) = command.find_subcommand(name) else {
            return Ok(());
        };
        (command, given) = (inner, of_it);
    }
    let files = command
        .get_arguments()
        .filter(|argument| argument.get_value_hint() == ValueHint::FilePath);
    let paths = files
        .filter_map(|file| given.get_raw(file.get_id().as_str()))
        .flatten();
    match paths.filter(|path| *path == "-").count() {
        0 | 1 => Ok(()),
        several => Err(clap::Error::raw(
            ErrorKind::ArgumentConflict,
            format!(
                "{several} arguments are `-`, and standard input is read once\n\n\
                 give one of them as `-`, and the others as files\n"
            ),
        )),
    }
}

/// The text of a file or a pipe; `-` is standard input. A device is refused: some of them never
/// end.
pub fn text(path: &Path) -> Result<String, Failure> {
    let cannot = |why: &dyn std::fmt::Display| {
        Failure::input(format!("cannot read {}: {why}", path.display()))
    };
    let io = |error: Error| cannot(&error);
    if let Some(bytes) = standard_input(path) {
        return String::from_utf8(bytes?.to_vec()).map_err(|error| cannot(&error));
    }
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
