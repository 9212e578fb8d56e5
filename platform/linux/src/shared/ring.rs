//! A ring of messages with one sender and one receiver.
//!
//! The sender writes `written`, the receiver `read`; a place is the sender's from when `read` has
//! passed it until `written` covers it. Checked in every order of its accesses by `interleave`.

use super::atomic::{AtomicUsize, Ordering, Place};

/// Holds `SLOTS` messages; a full one refuses.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Ring<T, const SLOTS: usize> {
    /// Written by the sender.
    written: AtomicUsize,
    /// Written by the receiver.
    read: AtomicUsize,
    places: [Place<T>; SLOTS],
}

impl<T: Copy, const SLOTS: usize> Ring<T, SLOTS> {
    pub(crate) fn new() -> Ring<T, SLOTS> {
        Ring {
            written: AtomicUsize::new(0),
            read: AtomicUsize::new(0),
            places: [(); SLOTS].map(|()| Place::empty()),
        }
    }

    /// `false`: it is full. Called by the sender only.
    pub(crate) fn push(&self, message: T) -> bool {
        let written = self.written.load(Ordering::Relaxed);
        if written.wrapping_sub(self.read.load(Ordering::Acquire)) == SLOTS {
            return false;
        }
        // SAFETY: the receiver has left this place (just checked), and this is the only sender.
        unsafe { self.places[written % SLOTS].put(message) };
        self.written
            .store(written.wrapping_add(1), Ordering::Release);
        true
    }

    /// The oldest message. Called by the receiver only.
    pub(crate) fn pop(&self) -> Option<T> {
        let read = self.read.load(Ordering::Relaxed);
        if self.written.load(Ordering::Acquire) == read {
            return None;
        }
        // SAFETY: it was put there before `written` covered it, and the sender stays away until
        // `read` has passed.
        let message = unsafe { self.places[read % SLOTS].get() };
        self.read.store(read.wrapping_add(1), Ordering::Release);
        Some(message)
    }

    /// Called by the receiver only.
    pub(crate) fn is_empty(&self) -> bool {
        self.written.load(Ordering::Relaxed) == self.read.load(Ordering::Relaxed)
    }
}
