//! How threads end, and who learns of it.

use core::ffi::{c_int, c_void};

use ::punctual_thread::Thread;
use ::punctual_thread::thread::JoinError;
use punctual_model::Span;

use crate::edge::{answer, give, is_place, is_place_or_null};
use crate::status::{Answer, punctual_status, punctual_status as Status};
use crate::table::Used;
use crate::thread::{Entry, find, if_alive, keep_fault, punctual_thread, with};
use crate::time::on_a_thread;

/// Waits for the end of a thread for `within_ns` at most, takes what it returned into `result`, if
/// that is not null, and ends the handle. `PUNCTUAL_NOTHING` when it ended before its body began,
/// `PUNCTUAL_FAILED` when it failed (`punctual_fail`; `punctual_why` has its words): the handle is
/// at its end then, too. A scheduling point. On threads of its CPU.
///
/// # Safety
/// `result` is null, or to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_thread_join(
    thread: punctual_thread,
    within_ns: u64,
    result: *mut *mut c_void,
) -> punctual_status {
    answer(|| {
        is_place_or_null(result)?;
        let entry = find(thread)?;
        entry.created()?.wait_end(Span::from_ns(within_ns))?;
        // SAFETY: as the caller vouches.
        unsafe { take_result(&entry, result) }
    })
}

/// Has a thread end (`punctual_thread_cancel`), waits for that as `punctual_thread_join` does, and
/// if it has not ended after `within_ns`, takes the processor from it for good: a loop without a
/// call does not end otherwise.
///
/// `PUNCTUAL_ABANDONED` says that this was done; the handle is at its end then. Such a thread
/// unlocks nothing: threads that wait for its locks wait on, and its locks cannot be destroyed any
/// more. Its place among the threads of the run is lost until the run is over; its share of the
/// processor is free. `PUNCTUAL_TIMED_OUT` says that it waits, or has not begun, and would end
/// itself if it got the processor. `PUNCTUAL_TAKEN` says, at once, that somebody else waits for its
/// end: it was told to end, and no more. A thread that comes to wait after that gets
/// `PUNCTUAL_ABANDONED`,
/// too. A scheduling point. On threads of its CPU.
///
/// # Safety
/// `result` is null, or to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_thread_kill(
    thread: punctual_thread,
    within_ns: u64,
    result: *mut *mut c_void,
) -> punctual_status {
    answer(|| {
        is_place_or_null(result)?;
        let entry = find(thread)?;
        let made = entry.created()?;
        if !made.is_here() {
            return Err(Status::PUNCTUAL_OTHER_CPU);
        }
        let _ = made.cancel();
        match made.wait_end(Span::from_ns(within_ns)) {
            // SAFETY: as the caller vouches.
            Ok(()) => unsafe { take_result(&entry, result) },
            Err(JoinError::TimedOut) if made.abandon() => {
                entry.retire();
                Err(Status::PUNCTUAL_ABANDONED)
            }
            Err(error) => Err(error.into()),
        }
    })
}

/// A thread has ended: its handle does, too.
///
/// # Safety
/// `result` is null, or to a place for a pointer.
unsafe fn take_result(entry: &Used<'_, Entry>, result: *mut *mut c_void) -> Answer {
    if !entry.retire() {
        return Err(Status::PUNCTUAL_STALE);
    }
    if let Some(said) = entry.said.get() {
        return Err(keep_fault(said));
    }
    // SAFETY: as the caller vouches.
    unsafe { entry.returned.offer(result) }
}

/// Ends the handle and lets the thread go on alone. On threads of a run.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_thread_detach(thread: punctual_thread) -> punctual_status {
    answer(|| {
        on_a_thread()?;
        let entry = find(thread)?;
        let _ = entry.created()?;
        match entry.retire() {
            true => Ok(()),
            false => Err(Status::PUNCTUAL_STALE),
        }
    })
}

/// Whether a thread has ended: `ended` gets 1 or 0. On threads of its CPU.
///
/// # Safety
/// `ended` is null, or to a place for an `int`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_thread_has_ended(
    thread: punctual_thread,
    ended: *mut c_int,
) -> punctual_status {
    answer(|| {
        is_place(ended)?;
        let over = with(thread, |thread| Ok(thread.is_finished()))?;
        // SAFETY: as the caller vouches.
        unsafe { give(ended, c_int::from(over)) }
    })
}

/// Tells a thread to end: every call of it that waits, the present one included, answers
/// `PUNCTUAL_CANCELLED` from now on; so does `punctual_checkpoint`, for bodies that do not wait. A
/// `read`, `write` or `poll` of it that waits fails with `ECANCELED`. It cleans up and returns from
/// its body; only `punctual_thread_kill` ends it otherwise. `PUNCTUAL_NOTHING` when it has ended.
/// On threads of its CPU.
#[unsafe(no_mangle)]
pub extern "C" fn punctual_thread_cancel(thread: punctual_thread) -> punctual_status {
    answer(|| with(thread, |thread: &Thread<()>| if_alive(thread.cancel())))
}
