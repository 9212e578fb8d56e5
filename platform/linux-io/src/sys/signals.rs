//! Signals that a kernel thread sends to itself.

use core::ffi::c_int;

use super::{call, word};

/// A thread, as the C library names it.
pub(crate) type Handle = libc::pthread_t;

/// The calling thread's own.
pub(crate) fn own_thread() -> Handle {
    // SAFETY: no arguments, no effect.
    unsafe { libc::pthread_self() }
}

/// Sends a signal to the calling kernel thread; 0 only looks whether that would be possible.
pub(crate) fn send_to_self(signal: c_int) -> Result<(), c_int> {
    // SAFETY: no arguments, no effect.
    let (process, thread) = unsafe { (call(libc::SYS_getpid, []), call(libc::SYS_gettid, [])) };
    // SAFETY: no memory is involved.
    let sent = unsafe {
        call(
            libc::SYS_tgkill,
            [word(process), word(thread), word(signal)],
        )
    };
    match c_int::try_from(sent) {
        Ok(0) => Ok(()),
        Ok(error) => Err(-error),
        Err(_) => Err(libc::EINVAL),
    }
}

/// Lets one signal in that waits for the calling kernel thread: its handler has run, or the process
/// has ended, when this returns.
pub(crate) fn let_in(signal: c_int) {
    let (open, mut before) = (1_u64 << (signal - 1), 0_u64);
    let [unblock, set] = [libc::SIG_UNBLOCK, libc::SIG_SETMASK].map(word);
    let (open, old) = ((&raw const open).addr(), (&raw mut before).addr());
    // SAFETY: both words outlive the call.
    unsafe {
        call(
            libc::SYS_rt_sigprocmask,
            [unblock, open as u64, old as u64, 8],
        )
    };
    // SAFETY: as above.
    unsafe { call(libc::SYS_rt_sigprocmask, [set, old as u64, 0, 8]) };
}
