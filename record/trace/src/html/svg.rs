//! Text made safe, scales and axes for the drawings of the page.

use std::fmt::{self, Write};

/// Text with what HTML gives a meaning replaced.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c if c.is_control() => f.write_char(' ')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// At most `most` characters of a text.
pub(super) fn clip(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.into();
    }
    let mut short: String = text.chars().take(most.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// Most ticks of an axis.
const MAX_TICKS: f64 = 500.0;

/// Maps values to places, linearly or by their logarithm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    from: f64,
    to: f64,
    start: f64,
    length: f64,
    logarithmic: bool,
}

/// A value as a drawing needs it; the loss of digits above 2^53 cannot be seen.
pub(super) fn float(value: u64) -> f64 {
    value as f64
}

impl Scale {
    /// Maps [`from`, `to`] to [`start`, `start + length`].
    pub(super) fn linear((from, to): (u64, u64), (start, length): (f64, f64)) -> Scale {
        Scale {
            from: float(from),
            to: float(to.max(from + 1)),
            start,
            length,
            logarithmic: false,
        }
    }

    /// The same by logarithm; `from` is at least 1.
    pub(super) fn logarithmic((from, to): (u64, u64), (start, length): (f64, f64)) -> Scale {
        let from = from.max(1);
        Scale {
            from: float(from).ln(),
            to: float(to.max(from + 1)).ln(),
            start,
            length,
            logarithmic: true,
        }
    }

    /// Where `value` lies; values outside lie at the ends.
    pub(super) fn place(&self, value: u64) -> f64 {
        let value = if self.logarithmic {
            float(value.max(1)).ln()
        } else {
            float(value)
        };
        let share = ((value - self.from) / (self.to - self.from)).clamp(0.0, 1.0);
        self.start + share * self.length
    }

    /// Round values for ticks of an axis, in order.
    pub(super) fn ticks(&self) -> Vec<u64> {
        self.ticks_of(8.0)
    }

    /// The same; on a linear axis about so many at most.
    pub(super) fn ticks_of(&self, most: f64) -> Vec<u64> {
        if self.logarithmic {
            let mut powers = Vec::new();
            let mut power: u64 = 1;
            while float(power).ln() <= self.to {
                if float(power).ln() >= self.from {
                    powers.push(power);
                }
                match power.checked_mul(10) {
                    Some(next) => power = next,
                    None => break,
                }
            }
            return powers;
        }
        let step = step(self.to - self.from, most.clamp(1.0, MAX_TICKS));
        let mut ticks = Vec::new();
        let mut at = (self.from / float(step)).ceil() * float(step);
        while at <= self.to {
            ticks.push(whole(at));
            at += float(step);
        }
        ticks
    }
}

/// The nearest count below.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of floats saturates"
)]
pub(super) fn whole(value: f64) -> u64 {
    value as u64
}

/// A step of 1, 2 or 5 times a power of ten, so that `length` has at most `most` of them.
fn step(length: f64, most: f64) -> u64 {
    let mut step: u64 = 1;
    for factor in [2.0, 2.5, 2.0].into_iter().cycle().take(57) {
        if length / float(step) <= most {
            break;
        }
        step = whole(float(step) * factor);
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_html_gives_a_meaning_survives() {
        let text = "<script a=\"b\" c='d'>&\n\u{7}";
        let safe = Escaped(text).to_string();
        assert_eq!(safe, "&lt;script a=&quot;b&quot; c=&#39;d&#39;&gt;&amp;  ");
    }

    #[test]
    fn ticks_are_round_and_few() {
        let scale = Scale::linear((0, 40_000_000), (0.0, 100.0));
        assert_eq!(scale.ticks()[1], 5_000_000);
        assert_eq!(scale.ticks().len(), 9);
        let scale = Scale::logarithmic((900, 2_000_000), (0.0, 100.0));
        assert_eq!(scale.ticks(), [1_000, 10_000, 100_000, 1_000_000]);
        assert!(Scale::linear((0, u64::MAX), (0.0, 1.0)).ticks().len() <= 10);
    }
}
