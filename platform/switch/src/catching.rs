//! A call out of which an exception of another language may come: it ends here.
//!
//! ```text
//!   call_catching:   rbx <- pushed, place of the result
//!                    function(argument)           an exception leaves it: the unwinder asks
//!                    [place] <- result               `personality`, ends all frames up to here,
//!                    0 <- return                     and goes on in the line below
//!   go_on:           the exception <- return
//! ```
//!
//! The frames between the two have been ended by their own rules, so destructors have run. A panic
//! of Rust and a forced end (`pthread_exit`) pass through.

use core::arch::naked_asm;

/// Of the unwinder's interface: which phase asks, and the answers.
const SEARCH: i32 = 1;
const HANDLER_FRAME: i32 = 4;
const FORCED: i32 = 8;
const HANDLER_FOUND: i32 = 6;
const INSTALL_CONTEXT: i32 = 7;
const CONTINUE_UNWIND: i32 = 8;
/// The class of panics: `MOZ\0RUST`.
const PANIC: u64 = 0x4d4f_5a00_5255_5354;
/// The number of `rax` for the unwinder.
const RAX: i32 = 0;

unsafe extern "C" {
    fn _Unwind_SetGR(context: *mut u8, register: i32, value: u64);
    fn _Unwind_SetIP(context: *mut u8, instruction: u64);
}

/// Calls `function(argument)`. Null when it came back: its result is in `returned` then. Else the
/// exception that left it, as the unwinder knows it.
///
/// # Safety
/// The function may be called so; the place is writable.
#[unsafe(naked)]
pub unsafe extern "C" fn call_catching(
    function: unsafe extern "C" fn(*mut u8) -> *mut u8,
    argument: *mut u8,
    returned: *mut *mut u8,
) -> *mut u8 {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_personality 0x1b, {personality}",
        "push rbx",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbx, 0",
        "mov rbx, rdx",
        "mov rax, rdi",
        "mov rdi, rsi",
        "call rax",
        "mov [rbx], rax",
        "xor eax, eax",
        "pop rbx",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_restore rbx",
        "ret",
        ".cfi_endproc",
        personality = sym personality,
    )
}

/// Where the unwinder goes on, with the exception in `rax` and the stack as at the call.
#[unsafe(naked)]
unsafe extern "C" fn go_on() {
    naked_asm!("pop rbx", "ret")
}

/// The unwinder's question about a frame of [`call_catching`].
unsafe extern "C" fn personality(
    _version: i32,
    actions: i32,
    class: u64,
    exception: *mut u8,
    context: *mut u8,
) -> i32 {
    if actions & FORCED != 0 || class == PANIC {
        return CONTINUE_UNWIND;
    }
    if actions & SEARCH != 0 {
        return HANDLER_FOUND;
    }
    if actions & HANDLER_FRAME == 0 {
        return CONTINUE_UNWIND;
    }
    // SAFETY: the unwinder gave the context for this; the frame is one of `call_catching`, whose
    // stack `go_on` expects.
    unsafe {
        _Unwind_SetGR(context, RAX, exception as u64);
        _Unwind_SetIP(context, go_on as *const () as u64);
    }
    INSTALL_CONTEXT
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the unwinder knows an exception, with room for its own words.
    #[repr(C, align(16))]
    struct Exception {
        class: u64,
        words: [u64; 5],
    }

    unsafe extern "C-unwind" {
        fn _Unwind_RaiseException(exception: *mut Exception) -> i32;
    }

    struct Counts(*mut u8);

    impl Drop for Counts {
        fn drop(&mut self) {
            // SAFETY: the byte of the test, which waits.
            unsafe { *self.0 += 1 };
        }
    }

    extern "C-unwind" fn comes_back(argument: *mut u8) -> *mut u8 {
        argument
    }

    static mut THROWN: Exception = Exception {
        class: 7,
        words: [0; 5],
    };

    extern "C-unwind" fn throws(argument: *mut u8) -> *mut u8 {
        let _counts = Counts(argument);
        // SAFETY: it lives, and one test throws it once at a time.
        unsafe { _Unwind_RaiseException(&raw mut THROWN) };
        argument
    }

    type Function = extern "C-unwind" fn(*mut u8) -> *mut u8;

    fn as_c(function: Function) -> unsafe extern "C" fn(*mut u8) -> *mut u8 {
        // SAFETY: the two are called alike; the callee of this one may be left by an exception.
        unsafe { core::mem::transmute::<Function, _>(function) }
    }

    #[test]
    fn an_exception_ends_the_frames_up_to_the_call_and_is_handed_over() {
        let kept: Vec<u64> = std::hint::black_box((1..20).collect());
        let mut count = 0_u8;
        let argument: *mut u8 = &raw mut count;
        for round in 1..4_u8 {
            let mut returned = core::ptr::null_mut();
            // SAFETY: the functions keep to what is expected of them.
            let caught = unsafe { call_catching(as_c(throws), argument, &mut returned) };
            assert_eq!(caught, (&raw mut THROWN).cast());
            assert!(returned.is_null());
            // SAFETY: the byte is this function's.
            let ended = unsafe { argument.read() };
            assert_eq!(ended, round, "its destructors have run");
            // SAFETY: as above.
            let caught = unsafe { call_catching(as_c(comes_back), argument, &mut returned) };
            assert!(caught.is_null());
            assert_eq!(returned, argument);
        }
        assert_eq!(kept.iter().sum::<u64>(), 190);
    }
}
