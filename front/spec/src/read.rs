//! Reads a table of the file against a table of keys: names and forms, not yet meaning.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::nearest::nearest;
use crate::record::{Node, Record, Value};
use crate::report::{Report, quote};
use crate::scalar::read_scalar;
use crate::shape::{ALL, Key, Keys, Shape, Words, one_of};
use crate::units::Unusable;

/// Entries of a table in the order of the file.
pub(crate) fn in_order<'t, 'i>(
    table: &'t DeTable<'i>,
) -> Vec<(&'t Spanned<DeString<'i>>, &'t Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// Reads `table`, whose place is `range`, as `keys`; `place` names it in messages.
pub(crate) fn read_record(
    table: &DeTable<'_>,
    range: Range<usize>,
    keys: &'static Keys,
    place: &str,
    report: &mut Report<'_>,
) -> Record {
    let mut record = Record::empty(range);
    let selected = select(table, keys);
    let mut meant = Vec::new();
    for (name, value) in in_order(table) {
        let Some(key) = keys.find(name.get_ref()) else {
            meant.extend(unknown_key(name, keys, selected, place, report));
            record.broken = true;
            continue;
        };
        if key.allowed & selected == 0 {
            misplaced_key(key, &name.span(), keys, selected, report);
            record.broken = true;
            continue;
        }
        let node = read_node(value, &key.shape, key, report);
        record.push(key.name, node);
    }
    for key in keys.list {
        // Without a valid selector, only what every one of its words needs is missing.
        let missing = key.needed & selected == selected && !table.contains_key(key.name);
        if missing {
            record.broken = true;
        }
        // A misspelt key is one mistake, not two.
        if missing && !meant.contains(&key.name) {
            let message = format!("{place} needs `{}`", key.name);
            report.add(&record.range, message, || {
                format!("add `{} = {}`", key.name, key.example)
            });
        }
    }
    record
}

/// The words of the selector that this table chose: one bit, or all when it chose none.
fn select(table: &DeTable<'_>, keys: &'static Keys) -> Words {
    let chosen = keys
        .selector
        .and_then(|name| table.get(name))
        .and_then(|v| v.get_ref().as_str());
    let index = keys
        .selector_words()
        .iter()
        .position(|word| Some(word.text) == chosen);
    index.map_or(ALL, |index| 1 << index)
}

/// Reports a key that is not in the table; returns the one that was probably meant.
fn unknown_key(
    name: &Spanned<DeString<'_>>,
    keys: &'static Keys,
    selected: Words,
    place: &str,
    report: &mut Report<'_>,
) -> Option<&'static str> {
    let usable = || {
        let usable = keys.list.iter().filter(|key| key.allowed & selected != 0);
        usable.map(|key| key.name)
    };
    let meant = if report.is_full() {
        None
    } else {
        nearest(name.get_ref(), usable())
    };
    let message = format!("unknown key {} in {place}", quote(name.get_ref()));
    report.add(&name.span(), message, || match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("it takes {}", usable().collect::<Vec<_>>().join(", ")),
    });
    meant
}

fn misplaced_key(
    key: &'static Key,
    range: &Range<usize>,
    keys: &'static Keys,
    selected: Words,
    report: &mut Report<'_>,
) {
    let words = keys.selector_words();
    let named = |set: Words| {
        let chosen = words
            .iter()
            .enumerate()
            .filter(move |(index, _)| set & (1 << index) != 0);
        one_of(chosen.map(|(_, word)| format!("`{}`", word.text)))
    };
    let selector = keys.selector.unwrap_or("");
    let message = format!(
        "`{}` has no meaning with {selector} {}",
        key.name,
        named(selected)
    );
    report.add(range, message, || {
        format!(
            "it belongs to {selector} {}: remove it, or change the {selector}",
            named(key.allowed)
        )
    });
}

/// Reads one value; `key` is the key that holds it, for its example.
fn read_node(
    value: &Spanned<DeValue<'_>>,
    shape: &'static Shape,
    key: &'static Key,
    report: &mut Report<'_>,
) -> Node {
    let range = value.span();
    let read = match (shape, value.get_ref()) {
        (Shape::List(element), DeValue::Array(array)) => {
            let nodes = array
                .iter()
                .map(|value| read_node(value, element, key, report));
            Some(Value::List(nodes.collect()))
        }
        (Shape::Cycle(each), DeValue::Array(array)) if !array.is_empty() => {
            let nodes = array
                .iter()
                .map(|value| read_node(value, each, key, report));
            Some(Value::List(nodes.collect()))
        }
        // One value for all phases is a list of one.
        (Shape::Cycle(each), one) if !matches!(one, DeValue::Array(_)) => {
            return Node {
                value: Value::List(vec![read_node(value, each, key, report)]),
                range,
            };
        }
        (Shape::Table(keys), DeValue::Table(table)) => {
            let place = format!("`{}`", key.name);
            Some(Value::Record(read_record(
                table,
                range.clone(),
                keys,
                &place,
                report,
            )))
        }
        (Shape::Choice(forms), DeValue::Table(table)) => {
            Some(read_choice(table, &range, forms, key, report))
        }
        (shape, value) => match read_scalar(value, shape) {
            Some(Ok(value)) => Some(value),
            Some(Err(error)) => {
                let Unusable { message, help } = error;
                let text = quote(report.source.slice(&range));
                report.add(
                    &range,
                    format!("`{}` is {text}: {message}", key.name),
                    || help,
                );
                Some(Value::Bad)
            }
            None => None,
        },
    };
    let value = read.unwrap_or_else(|| {
        let found = match value.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a number with a point",
            DeValue::Boolean(_) => "a truth value",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let message = format!("`{}` is {found}, not {}", key.name, shape.expectation());
        report.add(&range, message, || {
            match whole_part(value.get_ref(), shape) {
                Some(least) => format!("write {least} or {}", least + 1),
                None => format!("write `{} = {}`", key.name, key.example),
            }
        });
        Value::Bad
    });
    Node { range, value }
}

/// The whole number below a number with a point, where a whole one is needed and both are in range.
fn whole_part(value: &DeValue<'_>, shape: &Shape) -> Option<u64> {
    let (DeValue::Float(number), Shape::Integer { least, most }) = (value, shape) else {
        return None;
    };
    let (whole, rest) = number.as_str().split_once('.')?;
    let whole: u64 = whole.parse().ok()?;
    let is_plain = rest.bytes().all(|byte| byte.is_ascii_digit());
    (is_plain && (*least..*most).contains(&whole)).then_some(whole)
}

/// A table in exactly one of several forms.
fn read_choice(
    table: &DeTable<'_>,
    range: &Range<usize>,
    forms: &'static [Keys],
    key: &'static Key,
    report: &mut Report<'_>,
) -> Value {
    let first = |keys: &'static Keys| keys.list.first().map_or("", |key| key.name);
    let mut chosen = forms.iter().filter(|form| table.contains_key(first(form)));
    match (chosen.next(), chosen.next()) {
        (Some(form), None) => {
            let place = format!("`{}`", key.name);
            Value::Record(read_record(table, range.clone(), form, &place, report))
        }
        (one, two) => {
            let message = match (one, two) {
                (Some(one), Some(two)) => {
                    format!(
                        "`{}` is both `{}` and `{}`",
                        key.name,
                        first(one),
                        first(two)
                    )
                }
                _ => format!("`{}` does not say which kind it is", key.name),
            };
            let given = table.keys().take(forms.len());
            let firsts = || forms.iter().map(first);
            let mut meant = given.filter_map(|name| nearest(name.get_ref(), firsts()));
            report.add(range, message, || match meant.next() {
                Some(meant) if one.is_none() => format!("did you mean `{meant}`?"),
                _ => format!("write {}", key.shape.expectation()),
            });
            Value::Bad
        }
    }
}
