//! The cost of a timer entry of the scheduler, where enough of them were seen.

use super::{LEAST_SAMPLES, Measured, Overheads, measure_timer, persist, proposed};
use crate::record::input::{RunError, RunOptions};

/// Measures on one host CPU what a timer entry of the scheduler costs, in nanoseconds, as
/// [`super::measure_overheads`] does and by itself: about 40 ms. Where the CPU is busy it is tried
/// again, for 20 s at most. `None`: fewer than eight could be seen, so it is not known.
///
/// # Errors
/// As for [`crate::run()`].
pub fn measure_entry(host: u32, options: &RunOptions) -> Result<Option<u64>, RunError> {
    Ok(known(&persist(|| measure_timer(host, options))?))
}

fn known(measured: &Measured) -> Option<u64> {
    (measured.ticks.len() >= LEAST_SAMPLES).then(|| proposed(measured))
}

impl Overheads {
    /// The cost of a timer entry; `None`: fewer than eight could be seen, so it is not known.
    pub fn entry_ns(&self) -> Option<u64> {
        let [_, timers, ..] = self.samples;
        (timers >= LEAST_SAMPLES).then_some(self.timer_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::outcome::Mode;

    #[test]
    fn what_was_seen_too_rarely_is_not_known() {
        let measured = |samples: usize| Measured {
            ticks: vec![1_000; samples],
            missing_ns: 0,
        };
        assert_eq!(known(&measured(0)), None);
        assert_eq!(known(&measured(LEAST_SAMPLES - 1)), None);
        assert!(known(&measured(LEAST_SAMPLES)).is_some_and(|entry| entry > 0));
        let (enough, few) = (measured(LEAST_SAMPLES), measured(LEAST_SAMPLES - 1));
        let of = |timers| Overheads::of([&enough, timers, &enough, &enough], 0, Mode::BestEffort);
        assert_eq!(of(&few).entry_ns(), None);
        assert_eq!(of(&enough).entry_ns(), Some(of(&enough).timer_ns));
    }
}
