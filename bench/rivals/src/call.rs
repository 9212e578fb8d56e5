//! Answers of the C library as results.

use std::io;

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
