//! Reads a table of the file against a table of keys: names, forms and units, not yet meaning.

use std::ops::Range;

use punctual_model::Share;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::diagnostic::{Report, quote};
use crate::nearest::nearest;
use crate::shape::{ALL, Key, Keys, Shape, Word, Words, one_of};
use crate::units::{self, Unusable};

/// A value and its place in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Node {
    pub(crate) range: Range<usize>,
    pub(crate) value: Value,
}

/// A value of the right form. `Bad` stands for one whose mistake has been reported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    Duration(u64),
    Percentage(Share),
    Integer(u64),
    Flag(bool),
    Text(String),
    Word(&'static str),
    List(Vec<Node>),
    Record(Record),
    Bad,
}

/// A table whose keys are known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Record {
    /// Its header or its braces.
    pub(crate) range: Range<usize>,
    entries: Vec<(&'static str, Node)>,
    /// Whether a mistake in it has been reported.
    pub(crate) broken: bool,
}

impl Record {
    pub(crate) fn empty(range: Range<usize>) -> Record {
        Record {
            range,
            entries: Vec::new(),
            broken: false,
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, node)| node)
    }

    pub(crate) fn duration(&self, key: &str) -> Option<u64> {
        match self.get(key)?.value {
            Value::Duration(ns) => Some(ns),
            _ => None,
        }
    }

    pub(crate) fn integer(&self, key: &str) -> Option<u64> {
        match self.get(key)?.value {
            Value::Integer(number) => Some(number),
            _ => None,
        }
    }

    /// An integer whose shape keeps it within 32 bits.
    pub(crate) fn number(&self, key: &str) -> Option<u32> {
        self.integer(key)
            .and_then(|number| u32::try_from(number).ok())
    }

    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        match self.get(key)?.value {
            Value::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    pub(crate) fn word(&self, key: &str) -> Option<&'static str> {
        match self.get(key)?.value {
            Value::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn percentage(&self, key: &str) -> Option<Share> {
        match self.get(key)?.value {
            Value::Percentage(share) => Some(share),
            _ => None,
        }
    }

    pub(crate) fn record(&self, key: &str) -> Option<&Record> {
        match &self.get(key)?.value {
            Value::Record(record) => Some(record),
            _ => None,
        }
    }

    pub(crate) fn list(&self, key: &str) -> &[Node] {
        match self.get(key).map(|node| &node.value) {
            Some(Value::List(nodes)) => nodes,
            _ => &[],
        }
    }
}

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
        record.broken |= is_bad(&node);
        record.entries.push((key.name, node));
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

fn is_bad(node: &Node) -> bool {
    match &node.value {
        Value::Bad => true,
        Value::List(nodes) => nodes.iter().any(is_bad),
        Value::Record(record) => record.broken,
        _ => false,
    }
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
            format!("write `{} = {}`", key.name, key.example)
        });
        Value::Bad
    });
    Node { range, value }
}

/// A value without parts: `None` when its type is wrong, an error when its text is.
fn read_scalar(value: &DeValue<'_>, shape: &'static Shape) -> Option<Result<Value, Unusable>> {
    match (shape, value) {
        (Shape::Duration, DeValue::String(text)) => {
            Some(units::duration(text).map(Value::Duration))
        }
        (Shape::Duration, DeValue::Integer(number)) => Some(units::missing_unit(number.as_str())),
        (Shape::Duration, DeValue::Float(number)) => Some(units::missing_unit(number.as_str())),
        (Shape::Percentage, DeValue::String(text)) => {
            Some(units::percentage(text).map(Value::Percentage))
        }
        (Shape::Integer { least, most }, DeValue::Integer(number)) => {
            let parsed = u64::from_str_radix(number.as_str(), number.radix());
            let in_range = parsed
                .ok()
                .filter(|number| (*least..=*most).contains(number));
            Some(in_range.map(Value::Integer).ok_or_else(|| Unusable {
                message: "this number is out of range".into(),
                help: format!("write {}", shape.expectation()),
            }))
        }
        (Shape::Flag, DeValue::Boolean(flag)) => Some(Ok(Value::Flag(*flag))),
        (Shape::Yes, DeValue::Boolean(true)) => Some(Ok(Value::Flag(true))),
        (Shape::Text | Shape::TaskName | Shape::CpuName, DeValue::String(text)) => {
            Some(Ok(Value::Text(text.to_string())))
        }
        (Shape::CpuName, DeValue::Integer(number)) => {
            let parsed = u32::from_str_radix(number.as_str(), number.radix());
            Some(
                parsed
                    .map(|number| Value::Text(number.to_string()))
                    .map_err(|_| Unusable {
                        message: "this is not the number of a CPU".into(),
                        help: "CPUs are numbered from 0".into(),
                    }),
            )
        }
        (Shape::Word(words), DeValue::String(text)) => Some(read_word(text, words)),
        _ => None,
    }
}

fn read_word(text: &str, words: &'static [Word]) -> Result<Value, Unusable> {
    if let Some(word) = words.iter().find(|word| word.text == text) {
        return Ok(Value::Word(word.text));
    }
    let help = match nearest(text, words.iter().map(|word| word.text)) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => {
            format!(
                "write {}",
                one_of(words.iter().map(|word| format!("\"{}\"", word.text)))
            )
        }
    };
    Err(Unusable {
        message: "there is no such word".into(),
        help,
    })
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
