//! A file that means something: its system, and the way back from the system to the file.

use std::path::{Path, PathBuf};

use punctual_model::{Fault, ModelError, System};

use crate::diagnostic::Diagnostic;
use crate::file::read_file;
use crate::lower::lower;
use crate::places::Places;
use crate::report::Report;
use crate::source::Source;
use crate::syntax;

/// A valid system file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// The system that it describes.
    pub system: System,
    /// The folder of the file, from which relative paths in it start.
    pub base: PathBuf,
    source: Source,
    places: Places,
}

impl Description {
    /// The file as it was named.
    pub fn origin(&self) -> &str {
        &self.source.origin
    }

    /// The text of the file.
    pub fn text(&self) -> &str {
        &self.source.text
    }

    /// A remark about a part of the system, at its place in the file: for verdicts that point at
    /// the line of what they refuse. O(log n) in the lines.
    pub fn diagnostic(&self, fault: &Fault, message: String, help: String) -> Diagnostic {
        self.source
            .diagnostic(&self.places.of(fault), message, help)
    }
}

/// Reads the text of a system file; `origin` names it in messages and gives the folder from which
/// relative paths start.
///
/// Never panics. Time is O(n log n) in the length of the text; nesting is bounded.
///
/// # Errors
///
/// All mistakes found, in the order of the file; beyond [`crate::MAX_DIAGNOSTICS`] they are only
/// counted.
pub fn parse(text: &str, origin: &str) -> Result<Description, Vec<Diagnostic>> {
    let source = Source::new(text, origin);
    let mut report = Report::new(&source);
    let Some(root) = syntax::parse(&source, &mut report) else {
        return Err(report.finish());
    };
    let file = read_file(&root, &mut report);
    drop(root);
    let (system, places) = lower(file, &mut report);
    if !system.cpus.is_empty() || report.is_empty() {
        // What is broken has a mistake already. If the file has none, nothing is: what is not
        // valid is never accepted.
        let reported = !report.is_empty();
        for error in system.validate().err().unwrap_or_default() {
            let ModelError {
                fault,
                message,
                help,
            } = error;
            if !(reported && places.is_broken(&fault)) {
                report.add(&places.of(&fault), message, || help);
            }
        }
    }
    if !report.is_empty() {
        return Err(report.finish());
    }
    let base = Path::new(origin)
        .parent()
        .unwrap_or(Path::new(""))
        .to_path_buf();
    Ok(Description {
        system,
        base,
        source,
        places,
    })
}
