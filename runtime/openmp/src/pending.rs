//! How much is unfinished below an item, and the thread that waits for it.
//!
//! ```text
//!   bit 63 .. 32   references: the item itself, and each child whose own references are not gone
//!   bit 31         a thread waits for the children
//!   bit 30 .. 0    children whose bodies have not returned
//! ```
//!
//! A waiter sets its bit and is told by the child that takes the last count away. Only the waiter
//! makes children, so none is added while it waits. Every operation is wait-free.

use crate::atomic::{AtomicPtr, AtomicU64, Ordering};

/// One reference.
pub(crate) const REFERENCE: u64 = 1 << 32;
/// One child.
pub(crate) const CHILD: u64 = 1;
const WAITS: u64 = 1 << 31;
const CHILDREN: u64 = WAITS - 1;

/// The word, and the waiter.
#[derive(Debug)]
pub(crate) struct Pending<T> {
    word: AtomicU64,
    waiter: AtomicPtr<T>,
}

/// The effect of a decrement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Less<T> {
    /// The thread that waited for the last child.
    pub(crate) waiter: Option<*mut T>,
    /// The last reference is gone.
    pub(crate) is_over: bool,
}

impl<T> Pending<T> {
    pub(crate) fn new() -> Pending<T> {
        Pending {
            word: AtomicU64::new(0),
            waiter: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Begins anew, with one reference. Nobody else knows the word now.
    #[inline]
    pub(crate) fn begin(&self) {
        self.word.store(REFERENCE, Ordering::Relaxed);
    }

    /// By the item's own body, or by somebody who keeps a reference.
    #[inline]
    pub(crate) fn add(&self, what: u64) {
        self.word.fetch_add(what, Ordering::Relaxed);
    }

    /// Whether all children have returned; then all they wrote is seen.
    #[inline]
    pub(crate) fn is_childless(&self) -> bool {
        self.word.load(Ordering::Acquire) & CHILDREN == 0
    }

    /// Whether nothing is left below the item: its own reference is the last one.
    #[inline]
    pub(crate) fn is_last(&self) -> bool {
        self.word.load(Ordering::Acquire) & !WAITS == REFERENCE
    }

    /// Takes a child, a reference or both away.
    #[inline]
    pub(crate) fn sub(&self, what: u64) -> Less<T> {
        let before = self.word.fetch_sub(what, Ordering::AcqRel);
        let was_last = what & CHILD != 0 && before & CHILDREN == CHILD;
        let waiter = (was_last && before & WAITS != 0).then(|| {
            self.word.fetch_and(!WAITS, Ordering::Relaxed);
            self.waiter.load(Ordering::Relaxed)
        });
        let is_over = what >= REFERENCE && before >> 32 == 1;
        Less { waiter, is_over }
    }

    /// Says who waits; `false`: there is nothing to wait for, and nobody will be told.
    pub(crate) fn register(&self, waiter: *mut T) -> bool {
        self.waiter.store(waiter, Ordering::Relaxed);
        let before = self.word.fetch_or(WAITS, Ordering::AcqRel);
        let waits = before & CHILDREN != 0;
        if !waits {
            self.word.fetch_and(!WAITS, Ordering::Relaxed);
        }
        waits
    }
}
