//! From text to a TOML tree: the mistakes of the notation itself.

use std::ops::Range;

use toml::de::{DeTable, Error};

use crate::report::{Report, quote};
use crate::source::Source;

const DUPLICATE: &str = "duplicate key";

/// Parses the text of the report's source. The tree is worth reading further unless it is `None`:
/// then the notation is broken, and what is missing may stand behind the mistake.
///
/// Linear in the text; nesting is limited to 80 by the parser.
pub(crate) fn parse<'a>(source: &'a Source, report: &mut Report<'_>) -> Option<DeTable<'a>> {
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    let mut readable = true;
    let mut last: Option<&Error> = None;
    // Below a header that is there twice, every key may be, too: that is one mistake.
    let mut repeated = 0..0;
    for error in &errors {
        let range = error.span().unwrap_or(0..0);
        if error.message() != DUPLICATE {
            readable = false;
            // Every line of it is wrong for one reason.
            if last.is_some() && is_json(source) {
                continue;
            }
            if last
                .is_none_or(|last| (last.message(), last.span()) != (error.message(), error.span()))
            {
                report_notation(source, error, &range, report);
            }
            last = Some(error);
        } else if !repeated.contains(&range.start) {
            repeated = report_duplicate(source, &range, report);
        }
    }
    readable.then(|| table.into_inner())
}

fn is_json(source: &Source) -> bool {
    let text = source.text.trim_start();
    let list = text.strip_prefix('[').map(str::trim_start);
    text.starts_with('{') || list.is_some_and(|inside| inside.starts_with('{'))
}

/// Reports a name that is there twice; returns the bytes that follow from the same mistake.
fn report_duplicate(
    source: &Source,
    range: &Range<usize>,
    report: &mut Report<'_>,
) -> Range<usize> {
    let header = if report.is_full() {
        None
    } else {
        header_around(source, range.start)
    };
    let Some(header) = header else {
        let name = source.slice(range);
        report.add(
            range,
            format!("duplicate key {}", quote(name)),
            || match first_line_of(source, name, range.start) {
                Some(line) => format!("it is on line {line} already: remove one of them"),
                None => "remove one of them".into(),
            },
        );
        return 0..0;
    };
    report.add(range, format!("{} is there twice", quote(header)), || {
        let first = source.text.find(header).map_or(0, |at| source.line(at));
        format!("it begins on line {first}: rename one of them, or join them")
    });
    let rest = source.text.get(range.end..).unwrap_or("");
    range.start
        ..rest
            .find("\n[")
            .map_or(source.text.len(), |next| range.end + next)
}

/// The line of the section around `at` that gives `name` first.
fn first_line_of(source: &Source, name: &str, at: usize) -> Option<usize> {
    let begin = source.text.get(..at)?.rfind("\n[").unwrap_or(0);
    let first = source.line(begin);
    let mut lines = source.text.get(begin..at)?.split('\n');
    let index = lines.position(|line| {
        let rest = line.trim_start().strip_prefix(name);
        rest.is_some_and(|rest| rest.trim_start().starts_with('='))
    });
    index.map(|index| first + index)
}

/// The header line in which this byte stands.
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
        if is_json(source) {
            return "this is JSON, and system files are TOML: `key = value` lines under `[section]` \
                    headers"
                .into();
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
