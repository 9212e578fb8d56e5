//! The forms in which a run can be written down, and which one a file name asks for.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;

use punctual_trace::{Log, RunReport, export, html, text};

/// A written form of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// The log, which is also the text form of a trace.
    Log,
    /// One line per job.
    Csv,
    /// A Perfetto trace.
    Perfetto,
    /// An HTML page.
    Page,
}

impl Format {
    /// The form of a trace, by the ending of its name.
    pub(crate) fn by_ending(path: &Path) -> Format {
        match path.extension().and_then(OsStr::to_str) {
            Some("csv") => Format::Csv,
            Some("pftrace") => Format::Perfetto,
            _ => Format::Log,
        }
    }
}

/// Writes `log`, whose summary is `report`, in a form.
pub(crate) fn write(
    format: Format,
    log: &Log,
    report: &RunReport,
    mut out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Log => text::write(log, &mut out),
        Format::Csv => export::csv::write(log, &mut out),
        Format::Page => out.write_all(html::page(log, report).as_bytes()),
        Format::Perfetto => export::perfetto::write(log, &mut out),
    }
}
