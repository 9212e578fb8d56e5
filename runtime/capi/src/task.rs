//! Tasks of a file that are functions in C: the resources that the file names.

use core::ffi::c_char;

use punctual_kern::Refusal;
use punctual_linux::job::{LockError, lock, lock_shared, lock_within, unlock_named};
use punctual_model::Mode;

use crate::edge::{answer, text};
use crate::status::{Answer, punctual_status, punctual_status as Status};
use crate::time::not_in_a_use;

/// Locks a resource that the task of the caller declares (`uses` in a file), for this job alone;
/// waits for it as long as it takes, under its protocol. `PUNCTUAL_UNKNOWN` when no task of this
/// CPU uses one of that name, `PUNCTUAL_NOT_ALLOWED` when the task does not declare it. A
/// scheduling point. On jobs of a file's tasks.
///
/// # Safety
/// `resource` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_lock(resource: *const c_char) -> punctual_status {
    // SAFETY: as the caller vouches.
    answer(|| unsafe { take(resource, Mode::Exclusive, u64::MAX) })
}

/// `punctual_lock` together with others that only read. On jobs of a file's tasks.
///
/// # Safety
/// `resource` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_lock_shared(resource: *const c_char) -> punctual_status {
    // SAFETY: as the caller vouches.
    answer(|| unsafe { take(resource, Mode::Shared, u64::MAX) })
}

/// `punctual_lock` that waits for `within_ns` at most. On jobs of a file's tasks.
///
/// # Safety
/// `resource` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_lock_within(
    resource: *const c_char,
    within_ns: u64,
) -> punctual_status {
    // SAFETY: as the caller vouches.
    answer(|| unsafe { take(resource, Mode::Exclusive, within_ns) })
}

/// Gives back what a `punctual_lock` of any kind locked; what is not held stays as it is. A
/// scheduling point. On jobs of a file's tasks.
///
/// # Safety
/// `resource` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_unlock(resource: *const c_char) -> punctual_status {
    answer(|| {
        not_in_a_use()?;
        // SAFETY: as the caller vouches.
        let name = unsafe { text(resource) }?;
        Ok(unlock_named(&name)?)
    })
}

/// # Safety
/// `resource` is null or a string.
unsafe fn take(resource: *const c_char, mode: Mode, within_ns: u64) -> Answer {
    not_in_a_use()?;
    // SAFETY: as the caller vouches.
    let name = unsafe { text(resource) }?;
    let held = match (within_ns, mode) {
        (u64::MAX, Mode::Shared) => lock_shared(&name)?,
        (u64::MAX, Mode::Exclusive) => lock(&name)?,
        _ => lock_within(&name, mode, within_ns)?,
    };
    // Unlocked by its name.
    core::mem::forget(held);
    Ok(())
}

impl From<LockError> for Status {
    fn from(error: LockError) -> Status {
        match error {
            LockError::NoRun => Status::PUNCTUAL_NO_RUN,
            LockError::Unknown(_) => Status::PUNCTUAL_UNKNOWN,
            LockError::TimedOut => Status::PUNCTUAL_TIMED_OUT,
            LockError::Refused(Refusal::AlreadyHeld(_)) => Status::PUNCTUAL_ALREADY_HELD,
            LockError::Refused(Refusal::Deadlock(_)) => Status::PUNCTUAL_DEADLOCK,
            LockError::Refused(_) => Status::PUNCTUAL_NOT_ALLOWED,
        }
    }
}
