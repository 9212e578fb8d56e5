//! From CPU to CPU: something has happened.

use ::punctual_thread::sync::Notify;
use punctual_model::Span;

use crate::edge::{answer, is_place_or_null, offer};
use crate::status::punctual_status;
use crate::table::Table;

static NOTIFIES: Table<Notify> = Table::new();

/// A counting event. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_notify {
    /// The library's.
    pub id: u64,
}

/// Makes a counting event whose waiters are threads of the caller's CPU. On threads of a run.
///
/// # Safety
/// `notify` is null, or to a place for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_notify_create(notify: *mut punctual_notify) -> punctual_status {
    // SAFETY: as the caller vouches.
    answer(|| unsafe {
        NOTIFIES.create(notify, |id| punctual_notify { id }, || Ok(Notify::new()?))
    })
}

/// Ends it; `PUNCTUAL_BUSY` while somebody waits for it. Legal everywhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_notify_destroy(notify: punctual_notify) -> punctual_status {
    answer(|| NOTIFIES.remove(notify.id))
}

/// Notifies it. No notification is lost: each counts. On threads of a run, of any CPU.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_notify_send(notify: punctual_notify) -> punctual_status {
    answer(|| Ok(NOTIFIES.get(notify.id)?.notify()?))
}

/// Takes the notifications so far, at least one; waits for `within_ns` at most. `count`, if not
/// null, gets their number. `PUNCTUAL_TAKEN` when somebody waits already. A scheduling point when
/// it waits. On threads of the CPU that made it.
///
/// # Safety
/// `count` is null, or to a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_notify_wait(
    notify: punctual_notify,
    within_ns: u64,
    count: *mut u64,
) -> punctual_status {
    answer(|| {
        is_place_or_null(count)?;
        let notify = NOTIFIES.get(notify.id)?;
        let taken = notify.wait_within(Span::from_ns(within_ns))?;
        // SAFETY: as the caller vouches.
        unsafe { offer(count, taken) }
    })
}
