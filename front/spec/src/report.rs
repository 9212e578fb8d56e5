//! Collects the mistakes of one file, as they are found.

use std::ops::Range;

use crate::diagnostic::Diagnostic;
use crate::source::Source;

/// Most diagnostics of one file; further mistakes are counted in the last one.
pub const MAX_DIAGNOSTICS: usize = 50;

/// Longest offending text that a diagnostic repeats, in bytes.
const MAX_TEXT_BYTES: usize = 120;

/// The text, or its beginning when it is very long.
pub(crate) fn shorten(text: &str) -> String {
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
    /// Parts of the file that stand for many parts of the system.
    folded: Vec<Range<usize>>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(source: &'a Source) -> Report<'a> {
        Report {
            source,
            found: Vec::new(),
            omitted: 0,
            folded: Vec::new(),
        }
    }

    /// From now on the mistakes inside `range` that have one place and one remedy are one.
    pub(crate) fn fold(&mut self, range: &Range<usize>) {
        self.folded.push(range.clone());
    }

    /// Notes a mistake at `range`. The help is made only if it is going to be shown, since it may
    /// search for similar names.
    pub(crate) fn add(
        &mut self,
        range: &Range<usize>,
        message: impl Into<String>,
        help: impl FnOnce() -> String,
    ) {
        let help = match self.folded.iter().any(|all| all.contains(&range.start)) {
            false => Err(help),
            true => {
                let help = help();
                let mut others = self.found.iter();
                if others.any(|(start, other)| *start == range.start && other.help == help) {
                    return;
                }
                Ok(help)
            }
        };
        if self.found.len() + 1 >= MAX_DIAGNOSTICS {
            self.omitted += 1;
            if self.omitted > 1 {
                return;
            }
        }
        let help = help.unwrap_or_else(|help| help());
        self.found.push((
            range.start,
            self.source.diagnostic(range, message.into(), help),
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
