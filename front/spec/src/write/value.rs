//! Values as TOML writes them, and the lines that they stand in.

use std::fmt::{Display, Write};

use punctual_model::{AtBudgetEnd, Mode, Ns, Reserve, Share, Slot, Span, Trust, Work, readable};

/// A value as TOML writes it.
pub(super) trait Toml {
    fn toml(&self) -> String;
}

impl Toml for str {
    fn toml(&self) -> String {
        let mut quoted = String::from("\"");
        for c in self.chars() {
            match c {
                '"' | '\\' => quoted.extend(['\\', c]),
                c if c.is_control() => quoted += &format!("\\U{:08X}", u32::from(c)),
                c => quoted.push(c),
            }
        }
        quoted + "\""
    }
}

impl<T: Toml + ?Sized> Toml for &T {
    fn toml(&self) -> String {
        (**self).toml()
    }
}

impl<T: Toml> Toml for Vec<T> {
    fn toml(&self) -> String {
        List(self.iter().map(Toml::toml).collect()).toml()
    }
}

/// The other types, each with the text of its `$value`.
macro_rules! written {
    ($($type:ty: $value:ident => $text:expr;)+) => {$(
        impl Toml for $type {
            fn toml(&self) -> String {
                let $value = self;
                $text
            }
        }
    )+};
}

written! {
    String: text => text.as_str().toml();
    bool: flag => flag.to_string();
    u32: number => number.to_string();
    u64: number => number.to_string();
    Span<Ns>: span => format!("\"{}\"", readable(span.as_ns()));
    Work<Ns>: work => work.as_span().toml();
    Share: share => format!("\"{}.{:04}%\"", share.ppm() / 10_000, share.ppm() % 10_000);
    Trust: trust => trust.name().toml();
    AtBudgetEnd: end => end.name().toml();
    Mode: mode => mode.name().toml();
    Slot<Ns>: slot => Table::new("at", slot.at).and("length", slot.length).toml();
    Reserve: all => Table::new("name", &all.name).and("budget", all.budget).and("period", all.period).toml();
    List: list => format!("[{}]", list.0.join(", "));
    Table: table => format!("{{ {} }}", table.0.join(", "));
}

/// A list of written values.
pub(super) struct List(pub(super) Vec<String>);

/// A table in one line.
#[derive(Default)]
pub(super) struct Table(Vec<String>);

impl Table {
    pub(super) fn new(key: &str, value: impl Toml) -> Table {
        Table(Vec::new()).and(key, value)
    }

    /// A value that is written already.
    pub(super) fn raw(mut self, key: &str, value: &str) -> Table {
        self.0.push(format!("{key} = {value}"));
        self
    }

    pub(super) fn and(mut self, key: &str, value: impl Toml) -> Table {
        self.0.push(format!("{key} = {}", value.toml()));
        self
    }
}

/// The file so far.
pub(super) struct Out(pub(super) String);

impl Out {
    pub(super) fn line(&mut self, line: impl Display) {
        // Writing into a text cannot fail.
        let _ = writeln!(self.0, "{line}");
    }

    pub(super) fn header(&mut self, kind: &str, name: &str) {
        self.line(format_args!("\n[{kind}.{}]", key_of(name)));
    }

    pub(super) fn key(&mut self, key: &str, value: impl Toml) {
        self.line(format_args!("{key} = {}", value.toml()));
    }

    /// A key that is left out without a value.
    pub(super) fn given(&mut self, key: &str, value: Option<impl Toml>) {
        if let Some(value) = value {
            self.key(key, value);
        }
    }

    /// A key that is left out at its default.
    pub(super) fn unless<T: PartialEq + Toml>(&mut self, default: T, key: &str, value: T) {
        self.given(key, Some(value).filter(|value| *value != default));
    }
}

/// A name as a part of a header: bare where TOML allows it.
pub(super) fn key_of(name: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !name.is_empty() && name.bytes().all(bare) {
        name.into()
    } else {
        name.toml()
    }
}
