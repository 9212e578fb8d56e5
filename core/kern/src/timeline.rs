//! Pending releases, replenishments and timeouts: the next instant that matters.

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
    heap: IndexedHeap<(Instant, u32, u32)>,
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
        self.heap.set(id, (at, order, id));
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
        self.heap.first().map(|(key, _)| key.0)
    }

    /// The earliest timer, its thread and what it is for; it stays until moved or cancelled.
    #[inline]
    pub(crate) fn first(&self) -> Option<(Instant, usize, Timer)> {
        let ((at, _, _), id) = self.heap.first()?;
        let timer = if id % 2 == 0 {
            Timer::Release
        } else {
            Timer::Timeout
        };
        Some((at, (id / 2) as usize, timer))
    }
}
