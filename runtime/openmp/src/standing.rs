//! Where an identity stands, and the blocked threads of it that became ready again.
//!
//! | standing | means | left by |
//! |---|---|---|
//! | `HELD` | a carrier has it and all that belongs to it, or the queue has it | that carrier |
//! | `WAITING` | nobody has it, and nothing of it is ready | the first that exchanges the word |
//!
//! Somebody who makes a thread ready puts it on the list first and looks at the standing after
//! that. A carrier that lets go says so first and looks at the list after that. Two fences in
//! between see to it that one of the two sees the other.

use crate::atomic::{AtomicPtr, AtomicU32, Ordering, fence};

const HELD: u32 = 0;
const WAITING: u32 = 1;

/// A thread that can stand on the list.
pub(crate) trait Linked: Sized {
    /// The one behind it.
    fn link(&self) -> &AtomicPtr<Self>;
}

/// The standing of one identity and its list.
#[derive(Debug)]
pub(crate) struct Standing<T> {
    word: AtomicU32,
    /// The newest first.
    ready: AtomicPtr<T>,
}

impl<T: Linked + 'static> Standing<T> {
    /// Carried by its maker.
    pub(crate) fn new() -> Standing<T> {
        Standing {
            word: AtomicU32::new(HELD),
            ready: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Puts a thread on the list. `true`: the identity waited, and the caller has to put it into
    /// the queue.
    pub(crate) fn make_ready(&self, thread: &'static T) -> bool {
        let address = core::ptr::from_ref(thread).cast_mut();
        let mut newest = self.ready.load(Ordering::Relaxed);
        loop {
            thread.link().store(newest, Ordering::Relaxed);
            let order = (Ordering::Release, Ordering::Relaxed);
            match self
                .ready
                .compare_exchange(newest, address, order.0, order.1)
            {
                Ok(_) => break,
                Err(now) => newest = now,
            }
        }
        fence(Ordering::SeqCst);
        self.take()
    }

    /// Whether something is on the list.
    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.load(Ordering::Relaxed).is_null()
    }

    /// Takes the whole list, the newest first. By the carrier.
    #[inline]
    pub(crate) fn take_ready(&self) -> *mut T {
        if !self.has_ready() {
            return core::ptr::null_mut();
        }
        self.ready.swap(core::ptr::null_mut(), Ordering::Acquire)
    }

    /// Lets go. By the carrier, which looks at the list (and at whatever else may have come)
    /// afterwards.
    pub(crate) fn let_go(&self) {
        self.word.store(WAITING, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Takes an identity that waits: for the caller, or for the queue.
    pub(crate) fn take(&self) -> bool {
        let order = (Ordering::Acquire, Ordering::Relaxed);
        self.waits()
            && self
                .word
                .compare_exchange(WAITING, HELD, order.0, order.1)
                .is_ok()
    }

    /// Whether nobody has it.
    pub(crate) fn waits(&self) -> bool {
        self.word.load(Ordering::Relaxed) == WAITING
    }
}
