//! The bounded deque of unstarted items: its owner at one end, thieves at the other.
//!
//! Source: Chase and Lev 2005, with the fences of Lê, Pop, Cohen and Zappa Nardelli 2013. The owner
//! pushes and pops at the bottom, the newest first. A thief takes the oldest, at the top. The
//! number of the top only grows, so an exchange of it means one item. The fences order the rest;
//! exchanges need no total order of their own.
//!
//! The owner is the carrier of the member's identity: one at a time, and the standing of the
//! identity hands the deque on. Every operation is wait-free: O(1), no loop.

use crate::atomic::{AtomicU64, Ordering, Slot, fence};

/// One end, on a cache line of its own.
#[repr(align(64))]
#[derive(Debug)]
struct End(AtomicU64);

/// A deque of addresses, at most `N` at a time.
#[derive(Debug)]
pub(crate) struct Deque<T, const N: usize> {
    /// The next one to be stolen.
    top: End,
    /// One beyond the last that was pushed.
    bottom: End,
    slots: [Slot<T>; N],
}

/// The outcome of a theft.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stolen<T> {
    /// The oldest.
    One(T),
    /// There was nothing.
    Nothing,
    /// Another took it first: there may be more.
    Lost,
}

impl<T, const N: usize> Deque<T, N> {
    pub(crate) fn new() -> Deque<T, N> {
        Deque {
            top: End(AtomicU64::new(0)),
            bottom: End(AtomicU64::new(0)),
            slots: core::array::from_fn(|_| Slot::new()),
        }
    }

    fn slot(&self, number: u64) -> &Slot<T> {
        let count = N as u64;
        let index = usize::try_from(number % count).unwrap_or_default();
        &self.slots[index]
    }

    /// How many there are, as far as somebody who looks from outside can tell.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        let top = self.top.0.load(Ordering::Relaxed);
        let bottom = self.bottom.0.load(Ordering::Relaxed);
        usize::try_from(bottom.saturating_sub(top)).unwrap_or(N)
    }

    /// Puts one at the bottom; gives it back when there is no room. By the owner.
    #[inline]
    pub(crate) fn push(&self, value: *mut T) -> Result<(), *mut T> {
        let bottom = self.bottom.0.load(Ordering::Relaxed);
        // A thief that moved the top has read its slot.
        let top = self.top.0.load(Ordering::Acquire);
        if bottom.wrapping_sub(top) >= N as u64 {
            return Err(value);
        }
        self.slot(bottom).put(value);
        // A thief that sees the new bottom sees the slot, and what the address leads to.
        fence(Ordering::Release);
        self.bottom.0.store(bottom + 1, Ordering::Relaxed);
        Ok(())
    }

    /// Takes the newest. By the owner.
    #[inline]
    pub(crate) fn pop(&self) -> Option<*mut T> {
        let bottom = self.bottom.0.load(Ordering::Relaxed);
        // Nobody else makes it longer, so that it is empty needs no fence.
        if self.top.0.load(Ordering::Relaxed) >= bottom {
            return None;
        }
        let last = bottom - 1;
        self.bottom.0.store(last, Ordering::Relaxed);
        // Either a thief sees the lower bottom, or this sees his higher top.
        fence(Ordering::SeqCst);
        let top = self.top.0.load(Ordering::Relaxed);
        if top < last {
            return Some(self.slot(last).get());
        }
        let won = top == last && {
            let (next, order) = (last + 1, Ordering::Relaxed);
            let moved = self.top.0.compare_exchange(last, next, order, order);
            moved.is_ok()
        };
        self.bottom.0.store(bottom, Ordering::Relaxed);
        won.then(|| self.slot(last).get())
    }

    /// Takes the oldest. By anybody.
    #[inline]
    pub(crate) fn steal(&self) -> Stolen<*mut T> {
        let top = self.top.0.load(Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let bottom = self.bottom.0.load(Ordering::Acquire);
        if top >= bottom {
            return Stolen::Nothing;
        }
        let value = self.slot(top).get();
        // The owner that sees the new top may use the slot again.
        let order = (Ordering::Release, Ordering::Relaxed);
        match self.top.0.compare_exchange(top, top + 1, order.0, order.1) {
            Ok(_) => Stolen::One(value),
            Err(_) => Stolen::Lost,
        }
    }
}
