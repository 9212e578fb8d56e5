//! Carriers that do not look for work by themselves: their number, and the bell of each.
//!
//! ```text
//!   one who sleeps:   count itself, a fence -> look for work once more -> sleep at its bell
//!   one with work:    offer it, a fence -> look at the count -> take a sleeper out, ring its bell
//! ```
//!
//! So one of the two sees the other, and nothing is written for those who look by themselves
//! (note 0014). Every operation is wait-free.

use crate::atomic::{AtomicU32, AtomicUsize, Ordering, fence};

/// How many do not look.
#[derive(Debug)]
pub(crate) struct Asleep(pub(crate) AtomicUsize);

impl Asleep {
    /// One more is about to sleep. It looks for work once more after this.
    #[inline]
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// As [`Asleep::add`]: a fence of the caller's comes before it looks for work once more.
    #[inline]
    pub(crate) fn add_before_a_fence(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// One less: it looks, or somebody wakes it.
    #[inline]
    pub(crate) fn sub(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether there is one who would not see what the caller has just offered.
    #[inline]
    pub(crate) fn has_some(&self) -> bool {
        fence(Ordering::SeqCst);
        self.count() != 0
    }

    /// How many there are, for those who have offered nothing.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A bell for one: rung once for every sleep.
#[derive(Debug)]
pub(crate) struct Bell(AtomicU32);

impl Bell {
    pub(crate) fn new() -> Bell {
        Bell(AtomicU32::new(0))
    }

    /// It is silent until it is rung: before its owner is counted as asleep.
    pub(crate) fn silence(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Rings it. The one that hears it sees what was offered before.
    pub(crate) fn ring(&self) {
        self.0.store(1, Ordering::Release);
    }

    /// Whether it has been rung.
    pub(crate) fn has_rung(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }

    /// The word that the kernel looks at: 0 while it is silent.
    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.0
    }
}
