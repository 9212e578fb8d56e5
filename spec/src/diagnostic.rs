//! One mistake of a file: where it is, what is wrong, and how to mend it.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use serde::Serialize;

/// Most diagnostics of one file; further mistakes are counted in the last one.
pub const MAX_DIAGNOSTICS: usize = 50;

/// Longest offending text that a diagnostic repeats, in bytes.
const MAX_TEXT_BYTES: usize = 120;

/// Longest line that a rendering shows, in bytes; of a longer one it gives the place only.
const MAX_LINE_BYTES: usize = 4_096;

/// A mistake of a file. Printed, it looks like a compiler's error; serialised, it is the element of
/// `errors` in the JSON of the tools.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Diagnostic {
    /// The file as it was named.
    pub file: String,
    /// Line, from 1; 0 when the mistake is the file itself (it is missing).
    pub line: usize,
    /// Column in characters, from 1; 0 when the mistake is the file itself.
    pub column: usize,
    /// The offending text, up to the end of its line, shortened when it is very long.
    pub text: String,
    /// What is wrong, with names and values.
    pub message: String,
    /// How to mend it.
    pub help: String,
    /// The whole line, for the rendering.
    #[serde(skip)]
    shown: String,
    /// Bytes of that line to underline.
    #[serde(skip)]
    marked: Range<usize>,
}

impl Diagnostic {
    /// A mistake that has no line: the file cannot be read at all.
    pub(crate) fn of_file(file: &str, message: String, help: String) -> Diagnostic {
        Diagnostic {
            file: file.into(),
            line: 0,
            column: 0,
            text: String::new(),
            message,
            help,
            shown: String::new(),
            marked: 0..0,
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

/// The text of a file, and where its lines begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Source {
    pub(crate) origin: String,
    pub(crate) text: String,
    /// Byte offsets.
    line_starts: Vec<usize>,
}

impl Source {
    pub(crate) fn new(text: &str, origin: &str) -> Source {
        let line_starts = std::iter::once(0)
            .chain(
                text.bytes()
                    .enumerate()
                    .filter(|(_, byte)| *byte == b'\n')
                    .map(|(at, _)| at + 1),
            )
            .collect();
        Source {
            origin: origin.into(),
            text: text.into(),
            line_starts,
        }
    }

    /// A mistake at `range`, in bytes; of a range over several lines the first is shown.
    pub(crate) fn diagnostic(
        &self,
        range: &Range<usize>,
        message: String,
        help: String,
    ) -> Diagnostic {
        let start = self.floor(range.start);
        let line = self
            .line_starts
            .partition_point(|&begin| begin <= start)
            .max(1);
        let begin = self.line_starts.get(line - 1).copied().unwrap_or(0);
        let whole = self.text[begin..].lines().next().unwrap_or("");
        let offset = (start - begin).min(whole.len());
        let end = self
            .floor(range.end)
            .clamp(begin + offset, begin + whole.len())
            - begin;
        let shown = if whole.len() <= MAX_LINE_BYTES {
            whole
        } else {
            ""
        };
        Diagnostic {
            file: self.origin.clone(),
            line,
            column: whole[..offset].chars().count() + 1,
            text: shorten(&whole[offset..end]),
            message,
            help,
            shown: shown.into(),
            marked: offset..end,
        }
    }

    /// The line of a byte, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.line_starts.partition_point(|&begin| begin <= at)
    }

    /// The text of a range; empty when it is none.
    pub(crate) fn slice(&self, range: &Range<usize>) -> &str {
        self.text.get(range.clone()).unwrap_or("")
    }

    /// The nearest character boundary at or before `at`.
    fn floor(&self, at: usize) -> usize {
        self.text.floor_char_boundary(at.min(self.text.len()))
    }
}

/// The text, or its beginning when it is very long.
fn shorten(text: &str) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text.into();
    }
    format!("{}…", &text[..text.floor_char_boundary(MAX_TEXT_BYTES)])
}

/// A text of the file as messages show it: in backquotes, controls escaped, not too long.
pub(crate) fn quote(text: &str) -> String {
    let short = shorten(text);
    let shown = short.chars().map(|c| match c {
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    });
    format!("`{}`", shown.collect::<String>())
}

/// The mistakes of one file, as they are found.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    pub(crate) source: &'a Source,
    found: Vec<(usize, Diagnostic)>,
    omitted: usize,
}

impl<'a> Report<'a> {
    pub(crate) fn new(source: &'a Source) -> Report<'a> {
        Report {
            source,
            found: Vec::new(),
            omitted: 0,
        }
    }

    /// Notes a mistake at `range`. The help is made only if it is going to be shown, since it may
    /// search for similar names.
    pub(crate) fn add(
        &mut self,
        range: &Range<usize>,
        message: impl Into<String>,
        help: impl FnOnce() -> String,
    ) {
        if self.found.len() + 1 >= MAX_DIAGNOSTICS {
            self.omitted += 1;
            if self.omitted > 1 {
                return;
            }
        }
        self.found.push((
            range.start,
            self.source.diagnostic(range, message.into(), help()),
        ));
    }

    /// Whether further mistakes are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.omitted > 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// All mistakes in the order of the file, each place and message once.
    pub(crate) fn finish(mut self) -> Vec<Diagnostic> {
        if self.omitted > 1
            && let Some((_, last)) = self.found.last_mut()
        {
            last.message += &format!(" (and {} more mistakes)", self.omitted - 1);
        }
        self.found.sort_by_key(|(start, _)| *start);
        self.found.dedup();
        self.found
            .into_iter()
            .map(|(_, diagnostic)| diagnostic)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, range: Range<usize>) -> Diagnostic {
        Source::new(text, "f.toml").diagnostic(&range, "wrong".into(), "mend".into())
    }

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        let text = "ä = 1\nbé = 2\n";
        let found = at(text, 7..10);
        assert_eq!(
            (found.line, found.column, found.text.as_str()),
            (2, 1, "bé")
        );
        let found = at(text, 13..14);
        assert_eq!((found.line, found.column, found.text.as_str()), (2, 6, "2"));
    }

    #[test]
    fn places_outside_or_inside_characters_are_moved_to_the_text() {
        for text in ["", "\n", "é", "a\r\nb", "ééé\n\n"] {
            for start in 0..12 {
                for end in 0..12 {
                    let found = at(text, start..end);
                    assert!(found.line >= 1 && found.column >= 1);
                    assert!(found.render(false).contains("wrong"));
                }
            }
        }
    }

    #[test]
    fn a_range_over_lines_shows_the_first() {
        assert_eq!(at("a = [\n1,\n]\n", 4..10).text, "[");
    }

    #[test]
    fn very_long_lines_are_not_repeated() {
        let text = format!("k = \"{}\"", "x".repeat(100_000));
        let found = at(&text, 4..text.len());
        assert!(found.text.len() < 200);
        assert!(
            found.render(false).len() < 400,
            "{}",
            found.render(false).len()
        );
        assert!(found.render(false).contains("f.toml:1:5"));
    }

    #[test]
    fn mistakes_beyond_the_limit_are_counted() {
        let source = Source::new("abc", "f.toml");
        let mut report = Report::new(&source);
        for n in 0..MAX_DIAGNOSTICS + 10 {
            report.add(&(0..1), format!("mistake {n}"), String::new);
        }
        let found = report.finish();
        assert_eq!(found.len(), MAX_DIAGNOSTICS);
        assert!(
            found[MAX_DIAGNOSTICS - 1]
                .message
                .ends_with("(and 10 more mistakes)")
        );
    }
}
