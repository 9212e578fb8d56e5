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
//!    examined, and the worst answer is exact for arrivals that may begin anywhere.
//!
//! Sources: CompOSe (Hansson et al. 2009, §3: constant slots); Wandeler and Thiele 2006 (supply of
//! a table with several slots).

use alloc::vec::Vec;

use crate::units::{Span, UNIT, Work};
use crate::utilization::{Ratio, gcd};

/// Most intervals of a table made of two: the rest would take too long to search.
const MAX_INTERVALS: u64 = 4_096;

/// Disjoint intervals [start, end) of a frame, in order; none is empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SlotTable {
    frame: Span,
    intervals: Vec<(Span, Span)>,
    /// Supply before each interval of one frame.
    before: Vec<Work>,
    total: Work,
}

impl SlotTable {
    /// A table of these intervals, each inside the frame and shortened by `overhead` at its start;
    /// `None` when nothing is left, or they leave the frame or overlap. O(n log n).
    pub(crate) fn new(frame: Span, slots: &[(Span, Span)], overhead: Work) -> Option<SlotTable> {
        let mut intervals: Vec<(Span, Span)> = Vec::with_capacity(slots.len());
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
            .map(|(start, end)| (start.saturating_add(overhead.as_span()), end));
        SlotTable::of(frame, shortened.filter(|(s, e)| s < e).collect())
    }

    fn of(frame: Span, intervals: Vec<(Span, Span)>) -> Option<SlotTable> {
        let mut joined: Vec<(Span, Span)> = Vec::with_capacity(intervals.len());
        for (start, end) in intervals {
            match joined.last_mut() {
                Some(last) if last.1 == start => last.1 = end,
                _ => joined.push((start, end)),
            }
        }
        let mut before = Vec::with_capacity(joined.len());
        let mut total = Work::ZERO;
        for (start, end) in &joined {
            before.push(total);
            total = total.saturating_add(end.saturating_sub(*start).as_work());
        }
        (!total.is_zero()).then_some(SlotTable {
            frame,
            intervals: joined,
            before,
            total,
        })
    }

    /// The intervals that two tables have in common, over the least frame in which both repeat;
    /// `None` when there are none, or [`SlotTable::repeats_too_late`]. O(intervals of that frame).
    pub(crate) fn common(&self, other: &SlotTable) -> Option<SlotTable> {
        let frame = self.common_frame(other)?;
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

    /// Whether both repeat together only in a frame that is too long for [`SlotTable::common`].
    pub(crate) fn repeats_too_late(&self, other: &SlotTable) -> bool {
        let few = |table: &SlotTable, frame| table.count_in(frame).is_some();
        !self
            .common_frame(other)
            .is_some_and(|frame| few(self, frame) && few(other, frame))
    }

    /// The least frame in which both repeat.
    fn common_frame(&self, other: &SlotTable) -> Option<Span> {
        let frames = self.frame / gcd(self.frame, other.frame);
        other.frame.checked_mul(frames)
    }

    /// How often its own frame is in `frame`; `None`: it would have too many intervals there.
    fn count_in(&self, frame: Span) -> Option<u64> {
        let times = frame / self.frame;
        let intervals = times.checked_mul(self.intervals.len() as u64)?;
        (intervals <= MAX_INTERVALS).then_some(times)
    }

    fn repeated(&self, frame: Span) -> Option<Vec<(Span, Span)>> {
        let times = self.count_in(frame)?;
        let shifted = |k: u64| {
            let shift = self.frame.saturating_mul(k);
            self.intervals
                .iter()
                .map(move |&(start, end)| (start.saturating_add(shift), end.saturating_add(shift)))
        };
        Some((0..times).flat_map(shifted).collect())
    }

    /// The time between the slots, as (start, length) in the frame.
    pub(crate) fn gaps(&self) -> Vec<(Span, Span)> {
        let ends = self.intervals.iter().map(|&(_, end)| end);
        let begins = [Span::ZERO].into_iter().chain(ends);
        let starts = self.intervals.iter().map(|&(start, _)| start);
        let gaps = begins.zip(starts.chain([self.frame]));
        let gaps = gaps.map(|(at, next)| (at, next.saturating_sub(at)));
        gaps.filter(|(_, length)| !length.is_zero()).collect()
    }

    /// The ends of slots at which a window may begin.
    pub(crate) fn phases(&self) -> usize {
        self.intervals.len()
    }

    /// The instant in the frame at which a window of this phase begins.
    pub(crate) fn begins(&self, phase: usize) -> Span {
        self.intervals
            .get(phase)
            .map_or(Span::ZERO, |&(_, end)| end)
    }

    /// How long `work` (above zero) takes from the end of slot number `phase` on; `None` beyond 64
    /// bits. O(log n).
    pub(crate) fn time_for(&self, phase: usize, work: Work) -> Option<Span> {
        let (start, begin) = *self.intervals.get(phase)?;
        // Supply from the start of the frame up to `begin` counts as done.
        let done = self
            .before
            .get(phase)?
            .checked_add(begin.checked_sub(start)?.as_work())?;
        let before = done.checked_add(work)?.checked_sub(UNIT)?;
        let rest = (before % self.total).saturating_add(UNIT);
        let index = self.before.partition_point(|&before| before < rest) - 1;
        let late = rest.saturating_sub(self.before[index]).as_span();
        let within = self.intervals[index].0.checked_add(late)?;
        let frames = self.frame.checked_mul(before / self.total)?;
        frames.checked_add(within)?.checked_sub(begin)
    }

    /// The shortest interval.
    pub(crate) fn shortest(&self) -> Work {
        let lengths = self
            .intervals
            .iter()
            .map(|(start, end)| end.saturating_sub(*start));
        lengths.min().unwrap_or(Span::ZERO).as_work()
    }

    /// The longest time from the start of a slot until `rest` has been executed from the start of
    /// the slot that is `slots` later; `None` beyond 64 bits. O(slots of a frame).
    pub(crate) fn longest_to(&self, slots: u64, rest: Work) -> Option<Span> {
        let count = self.intervals.len();
        let mut longest = Span::ZERO;
        for (first, &(from, _)) in self.intervals.iter().enumerate() {
            let last = slots.checked_add(first as u64)?;
            let place = usize::try_from(last % count as u64).ok()?;
            let frames = self.frame.checked_mul(last / count as u64)?;
            let start = frames.checked_add(self.intervals[place].0)?;
            let end = start.checked_add(rest.as_span())?;
            longest = longest.max(end.checked_sub(from)?);
        }
        Some(longest)
    }

    /// Length of the frame.
    pub(crate) fn frame(&self) -> Span {
        self.frame
    }

    /// Service in one frame.
    pub(crate) fn total(&self) -> Work {
        self.total
    }

    /// The share that belongs to others or to nobody.
    pub(crate) fn missing(&self) -> Ratio {
        let missing = self.frame.as_work().saturating_sub(self.total);
        Ratio::of(missing, self.frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(frame: u64, slots: &[(u64, u64)], overhead: u64) -> Option<SlotTable> {
        let span = |&(at, length): &(u64, u64)| (Span::from_ns(at), Span::from_ns(length));
        let slots: Vec<_> = slots.iter().map(span).collect();
        SlotTable::new(Span::from_ns(frame), &slots, Work::from_ns(overhead))
    }

    fn time_for(table: &SlotTable, phase: usize, work: u64) -> Option<u64> {
        let time = table.time_for(phase, Work::from_ns(work));
        time.map(Span::as_ns)
    }

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
            let table = table(10, slots, 0).expect("inside the frame");
            for phase in 0..table.phases() {
                for work in 1..30 {
                    let begin = table.begins(phase).as_ns();
                    let expected = counted(10, slots, begin, work);
                    assert_eq!(
                        time_for(&table, phase, work),
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
            let table = table(10, slots, 0).expect("inside the frame");
            for work in 1..30 {
                let worst = (0..10).map(|begin| counted(10, slots, begin, work)).max();
                let phases = 0..table.phases();
                let found = phases.filter_map(|p| time_for(&table, p, work)).max();
                assert_eq!(found, worst, "{slots:?} {work}");
            }
        }
    }

    #[test]
    fn tables_that_overlap_or_leave_the_frame_are_refused() {
        assert_eq!(table(10, &[(0, 3), (2, 2)], 0), None);
        assert_eq!(table(10, &[(8, 3)], 0), None);
        assert_eq!(table(10, &[(8, 1)], 1), None, "nothing is left");
    }

    #[test]
    fn two_tables_share_what_both_have() {
        let outer = table(10, &[(0, 6)], 0).expect("inside");
        let inner = table(4, &[(1, 2)], 0).expect("inside");
        let common = outer.common(&inner).expect("they meet");
        assert_eq!(common.frame(), Span::from_ns(20));
        let intervals = [(1, 3), (5, 6), (10, 11), (13, 15)];
        let span = |(start, end)| (Span::from_ns(start), Span::from_ns(end));
        assert_eq!(common.intervals, intervals.map(span));
        assert_eq!(common.gaps().len(), 5);
    }
}
