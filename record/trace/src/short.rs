//! Durations and counts as people read them in tables: few digits, never too small.

use std::fmt;

/// Prints nanoseconds with at most four significant digits, rounded up: `1.235ms`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Short(pub(crate) u64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0 => return f.pad("0s"),
            1..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "us"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        let whole = self.0 / unit;
        // A unit below 10 shows three decimals, below 100 two, else one.
        let decimals = match (unit, whole) {
            (1, _) => 0,
            (_, 0..10) => 3,
            (_, 10..100) => 2,
            _ => 1,
        };
        let scale = 10_u64.pow(decimals);
        let parts = (u128::from(self.0) * u128::from(scale)).div_ceil(u128::from(unit));
        let (whole, fraction) = (parts / u128::from(scale), parts % u128::from(scale));
        let mut text = whole.to_string();
        if fraction > 0 {
            let digits = format!("{fraction:0width$}", width = decimals as usize);
            text.push('.');
            text.push_str(digits.trim_end_matches('0'));
        }
        text.push_str(name);
        f.pad(&text)
    }
}

/// Prints a count with separators: `1,500`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count(pub(crate) u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut text = String::with_capacity(digits.len() + digits.len() / 3);
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        f.pad(&text)
    }
}

/// Prints how often: `1 time`, `1,500 times`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times(pub(crate) u64);

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.0 == 1 { "time" } else { "times" };
        write!(f, "{} {word}", Count(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short_and_never_understated() {
        for (ns, text) in [
            (0, "0s"),
            (999, "999ns"),
            (1_000, "1us"),
            (1_234_567, "1.235ms"),
            (2_000_001, "2.001ms"),
            (12_437_000, "12.44ms"),
            (10_000_000_000, "10s"),
            (u64::MAX, "18446744073.8s"),
        ] {
            assert_eq!(Short(ns).to_string(), text);
        }
    }

    #[test]
    fn counts_have_separators() {
        for (n, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(Count(n).to_string(), text);
        }
    }

    #[test]
    fn one_time_is_not_several() {
        let all = [0, 1, 2_000].map(|n| Times(n).to_string());
        assert_eq!(all, ["0 times", "1 time", "2,000 times"]);
    }
}
