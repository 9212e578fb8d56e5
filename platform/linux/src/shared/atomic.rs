//! The words and cells that several CPUs touch.
//!
//! Modules that are about nothing but such words take them from here (`ring`, `pending`, `mailbox`,
//! `ticket_lock`), so that the crate `interleave` can compile the same files with words of a model
//! checker and go through every order in which the accesses may be seen.

pub(crate) use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence,
};

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

/// A place whose content belongs to one CPU at a time; which one, atomic words say.
#[derive(Debug)]
pub(crate) struct Place<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: a place gives its content away by unsafe functions only, whose callers see to it that no
// two CPUs are there at a time.
unsafe impl<T: Send> Sync for Place<T> {}

impl<T: Copy> Place<T> {
    pub(crate) const fn empty() -> Place<T> {
        Place(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// # Safety
    /// Nobody else is at this place now.
    pub(crate) unsafe fn put(&self, value: T) {
        // SAFETY: as the caller vouches.
        unsafe { (*self.0.get()).write(value) };
    }

    /// # Safety
    /// Something was put here before, and nobody puts anything here now.
    pub(crate) unsafe fn get(&self) -> T {
        // SAFETY: as the caller vouches.
        unsafe { (*self.0.get()).assume_init() }
    }
}

/// Between two looks at a word that another CPU is about to change.
#[inline]
pub(crate) fn pause() {
    punctual_switch::instructions::pause();
}
