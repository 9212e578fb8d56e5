//! The trajectory as it was flown: bounded, and allocated before the first step.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::reference::{Row, RowBits};

/// Rows written by the dynamics step, read after the run.
///
/// A full recording keeps its beginning: later rows are dropped.
#[derive(Debug)]
pub(crate) struct Recording {
    rows: Vec<[AtomicU64; 3]>,
    recorded: AtomicUsize,
}

impl Recording {
    /// Room for `capacity` rows, 24 bytes each.
    pub(crate) fn new(capacity: usize) -> Recording {
        // Written now with something other than zero: every page is there before the run.
        let unwritten = || AtomicU64::new(f64::NAN.to_bits());
        let rows = (0..capacity)
            .map(|_| [unwritten(), unwritten(), unwritten()])
            .collect();
        Recording {
            rows,
            recorded: AtomicUsize::new(0),
        }
    }

    /// Appends a row. O(1), without allocation; for one writer at a time.
    pub(crate) fn push(&self, row: &Row) {
        let index = self.recorded.load(Ordering::Relaxed);
        if let Some(cells) = self.rows.get(index) {
            for (cell, bits) in cells.iter().zip(row.bits()) {
                cell.store(bits, Ordering::Relaxed);
            }
            // Release: who reads the count sees the rows that it counts.
            self.recorded.store(index + 1, Ordering::Release);
        }
    }

    /// The rows recorded so far, in order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = RowBits> + '_ {
        let recorded = self.recorded.load(Ordering::Acquire);
        let bits = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        self.rows
            .iter()
            .take(recorded)
            .map(move |[a, b, c]| [bits(a), bits(b), bits(c)])
    }

    /// How many rows were recorded.
    pub(crate) fn len(&self) -> usize {
        self.recorded.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(altitude: f64) -> Row {
        Row {
            altitude,
            vertical_speed: 0.0,
            airspeed: 1.0,
        }
    }

    #[test]
    fn a_full_recording_keeps_its_beginning() {
        let recording = Recording::new(2);
        for altitude in [1.0, 2.0, 3.0] {
            recording.push(&row(altitude));
        }
        assert_eq!(recording.len(), 2);
        assert!(recording.rows().eq([row(1.0).bits(), row(2.0).bits()]));
    }
}
