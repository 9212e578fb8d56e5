//! The words and bytes that two ends share.
//!
//! `ring` takes them from here, so that the crate `interleave` can compile it with those of a model
//! checker.

pub(crate) use core::sync::atomic::{AtomicU32, Ordering};

use alloc::boxed::Box;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use core::cell::UnsafeCell;

/// It is aligned as C aligns what it allocates.
type Chunk = u128;

const CHUNK: usize = size_of::<Chunk>();

/// Bytes of which each belongs to one end at a time; the counters say to which.
pub(crate) struct Bytes {
    chunks: Box<[UnsafeCell<Chunk>]>,
    len: usize,
}

// SAFETY: bytes are reached by unsafe functions only, whose callers see to it that the two ends
// never touch the same byte at a time.
unsafe impl Sync for Bytes {}

impl Bytes {
    /// So many zeros. Each is written, so that the pages exist.
    pub(crate) fn try_new(len: usize) -> Result<Bytes, TryReserveError> {
        let mut chunks = Vec::new();
        let count = len.div_ceil(CHUNK);
        chunks.try_reserve_exact(count)?;
        chunks.resize_with(count, || UnsafeCell::new(0));
        let chunks = chunks.into_boxed_slice();
        Ok(Bytes { chunks, len })
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn at(&self, from: usize, len: usize) -> *mut u8 {
        assert!(len <= self.len && from <= self.len - len, "in the FIFO");
        // The cells let whoever shares them write.
        let first = self.chunks.as_ptr().cast::<u8>().cast_mut();
        first.wrapping_add(from)
    }

    /// # Safety
    /// Nobody writes these bytes while the slice lives.
    #[inline]
    pub(crate) unsafe fn read(&self, from: usize, len: usize) -> &[u8] {
        // SAFETY: `at` has checked that they are inside; all are initialised; the caller vouches.
        unsafe { core::slice::from_raw_parts(self.at(from, len), len) }
    }

    /// # Safety
    /// Nobody else reads or writes these bytes while the slice lives.
    #[inline]
    #[expect(
        clippy::mut_from_ref,
        reason = "the caller vouches that nobody else is there"
    )]
    pub(crate) unsafe fn write(&self, from: usize, len: usize) -> &mut [u8] {
        // SAFETY: as in `read`; the bytes are in cells.
        unsafe { core::slice::from_raw_parts_mut(self.at(from, len), len) }
    }
}
