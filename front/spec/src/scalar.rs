//! Reads values without parts: quantities, numbers, names and words.

use toml::de::DeValue;

use crate::nearest::nearest;
use crate::record::Value;
use crate::shape::{Shape, Word, one_of};
use crate::units::{self, Unusable};

/// A value without parts: `None` when its type is wrong, an error when its text is.
pub(crate) fn read_scalar(
    value: &DeValue<'_>,
    shape: &'static Shape,
) -> Option<Result<Value, Unusable>> {
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
        (
            Shape::Text | Shape::TaskName | Shape::ResourceName | Shape::CpuName,
            DeValue::String(text),
        ) => Some(Ok(Value::Text(text.to_string()))),
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
