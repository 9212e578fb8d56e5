//! From text to a TOML tree: the mistakes of the notation itself.

use std::ops::Range;

use toml::de::{DeTable, Error};

use crate::diagnostic::{Report, Source, quote};

const DUPLICATE: &str = "duplicate key";

/// Parses the text of the report's source. The tree is worth reading further unless it is `None`:
/// then the notation is broken, and what is missing may stand behind the mistake.
///
/// Linear in the text; nesting is limited to 80 by the parser.
pub(crate) fn parse<'a>(source: &'a Source, report: &mut Report<'_>) -> Option<DeTable<'a>> {
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    let mut readable = true;
    for error in &errors {
        let range = error.span().unwrap_or(0..0);
        if error.message() == DUPLICATE {
            report_duplicate(source, &range, report);
        } else {
            readable = false;
            report_notation(source, error, &range, report);
        }
    }
    readable.then(|| table.into_inner())
}

fn report_duplicate(source: &Source, range: &Range<usize>, report: &mut Report<'_>) {
    let name = source.slice(range);
    let header = header_around(source, range.start);
    let message = match header {
        Some(header) => format!("{} is there twice", quote(header)),
        None => format!("duplicate key {}", quote(name)),
    };
    report.add(range, message, || match header {
        Some(header) => {
            let first = source.text.find(header).map_or(0, |at| source.line(at));
            format!("it begins on line {first}: rename one of them, or join them")
        }
        None => "remove one of them".into(),
    });
}

/// The header line in which this byte stands, without brackets of arrays and comments.
fn header_around(source: &Source, at: usize) -> Option<&str> {
    let begin = source
        .text
        .get(..at)?
        .rfind('\n')
        .map_or(0, |newline| newline + 1);
    let line = source.text.get(begin..)?.lines().next()?.trim_start();
    if !line.starts_with('[') {
        return None;
    }
    line.find(']').map(|end| &line[..=end])
}

fn report_notation(source: &Source, error: &Error, range: &Range<usize>, report: &mut Report<'_>) {
    let text = source.slice(range);
    report.add(range, error.message().to_string(), || {
        if error.message().contains("recurs") {
            return "values are nested too deeply: no key needs more than three levels".into();
        }
        match unquoted_value(source, range) {
            Some(value) => format!("write the value in quotes: \"{value}\""),
            None if text.trim().is_empty() => "complete the line".into(),
            None => "the file is TOML: `key = value` lines under `[section]` headers".into(),
        }
    });
}

/// The value of a line `key = value` that holds a quantity or a word without quotes.
fn unquoted_value<'a>(source: &'a Source, range: &Range<usize>) -> Option<&'a str> {
    let before = source.text.get(..range.start)?;
    let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = source.text.get(begin..)?.lines().next()?;
    let value = line.split_once('=')?.1.split('#').next()?.trim();
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '%' | '-' | '_');
    let is_plain = !value.is_empty() && value.len() <= 40 && value.chars().all(plain);
    is_plain.then_some(value)
}
