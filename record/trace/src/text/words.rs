//! One field as a word, and back; free text with its line ends escaped.

use std::fmt::{self, Write};

use punctual_model::Instant;

use crate::form::Form;
use crate::value::{Column, Field};

/// No run lasts longer, in ticks: over two years of nanoseconds. Sums and products of such
/// instants are numbers still.
const LATEST: u64 = 1 << 56;

/// Writes the fields of a record after its name, each after a space. `words` are the record's, the
/// head first.
pub(super) fn write_fields(f: &mut impl Write, form: &Form, words: &[u64]) -> fmt::Result {
    let absent = words.first().map_or(0, |head| head >> 8);
    for (index, (column, word)) in form.columns.iter().zip(&words[1..]).enumerate() {
        f.write_char(' ')?;
        if absent >> index & 1 == 1 {
            f.write_char('-')?;
        } else {
            write_field(f, column.field, *word)?;
        }
    }
    Ok(())
}

fn write_field(f: &mut impl Write, field: Field, word: u64) -> fmt::Result {
    match field {
        Field::Thread | Field::Node => {
            let (index, generation) = (word & u64::from(u32::MAX), word >> 32);
            match generation {
                0 => write!(f, "{index}"),
                _ => write!(f, "{index}:{generation}"),
            }
        }
        Field::Instant if word == u64::MAX => f.write_str("never"),
        Field::Instant | Field::Number => write!(f, "{word}"),
        Field::Word(words) => {
            let at = usize::try_from(word).unwrap_or(usize::MAX);
            f.write_str(words.get(at).copied().unwrap_or("?"))
        }
    }
}

/// Reads one field; `None`: absent.
pub(super) fn read_field(column: Column, text: &str) -> Result<Option<u64>, String> {
    if text == "-" {
        return match column.optional {
            true => Ok(None),
            false => Err("a field that cannot be absent is `-`".into()),
        };
    }
    match column.field {
        Field::Thread | Field::Node => read_thread(text).map(Some),
        Field::Instant if text == "never" => Ok(Some(u64::MAX)),
        Field::Instant | Field::Number => number(text).map(Some),
        Field::Word(words) => match words.iter().position(|word| *word == text) {
            Some(at) => Ok(Some(at as u64)),
            None => Err(format!(
                "`{}` is not one of {}",
                clip(text),
                words.join(", ")
            )),
        },
    }
}

fn read_thread(text: &str) -> Result<u64, String> {
    let (index, generation) = text.split_once(':').unwrap_or((text, "0"));
    let part = |part: &str| match part.parse::<u32>() {
        Ok(number) if canonical(part) => Ok(u64::from(number)),
        _ => Err(format!("`{}` is no number of a place", clip(text))),
    };
    Ok(part(generation)? << 32 | part(index)?)
}

/// A number in the one way that the writer writes it.
pub(super) fn number(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(number) if canonical(text) => Ok(number),
        _ => Err(format!("`{}` is not a number below 2^64", clip(text))),
    }
}

fn canonical(digits: &str) -> bool {
    !digits.starts_with('+') && (digits == "0" || !digits.starts_with('0'))
}

/// The start of a text, for messages.
pub(super) fn clip(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short.escape_debug().to_string()
}

/// Free text on one line: line ends and backslashes are escaped.
pub(super) fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('\n', "\\n")
        .replace('\r', "\\r")
}

/// Undoes [`escape`].
pub(super) fn unescape(text: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            Some('\\') => plain.push('\\'),
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            _ => return Err("a backslash stands before something other than \\, n, r".into()),
        }
    }
    Ok(plain)
}

/// An instant of the run.
pub(super) fn instant(ticks: u64) -> Result<Instant, String> {
    match ticks {
        ..=LATEST => Ok(Instant::from_ticks(ticks)),
        _ => Err(format!(
            "{ticks} is later than a run may last ({LATEST} ticks)"
        )),
    }
}
