//! What is kept of a thread that does not run: the dispatch record.
//!
//! ```text
//!   executing            sp = 0   frame = 0    registers are in the processor
//!   left by a dispatch   sp > 0   frame = 0    (ip, sp) restore it; the rest lies on its stack
//!   preempted            sp = 0   frame > 0    the frame that the kernel pushed restores it
//! ```
//!
//! A dispatch saves next to nothing: the compiler is told that it changes all registers, so what is
//! alive lies on the stack already. Only the two registers that the compiler does not give away
//! (`rbx`, `rbp`) and the control words of threads that ask for it are kept in the record.

use core::mem::offset_of;

use crate::dispatch::start;

/// Control words of a thread that has set none: all exceptions masked, round to nearest, and
/// extended precision for x87 (System V ABI, process initialisation).
pub(crate) const MXCSR_DEFAULT: u32 = 0x1f80;
const X87_CONTROL_DEFAULT: u16 = 0x037f;

/// The function that a fresh thread starts in. It must never return.
pub type Entry = unsafe extern "C" fn(argument: *mut u8) -> !;

/// Whether a thread's floating-point control words are its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// Saved and restored by every dispatch (some ten cycles).
    Kept,
    /// The thread never changes them, so there is nothing to keep.
    Default,
}

/// One thread's record: one cache line.
///
/// Touched only by the processor that the thread belongs to. The first two words may be written by
/// whoever dispatches; so whoever did not write them himself checks them before he believes them.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct DispatchRecord {
    /// Where the thread goes on when it is dispatched to; valid while `stack_pointer` is not zero.
    instruction: u64,
    /// Zero while the thread executes, and after it was preempted (INV-1).
    stack_pointer: u64,
    /// The thread pointer (`fs` base); threads that share storage have the same.
    thread_pointer: u64,
    rbx: u64,
    rbp: u64,
    mxcsr: u32,
    x87_control: u16,
    /// 1: the control words are this thread's own.
    keeps_control: u16,
    /// The kernel's frame of a preempted thread; written by the preemption signal alone (INV-5).
    frame: u64,
    /// Nothing to the dispatch.
    tag: u64,
}

pub(crate) const INSTRUCTION: usize = offset_of!(DispatchRecord, instruction);
pub(crate) const STACK_POINTER: usize = offset_of!(DispatchRecord, stack_pointer);
pub(crate) const THREAD_POINTER: usize = offset_of!(DispatchRecord, thread_pointer);
pub(crate) const RBX: usize = offset_of!(DispatchRecord, rbx);
pub(crate) const RBP: usize = offset_of!(DispatchRecord, rbp);
pub(crate) const MXCSR: usize = offset_of!(DispatchRecord, mxcsr);
pub(crate) const X87_CONTROL: usize = offset_of!(DispatchRecord, x87_control);
pub(crate) const KEEPS_CONTROL: usize = offset_of!(DispatchRecord, keeps_control);
pub(crate) const FRAME: usize = offset_of!(DispatchRecord, frame);

const _: () = assert!(size_of::<DispatchRecord>() == 64);

impl DispatchRecord {
    /// The record of the code that is running now, which has this thread pointer. It becomes
    /// resumable when a dispatch leaves it.
    pub const fn running(thread_pointer: u64, control: Control) -> DispatchRecord {
        DispatchRecord {
            instruction: 0,
            stack_pointer: 0,
            thread_pointer,
            rbx: 0,
            rbp: 0,
            mxcsr: MXCSR_DEFAULT,
            x87_control: X87_CONTROL_DEFAULT,
            keeps_control: matches!(control, Control::Kept) as u16,
            frame: 0,
            tag: 0,
        }
    }

    /// A thread that will start in `entry(argument)` on the stack that ends at `top`. Nothing is
    /// written to the stack.
    ///
    /// # Safety
    /// The memory below `top` must be a stack of its own, `thread_pointer` must be a valid thread
    /// control block of the C library, and both must live until the thread has run for the last
    /// time.
    pub unsafe fn prepare(
        top: *mut u8,
        thread_pointer: u64,
        control: Control,
        entry: Entry,
        argument: *mut u8,
    ) -> DispatchRecord {
        DispatchRecord {
            instruction: start as *const () as u64,
            stack_pointer: (top.addr() & !15) as u64,
            rbx: argument as u64,
            rbp: entry as *const () as u64,
            ..DispatchRecord::running(thread_pointer, control)
        }
    }

    /// Whether a dispatch can go on with the thread: it left by one (or is new), or was preempted.
    #[inline]
    pub const fn is_resumable(&self) -> bool {
        self.stack_pointer != 0 || self.frame != 0
    }

    /// Whether the thread was preempted, so that only its signal frame resumes it (INV-5).
    #[inline]
    pub const fn is_preempted(&self) -> bool {
        self.frame != 0
    }

    /// What the record says about where the thread goes on: instruction and stack pointer.
    #[inline]
    pub const fn says(&self) -> (u64, u64) {
        (self.instruction, self.stack_pointer)
    }

    /// The thread pointer (`fs` base).
    #[inline]
    pub const fn thread_pointer(&self) -> u64 {
        self.thread_pointer
    }

    /// Corrects the thread pointer: code that carries threads with storage of their own runs with
    /// theirs.
    #[inline]
    pub const fn set_thread_pointer(&mut self, thread_pointer: u64) {
        self.thread_pointer = thread_pointer;
    }

    /// A number for the owner of the record; 0 at first.
    #[inline]
    pub const fn tag(&self) -> u64 {
        self.tag
    }

    /// Sets the number for the owner of the record.
    #[inline]
    pub const fn set_tag(&mut self, tag: u64) {
        self.tag = tag;
    }

    /// The thread did not leave after all: it executes (INV-1).
    pub(crate) const fn roll_back(&mut self) {
        self.stack_pointer = 0;
    }

    /// The thread was preempted, and the kernel keeps its registers in this frame.
    ///
    /// # Safety
    /// `frame` is the third argument of a signal handler that interrupted this thread on its own
    /// stack, and nothing of what lies on that stack above it will be touched before the thread
    /// runs again.
    pub const unsafe fn set_preempted(&mut self, frame: u64) {
        self.frame = frame;
    }
}
