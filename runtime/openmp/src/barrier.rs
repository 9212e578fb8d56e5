//! The words of a barrier: arrivals, the generation, and threads that sleep until the next one.
//!
//! The last that arrives begins the next generation and looks, behind a fence, whether anybody
//! sleeps. One who is about to sleep says so first and looks at the generation behind a fence. A
//! thread is taken out of its place by an exchange: by the last one, or by itself.
//!
//! Every operation is wait-free: O(1).

use crate::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};

/// The words that all members share, on a cache line of their own.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Barrier {
    arrived: AtomicUsize,
    generation: AtomicU64,
    parked: AtomicUsize,
}

/// The place of one member: the thread that sleeps there.
#[derive(Debug)]
pub(crate) struct Place<T>(AtomicPtr<T>);

impl<T> Place<T> {
    pub(crate) fn new() -> Place<T> {
        Place(AtomicPtr::new(core::ptr::null_mut()))
    }
}

impl Barrier {
    pub(crate) fn new() -> Barrier {
        Barrier {
            arrived: AtomicUsize::new(0),
            generation: AtomicU64::new(0),
            parked: AtomicUsize::new(0),
        }
    }

    /// One of `size` has arrived. `true`: it was the last, and threads may sleep in their places.
    #[inline]
    pub(crate) fn arrive(&self, size: usize) -> bool {
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 < size {
            return false;
        }
        self.arrived.store(0, Ordering::Relaxed);
        // From here on others may arrive at the next one.
        self.generation.fetch_add(1, Ordering::Release);
        fence(Ordering::SeqCst);
        self.parked.load(Ordering::Relaxed) != 0
    }

    /// The number of the generation: all that members wrote before it began is seen.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Says which thread sleeps until the generation is no longer `passed`; `false`: that has
    /// come, and nobody will tell it.
    pub(crate) fn park<T>(&self, place: &Place<T>, thread: *mut T, passed: u64) -> bool {
        // An exchange, as in `unpark`: all changes of the word are in one order.
        place.0.swap(thread, Ordering::Release);
        self.parked.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // Somebody else may have taken it out already, and tells it.
        self.generation() == passed || self.unpark(place).is_null()
    }

    /// Takes the thread out of a place; null: nobody is there.
    pub(crate) fn unpark<T>(&self, place: &Place<T>) -> *mut T {
        if place.0.load(Ordering::Relaxed).is_null() {
            return core::ptr::null_mut();
        }
        let thread = place.0.swap(core::ptr::null_mut(), Ordering::Acquire);
        if !thread.is_null() {
            self.parked.fetch_sub(1, Ordering::Relaxed);
        }
        thread
    }
}
