//! Periods: log-uniform, uniform, or from a list.

use punctual_model::{Ns, Span};

use crate::error::GenerateError;
use crate::random::Random;

/// How periods are drawn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Periods {
    /// Every order of magnitude equally likely (Emberson, Stafford and Davis 2010, §III): uniform
    /// logarithms in [low, high + step), rounded down to multiples of `step`.
    LogUniform {
        /// The shortest.
        low: Span<Ns>,
        /// The longest.
        high: Span<Ns>,
        /// What all periods are multiples of; a coarse step keeps hyperperiods short.
        step: Span<Ns>,
    },
    /// Every multiple of `step` in [low, high] equally likely.
    Uniform {
        /// The shortest.
        low: Span<Ns>,
        /// The longest.
        high: Span<Ns>,
        /// What all periods are multiples of, counted from `low`.
        step: Span<Ns>,
    },
    /// One of these, each equally likely.
    Among(Vec<Span<Ns>>),
}

impl Periods {
    /// Log-uniform in milliseconds, in steps of one.
    pub const fn log_uniform_ms(low: u64, high: u64) -> Periods {
        Periods::LogUniform {
            low: Span::from_ms(low),
            high: Span::from_ms(high),
            step: Span::from_ms(1),
        }
    }

    /// One period, at least one tick long.
    ///
    /// # Errors
    /// A range or list without a period.
    pub fn draw(&self, random: &mut Random) -> Result<Span<Ns>, GenerateError> {
        let empty = GenerateError::EmptyRange { what: "periods" };
        match self {
            Periods::LogUniform { low, high, step } => {
                let step = step.as_ns().max(1);
                let (low, high) = (low.as_ns().max(step), high.as_ns());
                if low > high {
                    return Err(empty);
                }
                let (from, to) = (real(low), real(high.saturating_add(step)));
                let drawn = libm::exp(libm::log(from) + random.unit() * libm::log(to / from));
                let ticks = whole(drawn) / step * step;
                Ok(Span::from_ns(ticks.clamp(low, high / step * step).max(1)))
            }
            Periods::Uniform { low, high, step } => {
                let step = step.as_ns().max(1);
                let low = low.as_ns().max(1);
                let steps = high.as_ns().checked_sub(low).ok_or(empty)? / step;
                Ok(Span::from_ns(low + step * random.within(0, steps)))
            }
            Periods::Among(list) => {
                let period = *random.pick(list).ok_or(empty.clone())?;
                if period.is_zero() {
                    Err(empty)
                } else {
                    Ok(period)
                }
            }
        }
    }
}

/// Ticks as a real number; beyond 2^53 ns (104 days) they are rounded.
#[expect(clippy::cast_precision_loss, reason = "the rounding is documented")]
pub(crate) fn real(ticks: u64) -> f64 {
    ticks as f64
}

/// To the nearest whole number below; out of range means the nearest end.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "such a cast saturates, which is what is meant"
)]
pub(crate) fn whole(value: f64) -> u64 {
    value as u64
}
