//! Answers of the C library as results.

use std::io;
use std::mem::zeroed;
use std::ptr::null_mut;

use libc::{c_int, c_long};

/// An answer that is -1 with `errno` for a failure.
pub(crate) fn check(what: &str, answer: impl Into<i64>) -> Result<i64, String> {
    match answer.into() {
        -1 => Err(format!("{what}: {}", io::Error::last_os_error())),
        answer => Ok(answer),
    }
}

/// An answer that is the number of an error, or 0.
pub(crate) fn check_number(what: &str, answer: c_int) -> Result<(), String> {
    match answer {
        0 => Ok(()),
        number => Err(format!("{what}: {}", io::Error::from_raw_os_error(number))),
    }
}

/// Waits on a word, or wakes who waits on it.
pub(crate) fn futex(word: &std::sync::atomic::AtomicU32, operation: c_int, value: u32) -> c_long {
    let timeout = core::ptr::null::<libc::timespec>();
    // SAFETY: the word lives during the call, and without a timeout nothing else is read.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation,
            value,
            timeout,
            0,
            0,
        )
    }
}

/// The monotonic clock, in nanoseconds.
pub(crate) fn now() -> Result<i64, String> {
    read(libc::CLOCK_MONOTONIC)
}

/// A clock of the kernel, in nanoseconds.
pub(crate) fn read(clock: libc::clockid_t) -> Result<i64, String> {
    try_read(clock).ok_or_else(|| format!("clock_gettime: {}", io::Error::last_os_error()))
}

/// The same without words for a failure, and so without memory: for a child between fork and end.
pub(crate) fn try_read(clock: libc::clockid_t) -> Option<i64> {
    // SAFETY: an instant is plain numbers.
    let mut at: libc::timespec = unsafe { zeroed() };
    // SAFETY: it lives during the call.
    let answer = unsafe { libc::clock_gettime(clock, &raw mut at) };
    (answer == 0).then(|| at.tv_sec * 1_000_000_000 + at.tv_nsec)
}

/// Sleeps until the monotonic clock shows this.
pub(crate) fn sleep_until(ns: i64) -> Result<(), String> {
    let until = libc::timespec {
        tv_sec: ns / 1_000_000_000,
        tv_nsec: ns % 1_000_000_000,
    };
    // SAFETY: the instant lives during the call; what is left is not asked for.
    let slept = unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const until,
            null_mut(),
        )
    };
    match slept {
        // A signal woke it: the caller looks at the clock.
        libc::EINTR => Ok(()),
        slept => check_number("clock_nanosleep", slept),
    }
}
