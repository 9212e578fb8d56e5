//! A lock for the engine's own lists: held for some dozen instructions, waited for in the kernel.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};

use punctual_switch::instructions::pause;

use crate::sys;

const FREE: u32 = 0;
const HELD: u32 = 1;
const WANTED: u32 = 2;

/// Looks before a waiter sleeps: a holder that runs is through by then.
const LOOKS: u32 = 60;

/// A value that one at a time may use.
#[derive(Debug)]
pub(crate) struct Lock<T> {
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the word lets one at a time reach the value.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The right to use the value until dropped.
#[derive(Debug)]
pub(crate) struct Held<'a, T>(&'a Lock<T>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock {
            word: AtomicU32::new(FREE),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the value. It touches nothing behind the thread pointer.
    pub(crate) fn lock(&self) -> Held<'_, T> {
        if !self.try_as(HELD) {
            self.wait();
        }
        Held(self)
    }

    /// Takes the lock for a time that no value covers: until [`Lock::let_go`].
    pub(crate) fn hold(&self) {
        core::mem::forget(self.lock());
    }

    /// Ends [`Lock::hold`].
    pub(crate) fn let_go(&self) {
        drop(Held(self));
    }

    fn try_as(&self, value: u32) -> bool {
        let order = (Ordering::Acquire, Ordering::Relaxed);
        let taken = self.word.compare_exchange(FREE, value, order.0, order.1);
        taken.is_ok()
    }

    #[cold]
    fn wait(&self) {
        for _ in 0..LOOKS {
            pause();
            if self.word.load(Ordering::Relaxed) == FREE && self.try_as(HELD) {
                return;
            }
        }
        while self.word.swap(WANTED, Ordering::Acquire) != FREE {
            sys::futex_wait(&self.word, WANTED);
        }
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the word says that nobody else is here.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the word says that nobody else is here.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        if self.0.word.swap(FREE, Ordering::Release) == WANTED {
            sys::futex_wake(&self.0.word, 1);
        }
    }
}
