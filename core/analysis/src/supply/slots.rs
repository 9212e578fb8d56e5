//! A slot table: fixed intervals of a frame that repeats
//!
//! ```text
//!  0      at₁      e₁     at₂  e₂            F
//!  |-------[########]------[####]-------------|      a window that begins at e₁ waits for at₂
//! ```
//!
//! # Assumptions
//! 1. The owner has the whole processor in its intervals, but for what the machine takes; nobody
//!    else has any of it. Sections and ceilings of others end at the boundary.
//! 2. In a window of any length the least is supplied when it begins where a slot ends: a later
//!    beginning only drops idle time, an earlier one has service in front. So every slot's end is
//!    asked about, and the worst answer is exact for arrivals that may begin anywhere.
//!
//! Sources: CompOSe (Hansson et al. 2009, §3: constant slots); Wandeler and Thiele 2006 (supply of
//! a table with several slots).

use alloc::vec::Vec;

use crate::utilization::{Ratio, gcd};

/// Most intervals of a table made of two: the rest would take too long to search.
const MAX_INTERVALS: u64 = 4_096;

/// Disjoint intervals [start, end) of a frame, in order; none is empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SlotTable {
    frame: u64,
    intervals: Vec<(u64, u64)>,
    /// Supply before each interval of one frame.
    before: Vec<u64>,
    total: u64,
}

impl SlotTable {
    /// A table of these intervals, each inside the frame and shortened by `overhead` at its start;
    /// `None` when nothing is left, or they leave the frame or overlap. O(n log n).
    pub(crate) fn new(frame: u64, slots: &[(u64, u64)], overhead: u64) -> Option<SlotTable> {
        let mut intervals: Vec<(u64, u64)> = Vec::with_capacity(slots.len());
        let mut sorted = slots.to_vec();
        sorted.sort_unstable();
        for (at, length) in sorted {
            let end = at.checked_add(length)?;
            if end > frame || intervals.last().is_some_and(|last| last.1 > at) {
                return None;
            }
            intervals.push((at, end));
        }
        let shortened = intervals
            .into_iter()
            .map(|(start, end)| (start.saturating_add(overhead), end));
        SlotTable::of(frame, shortened.filter(|(s, e)| s < e).collect())
    }

    fn of(frame: u64, intervals: Vec<(u64, u64)>) -> Option<SlotTable> {
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(intervals.len());
        for (start, end) in intervals {
            match joined.last_mut() {
                Some(last) if last.1 == start => last.1 = end,
                _ => joined.push((start, end)),
            }
        }
        let mut before = Vec::with_capacity(joined.len());
        let mut total = 0;
        for (start, end) in &joined {
            before.push(total);
            total += end - start;
        }
        (total > 0).then_some(SlotTable {
            frame,
            intervals: joined,
            before,
            total,
        })
    }

    /// What two tables have in common, over the least frame in which both repeat; `None` when that
    /// is nothing, or too long. O(intervals of that frame).
    pub(crate) fn common(&self, other: &SlotTable) -> Option<SlotTable> {
        let frame = (self.frame / gcd(self.frame, other.frame)).checked_mul(other.frame)?;
        let (mine, theirs) = (self.repeated(frame)?, other.repeated(frame)?);
        let mut intervals = Vec::new();
        let (mut i, mut j) = (0, 0);
        while let (Some(a), Some(b)) = (mine.get(i), theirs.get(j)) {
            let (start, end) = (a.0.max(b.0), a.1.min(b.1));
            if start < end {
                intervals.push((start, end));
            }
            if a.1 < b.1 {
                i += 1;
            } else {
                j += 1;
            }
        }
        SlotTable::of(frame, intervals)
    }

    fn repeated(&self, frame: u64) -> Option<Vec<(u64, u64)>> {
        let times = frame / self.frame;
        if times.checked_mul(self.intervals.len() as u64)? > MAX_INTERVALS {
            return None;
        }
        let shifted = |k: u64| {
            let shift = k * self.frame;
            self.intervals
                .iter()
                .map(move |&(start, end)| (start + shift, end + shift))
        };
        Some((0..times).flat_map(shifted).collect())
    }

    /// The time between the slots, as (start, length) in the frame.
    pub(crate) fn gaps(&self) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        let mut at = 0;
        for &(start, end) in &self.intervals {
            if start > at {
                gaps.push((at, start - at));
            }
            at = end;
        }
        if self.frame > at {
            gaps.push((at, self.frame - at));
        }
        gaps
    }

    /// The ends of slots at which a window may begin.
    pub(crate) fn phases(&self) -> usize {
        self.intervals.len()
    }

    /// The instant in the frame at which a window of this phase begins.
    pub(crate) fn begins(&self, phase: usize) -> u64 {
        self.intervals.get(phase).map_or(0, |&(_, end)| end)
    }

    /// How long `work` (above zero) takes from the end of slot number `phase` on; `None` beyond 64
    /// bits. O(log n).
    pub(crate) fn time_for(&self, phase: usize, work: u64) -> Option<u64> {
        let (_, begin) = *self.intervals.get(phase)?;
        // Supply from the start of the frame up to `begin` counts as done.
        let done = self.before.get(phase)? + (begin - self.intervals[phase].0);
        let wanted = done.checked_add(work)?;
        let frames = (wanted - 1) / self.total;
        let rest = wanted - frames * self.total;
        let index = self.before.partition_point(|&before| before < rest) - 1;
        let within = self.intervals[index].0 + (rest - self.before[index]);
        (frames.checked_mul(self.frame)?)
            .checked_add(within)?
            .checked_sub(begin)
    }

    /// Length of the frame.
    pub(crate) fn frame(&self) -> u64 {
        self.frame
    }

    /// Service in one frame.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The share that belongs to others or to nobody.
    pub(crate) fn missing(&self) -> Ratio {
        Ratio {
            demand: self.frame - self.total,
            separation: self.frame,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The twin: counts tick by tick.
    fn counted(frame: u64, slots: &[(u64, u64)], begin: u64, work: u64) -> u64 {
        let on = |t: u64| {
            slots
                .iter()
                .any(|&(at, length)| (at..at + length).contains(&(t % frame)))
        };
        let mut done = 0;
        (begin..)
            .find(|&t| {
                done += u64::from(on(t));
                done == work
            })
            .map_or(0, |t| t + 1 - begin)
    }

    #[test]
    fn every_phase_takes_as_long_as_counting_ticks() {
        for slots in [
            &[(0, 3)][..],
            &[(2, 3), (7, 1)],
            &[(1, 2), (3, 2), (8, 2)],
            &[(0, 10)],
        ] {
            let table = SlotTable::new(10, slots, 0).expect("inside the frame");
            for phase in 0..table.phases() {
                for work in 1..30 {
                    let begin = table.begins(phase);
                    let expected = counted(10, slots, begin, work);
                    assert_eq!(
                        table.time_for(phase, work),
                        Some(expected),
                        "{slots:?} {work}"
                    );
                }
            }
        }
    }

    #[test]
    fn no_beginning_is_worse_than_the_end_of_some_slot() {
        for slots in [&[(0, 3)][..], &[(2, 3), (7, 1)], &[(1, 2), (3, 2), (8, 2)]] {
            let table = SlotTable::new(10, slots, 0).expect("inside the frame");
            for work in 1..30 {
                let worst = (0..10).map(|begin| counted(10, slots, begin, work)).max();
                let phases = 0..table.phases();
                let found = phases.filter_map(|p| table.time_for(p, work)).max();
                assert_eq!(found, worst, "{slots:?} {work}");
            }
        }
    }

    #[test]
    fn tables_that_overlap_or_leave_the_frame_are_refused() {
        assert_eq!(SlotTable::new(10, &[(0, 3), (2, 2)], 0), None);
        assert_eq!(SlotTable::new(10, &[(8, 3)], 0), None);
        assert_eq!(SlotTable::new(10, &[(8, 1)], 1), None, "nothing is left");
    }

    #[test]
    fn two_tables_share_what_both_have() {
        let outer = SlotTable::new(10, &[(0, 6)], 0).expect("inside");
        let inner = SlotTable::new(4, &[(1, 2)], 0).expect("inside");
        let common = outer.common(&inner).expect("they meet");
        assert_eq!(common.frame(), 20);
        assert_eq!(common.intervals, [(1, 3), (5, 6), (10, 11), (13, 15)]);
        assert_eq!(common.gaps().len(), 5);
    }
}
