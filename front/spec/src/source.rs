//! The text of a file, and the way from a byte to a line and a column.

use std::ops::Range;

use crate::diagnostic::Diagnostic;
use crate::report::shorten;

/// Longest line that a rendering shows, in bytes; of a longer one it gives the place only.
const MAX_LINE_BYTES: usize = 4_096;

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
}
