//! Objects of JSON whose keys stay in the order in which they are written.

use serde::{Serialize, Serializer};
use serde_json::Value;

/// A value of JSON.
#[derive(Clone, PartialEq, Debug)]
pub enum Json {
    /// A value without keys.
    Plain(Value),
    /// Values in order.
    List(Vec<Json>),
    /// Keys with their values, in order.
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    /// An object with one more key; `None`: without it.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: Option<Json>) -> Json {
        if let Json::Object(fields) = &mut self {
            fields.extend(value.map(|value| (key, value)));
        }
        self
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Json::Plain(value) => value.serialize(serializer),
            Json::List(values) => serializer.collect_seq(values),
            Json::Object(fields) => serializer.collect_map(fields.iter().map(|(k, v)| (k, v))),
        }
    }
}

/// Something that JSON has a value for.
pub trait IntoJson {
    /// Its value.
    fn into_json(self) -> Json;
}

impl IntoJson for Json {
    fn into_json(self) -> Json {
        self
    }
}

impl<T: IntoJson> IntoJson for Option<T> {
    fn into_json(self) -> Json {
        self.map_or(Json::Plain(Value::Null), T::into_json)
    }
}

impl<T: IntoJson> IntoJson for Vec<T> {
    fn into_json(self) -> Json {
        Json::List(self.into_iter().map(T::into_json).collect())
    }
}

macro_rules! plain {
    ($($type:ty),*) => {
        $(impl IntoJson for $type {
            fn into_json(self) -> Json {
                Json::Plain(self.into())
            }
        })*
    };
}

plain!(bool, u32, u64, usize, f64, &str, String);

impl IntoJson for &String {
    fn into_json(self) -> Json {
        self.as_str().into_json()
    }
}

impl<T: Clone + IntoJson> IntoJson for &Vec<T> {
    fn into_json(self) -> Json {
        self.clone().into_json()
    }
}

/// A list with a value for each item.
pub fn list<T, J: IntoJson>(items: impl IntoIterator<Item = T>, value: impl Fn(T) -> J) -> Json {
    let values = items.into_iter().map(|item| value(item).into_json());
    Json::List(values.collect())
}

/// An object of JSON: `object! { key: value, ... }`.
#[macro_export]
macro_rules! object {
    ($($key:ident: $value:expr),* $(,)?) => {
        $crate::json::Json::Object(vec![
            $((stringify!($key), $crate::json::IntoJson::into_json($value))),*
        ])
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn keys_stay_in_order_and_what_is_none_is_null_or_absent() {
        let all = object! { z: 1_u64, a: None::<u64>, m: vec!["x"] };
        let all = all.with("b", None).with("c", Some(object! {}));
        let text = serde_json::to_string(&all).expect("JSON");
        assert_eq!(text, r#"{"z":1,"a":null,"m":["x"],"c":{}}"#);
    }
}
