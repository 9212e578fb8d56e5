//! Names of threads, of a fixed size: they are read where nothing may be allocated.

use core::fmt;

/// Bytes that a name keeps.
const LONGEST: usize = 63;

/// A name, cut off after its first 63 bytes.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    length: u8,
    bytes: [u8; LONGEST],
}

impl Name {
    pub(crate) fn new(name: &str) -> Name {
        let mut end = name.len().min(LONGEST);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = [0; LONGEST];
        bytes[..end].copy_from_slice(&name.as_bytes()[..end]);
        Name {
            length: u8::try_from(end).unwrap_or(0),
            bytes,
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        let bytes = &self.bytes[..usize::from(self.length)];
        core::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_between_two_characters() {
        assert_eq!(Name::new("short").as_str(), "short");
        let long = "ä".repeat(40);
        assert_eq!(Name::new(&long).as_str(), "ä".repeat(31));
        assert_eq!(Name::new("").as_str(), "");
    }
}
