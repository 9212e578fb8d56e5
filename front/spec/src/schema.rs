//! The JSON Schema of a system file, made from the table of keys that the reader obeys.

use serde_json::{Map, Value, json};

use crate::sections::{SECTIONS, Section};
use crate::shape::{ALL, Key, Keys, Shape, Words};
use crate::units::{DURATION_PATTERN, PERCENTAGE_PATTERN};

/// The pattern of a section's name: no blanks and no ASCII punctuation but `_` `-` `.` `:`. Written
/// by exclusion, since readers of schemas differ in how they name letters.
const NAME_PATTERN: &str = r"^[^\s\x00-\x1f!-,/;-@\[-^`{-~\x7f]{1,128}$";

/// The JSON Schema (draft 2020-12) of a system file, for the file seen as JSON: editors complete
/// and check keys with it. The reader checks the rest (names that must exist, budgets that must
/// fit).
pub fn schema() -> Value {
    let mut properties = Map::new();
    for section in SECTIONS {
        properties.insert(section.name.into(), section_schema(section));
    }
    let needed = SECTIONS
        .iter()
        .filter(|section| section.needed)
        .map(|section| section.name);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Punctual system file",
        "description": "CPUs, schedulers below them, tasks placed on either, resources that tasks \
                        share, what is required of all that, and how to run it. The file is TOML; durations and percentages carry their unit.",
        "type": "object",
        "properties": properties,
        "required": needed.collect::<Vec<_>>(),
        "additionalProperties": false,
    })
}

fn section_schema(section: &Section) -> Value {
    let keys = keys_schema(section.keys);
    if !section.named {
        return described(keys, section.doc);
    }
    json!({
        "description": format!("[{}.NAME]: {}", section.name, section.doc),
        "type": "object",
        "propertyNames": { "pattern": NAME_PATTERN },
        "additionalProperties": keys,
    })
}

/// A table of keys: one object, or with a selector one object for each of its words.
fn keys_schema(keys: &Keys) -> Value {
    let words = keys.selector_words();
    if words.is_empty() {
        return object(keys, ALL, None);
    }
    let forms = words
        .iter()
        .enumerate()
        .map(|(index, word)| described(object(keys, 1 << index, Some(word.text)), word.doc));
    json!({ "type": "object", "oneOf": forms.collect::<Vec<_>>() })
}

/// The keys that stand with the `selected` words; `chosen` is the value of the selector.
fn object(keys: &Keys, selected: Words, chosen: Option<&str>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for key in keys.list.iter().filter(|key| key.allowed & selected != 0) {
        let shape = match chosen {
            Some(word) if keys.selector == Some(key.name) => json!({ "const": word }),
            _ => key_schema(key),
        };
        properties.insert(key.name.into(), described(shape, key.doc));
        if key.needed & selected == selected {
            required.push(key.name);
        }
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn key_schema(key: &Key) -> Value {
    let mut schema = shape_schema(&key.shape);
    let scalar = matches!(key.shape, Shape::Duration | Shape::Percentage | Shape::Text);
    if let (true, Value::Object(fields)) = (scalar, &mut schema) {
        fields.insert("examples".into(), json!([key.example.trim_matches('"')]));
    }
    schema
}

fn shape_schema(shape: &Shape) -> Value {
    match shape {
        Shape::Duration => json!({ "type": "string", "pattern": DURATION_PATTERN }),
        Shape::Percentage => json!({ "type": "string", "pattern": PERCENTAGE_PATTERN }),
        Shape::Integer { least, most } => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Yes => json!({ "const": true }),
        Shape::Text | Shape::TaskName | Shape::ResourceName => json!({ "type": "string" }),
        Shape::CpuName => json!({
            "oneOf": [
                { "type": "integer", "minimum": 0, "maximum": u32::MAX },
                { "type": "string" },
            ],
        }),
        Shape::Word(words) => {
            let forms = words
                .iter()
                .map(|word| json!({ "const": word.text, "description": word.doc }));
            json!({ "oneOf": forms.collect::<Vec<_>>() })
        }
        Shape::List(element) => json!({ "type": "array", "items": shape_schema(element) }),
        Shape::Cycle(each) => json!({
            "oneOf": [
                shape_schema(each),
                { "type": "array", "items": shape_schema(each) },
            ],
        }),
        Shape::Table(keys) => keys_schema(keys),
        Shape::Choice(forms) => {
            json!({ "oneOf": forms.iter().map(keys_schema).collect::<Vec<_>>() })
        }
    }
}

fn described(mut schema: Value, doc: &str) -> Value {
    if let Value::Object(fields) = &mut schema {
        fields.insert("description".into(), doc.into());
    }
    schema
}
