//! Waiting for something to become true under a mutex.

use ::punctual_thread::sync::Condvar;
use punctual_model::Span;

use crate::edge::answer;
use crate::mutex::{MUTEXES, punctual_mutex};
use crate::status::{punctual_status, punctual_status as Status};
use crate::table::Table;

static CONDITIONS: Table<Condvar> = Table::new();

/// A condition. All zero: none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct punctual_condition {
    /// The library's.
    pub id: u64,
}

/// Makes a condition. Legal everywhere; it belongs to the CPU of its first use.
///
/// # Safety
/// `condition` is null, or to a place for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_condition_create(
    condition: *mut punctual_condition,
) -> punctual_status {
    // SAFETY: as the caller vouches.
    answer(|| unsafe {
        CONDITIONS.create(
            condition,
            |id| punctual_condition { id },
            || Ok(Condvar::new()),
        )
    })
}

/// Ends a condition; `PUNCTUAL_BUSY` while somebody waits for it. Legal everywhere.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_condition_destroy(condition: punctual_condition) -> punctual_status {
    answer(|| CONDITIONS.remove(condition.id))
}

/// Unlocks a mutex that the caller holds, waits to be told for `within_ns` at most, and locks it
/// again, however long that takes. A thread may be told without reason: look again. With
/// `PUNCTUAL_OK` and `PUNCTUAL_TIMED_OUT` the mutex is held again; with `PUNCTUAL_STALE`,
/// `PUNCTUAL_NOT_HELD`, and `PUNCTUAL_OTHER_CPU` (a condition of another CPU) nothing has changed;
/// with any other code it is not held. A scheduling point. On threads of a run.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_condition_wait(
    condition: punctual_condition,
    mutex: punctual_mutex,
    within_ns: u64,
) -> punctual_status {
    answer(|| {
        let condition = CONDITIONS.get(condition.id)?;
        let mutex = MUTEXES.get(mutex.id)?;
        condition.may_wait()?;
        let guard = mutex.take()?;
        // The caller does not hold it, but uses it: nobody destroys it meanwhile.
        mutex.put_back();
        let (guard, told) = condition.wait_within(guard, Span::from_ns(within_ns))?;
        mutex.hold(guard);
        mutex.keep();
        match told {
            true => Ok(()),
            false => Err(Status::PUNCTUAL_TIMED_OUT),
        }
    })
}

/// Tells the most urgent thread that waits, if there is one. A scheduling point when it is more
/// urgent than the caller. On threads of a run.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_condition_tell_one(condition: punctual_condition) -> punctual_status {
    answer(|| Ok(CONDITIONS.get(condition.id)?.notify_one()?))
}

/// Tells all threads that wait. Otherwise as `punctual_condition_tell_one`.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_condition_tell_all(condition: punctual_condition) -> punctual_status {
    answer(|| Ok(CONDITIONS.get(condition.id)?.notify_all()?))
}
