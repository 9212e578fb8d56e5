//! The stack of a light thread, for libraries that ask where it lies.

use core::ffi::c_int;

use crate::caller::current;
use crate::sys::signals::{Handle, own_thread};
use crate::sys::{self, ENOSYS, ThreadAttributes, behind};

/// `pthread_getattr_np(3)`. The library knows the stacks that it made or that the kernel did; a
/// light thread's own is told here, to the thread itself.
///
/// # Safety
/// The attributes are to a place for some, which are not initialised.
#[cfg_attr(not(miri), unsafe(no_mangle))]
unsafe extern "C" fn pthread_getattr_np(
    thread: Handle,
    attributes: *mut ThreadAttributes,
) -> c_int {
    type Get = unsafe extern "C" fn(Handle, *mut ThreadAttributes) -> c_int;
    let own = current().filter(|_| thread == own_thread());
    if let Some(stack) = own.and_then(|caller| caller.stack()) {
        // SAFETY: as the caller vouches.
        return unsafe { sys::describe_stack(attributes, stack) };
    }
    match behind!(c"pthread_getattr_np", Get) {
        // SAFETY: as the caller vouches.
        Some(get) => unsafe { get(thread, attributes) },
        None => ENOSYS,
    }
}
