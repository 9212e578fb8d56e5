//! Signals that a light thread sends to itself.
//!
//! A carrier blocks the program's signals, which other kernel threads hear. One that is directed to
//! the carrier would wait there for good, so it is let in at once, as `raise` does elsewhere:
//! unless the program blocks it, too, to ask for it by `sigwait`.

use core::ffi::c_int;

use crate::caller::current;
use crate::inside::undisturbed;
use crate::sys::signals::{Handle, let_in, own_thread, send_to_self};
use crate::sys::{self, EINVAL, behind};

/// The largest number of a signal.
const LAST: c_int = 64;

/// `raise(3)`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
extern "C" fn raise(signal: c_int) -> c_int {
    match to_itself(signal) {
        Ok(()) => 0,
        // Minus one.
        Err(error) => c_int::try_from(sys::fail(error)).unwrap_or(-1),
    }
}

/// `pthread_kill(3)`. A light thread has no number of the kernel's, so for others than the caller
/// the library answers `ESRCH`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn pthread_kill(thread: Handle, signal: c_int) -> c_int {
    type Kill = unsafe extern "C" fn(Handle, c_int) -> c_int;
    if thread == own_thread() {
        return to_itself(signal).err().unwrap_or(0);
    }
    match behind!(c"pthread_kill", Kill) {
        // SAFETY: the caller keeps the contract of pthread_kill(3).
        Some(kill) => unsafe { kill(thread, signal) },
        None => EINVAL,
    }
}

fn to_itself(signal: c_int) -> Result<(), c_int> {
    let Some(caller) = current() else {
        return send_to_self(signal);
    };
    if !(0..=LAST).contains(&signal) {
        return Err(EINVAL);
    }
    // The handler is not preempted: it may have the alternate stack, which the next one would need.
    undisturbed(|| {
        send_to_self(signal)?;
        if signal > 0 && !caller.origin().blocks(signal) {
            let_in(signal);
        }
        Ok(())
    })
}
