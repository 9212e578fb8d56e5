//! One mistake of a file: where it is, what is wrong, and how to mend it.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use serde::Serialize;

/// A mistake of a file. Printed, it looks like a compiler's error; serialised, it is the element of
/// `errors` in the JSON of the tools.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Diagnostic {
    /// The file as it was named.
    pub file: String,
    /// Line, from 1; 0 when the mistake is the file itself (it is missing).
    pub line: usize,
    /// Column in characters, from 1; 0 when the mistake is the file itself.
    pub column: usize,
    /// The offending text, up to the end of its line, shortened when it is very long.
    pub text: String,
    /// The mistake, with names and values.
    pub message: String,
    /// How to mend it.
    pub help: String,
    /// The whole line, for the rendering; empty when it is too long to show.
    #[serde(skip)]
    pub(crate) shown: String,
    /// Bytes of that line to underline.
    #[serde(skip)]
    pub(crate) marked: Range<usize>,
}

impl Diagnostic {
    /// A mistake that has no line: the file cannot be read at all.
    pub(crate) fn of_file(file: &str, message: String, help: String) -> Diagnostic {
        Diagnostic {
            file: file.into(),
            message,
            help,
            ..Diagnostic::default()
        }
    }

    /// The mistake as people read it, with the line, an underline and the help below; in colour for
    /// terminals. Several lines, without a newline at the end.
    pub fn render(&self, colour: bool) -> String {
        let title = Level::ERROR.primary_title(self.message.as_str());
        let group = if self.line == 0 {
            title.element(Origin::path(self.file.as_str()))
        } else if self.shown.is_empty() {
            let origin = Origin::path(self.file.as_str()).line(self.line);
            title.element(origin.char_column(self.column))
        } else {
            title.element(
                Snippet::source(self.shown.as_str())
                    .path(self.file.as_str())
                    .line_start(self.line)
                    .annotation(AnnotationKind::Primary.span(self.marked.clone())),
            )
        };
        let group = group.element(Level::HELP.message(self.help.as_str()));
        let renderer = if colour {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        renderer.render(&[group])
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostic {}
