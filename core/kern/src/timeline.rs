//! Pending releases, replenishments and timeouts: the next instant that matters.

use core::cmp::Ordering;

use punctual_model::Instant;
use punctual_order::IndexedHeap;

/// What a timer is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timer {
    /// The next release of a thread, or the replenishment of a throttled one.
    Release,
    /// The end of a wait.
    Timeout,
}

/// Two timers per thread in one heap; equal instants in the order of the file.
#[derive(Debug)]
pub(crate) struct Timeline {
    heap: IndexedHeap<Due>,
}

/// An instant, then the order of the file, then the id. Two of them compare as one number of 128
/// bits, without a jump: a tuple of the same parts takes a comparison and a jump for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Due {
    at: Instant,
    /// The order above the id.
    rest: u64,
}

impl Due {
    #[inline]
    fn new(at: Instant, order: u32, id: u32) -> Due {
        let rest = u64::from(order) << 32 | u64::from(id);
        Due { at, rest }
    }

    #[inline]
    fn number(self) -> u128 {
        u128::from(self.at.ticks()) << 64 | u128::from(self.rest)
    }
}

impl Ord for Due {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.number().cmp(&other.number())
    }
}

impl PartialOrd for Due {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    #[inline]
    fn lt(&self, other: &Self) -> bool {
        self.number() < other.number()
    }

    #[inline]
    fn le(&self, other: &Self) -> bool {
        self.number() <= other.number()
    }
}

#[inline]
fn id_of(thread: usize, timer: Timer) -> u32 {
    u32::try_from(2 * thread + usize::from(timer == Timer::Timeout)).unwrap_or(u32::MAX)
}

impl Timeline {
    pub(crate) fn new(threads: usize) -> Self {
        Timeline {
            heap: IndexedHeap::new(threads * 2),
        }
    }

    #[inline]
    pub(crate) fn set(&mut self, thread: usize, timer: Timer, at: Instant, order: u32) {
        let id = id_of(thread, timer);
        self.heap.set(id, Due::new(at, order, id));
    }

    #[inline]
    pub(crate) fn cancel(&mut self, thread: usize, timer: Timer) {
        self.heap.remove(id_of(thread, timer));
    }

    pub(crate) fn is_set(&self, thread: usize, timer: Timer) -> bool {
        self.heap.contains(id_of(thread, timer))
    }

    #[inline]
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.first().map(|(due, _)| due.at)
    }

    /// The earliest timer, its thread and what it is for; it stays until moved or cancelled.
    #[inline]
    pub(crate) fn first(&self) -> Option<(Instant, usize, Timer)> {
        let (Due { at, .. }, id) = self.heap.first()?;
        let timer = if id % 2 == 0 {
            Timer::Release
        } else {
            Timer::Timeout
        };
        Some((at, (id / 2) as usize, timer))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn timers_are_in_the_order_of_instants_then_of_the_file_then_of_ids() {
        let instants = [0, 1, u64::MAX - 1, u64::MAX].map(Instant::from_ticks);
        let numbers = [0, 1, u32::MAX];
        let orders = move |at| numbers.into_iter().map(move |order| (at, order));
        let pairs = instants.into_iter().flat_map(orders);
        let all: Vec<(Instant, u32, u32)> = pairs
            .flat_map(|(at, order)| numbers.map(|id| (at, order, id)))
            .collect();
        let due = |&(at, order, id): &(Instant, u32, u32)| Due::new(at, order, id);
        for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
            assert_eq!(due(a).cmp(&due(b)), a.cmp(b), "{a:?} {b:?}");
            assert_eq!(due(a) < due(b), a < b, "{a:?} {b:?}");
            assert_eq!(due(a) <= due(b), a <= b, "{a:?} {b:?}");
        }
    }
}
