//! The words that a recorder and its drain share.
//!
//! `ring` takes them from here, so that the crate `interleave` can compile the same file with words
//! of a model checker.

use core::sync::atomic::AtomicU64;
pub(crate) use core::sync::atomic::{AtomicUsize, Ordering};

/// A word that belongs to one thread at a time; other words say to which.
#[derive(Debug)]
pub(crate) struct Word(AtomicU64);

impl Word {
    pub(crate) const fn new(value: u64) -> Word {
        Word(AtomicU64::new(value))
    }

    #[inline(always)]
    pub(crate) fn put(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn into_inner(self) -> u64 {
        self.0.into_inner()
    }
}
