//! Protocol buffers, as far as writing a trace needs them: varints, strings, nested messages.
//!
//! Weighed: `prost` and `protobuf` need generated code and a compiler for it, `perfetto-writer` and
//! `perfetto-recorder` bring clocks, threads and a global session of their own. Three wire types in
//! forty lines are less than any of them.

/// A message being written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    pub(crate) fn new() -> Message {
        Message::default()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// An integer field (wire type 0).
    pub(crate) fn number(mut self, field: u32, value: u64) -> Message {
        self.varint(u64::from(field) << 3);
        self.varint(value);
        self
    }

    /// A signed field: negative numbers take ten bytes, as the format wants it.
    pub(crate) fn signed(self, field: u32, value: i64) -> Message {
        self.number(field, value.cast_unsigned())
    }

    /// A string field (wire type 2).
    pub(crate) fn text(self, field: u32, value: &str) -> Message {
        self.delimited(field, value.as_bytes())
    }

    /// A nested message (wire type 2).
    pub(crate) fn message(self, field: u32, value: &Message) -> Message {
        self.delimited(field, &value.bytes)
    }

    fn delimited(mut self, field: u32, value: &[u8]) -> Message {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
        self
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes
                .push(u8::try_from(value & 0x7f).unwrap_or(0) | 0x80);
            value >>= 7;
        }
        self.bytes.push(u8::try_from(value).unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_bytes_of_the_specification() {
        // The examples of the encoding guide: 150 in field 1, "testing" in field 2, nested in 3.
        let inner = Message::new().number(1, 150);
        assert_eq!(inner.bytes(), [0x08, 0x96, 0x01]);
        let text = Message::new().text(2, "testing");
        assert_eq!(text.bytes(), b"\x12\x07testing");
        let outer = Message::new().message(3, &inner);
        assert_eq!(outer.bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        assert_eq!(Message::new().signed(1, -1).bytes().len(), 11);
    }
}
