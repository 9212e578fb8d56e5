//! The possible values of a key of a file: the vocabulary in which the tables of keys are written.

/// A group of keys: a section, or a table inside one.
#[derive(Debug)]
pub(crate) struct Keys {
    /// The key whose word says which of the others belong here (`class` of a task).
    pub(crate) selector: Option<&'static str>,
    pub(crate) list: &'static [Key],
}

/// One key: its name, what it holds, and which words of the selector take or need it.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) doc: &'static str,
    /// A value as one would write it: shown when the key is missing, and in the schema.
    pub(crate) example: &'static str,
    /// Words of the selector with which this key may stand; bit i is word i.
    pub(crate) allowed: Words,
    /// Words of the selector that cannot do without this key.
    pub(crate) needed: Words,
}

/// A set of words of a selector.
pub(crate) type Words = u8;
/// All words of a selector; also where there is none.
pub(crate) const ALL: Words = Words::MAX;
/// No word.
pub(crate) const NONE: Words = 0;

/// A word that a value can be, and what it means.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) text: &'static str,
    pub(crate) doc: &'static str,
}

/// The form of a value.
#[derive(Debug)]
pub(crate) enum Shape {
    /// A span of time or an amount of work, as text with a unit.
    Duration,
    /// A share of a processor, as text with a percent sign.
    Percentage,
    /// A whole number in a range, both ends included.
    Integer { least: u64, most: u64 },
    /// `true` or `false`.
    Flag,
    /// `true`: there is nothing else to say.
    Yes,
    /// Any text.
    Text,
    /// The name of a task of this file.
    TaskName,
    /// The name of a resource of this file.
    ResourceName,
    /// A host CPU's number or a name given in `[cpu.NAME]`.
    CpuName,
    /// One of a few words.
    Word(&'static [Word]),
    /// Any number of values of one shape.
    List(&'static Shape),
    /// One value for all phases, or a list with one for each.
    Cycle(&'static Shape),
    /// A table.
    Table(&'static Keys),
    /// A table in exactly one of these forms, told by the first key of each.
    Choice(&'static [Keys]),
}

impl Keys {
    /// The key with this name.
    pub(crate) fn find(&self, name: &str) -> Option<&'static Key> {
        self.list.iter().find(|key| key.name == name)
    }

    /// The words of the selector; none without a selector.
    pub(crate) fn selector_words(&self) -> &'static [Word] {
        match self
            .selector
            .and_then(|name| self.find(name))
            .map(|key| &key.shape)
        {
            Some(Shape::Word(words)) => words,
            _ => &[],
        }
    }
}

impl Key {
    /// Only some words of the selector take this key.
    pub(crate) const fn only(self, allowed: Words) -> Key {
        Key { allowed, ..self }
    }

    /// Some words of the selector need this key.
    pub(crate) const fn needed_by(self, needed: Words) -> Key {
        Key { needed, ..self }
    }

    /// Nothing can do without this key.
    pub(crate) const fn needed(self) -> Key {
        self.needed_by(ALL)
    }

    /// Only some words of the selector take this key, and these need it.
    pub(crate) const fn exactly(self, words: Words) -> Key {
        self.only(words).needed_by(words)
    }
}

/// The comment above an entry of a table, as text.
macro_rules! text {
    ($($line:literal)+) => { concat!($($line),+).trim_ascii_start() };
}

/// A key: its name, its shape, an example as one would write it, and what limits its use. Its
/// comment is its documentation, also in the schema.
macro_rules! key {
    ($(#[doc = $doc:literal])+
     $name:literal: $shape:expr, $example:tt $(, $rule:ident $(($words:expr))?)*;) => {
        $crate::shape::Key {
            name: $name,
            shape: $shape,
            doc: $crate::shape::text!($($doc)+),
            example: stringify!($example),
            allowed: $crate::shape::ALL,
            needed: $crate::shape::NONE,
        }
        $(.$rule($($words)?))*
    };
}

/// A group of keys: each written as in [`key`], or the name of one that other groups have too.
macro_rules! keys {
    (by $selector:literal; $($rest:tt)+) => { $crate::shape::keys!(@ Some($selector); []; $($rest)+) };
    (@ $selector:expr; [$($done:expr,)*];) => {
        $crate::shape::Keys { selector: $selector, list: &[$($done,)*] }
    };
    (@ $selector:expr; [$($done:expr,)*]; $shared:ident; $($rest:tt)*) => {
        $crate::shape::keys!(@ $selector; [$($done,)* $shared,]; $($rest)*)
    };
    (@ $selector:expr; [$($done:expr,)*];
     $(#[doc = $doc:literal])+ $name:literal: $shape:expr $(, $more:tt $(($words:expr))?)+;
     $($rest:tt)*) => {
        $crate::shape::keys!(@ $selector; [$($done,)* $crate::shape::key! {
            $(#[doc = $doc])+ $name: $shape $(, $more $(($words))?)+;
        },]; $($rest)*)
    };
    ($($keys:tt)+) => { $crate::shape::keys!(@ None; []; $($keys)+) };
}

/// The words that a value can be; the comment of each says what it means.
macro_rules! words {
    ($($(#[doc = $doc:literal])+ $text:literal;)+) => {
        $crate::shape::Shape::Word(&[
            $($crate::shape::Word { text: $text, doc: $crate::shape::text!($($doc)+) }),+
        ])
    };
}

pub(crate) use {key, keys, text, words};

impl Shape {
    /// The form that the value should have, for messages.
    pub(crate) fn expectation(&self) -> String {
        match self {
            Shape::Duration => "a duration such as \"10ms\"".into(),
            Shape::Percentage => "a percentage such as \"99%\"".into(),
            Shape::Integer {
                most: u64::MAX,
                least: 0,
            } => "a whole number".into(),
            Shape::Integer { least, most } => format!("a whole number from {least} to {most}"),
            Shape::Flag => "`true` or `false`".into(),
            Shape::Yes => "`true`".into(),
            Shape::Text => "a text in quotes".into(),
            Shape::TaskName => "the name of a task in quotes".into(),
            Shape::ResourceName => "the name of a resource in quotes".into(),
            Shape::CpuName => "the number of a host CPU or a name in quotes".into(),
            Shape::Word(words) => one_of(words.iter().map(|word| format!("\"{}\"", word.text))),
            Shape::List(_) => "a list in brackets".into(),
            Shape::Cycle(each) => format!("{}, or a list of such", each.expectation()),
            Shape::Table(keys) => {
                let names = keys.list.iter().map(|key| format!("{} = …", key.name));
                format!("a table {{ {} }}", names.collect::<Vec<_>>().join(", "))
            }
            Shape::Choice(forms) => {
                let form = |keys: &Keys| {
                    let names = keys
                        .list
                        .iter()
                        .map(|key| format!("{} = {}", key.name, key.example));
                    format!("{{ {} }}", names.collect::<Vec<_>>().join(", "))
                };
                one_of(forms.iter().map(form))
            }
        }
    }
}

/// `a, b or c`.
pub(crate) fn one_of(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}
