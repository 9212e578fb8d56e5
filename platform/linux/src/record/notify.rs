//! What the CPUs of a run share of a [`crate::Notify`]: its count, and who waits.

use core::cell::Cell;
use core::sync::atomic::AtomicU64;
use std::sync::Arc;

use punctual_model::ThreadId;

use crate::shared::pending::{Link, Linked, PendingList};

/// The state of one [`crate::Notify`].
#[derive(Debug)]
pub(crate) struct NotifyState {
    /// Notifications that nobody has received yet.
    pub(crate) count: AtomicU64,
    /// Its place on the pending-wake list of its home CPU.
    pub(crate) link: Link<NotifyState>,
    /// The thread that waits. Home CPU, gate closed.
    pub(crate) waiter: Cell<Option<ThreadId>>,
}

// SAFETY: the words that others touch are atomic; the waiter is touched on the home CPU only, with
// its gate closed.
unsafe impl Send for NotifyState {}
// SAFETY: as for `Send`: a reference lets another CPU touch the atomic words alone.
unsafe impl Sync for NotifyState {}

impl Linked for NotifyState {
    fn link(&self) -> &Link<NotifyState> {
        &self.link
    }
}

impl NotifyState {
    pub(crate) fn new() -> NotifyState {
        NotifyState {
            count: AtomicU64::new(0),
            link: Link::new(),
            waiter: Cell::new(None),
        }
    }
}

/// Takes the next one off the list, with the reference that its notification made.
pub(crate) fn take(notified: &PendingList<NotifyState>) -> Option<Arc<NotifyState>> {
    let state = notified.take()?;
    // SAFETY: the reference that `Notify::notify_from` made when it put the state there; taken
    // once.
    Some(unsafe { Arc::from_raw(state) })
}

/// Empties the list. The home CPU, or any when its run is over.
pub(crate) fn forget(notified: &PendingList<NotifyState>) {
    while take(notified).is_some() {}
}
