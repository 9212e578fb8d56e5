//! Values of the right form, with their places: the result of reading a table.

use std::ops::Range;

use punctual_model::{Ns, Share, Span, Work};

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
#[derive(Clone, PartialEq, Eq, Debug, Default)]
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

    /// Adds a value; a broken one breaks the record.
    pub(crate) fn push(&mut self, key: &'static str, node: Node) {
        self.broken |= node.is_bad();
        self.entries.push((key, node));
    }

    /// The same without some keys.
    pub(crate) fn without(&self, keys: &[&str]) -> Record {
        let mut record = self.clone();
        record.entries.retain(|(name, _)| !keys.contains(name));
        record
    }

    /// A value in place of the one that is there, if any.
    pub(crate) fn set(&mut self, key: &'static str, node: Node) {
        self.entries.retain(|(name, _)| *name != key);
        self.push(key, node);
    }

    /// All values, in any order.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.entries.iter().map(|(_, node)| node)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, node)| node)
    }

    pub(crate) fn span(&self, key: &str) -> Option<Span<Ns>> {
        self.duration(key).map(Span::from_ns)
    }

    pub(crate) fn work(&self, key: &str) -> Option<Work<Ns>> {
        self.duration(key).map(Work::from_ns)
    }

    /// An integer whose shape keeps it within 32 bits.
    pub(crate) fn number(&self, key: &str) -> Option<u32> {
        let number = self.integer(key);
        number.and_then(|number| u32::try_from(number).ok())
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.value {
            Value::Text(text) => Some(text),
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

/// Reads values without parts: the value of a key, if it has that form.
macro_rules! values {
    ($($name:ident: $form:ident($type:ty);)+) => {
        impl Record {
            $(pub(crate) fn $name(&self, key: &str) -> Option<$type> {
                match self.get(key)?.value {
                    Value::$form(value) => Some(value),
                    _ => None,
                }
            })+
        }
    };
}

values! {
    duration: Duration(u64);
    integer: Integer(u64);
    flag: Flag(bool);
    word: Word(&'static str);
    percentage: Percentage(Share);
}

impl Node {
    /// Whether a mistake in it has been reported.
    pub(crate) fn is_bad(&self) -> bool {
        match &self.value {
            Value::Bad => true,
            Value::List(nodes) => nodes.iter().any(Node::is_bad),
            Value::Record(record) => record.broken,
            _ => false,
        }
    }
}
