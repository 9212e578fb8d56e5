//! The clock of a tile: instants of the run, and the time that its thread has executed

use punctual_linux::{clock_rate, job};
use punctual_model::{Frequency, Instant, Ns, Work};

/// Readings of one light thread, or outside of a run of the wall clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    frequency: Frequency,
    start: std::time::Instant,
}

/// One reading.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) now: Instant,
    pub(crate) executed: Work,
}

impl Meter {
    pub(crate) fn new() -> Meter {
        Meter {
            frequency: clock_rate().frequency,
            start: std::time::Instant::now(),
        }
    }

    #[inline]
    pub(crate) fn read(&self) -> Reading {
        match job::executed() {
            Some((now, executed)) => Reading { now, executed },
            None => self.read_wall(),
        }
    }

    #[cold]
    fn read_wall(&self) -> Reading {
        let ns = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let ticks = self.frequency.ticks_down(ns);
        Reading {
            now: Instant::from_ticks(ticks),
            executed: Work::from_ticks(ticks),
        }
    }

    pub(crate) fn ticks(&self, work: Work<Ns>) -> u64 {
        self.frequency.ticks_up(work.as_ns())
    }

    pub(crate) fn frequency(&self) -> Frequency {
        self.frequency
    }
}
