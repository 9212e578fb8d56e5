//! A model of a cache of data: sets of sixteen lines, of which the one longest not used goes.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of a line.
pub(crate) const LINE: u64 = 64;

const WAYS: usize = 16;

/// A cache of so many sets. Empty at first.
pub(crate) struct Cache<const SETS: usize>([[AtomicU64; WAYS]; SETS]);

impl<const SETS: usize> Cache<SETS> {
    /// How many lines it holds.
    pub(crate) const LINES: u64 = (WAYS * SETS) as u64;

    pub(crate) const fn new() -> Self {
        Cache([const { [const { AtomicU64::new(0) }; WAYS] }; SETS])
    }

    /// The bytes are read or written: how many lines of them were not there.
    pub(crate) fn touch(&self, at: u64, bytes: u64) -> u64 {
        let last = at.wrapping_add(bytes.saturating_sub(1)) / LINE;
        let lines = at / LINE..=last;
        lines.map(|line| u64::from(!self.touch_line(line))).sum()
    }

    /// Whether it was there. Of a set, the line that was used last is the first.
    fn touch_line(&self, line: u64) -> bool {
        let set = &self.0[usize::try_from(line).unwrap_or(0) % SETS];
        // No line is 0, which says that a place is empty.
        let mut moving = line + 1;
        for place in set {
            let held = place.swap(moving, Relaxed);
            if held == line + 1 {
                return true;
            }
            moving = held;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_until_sixteen_others_of_its_set_were_used() {
        let cache: Cache<4> = Cache::new();
        // Every fourth line is in the same set.
        let line = |number: u64| number * 4 * LINE;
        for number in 0..16 {
            assert_eq!(cache.touch(line(number), 8), 1, "{number} is new");
        }
        assert_eq!(cache.touch(line(0), 8), 0, "the oldest, used again");
        assert_eq!(cache.touch(line(16), 8), 1);
        assert_eq!(cache.touch(line(0), 8), 0, "used since");
        assert_eq!(cache.touch(line(1), 8), 1, "it went for the seventeenth");
        assert_eq!(cache.touch(line(0) + LINE, 8), 1, "another set");
        assert_eq!(Cache::<4>::LINES, 64);
    }

    #[test]
    fn an_access_that_crosses_a_line_touches_both() {
        let cache: Cache<4> = Cache::new();
        assert_eq!(cache.touch(60, 8), 2);
        assert_eq!(cache.touch(60, 4), 0);
        assert_eq!(cache.touch(64, 64), 0);
        assert_eq!(cache.touch(0, 0), 0, "it touches where it is");
    }
}
