//! The words that a signal shares with the code that it interrupts.
//!
//! Both are on one kernel thread. Modules that are about nothing but such words (`gate`, `ring`)
//! take them from here, so that the crate `interleave` can compile the same files with words that
//! let a signal come before each access.

use core::cell::UnsafeCell;

pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};

/// A place whose content belongs to one side at a time; to which, words say.
#[derive(Debug)]
pub(crate) struct Place<T>(UnsafeCell<T>);

impl<T: Copy> Place<T> {
    pub(crate) const fn new(value: T) -> Place<T> {
        Place(UnsafeCell::new(value))
    }

    /// # Safety
    /// The other side is not at this place now.
    #[inline(always)]
    pub(crate) unsafe fn put(&self, value: T) {
        // SAFETY: as the caller vouches.
        unsafe { *self.0.get() = value };
    }

    /// # Safety
    /// The other side puts nothing here now.
    #[inline(always)]
    pub(crate) unsafe fn get(&self) -> T {
        // SAFETY: as the caller vouches.
        unsafe { *self.0.get() }
    }
}
