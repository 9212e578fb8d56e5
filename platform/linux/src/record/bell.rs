//! What the CPUs of a run share of a [`crate::Bell`]: how often it was rung, and who waits.

use core::cell::Cell;
use core::sync::atomic::AtomicU64;
use std::sync::Arc;

use punctual_model::ThreadId;

use crate::shared::news::{Link, Linked, News};

/// Rings that nobody has taken yet.
#[derive(Debug)]
pub(crate) struct Count {
    pub(crate) rings: AtomicU64,
    /// Its place on the list of its home.
    pub(crate) link: Link<Count>,
    /// Who waits. Home CPU, gate closed.
    pub(crate) waiter: Cell<Option<ThreadId>>,
}

// SAFETY: the words that others touch are atomic; the waiter is touched on the home CPU only, with
// its gate closed.
unsafe impl Send for Count {}
// SAFETY: as for `Send`: a reference lets another CPU touch the atomic words alone.
unsafe impl Sync for Count {}

impl Linked for Count {
    fn link(&self) -> &Link<Count> {
        &self.link
    }
}

impl Count {
    pub(crate) fn new() -> Count {
        Count {
            rings: AtomicU64::new(0),
            link: Link::new(),
            waiter: Cell::new(None),
        }
    }
}

/// Takes the next bell off, with the reference that its ring made.
pub(crate) fn take(rung: &News<Count>) -> Option<Arc<Count>> {
    let bell = rung.take()?;
    // SAFETY: the reference that `Bell::ring_from` made when it put the bell there, taken once.
    Some(unsafe { Arc::from_raw(bell) })
}

/// Forgets all that have been rung. The home CPU, or anybody when its run is over.
pub(crate) fn forget(rung: &News<Count>) {
    while take(rung).is_some() {}
}
