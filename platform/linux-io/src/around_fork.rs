//! `fork(2)` on a light thread: the C library's handlers around it, the innermost of all.
//!
//! Handlers that prepare a fork are called in the reverse order of their registration, the others
//! in the order of it. These are registered when the object is loaded, before those of the program:
//! so between ours there is only what the library does itself. It takes the lock of its list of
//! streams, which a light thread that was preempted may have, and the locks of the allocator. The
//! first is taken here, where waiting for it is seen; with the others nobody is preempted.

use core::ffi::c_int;

use crate::caller::current;
use crate::inside::{begin_undisturbed, end_undisturbed, forget_undisturbed};
use crate::sys;

/// Called by the loader, as the functions of every object that are to be called first.
#[cfg(not(miri))]
#[used]
#[unsafe(link_section = ".init_array")]
static REGISTER: extern "C" fn() = register;

extern "C" fn register() {
    // Without memory there are no handlers: a child that a light thread makes dies then.
    let _: c_int = sys::at_fork(prepare, in_parent, in_child);
}

extern "C" fn prepare() {
    if let Some(caller) = current() {
        sys::lock_streams();
        begin_undisturbed();
        caller.origin().widen();
    }
}

extern "C" fn in_parent() {
    if let Some(caller) = current() {
        caller.origin().narrow(caller.cpu());
        sys::unlock_streams();
        end_undisturbed();
    }
}

extern "C" fn in_child() {
    if let Some(caller) = current() {
        // The library has made the lock of its streams new.
        forget_undisturbed();
        caller.in_child();
    }
}
