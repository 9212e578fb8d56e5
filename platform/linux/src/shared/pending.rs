//! The pending-wake list of a CPU: every CPU puts things on it, and only that CPU takes them off.
//!
//! ```text
//!   another CPU:       change the thing -> announce -> if it was not announced: put -> kick
//!   the home CPU:      take -> it can be announced again -> look at the thing
//! ```
//!
//! A thing stands on the list once, however often it is announced: so n announcements cost one
//! kick at most, and nothing is allocated. What changed before an announcement that found the thing
//! announced already is seen by whoever takes it off: taking it exchanges the very word that the
//! announcement exchanged, so the one sees what came before the other. Checked in every order of
//! its accesses by `interleave`.

use core::fmt;

use super::atomic::{AtomicBool, AtomicPtr, Ordering};

/// The part of a thing that its list needs.
pub(crate) struct Link<T> {
    /// It is on the list, or about to be put there.
    announced: AtomicBool,
    /// The next on the list; whoever puts it there writes it before.
    next: AtomicPtr<T>,
}

/// A thing that can be on a list.
pub(crate) trait Linked: Sized {
    fn link(&self) -> &Link<Self>;
}

impl<T> Link<T> {
    pub(crate) fn new() -> Link<T> {
        Link {
            announced: AtomicBool::new(false),
            next: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Any CPU. `true`: the caller is the one to put it on its list.
    #[must_use = "whoever announces it first puts it on its list"]
    pub(crate) fn announce(&self) -> bool {
        !self.announced.swap(true, Ordering::AcqRel)
    }

    fn clear(&self) {
        self.announced.swap(false, Ordering::AcqRel);
    }
}

/// Things that have been announced and not been taken off yet, of one CPU.
pub(crate) struct PendingList<T>(AtomicPtr<T>);

impl<T: Linked> PendingList<T> {
    pub(crate) fn new() -> PendingList<T> {
        PendingList(AtomicPtr::new(core::ptr::null_mut()))
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }

    /// Any CPU, after [`Link::announce`] said so.
    ///
    /// # Safety
    /// The thing lives until it has been taken off.
    pub(crate) unsafe fn put(&self, thing: *const T) {
        // SAFETY: as the caller vouches; the reference is used before it is on the list.
        let link = unsafe { &*thing }.link();
        let mut first = self.0.load(Ordering::Relaxed);
        loop {
            link.next.store(first, Ordering::Relaxed);
            let order = (Ordering::Release, Ordering::Relaxed);
            match self
                .0
                .compare_exchange(first, thing.cast_mut(), order.0, order.1)
            {
                Ok(_) => return,
                Err(other) => first = other,
            }
        }
    }

    /// Takes one off, which can be announced again from then on. The home CPU only, so that nobody
    /// else takes the second meanwhile; anybody when its run is over.
    pub(crate) fn take(&self) -> Option<*const T> {
        let mut first = self.0.load(Ordering::Acquire);
        while !first.is_null() {
            // SAFETY: it is on the list, so it lives; only this CPU takes it off.
            let link = unsafe { &*first }.link();
            let next = link.next.load(Ordering::Relaxed);
            let order = (Ordering::Relaxed, Ordering::Acquire);
            match self.0.compare_exchange(first, next, order.0, order.1) {
                Ok(_) => {
                    link.clear();
                    return Some(first);
                }
                Err(other) => first = other,
            }
        }
        None
    }
}

impl<T> fmt::Debug for Link<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for PendingList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingList").finish_non_exhaustive()
    }
}
