//! The boundaries between the slots of a CPU, as its platform measured them.

use std::fmt;

use crate::quantiles::Quantiles;
use crate::short::{Count, Short};

/// The boundaries of a frame as a platform saw them. Durations in nanoseconds; quantiles are at
/// most a sixteenth too large.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Boundaries {
    /// The scheduling time that the frame declares between two slots; 0: none.
    pub declared_ns: u64,
    /// Work of the core at each boundary, from the reading of the clock to the switch: at the
    /// end of a slot and at the start of the next.
    pub work_ns: Quantiles,
    /// From the start of a slot to the switch to its owner; without boundaries at which time was
    /// missing.
    pub late_ns: Quantiles,
    /// The same of slots of programs and kernel threads, up to the instant at which these are
    /// raised.
    pub late_programs_ns: Quantiles,
    /// Boundaries at which time was missing.
    pub disturbed: u64,
    /// Boundaries that took longer than declared, by the work of the core alone; in logs that are
    /// older than `over_timer` also by late timers.
    pub over_own: u64,
    /// The same, which would not have had their timers come in time.
    pub over_timer: u64,
    /// The same, which would not have without the missing time.
    pub over_missing: u64,
}

/// How many numbers it has.
const NUMBERS: usize = 17;

impl Boundaries {
    /// All numbers, in the order of the text form.
    pub(crate) fn numbers(&self) -> [u64; NUMBERS] {
        let of = |q: &Quantiles| [Some(q.n), q.p50, q.p99, q.max].map(Option::unwrap_or_default);
        let ([a, b, c, d], [e, f, g, h]) = (of(&self.work_ns), of(&self.late_ns));
        let [i, j, k, l] = of(&self.late_programs_ns);
        let [declared, counts @ ..] = [
            self.declared_ns,
            self.disturbed,
            self.over_own,
            self.over_missing,
            self.over_timer,
        ];
        let [m, n, o, p] = counts;
        [declared, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
    }

    /// From its numbers; `None`: these are not as many. Older logs lack the last one.
    pub(crate) fn of_numbers(numbers: &[u64]) -> Option<Boundaries> {
        let older = |numbers: &[u64; NUMBERS - 1]| {
            let mut all = [0; NUMBERS];
            all[..NUMBERS - 1].copy_from_slice(numbers);
            all
        };
        let read = numbers.try_into().ok();
        let numbers: [u64; NUMBERS] = read.or_else(|| numbers.try_into().ok().map(older))?;
        let at =
            |first: usize| Quantiles::seen(numbers[first], [1, 2, 3].map(|i| numbers[first + i]));
        Some(Boundaries {
            declared_ns: numbers[0],
            work_ns: at(1),
            late_ns: at(5),
            late_programs_ns: at(9),
            disturbed: numbers[13],
            over_own: numbers[14],
            over_missing: numbers[15],
            over_timer: numbers[16],
        })
    }
}

impl fmt::Display for Boundaries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |q: &Quantiles| {
            let [p50, p99, max] = [q.p50, q.p99, q.max].map(|ns| Short(ns.unwrap_or(0)));
            format!("p50 {p50}, p99 {p99}, max {max}")
        };
        write!(
            f,
            "{} boundaries: work of the core {}",
            Count(self.work_ns.n),
            of(&self.work_ns)
        )?;
        for (whose, late) in [
            ("", &self.late_ns),
            (" of programs", &self.late_programs_ns),
        ] {
            if late.n > 0 {
                write!(f, "; slots{whose} begin after {}", of(late))?;
            }
        }
        if self.disturbed > 0 {
            write!(f, "; time was missing at {}", Count(self.disturbed))?;
        }
        if self.declared_ns > 0 {
            let causes = [self.over_own, self.over_timer, self.over_missing];
            let over = causes.into_iter().fold(0, u64::saturating_add);
            let declared = Short(self.declared_ns);
            write!(f, "; {} longer than the declared {declared}", Count(over))?;
            if over > 0 {
                let [work, timer, missing] = causes.map(Count);
                write!(
                    f,
                    " (work {work}, late timer {timer}, missing time {missing})"
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_written_and_no_others() {
        let numbers: Vec<u64> = (1..=17).collect();
        let read = Boundaries::of_numbers(&numbers).expect("as many as it has");
        assert_eq!(read.numbers().to_vec(), numbers);
        assert_eq!((read.declared_ns, read.over_missing), (1, 16));
        assert_eq!((read.over_own, read.over_timer), (15, 17));
        assert_eq!((read.late_ns.n, read.late_ns.max), (6, Some(9)));
        let older = Boundaries::of_numbers(&numbers[..16]).expect("an older log");
        let over_timer = 0;
        assert_eq!(older, Boundaries { over_timer, ..read });
        assert_eq!(Boundaries::of_numbers(&numbers[..15]), None);
        assert_eq!(Boundaries::of_numbers(&[1; 18]), None);
        let none = Boundaries::of_numbers(&[0; 17]).expect("as many as it has");
        assert_eq!(none, Boundaries::default(), "nothing seen is no figure");
    }

    #[test]
    fn a_longer_boundary_is_told_with_its_cause() {
        let mut seen = Boundaries::of_numbers(&[50_000; 17]).expect("as many as it has");
        (seen.over_own, seen.over_timer, seen.over_missing) = (2, 4, 3);
        let text = seen.to_string();
        let said = "9 longer than the declared 50us (work 2, late timer 4, missing time 3)";
        assert!(text.contains(said), "{text}");
        assert!(text.contains("slots of programs begin after p50"), "{text}");
    }
}
