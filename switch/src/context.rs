//! What is saved of a thread that does not run, and the switch that saves it.
//!
//! A suspended thread looks like this (addresses grow upwards):
//!
//! ```text
//!      | caller's frame       |
//!      | return address       |  +56   where the thread goes on
//!      | rbp                  |  +48
//!      | rbx                  |  +40
//!      | r12                  |  +32
//!      | r13                  |  +24
//!      | r14                  |  +16
//!      | r15                  |  +8
//!      | x87 cw | MXCSR       |  +4, +0   <- saved stack pointer
//! ```
//!
//! The same picture holds for a thread that was preempted: the caller's frame is then that of the
//! signal handler, and above it lies the frame in which the kernel keeps all other registers.

use core::arch::naked_asm;
use core::mem::offset_of;

/// Bytes of the frame that [`switch`] pushes, the return address included.
pub const FRAME_BYTES: usize = 64;

/// Control words of a thread that has set none: all exceptions masked, round to nearest, and
/// extended precision for x87 (System V ABI, process initialisation).
const MXCSR_DEFAULT: u32 = 0x1f80;
const X87_CONTROL_DEFAULT: u32 = 0x037f;

/// The function that a fresh thread starts in. It must never return.
pub type Entry = unsafe extern "C" fn(argument: *mut u8) -> !;

/// A thread's saved state: all else lies on its stack.
///
/// Touched only by the processor that the thread belongs to, with its gate closed (INV-3).
#[repr(C)]
#[derive(Debug)]
pub struct Context {
    /// Zero while the thread has the processor (INV-1).
    stack_pointer: u64,
    /// The thread pointer (`fs` base); constant for the life of a thread.
    thread_pointer: u64,
}

const _: () = assert!(offset_of!(Context, stack_pointer) == 0);
const _: () = assert!(offset_of!(Context, thread_pointer) == 8);

impl Context {
    /// The context of the code that is running now, which has this thread pointer. It becomes
    /// resumable when [`switch`] leaves it.
    pub const fn running(thread_pointer: u64) -> Context {
        Context {
            stack_pointer: 0,
            thread_pointer,
        }
    }

    /// A thread that will start in `entry(argument)` on the stack that ends at `top`.
    ///
    /// ```text
    ///   top ->  |                  |
    ///           | 0                |  end of stack: an unwinder finds no caller
    ///           | start            |  where the first switch "returns" to
    ///           | rbp = 0          |
    ///           | rbx = argument   |
    ///           | r12 = entry      |
    ///           | r13..r15 = 0     |
    ///           | control words    |  <- saved stack pointer
    /// ```
    ///
    /// # Safety
    /// At least [`FRAME_BYTES`] + 32 bytes below `top` must be writable and belong to nobody else,
    /// `thread_pointer` must be a valid thread control block of the C library, and both must live
    /// until the thread has run for the last time.
    pub unsafe fn prepare(
        top: *mut u8,
        thread_pointer: u64,
        entry: Entry,
        argument: *mut u8,
    ) -> Context {
        let top = ((top.addr() & !15) - 16) as u64;
        let words: [u64; 9] = [
            u64::from(MXCSR_DEFAULT) | u64::from(X87_CONTROL_DEFAULT) << 32,
            0,
            0,
            0,
            entry as *const () as u64,
            argument as u64,
            0,
            start as *const () as u64,
            0,
        ];
        let stack_pointer = top - 64;
        // SAFETY: (1) the nine words end at `top + 8`, inside the area that the caller vouches for;
        // (2) `top` is a multiple of 16, so the words are aligned.
        unsafe {
            core::ptr::copy_nonoverlapping(words.as_ptr(), stack_pointer as *mut u64, words.len());
        }
        Context {
            stack_pointer,
            thread_pointer,
        }
    }

    /// Whether the thread is suspended with a complete frame (INV-1, INV-2).
    #[inline]
    pub const fn is_resumable(&self) -> bool {
        self.stack_pointer != 0
    }

    /// The thread pointer (`fs` base).
    #[inline]
    pub const fn thread_pointer(&self) -> u64 {
        self.thread_pointer
    }
}

/// Saves the running thread into `from` and goes on with `to`; returns when somebody switches back.
///
/// # Safety
/// * The gate of this processor is closed (INV-3), and `from` is the context of the running thread.
/// * `to` is resumable (INV-1, INV-2) and belongs to this processor.
/// * No reference into state that `to` may touch is alive across the call.
/// * The processor and the kernel allow WRFSBASE, else use [`switch_by_system_call`].
#[unsafe(naked)]
pub unsafe extern "C" fn switch(from: *mut Context, to: *mut Context) {
    naked_asm!(
        // Save what a call must preserve (INV-6).
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8",
        "stmxcsr [rsp]",
        "fnstcw [rsp + 4]",
        // Publish the complete frame (INV-2).
        "mov [rdi], rsp",
        // Take over the other thread: thread pointer and stack together (INV-5). A signal between
        // the next instructions finds the gate closed and returns (INV-3).
        "mov rax, [rsi + 8]",
        "wrfsbase rax",
        "mov rsp, [rsi]",
        "mov qword ptr [rsi], 0",
        // Restore in reverse.
        "ldmxcsr [rsp]",
        "fldcw [rsp + 4]",
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

/// [`switch`] for processors or kernels without WRFSBASE: sets the thread pointer by a system call,
/// which makes a switch some twenty times dearer.
///
/// # Safety
/// As for [`switch`], except for the last point.
#[unsafe(naked)]
pub unsafe extern "C" fn switch_by_system_call(from: *mut Context, to: *mut Context) {
    naked_asm!(
        // Save what a call must preserve (INV-6), as in `switch`.
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8",
        "stmxcsr [rsp]",
        "fnstcw [rsp + 4]",
        "mov r12, rsi",
        // Publish the complete frame (INV-2).
        "mov [rdi], rsp",
        // arch_prctl(ARCH_SET_FS, to.thread_pointer); it cannot fail for a canonical address.
        "mov eax, 158",
        "mov edi, 0x1002",
        "mov rsi, [r12 + 8]",
        "syscall",
        "mov rsp, [r12]",
        "mov qword ptr [r12], 0",
        // Restore in reverse.
        "ldmxcsr [rsp]",
        "fldcw [rsp + 4]",
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

/// Where a fresh thread starts: calls `r12(rbx)`; an unwinder that comes here is told to stop.
#[unsafe(naked)]
unsafe extern "C" fn start() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_undefined rip",
        "xor ebp, ebp",
        "mov rdi, rbx",
        "call r12",
        // `Entry` does not return.
        "ud2",
        ".cfi_endproc",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::read_thread_pointer;

    struct Pair {
        main: Context,
        other: Context,
        log: Vec<u32>,
    }

    unsafe extern "C" fn ping(argument: *mut u8) -> ! {
        let pair = argument.cast::<Pair>();
        for round in 0.. {
            // SAFETY: the test waits inside `switch` while this thread runs: nobody else uses it.
            unsafe { (*pair).log.push(round) };
            // SAFETY: (1) no signal is set up in this test, so no gate is needed; (2) `main` was
            // left through `switch` and is resumable.
            unsafe { switch(&raw mut (*pair).other, &raw mut (*pair).main) };
        }
        unreachable!()
    }

    fn pair_on(stack: &mut [u8]) -> Box<Pair> {
        let mut pair = Box::new(Pair {
            main: Context::running(read_thread_pointer()),
            other: Context::running(0),
            log: Vec::new(),
        });
        let top = stack.as_mut_ptr_range().end;
        let argument = (&raw mut *pair).cast();
        // SAFETY: the stack is large, ours, and outlives the last switch; the thread pointer is
        // that of the running thread, which waits while the other one runs.
        pair.other = unsafe { Context::prepare(top, read_thread_pointer(), ping, argument) };
        pair
    }

    #[test]
    fn a_saved_stack_pointer_is_zero_exactly_while_its_thread_runs() {
        // INV-1, INV-2
        let mut stack = vec![0_u8; 64 * 1024];
        let mut pair = pair_on(&mut stack);
        let raw = &raw mut *pair;
        assert!(pair.other.is_resumable());
        assert!(!pair.main.is_resumable());
        for _ in 0..3 {
            // SAFETY: as in `ping`, with the roles exchanged.
            unsafe { switch(&raw mut (*raw).main, &raw mut (*raw).other) };
        }
        assert_eq!(pair.log, [0, 1, 2]);
        assert!(pair.other.is_resumable());
        assert!(!pair.main.is_resumable());
    }

    #[test]
    fn both_kinds_of_switch_keep_the_thread_pointer_with_the_stack() {
        // INV-5: the fallback sets the same base.
        let mut stack = vec![0_u8; 64 * 1024];
        let mut pair = pair_on(&mut stack);
        let raw = &raw mut *pair;
        let before = read_thread_pointer();
        // SAFETY: as above.
        unsafe { switch_by_system_call(&raw mut (*raw).main, &raw mut (*raw).other) };
        assert_eq!(read_thread_pointer(), before);
        assert_eq!(pair.log, [0]);
    }

    #[test]
    fn rounding_modes_belong_to_their_thread() {
        // INV-6: this thread rounds up; a fresh thread starts with the default.
        let mut stack = vec![0_u8; 64 * 1024];
        let mut pair = pair_on(&mut stack);
        let raw = &raw mut *pair;
        let upwards = 0x1f80 | 0x4000;
        crate::instructions::write_mxcsr(upwards);
        // SAFETY: as above.
        unsafe { switch(&raw mut (*raw).main, &raw mut (*raw).other) };
        let after = crate::instructions::read_mxcsr();
        crate::instructions::write_mxcsr(MXCSR_DEFAULT);
        assert_eq!(after & 0xffc0, upwards);
    }
}
