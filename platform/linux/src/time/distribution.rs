//! Spans that were seen, as a distribution.
//!
//! Kept in parts of powers of two, so that recording is a shift and an addition.

use core::cell::Cell;

use punctual_model::Span;

/// Parts of each power of two: a figure is at most one sixteenth above what was seen.
const PARTS: u64 = 1 << PARTS_SHIFT;
const PARTS_SHIFT: u32 = 4;
/// A row of [`PARTS`] for the small values, and one for each power of two above.
const PLACES: usize = ((u64::BITS - PARTS_SHIFT + 1) << PARTS_SHIFT) as usize;

/// How often spans of each length were seen. One kernel thread at a time.
#[derive(Debug)]
pub(crate) struct Distribution {
    counts: Box<[Cell<u32>]>,
    longest: Cell<Span>,
}

impl Distribution {
    /// Nothing so far. Allocates 4 KiB.
    pub(crate) fn new() -> Distribution {
        Distribution {
            counts: vec![Cell::new(0); PLACES].into_boxed_slice(),
            longest: Cell::new(Span::ZERO),
        }
    }

    /// One more. O(1).
    #[cold]
    #[inline(never)]
    pub(crate) fn keep(&self, span: Span) {
        let count = &self.counts[place_of(span.ticks())];
        count.set(count.get().saturating_add(1));
        self.longest.set(self.longest.get().max(span));
    }

    /// How many there were. O(parts).
    pub(crate) fn count(&self) -> u64 {
        let counts = self.counts.iter();
        counts.map(|count| u64::from(count.get())).sum()
    }

    /// The longest one.
    pub(crate) fn longest(&self) -> Span {
        self.longest.get()
    }

    /// A span that `per_mille` of all do not exceed, by nearest rank, rounded up to the end of its
    /// part; zero without any. O(parts).
    pub(crate) fn quantile(&self, per_mille: u64) -> Span {
        let counts = || self.counts.iter().map(|count| u64::from(count.get()));
        let rank = (self.count() * per_mille).div_ceil(1_000).max(1);
        let mut seen = 0;
        let place = counts().position(|count| {
            seen += count;
            seen >= rank
        });
        place.map_or(Span::ZERO, |place| {
            Span::from_ticks(last_of(place)).min(self.longest.get())
        })
    }
}

/// The place of a value. The first places hold one value each; then the highest bit chooses a row
/// of [`PARTS`], and the bits behind it the place in the row.
fn place_of(value: u64) -> usize {
    let shift = (value | (PARTS - 1)).ilog2().saturating_sub(PARTS_SHIFT);
    // Below PLACES: at most 59 rows of 16, and 31 (so it has a place in any type).
    let part = usize::try_from(value >> shift).unwrap_or(0);
    ((shift as usize) << PARTS_SHIFT) + part
}

/// The largest value of a place.
fn last_of(place: usize) -> u64 {
    let place = place as u64;
    if place < 2 * PARTS {
        return place;
    }
    let shift = place / PARTS - 1;
    let part = place % PARTS + PARTS;
    ((part + 1) << shift).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_in_order_and_end_at_most_a_sixteenth_above_their_values() {
        let mut values: Vec<u64> = (0..5_000).collect();
        let powers = (0..64).map(|bit| 1_u64 << bit);
        values.extend(powers.flat_map(|power| [power - 1, power, power.saturating_add(power / 3)]));
        values.push(u64::MAX);
        values.sort_unstable();
        let places: Vec<usize> = values.iter().map(|&value| place_of(value)).collect();
        assert!(places.is_sorted());
        assert!(places.iter().all(|&place| place < PLACES));
        for (&value, &place) in values.iter().zip(&places) {
            let last = last_of(place);
            assert!(
                value <= last && last - value <= value / PARTS,
                "{value}: {last}"
            );
        }
    }

    #[test]
    fn quantiles_are_spans_by_nearest_rank() {
        let seen = Distribution::new();
        assert_eq!(seen.quantile(500), Span::ZERO);
        (0..100).for_each(|n| seen.keep(Span::from_ticks(n)));
        assert_eq!(seen.count(), 100);
        assert_eq!(seen.quantile(0), Span::ZERO);
        assert_eq!(seen.quantile(250), Span::from_ticks(24));
        // 49 shares its part with 48, the part ends with it.
        assert_eq!(seen.quantile(500), Span::from_ticks(49));
        // 98 lies in 96..=99, and nothing longer than 99 was seen.
        assert_eq!(seen.quantile(990), Span::from_ticks(99));
        assert_eq!(seen.longest(), Span::from_ticks(99));
    }
}
