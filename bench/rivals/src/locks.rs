//! Locks that nobody else wants: one unit is a lock and its unlock.

use std::cell::UnsafeCell;
use std::mem::zeroed;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Samples;
use crate::batch::batches;
use crate::call::{check_number, futex};
use crate::thread::{Place, on};

/// Pairs of one batch.
const PAIRS: u32 = 500;

/// A compare-and-exchange and a store: the least that keeps two CPUs apart.
///
/// # Errors
/// None.
pub fn compare_exchange(place: Place) -> Samples {
    on(place, || {
        let word = Arc::new(AtomicU32::new(0));
        Ok(batches(PAIRS, || {
            for _ in 0..PAIRS {
                let word = std::hint::black_box(&*word);
                let taken = word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
                if taken.is_ok() {
                    word.store(0, Ordering::Release);
                }
            }
        }))
    })
}

/// `pthread_mutex_lock` and `unlock`.
///
/// # Errors
/// When the C library refuses.
pub fn pthread_mutex(place: Place) -> Samples {
    mutex(place, libc::PTHREAD_PRIO_NONE)
}

/// The same of a mutex with priority inheritance.
///
/// # Errors
/// When the C library refuses.
pub fn inheriting_mutex(place: Place) -> Samples {
    mutex(place, libc::PTHREAD_PRIO_INHERIT)
}

fn mutex(place: Place, protocol: i32) -> Samples {
    on(place, move || {
        let mutex = Pthread::new(protocol)?;
        Ok(batches(PAIRS, || {
            for _ in 0..PAIRS {
                mutex.lock();
                mutex.unlock();
            }
        }))
    })
}

/// A mutex of the C library.
pub(crate) struct Pthread(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: a mutex is made to be used by several threads; it stays in its box.
unsafe impl Send for Pthread {}
// SAFETY: as above.
unsafe impl Sync for Pthread {}

impl Pthread {
    pub(crate) fn new(protocol: i32) -> Result<Pthread, String> {
        // SAFETY: attributes are plain numbers, filled in by the next call.
        let mut attributes: libc::pthread_mutexattr_t = unsafe { zeroed() };
        // SAFETY: they live on this stack.
        check_number("mutexattr_init", unsafe {
            libc::pthread_mutexattr_init(&raw mut attributes)
        })?;
        // SAFETY: they have been initialized.
        check_number("mutexattr_setprotocol", unsafe {
            libc::pthread_mutexattr_setprotocol(&raw mut attributes, protocol)
        })?;
        let mutex = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        // SAFETY: the mutex stays in its box, and nobody else knows it yet.
        check_number("mutex_init", unsafe {
            libc::pthread_mutex_init(mutex.get(), &raw const attributes)
        })?;
        Ok(Pthread(mutex))
    }

    /// By a thread that does not hold it.
    pub(crate) fn lock(&self) {
        // SAFETY: initialized, and in its box until this value is gone.
        let _ = unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }

    /// By the thread that holds it.
    pub(crate) fn unlock(&self) {
        // SAFETY: as above.
        let _ = unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

impl Drop for Pthread {
    fn drop(&mut self) {
        // SAFETY: nobody else can reach it any more.
        let _ = unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}

/// The kernel's own lock with priority inheritance, always by two system calls.
///
/// # Errors
/// When the kernel refuses.
pub fn futex_lock_pi(place: Place) -> Samples {
    on(place, || {
        let word = AtomicU32::new(0);
        let mut refused = 0;
        let samples = batches(PAIRS, || {
            for _ in 0..PAIRS {
                refused |= futex(&word, libc::FUTEX_LOCK_PI | libc::FUTEX_PRIVATE_FLAG, 0);
                refused |= futex(&word, libc::FUTEX_UNLOCK_PI | libc::FUTEX_PRIVATE_FLAG, 0);
            }
        });
        match refused {
            0 => Ok(samples),
            _ => Err("the kernel has no FUTEX_LOCK_PI".into()),
        }
    })
}

/// A wake-up by futex for which nobody waits: one system call.
///
/// # Errors
/// None.
pub fn futex_wake_nobody(place: Place) -> Samples {
    on(place, || {
        let word = AtomicU32::new(0);
        Ok(batches(PAIRS, || {
            for _ in 0..PAIRS {
                let _nobody = futex(&word, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
            }
        }))
    })
}
