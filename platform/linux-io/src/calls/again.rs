//! Calls that the kernel does not begin again after a signal: that is done here.
//!
//! The timer of a run is to show in none of them, so they are made again for the rest of their
//! time.
//! They stop their CPU while they wait, and the run names the thread. Here they only do not fail
//! with `EINTR` where the program has no handler that could be the reason.

use core::ffi::{c_int, c_long, c_void};

use crate::caller::current;
use crate::sys::calls::{epoll_event, sem_t, sembuf, siginfo_t, sigset_t, timespec};
use crate::sys::{self, KernelClock, behind, read_clock};
use crate::through::as_count;

/// Whether a call of a light thread that answered so is to be made again. A thread that was told to
/// end makes none again: the call fails as others do then.
pub(super) fn is_to_be_made_again(failed: bool) -> bool {
    // SAFETY: this thread's own variable.
    if !failed || unsafe { *sys::errno() } != sys::EINTR {
        return false;
    }
    let Some(caller) = current() else {
        return false;
    };
    let ends = caller.is_cancelled() || caller.has_run_ended();
    if ends {
        sys::fail(sys::ECANCELED);
    }
    !ends
}

/// Makes a call that waits without a limit, or until an instant.
fn again(mut call: impl FnMut() -> c_int) -> c_int {
    loop {
        let result = call();
        if !is_to_be_made_again(result == -1) {
            return result;
        }
    }
}

/// Makes a call that waits for so long, at most.
///
/// # Safety
/// The time is null or valid.
unsafe fn again_for(
    time: *const timespec,
    mut call: impl FnMut(*const timespec) -> c_int,
) -> c_int {
    // SAFETY: as the caller vouches.
    let ns = unsafe { sys::timespec_at(time.addr() as u64) };
    let begin = read_clock(KernelClock::Monotonic);
    let mut result = call(time);
    while is_to_be_made_again(result == -1) {
        let Some(ns) = ns else {
            result = call(core::ptr::null());
            continue;
        };
        let passed = read_clock(KernelClock::Monotonic).saturating_sub(begin);
        let left = ns.saturating_sub(passed);
        // Below the range of the type.
        let part = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let left = timespec {
            tv_sec: part(left / 1_000_000_000),
            tv_nsec: part(left % 1_000_000_000),
        };
        result = call(&raw const left);
    }
    result
}

/// The answer of an entry without the library's function.
fn missing() -> c_int {
    // Minus one.
    c_int::try_from(sys::fail(sys::ENOSYS)).unwrap_or(-1)
}

/// `sem_timedwait(3)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn sem_timedwait(semaphore: *mut sem_t, until: *const timespec) -> c_int {
    type Wait = unsafe extern "C" fn(*mut sem_t, *const timespec) -> c_int;
    let Some(wait) = behind!(c"sem_timedwait", Wait) else {
        return missing();
    };
    // SAFETY: the caller keeps the contract of sem_timedwait(3).
    again(|| unsafe { wait(semaphore, until) })
}

/// `sem_clockwait(3)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn sem_clockwait(
    semaphore: *mut sem_t,
    clock: c_int,
    until: *const timespec,
) -> c_int {
    type Wait = unsafe extern "C" fn(*mut sem_t, c_int, *const timespec) -> c_int;
    let Some(wait) = behind!(c"sem_clockwait", Wait) else {
        return missing();
    };
    // SAFETY: the caller keeps the contract of sem_clockwait(3).
    again(|| unsafe { wait(semaphore, clock, until) })
}

/// `semop(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn semop(set: c_int, operations: *mut sembuf, count: usize) -> c_int {
    type Operate = unsafe extern "C" fn(c_int, *mut sembuf, usize) -> c_int;
    let Some(operate) = behind!(c"semop", Operate) else {
        return missing();
    };
    // SAFETY: the caller keeps the contract of semop(2).
    again(|| unsafe { operate(set, operations, count) })
}

/// `semtimedop(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn semtimedop(
    set: c_int,
    operations: *mut sembuf,
    count: usize,
    time: *const timespec,
) -> c_int {
    type Operate = unsafe extern "C" fn(c_int, *mut sembuf, usize, *const timespec) -> c_int;
    let Some(operate) = behind!(c"semtimedop", Operate) else {
        return missing();
    };
    // SAFETY: the caller keeps the contract of semtimedop(2), also for the time.
    unsafe { again_for(time, |time| operate(set, operations, count, time)) }
}

/// `msgsnd(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn msgsnd(
    queue: c_int,
    message: *const c_void,
    bytes: usize,
    flags: c_int,
) -> c_int {
    type Send = unsafe extern "C" fn(c_int, *const c_void, usize, c_int) -> c_int;
    let Some(send) = behind!(c"msgsnd", Send) else {
        return missing();
    };
    // SAFETY: the caller keeps the contract of msgsnd(2).
    again(|| unsafe { send(queue, message, bytes, flags) })
}

/// `msgrcv(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn msgrcv(
    queue: c_int,
    message: *mut c_void,
    bytes: usize,
    kind: c_long,
    flags: c_int,
) -> isize {
    type Receive = unsafe extern "C" fn(c_int, *mut c_void, usize, c_long, c_int) -> isize;
    let Some(receive) = behind!(c"msgrcv", Receive) else {
        // Minus one.
        return as_count(c_long::from(missing()));
    };
    loop {
        // SAFETY: the caller keeps the contract of msgrcv(2).
        let result = unsafe { receive(queue, message, bytes, kind, flags) };
        if !is_to_be_made_again(result == -1) {
            return result;
        }
    }
}

/// `sigtimedwait(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn sigtimedwait(
    set: *const sigset_t,
    about: *mut siginfo_t,
    time: *const timespec,
) -> c_int {
    type Wait = unsafe extern "C" fn(*const sigset_t, *mut siginfo_t, *const timespec) -> c_int;
    let Some(wait) = behind!(c"sigtimedwait", Wait) else {
        return missing();
    };
    // SAFETY: the caller keeps the contract of sigtimedwait(2), also for the time.
    unsafe { again_for(time, |time| wait(set, about, time)) }
}

/// `sigwaitinfo(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn sigwaitinfo(set: *const sigset_t, about: *mut siginfo_t) -> c_int {
    // SAFETY: the caller keeps the contract of sigwaitinfo(2), which is that without a time.
    unsafe { sigtimedwait(set, about, core::ptr::null()) }
}

/// `epoll_pwait2(2)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn epoll_pwait2(
    fd: c_int,
    events: *mut epoll_event,
    most: c_int,
    time: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    type Wait = unsafe extern "C" fn(
        c_int,
        *mut epoll_event,
        c_int,
        *const timespec,
        *const sigset_t,
    ) -> c_int;
    let Some(wait) = behind!(c"epoll_pwait2", Wait) else {
        return missing();
    };
    // SAFETY: the caller keeps the contract of epoll_pwait2(2), also for the time.
    unsafe { again_for(time, |time| wait(fd, events, most, time, mask)) }
}
