//! Where an identity stands, and the blocked threads of it that became ready again.
//!
//! | standing | means | left by |
//! |---|---|---|
//! | `CARRIED` | one carrier has it, with all that belongs to it | that carrier |
//! | `WAITING` | nobody has it, and nothing of it is ready | the first that exchanges the word |
//! | `QUEUED` | it is in the queue: something of it is ready | the carrier that takes it out |
//!
//! Somebody who makes a thread ready puts it on the list first and looks at the standing after
//! that. A carrier that lets go says so first and looks at the list after that. Two fences in
//! between see to it that one of the two sees the other.

use crate::atomic::{AtomicPtr, AtomicU32, Ordering, fence};

const CARRIED: u32 = 0;
const WAITING: u32 = 1;
const QUEUED: u32 = 2;

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
            word: AtomicU32::new(CARRIED),
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
        self.word.load(Ordering::Relaxed) == WAITING && self.exchange(QUEUED)
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

    /// Puts it into the queue without letting go in between. By the carrier.
    pub(crate) fn queue(&self) {
        self.word.store(QUEUED, Ordering::Release);
    }

    /// Takes an identity that waits.
    pub(crate) fn take(&self) -> bool {
        self.word.load(Ordering::Relaxed) == WAITING && self.exchange(CARRIED)
    }

    /// Takes one that has just come out of the queue.
    pub(crate) fn take_queued(&self) {
        self.word.store(CARRIED, Ordering::Relaxed);
    }

    /// Whether nobody has it.
    pub(crate) fn waits(&self) -> bool {
        self.word.load(Ordering::Relaxed) == WAITING
    }

    fn exchange(&self, to: u32) -> bool {
        let order = (Ordering::Acquire, Ordering::Relaxed);
        let exchanged = self.word.compare_exchange(WAITING, to, order.0, order.1);
        exchanged.is_ok()
    }
}
