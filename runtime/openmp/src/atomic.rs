//! The words that members, carriers and thieves share.
//!
//! The files that are about such words take them from here, so that the crate `interleave` can
//! compile the same files with the words of a model checker.

pub(crate) use core::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

/// A place of a deque. The model checker knows when two are there at a time.
#[derive(Debug)]
pub(crate) struct Slot<T>(AtomicPtr<T>);

impl<T> Slot<T> {
    pub(crate) fn new() -> Slot<T> {
        Slot(AtomicPtr::new(core::ptr::null_mut()))
    }

    #[inline]
    pub(crate) fn put(&self, value: *mut T) {
        self.0.store(value, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> *mut T {
        self.0.load(Ordering::Relaxed)
    }
}
