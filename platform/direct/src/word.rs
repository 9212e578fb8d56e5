//! The word of a helping lock.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// No holder: the place of the scheduler's own thread, which never locks.
pub(crate) const NOBODY: usize = 0;

/// Who holds a lock, and who wants it. Other CPUs may see it, and are refused by `home`. Taken by
/// a sequence that a preemption sends back to its beginning, which costs a tenth of an atomic
/// instruction (design note 0017).
pub(crate) struct Word {
    /// The number of the scheduler that it belongs to; 0: none yet.
    pub(crate) home: AtomicU64,
    /// The place of the holder, or [`NOBODY`].
    pub(crate) holder: AtomicUsize,
    /// Who found it taken last; [`NOBODY`] since it was given back.
    pub(crate) contender: AtomicUsize,
}

impl Word {
    pub(crate) const fn new() -> Word {
        Word {
            home: AtomicU64::new(0),
            holder: AtomicUsize::new(NOBODY),
            contender: AtomicUsize::new(NOBODY),
        }
    }

    pub(crate) fn holder(&self) -> usize {
        self.holder.load(Ordering::Relaxed)
    }
}
