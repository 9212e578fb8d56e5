//! Calls of functions in C++, which an exception may leave.

use punctual_switch::call_catching;

use crate::sys::exception::end_exception;

/// Calls a function in C or C++.
///
/// # Errors
/// In words: an exception left it, of which type, and its `what()`. Its destructors have run.
///
/// # Safety
/// The function may be called with this argument.
pub unsafe fn catching_call(
    function: unsafe extern "C" fn(*mut u8) -> *mut u8,
    argument: *mut u8,
) -> Result<*mut u8, String> {
    let mut returned = core::ptr::null_mut();
    // SAFETY: as the caller vouches; the place is this frame's.
    let exception = unsafe { call_catching(function, argument, &mut returned) };
    match exception.is_null() {
        true => Ok(returned),
        // SAFETY: it has just been handed over.
        false => Err(unsafe { end_exception(exception) }),
    }
}
