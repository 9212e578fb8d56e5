//! The clock of a tile: instants of the run, and the time that its thread has executed

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_linux::{clock_rate, job};
use punctual_model::{Frequency, Instant, Ns, Work};

/// Readings of one light thread, or outside of a run of the wall clock.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    frequency: Frequency,
    start: std::time::Instant,
    /// Ticks that others have executed on the same light thread.
    others: Option<Arc<AtomicU64>>,
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
            others: None,
        }
    }

    /// One that does not count what others execute on the same light thread, which is noted there.
    pub(crate) fn without(others: Arc<AtomicU64>) -> Meter {
        Meter {
            others: Some(others),
            ..Meter::new()
        }
    }

    #[inline]
    pub(crate) fn read(&self) -> Reading {
        let Some(others) = &self.others else {
            return self.read_all();
        };
        loop {
            let before = others.load(Ordering::Relaxed);
            let all = self.read_all();
            // Others may have executed between the two.
            if others.load(Ordering::Relaxed) == before {
                let executed = all.executed.ticks().saturating_sub(before);
                return Reading {
                    executed: Work::from_ticks(executed),
                    ..all
                };
            }
        }
    }

    #[inline]
    fn read_all(&self) -> Reading {
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
