//! A call that may crash: its caller goes on behind it all the same.
//!
//! ```text
//!   call_guarded:    rbp, rbx, r12-r15, control words <- pushed
//!                    [place] <- rsp
//!                    function(argument)           a crash in here: the handler of faults
//!                    0 <- popped, return          sets the thread to the line below
//!   return_crashed:  rsp <- [place]
//!                    1 <- popped, return
//! ```
//!
//! The frames between the two are left as they are, and nothing in them is dropped.

use core::arch::naked_asm;

/// Calls `function(argument)`; 0 when it came back, 1 when [`return_crashed`] did in its place.
/// `place` gets what that needs, for as long as the call takes.
///
/// # Safety
/// The function may be called so, and no frame below this one has to be dropped. The place is
/// writable, and nobody writes it meanwhile.
#[unsafe(naked)]
pub unsafe extern "C" fn call_guarded(
    function: unsafe extern "C" fn(*mut u8),
    argument: *mut u8,
    place: *mut u64,
) -> u64 {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_adjust_cfa_offset 8",
        "push rbx",
        ".cfi_adjust_cfa_offset 8",
        "push r12",
        ".cfi_adjust_cfa_offset 8",
        "push r13",
        ".cfi_adjust_cfa_offset 8",
        "push r14",
        ".cfi_adjust_cfa_offset 8",
        "push r15",
        ".cfi_adjust_cfa_offset 8",
        // The stack is aligned for a call below these eight bytes.
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "stmxcsr [rsp]",
        "fnstcw [rsp + 4]",
        "mov [rdx], rsp",
        "mov rax, rdi",
        "mov rdi, rsi",
        "call rax",
        "xor eax, eax",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "pop r15",
        ".cfi_adjust_cfa_offset -8",
        "pop r14",
        ".cfi_adjust_cfa_offset -8",
        "pop r13",
        ".cfi_adjust_cfa_offset -8",
        "pop r12",
        ".cfi_adjust_cfa_offset -8",
        "pop rbx",
        ".cfi_adjust_cfa_offset -8",
        "pop rbp",
        ".cfi_adjust_cfa_offset -8",
        "ret",
        ".cfi_endproc",
    )
}

/// Returns from the [`call_guarded`] of this place, with 1. The control words of floating point are
/// those of the call; values on the stack of x87 are gone.
///
/// # Safety
/// That call has not come back, and its thread executes this.
#[unsafe(naked)]
pub unsafe extern "C" fn return_crashed(place: *mut u8) -> ! {
    naked_asm!(
        "mov rsp, [rdi]",
        "cld",
        // The crash may have left values on the stack of x87.
        "fninit",
        "fldcw [rsp + 4]",
        "ldmxcsr [rsp]",
        "mov eax, 1",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::{read_mxcsr, write_mxcsr};

    static mut PLACE: u64 = 0;

    unsafe extern "C" fn comes_back(argument: *mut u8) {
        // SAFETY: the caller's own byte.
        unsafe { *argument += 1 };
    }

    /// Rounds otherwise, changes every register that a caller keeps something in, and does not come
    /// back.
    unsafe extern "C" fn crashes(argument: *mut u8) {
        // SAFETY: the caller's own byte.
        unsafe { *argument += 1 };
        write_mxcsr(0x7f80);
        let place: *mut u64 = &raw mut PLACE;
        // SAFETY: the call that left this place waits for this one.
        unsafe {
            core::arch::asm!(
                "xor ebx, ebx",
                "xor ebp, ebp",
                "xor r12, r12",
                "xor r13, r13",
                "xor r14, r14",
                "xor r15, r15",
                "fld1",
                "jmp {back}",
                back = sym return_crashed,
                in("rdi") place,
                options(noreturn)
            );
        }
    }

    #[test]
    fn the_caller_of_a_crash_finds_all_that_it_had() {
        let kept: Vec<u64> = std::hint::black_box((1..20).collect());
        let (mut called, mut sum) = (0_u8, 0.0_f64);
        let before = read_mxcsr() & !0x3f;
        for round in 1..10_u8 {
            let argument: *mut u8 = &raw mut called;
            // SAFETY: neither function has anything to drop; one test uses the place.
            let outcome = unsafe { call_guarded(crashes, argument, &raw mut PLACE) };
            assert_eq!((outcome, called), (1, 2 * round - 1));
            assert_eq!(read_mxcsr() & !0x3f, before);
            // SAFETY: as above.
            let outcome = unsafe { call_guarded(comes_back, argument, &raw mut PLACE) };
            assert_eq!((outcome, called), (0, 2 * round));
            sum += f64::from(round) / 4.0;
        }
        assert_eq!((kept.iter().sum::<u64>(), sum), (190, 11.25));
    }
}
