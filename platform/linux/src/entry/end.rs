//! The end of a run on a CPU: nothing unsettled after the horizon, a limit, or an order to stop.

use punctual_model::Instant;

use crate::record::input::RunOptions;
use crate::record::per_cpu::Shared;
use crate::time::clock::clock_rate;

/// When a run ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// Releases before this count.
    pub(crate) horizon: Instant,
    /// The run ends here in any case.
    pub(crate) limit: Instant,
}

impl End {
    /// The end of a run with these options.
    pub(crate) fn of(options: &RunOptions) -> End {
        let rate = clock_rate().frequency;
        let after = |ns| Instant::from_ticks(rate.ticks_up(ns));
        match options.duration_ns {
            Some(duration) => End {
                horizon: after(duration),
                limit: after(duration.saturating_add(options.grace_ns)),
            },
            None => End {
                horizon: Instant::MAX,
                limit: Instant::MAX,
            },
        }
    }

    /// When to look again whether the run has ended.
    pub(crate) fn next(&self, now: Instant) -> Instant {
        match now < self.horizon {
            true => self.horizon,
            false => self.limit,
        }
    }

    /// Whether the run has ended for a CPU whose core counts so many unsettled jobs.
    pub(crate) fn is_reached(&self, shared: &Shared, now: Instant, unsettled: u64) -> bool {
        shared.is_to_end() || now >= self.limit || (now >= self.horizon && unsettled == 0)
    }
}
