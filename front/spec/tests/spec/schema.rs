//! The schema admits every shipped file and refuses what the reader refuses by form.

use std::path::{Path, PathBuf};

use serde_json::{Map, Number, Value, json};
use toml::de::{DeTable, DeValue};

/// The part of JSON Schema that the schema uses, checked by the letter; an unknown keyword is a
/// failure, so that the schema cannot say more than is tested.
fn matches(schema: &Value, value: &Value) -> bool {
    let keywords = schema.as_object().expect("an object");
    keywords
        .iter()
        .all(|(keyword, argument)| match keyword.as_str() {
            "$schema" | "title" | "description" | "examples" => true,
            "type" => match argument.as_str() {
                Some("object") => value.is_object(),
                Some("array") => value.is_array(),
                Some("string") => value.is_string(),
                Some("integer") => value.is_i64() || value.is_u64(),
                Some("boolean") => value.is_boolean(),
                other => panic!("type {other:?}"),
            },
            "const" => argument == value,
            "pattern" => value.as_str().is_none_or(|text| {
                let pattern = argument.as_str().expect("a pattern");
                regex_lite::Regex::new(pattern)
                    .expect("a pattern")
                    .is_match(text)
            }),
            "minimum" => value
                .as_u64()
                .is_none_or(|number| Some(number) >= argument.as_u64()),
            "maximum" => value
                .as_u64()
                .is_none_or(|number| Some(number) <= argument.as_u64()),
            "items" => elements(value).all(|element| matches(argument, element)),
            "oneOf" => {
                elements(argument)
                    .filter(|schema| matches(schema, value))
                    .count()
                    == 1
            }
            "properties" => members(value).all(|(name, member)| {
                argument
                    .get(name)
                    .is_none_or(|schema| matches(schema, member))
            }),
            "required" => elements(argument).all(|name| {
                !value.is_object() || value.get(name.as_str().expect("a name")).is_some()
            }),
            "propertyNames" => members(value).all(|(name, _)| matches(argument, &json!(name))),
            "additionalProperties" => members(value)
                .filter(|(name, _)| schema["properties"].get(name).is_none())
                .all(|(_, member)| *argument != json!(false) && matches(argument, member)),
            other => panic!("keyword {other}"),
        })
}

fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn to_json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => json!(text),
        DeValue::Integer(number) => {
            let parsed = u64::from_str_radix(number.as_str(), number.radix());
            parsed.map_or(json!(-1), |number| Value::Number(Number::from(number)))
        }
        DeValue::Float(number) => json!(number.as_str().parse::<f64>().expect("a number")),
        DeValue::Boolean(flag) => json!(flag),
        DeValue::Datetime(date) => json!({ "date": date.to_string() }),
        DeValue::Array(array) => array.iter().map(|value| to_json(value.get_ref())).collect(),
        DeValue::Table(table) => {
            let pairs = table
                .iter()
                .map(|(k, v)| (k.get_ref().to_string(), to_json(v.get_ref())));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
    }
}

fn is_admitted(text: &str) -> bool {
    let table = DeTable::parse(text).expect("TOML").into_inner();
    matches(&punctual_spec::schema(), &to_json(&DeValue::Table(table)))
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(folder).expect("the folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect()
}

#[test]
fn shipped_files_are_read_and_match_the_schema() {
    let paths: Vec<PathBuf> = [files("../../examples"), files("tests/valid")].concat();
    assert!(paths.len() > 2);
    for path in paths {
        let description = punctual_spec::load(&path).unwrap_or_else(|error| panic!("{error}"));
        assert!(is_admitted(description.text()), "{}", path.display());
    }
}

#[test]
fn mistakes_of_form_do_not_match_the_schema() {
    for name in [
        "unknown-key",
        "unknown-section",
        "section-of-later",
        "key-outside-its-section",
        "missing-unit",
        "unknown-unit",
        "number-out-of-range",
        "wrong-type",
        "key-of-another-class",
        "key-of-another-policy",
        "missing-key",
        "missing-class",
        "missing-section",
        "unknown-word",
        "unknown-policy",
        "percentage-as-number",
        "work-of-no-kind",
        "work-of-two-kinds",
        "call-without-library",
        "task-without-name",
        "list-of-tasks",
        "name-with-a-space",
        "scheduler-with-a-host",
        "server-without-budget",
        "server-of-unknown-kind",
        "frame-missing",
        "frame-of-another-policy",
        "slot-without-length",
        "resources-of-an-endless-body",
        "section-without-length",
        "unknown-protocol",
    ] {
        let path = format!("{}/tests/mistakes/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("the file");
        assert!(!is_admitted(&text), "{name}");
    }
}

#[test]
fn every_key_is_documented() {
    fn check(schema: &Value) {
        for (name, property) in members(&schema["properties"]) {
            let doc = property["description"].as_str().unwrap_or("");
            assert!(
                doc.ends_with('.') || doc.contains(' '),
                "{name} has no description"
            );
        }
        match schema {
            Value::Object(fields) => fields.values().for_each(check),
            Value::Array(elements) => elements.iter().for_each(check),
            _ => {}
        }
    }
    check(&punctual_spec::schema());
}
