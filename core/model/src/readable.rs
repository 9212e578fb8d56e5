//! Nanoseconds as people write them: `2.5ms`, exact and short.

use core::fmt;

/// Prints a count of nanoseconds in the largest unit that it reaches, exactly, without trailing
/// zeros: `12437000` as `12.437ms`. Its text is valid in a system file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Readable(u64);

/// The printable form of `ns` nanoseconds.
pub const fn readable(ns: u64) -> Readable {
    Readable(ns)
}

impl fmt::Display for Readable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, digits, name) = match self.0 {
            0 => return f.write_str("0s"),
            1..1_000 => (1, 0, "ns"),
            1_000..1_000_000 => (1_000, 3, "us"),
            1_000_000..1_000_000_000 => (1_000_000, 6, "ms"),
            _ => (1_000_000_000, 9, "s"),
        };
        write!(f, "{}", self.0 / unit)?;
        let (mut fraction, mut width) = (self.0 % unit, digits);
        while fraction > 0 && fraction % 10 == 0 {
            fraction /= 10;
            width -= 1;
        }
        if fraction > 0 {
            write!(f, ".{fraction:0width$}")?;
        }
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn durations_print_exactly_and_short() {
        for (ns, text) in [
            (0, "0s"),
            (999, "999ns"),
            (1_000, "1us"),
            (1_050, "1.05us"),
            (12_437_000, "12.437ms"),
            (10_000_000, "10ms"),
            (1_000_000_001, "1.000000001s"),
            (u64::MAX, "18446744073.709551615s"),
        ] {
            assert_eq!(readable(ns).to_string(), text);
        }
    }
}
