//! The way into a preemption signal and out of it again.
//!
//! ```text
//!   kernel pushes its frame on the stack of the interrupted thread
//!     -> signal_entry -> body (Rust: closes the gate, decides, may switch away and come back)
//!     <- gate of the processor, still closed, or null when the body did not close it
//!   tail:     open the gate
//!             look at pending again; if set: close, serve, and back to tail      (INV-8)
//!   restorer: rt_sigreturn
//! ```
//!
//! Between opening the gate and the return from the signal only the few instructions from `tail`
//! to the end of the restorer run. A second signal there must not switch: on a machine where ticks
//! come faster than frames are left, frames would pile up. The body asks [`in_signal_tail`].

use core::arch::naked_asm;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::gate::Gate;

/// What runs inside the signal. Arguments as for a `SA_SIGINFO` handler, or, when a pending signal
/// is served from the tail, zero, null and the gate (closed). Returns the gate, closed, or null
/// when it did not close it.
pub type SignalBody = unsafe extern "C" fn(i32, *mut u8, *mut u8) -> *const Gate;

static BODY: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Installs the function that [`signal_entry`] calls. Once, before the first signal.
pub fn install_bodies(body: SignalBody) {
    BODY.store(body as *mut (), Ordering::Release);
}

/// The handler to give to the kernel, together with [`signal_restorer`].
///
/// # Safety
/// Only the kernel calls it, as a `SA_SIGINFO` handler, after [`install_bodies`].
#[unsafe(naked)]
pub unsafe extern "C" fn signal_entry(number: i32, information: *mut u8, context: *mut u8) {
    naked_asm!(
        ".cfi_startproc",
        // The kernel enters with rsp + 8 a multiple of 16, as after a call.
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call qword ptr [rip + {body}]",
        "test rax, rax",
        "jz 3f",
        // The tail begins: nothing below touches scheduler state but the gate.
        ".globl punctual_signal_tail_begin",
        ".hidden punctual_signal_tail_begin",
        "punctual_signal_tail_begin:",
        "mov dword ptr [rax], 0",
        // Look again after opening (INV-8). A signal between these two instructions finds itself
        // in the tail, comes back a little later, and loses nothing.
        "cmp dword ptr [rax + 4], 0",
        "jne 4f",
        "3:",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "ret",
        ".cfi_adjust_cfa_offset 8",
        "4:",
        "mov dword ptr [rax], 1",
        ".globl punctual_signal_tail_end",
        ".hidden punctual_signal_tail_end",
        "punctual_signal_tail_end:",
        // Serve the pending signal with the gate closed, then back to the tail.
        "xor edi, edi",
        "xor esi, esi",
        "mov rdx, rax",
        "call qword ptr [rip + {body}]",
        "jmp punctual_signal_tail_begin",
        ".cfi_endproc",
        body = sym BODY,
    )
}

/// `SA_RESTORER`: the address of what returns from the signal. Our own, so that its range is known.
pub fn signal_restorer() -> u64 {
    // Behind the `nop`.
    restorer as *const () as u64 + 1
}

/// Spelt as unwinders know it that compare the bytes; for those that do not, the table says where
/// the kernel's frame (`frame`) keeps the registers of the interrupted code. Unwinders look up the
/// instruction before a return address, so the table has to begin before the first one: hence the
/// `nop`.
#[unsafe(naked)]
unsafe extern "C" fn restorer() {
    naked_asm!(
        ".cfi_startproc simple",
        ".cfi_signal_frame",
        // The frame's end is what its word for rsp says: expression, 4 bytes, [rsp + 160].
        ".cfi_escape 0x0f, 4, 0x77, 0xa0, 1, 0x06",
        // Each register: expression, its number, length, rsp + offset. r8 to r15,
        ".cfi_escape 0x10, 8, 2, 0x77, 0x28",
        ".cfi_escape 0x10, 9, 2, 0x77, 0x30",
        ".cfi_escape 0x10, 10, 2, 0x77, 0x38",
        ".cfi_escape 0x10, 11, 3, 0x77, 0xc0, 0",
        ".cfi_escape 0x10, 12, 3, 0x77, 0xc8, 0",
        ".cfi_escape 0x10, 13, 3, 0x77, 0xd0, 0",
        ".cfi_escape 0x10, 14, 3, 0x77, 0xd8, 0",
        ".cfi_escape 0x10, 15, 3, 0x77, 0xe0, 0",
        // rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip.
        ".cfi_escape 0x10, 5, 3, 0x77, 0xe8, 0",
        ".cfi_escape 0x10, 4, 3, 0x77, 0xf0, 0",
        ".cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0",
        ".cfi_escape 0x10, 3, 3, 0x77, 0x80, 1",
        ".cfi_escape 0x10, 1, 3, 0x77, 0x88, 1",
        ".cfi_escape 0x10, 0, 3, 0x77, 0x90, 1",
        ".cfi_escape 0x10, 2, 3, 0x77, 0x98, 1",
        ".cfi_escape 0x10, 7, 3, 0x77, 0xa0, 1",
        ".cfi_escape 0x10, 16, 3, 0x77, 0xa8, 1",
        "nop",
        ".globl punctual_signal_restorer_begin",
        ".hidden punctual_signal_restorer_begin",
        "punctual_signal_restorer_begin:",
        // mov rax, 15 (rt_sigreturn) in its long form.
        ".byte 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00",
        "syscall",
        ".globl punctual_signal_restorer_end",
        ".hidden punctual_signal_restorer_end",
        "punctual_signal_restorer_end:",
        "ud2",
        ".cfi_endproc",
    )
}

unsafe extern "C" {
    static punctual_signal_tail_begin: u8;
    static punctual_signal_tail_end: u8;
    static punctual_signal_restorer_begin: u8;
    static punctual_signal_restorer_end: u8;
}

/// Whether `instruction` lies between the opening of the gate and the return from the signal.
pub fn in_signal_tail(instruction: u64) -> bool {
    let tail = (&raw const punctual_signal_tail_begin) as u64
        ..(&raw const punctual_signal_tail_end) as u64;
    let restorer = (&raw const punctual_signal_restorer_begin) as u64
        ..(&raw const punctual_signal_restorer_end) as u64;
    tail.contains(&instruction) || restorer.contains(&instruction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_covers_the_way_out_and_nothing_else() {
        // INV-8: the opening store, the look at pending, and both ways on from it.
        let begin = (&raw const punctual_signal_tail_begin) as u64;
        let end = (&raw const punctual_signal_tail_end) as u64;
        assert!(in_signal_tail(begin));
        assert!(!in_signal_tail(end));
        assert!(!in_signal_tail(signal_entry as *const () as u64));
        assert!(in_signal_tail(signal_restorer()));
        let label = (&raw const punctual_signal_restorer_begin) as u64;
        assert_eq!(signal_restorer(), label);
        assert!((10..64).contains(&(end - begin)), "{} bytes", end - begin);
    }
}
