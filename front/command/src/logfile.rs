//! Recorded runs, read back.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use punctual_trace::{Log, text};

use punctual_terminal::ending::Failure;
use punctual_terminal::input::standard_input;
use punctual_terminal::output;

/// Reads a log; `None`: the file is something else, or cannot be opened. A remark says when the
/// log ends before its run did.
pub(crate) fn try_load(path: &Path) -> Result<Option<Log>, Failure> {
    let source: Option<Box<dyn Read>> = match standard_input(path) {
        Some(bytes) => Some(Box::new(bytes?)),
        None => File::open(path).ok().map(|file| Box::new(file) as _),
    };
    let Some(mut source) = source.and_then(open) else {
        return Ok(None);
    };
    let log = text::read(&mut source).map_err(|error| {
        Failure::input(format!(
            "{} cannot be read as a log: {error}",
            path.display()
        ))
        .with_help("record the run again with `punctual run FILE --record LOG`")
    })?;
    if let Some(stopped) = log.header.stopped.as_ref().filter(|_| log.is_prefix()) {
        output::remark(format!("remark: {}: {stopped}", path.display()));
    }
    Ok(Some(log))
}

/// Reads a log.
pub(crate) fn load(path: &Path) -> Result<Log, Failure> {
    if let Some(log) = try_load(path)? {
        return Ok(log);
    }
    let place = path.display();
    Err(match File::open(path) {
        Err(error) if path.as_os_str() != "-" => {
            Failure::input(format!("cannot read {place}: {error}"))
        }
        _ => Failure::input(format!("{place} is not a log"))
            .with_help("`punctual run FILE --record LOG` makes one, and so does `sim`"),
    })
}

/// The file from its beginning, when it is a log.
fn open(file: Box<dyn Read>) -> Option<impl BufRead> {
    let mut source = BufReader::with_capacity(1 << 16, file);
    let is_log = source
        .fill_buf()
        .is_ok_and(|start| start.starts_with(b"punctual-log"));
    is_log.then_some(source)
}
