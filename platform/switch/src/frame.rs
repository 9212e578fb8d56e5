//! The registers of interrupted code, as the kernel keeps them in a signal frame.
//!
//! ```text
//!   third argument of the handler -> +0    flags, link, alternate stack
//!                                    +40   r8 .. r15, rdi, rsi, rbp, rbx, rdx, rax, rcx
//!                                    +160  rsp
//!                                    +168  rip
//!                                    +176  flags of the processor
//! ```
//!
//! The address itself is what the stack pointer must be for the kernel's return from the signal:
//! so it is all that is needed to resume the thread.

const REGISTERS: usize = 40;
const RDI: usize = REGISTERS + 8 * 8;
const RSI: usize = REGISTERS + 9 * 8;
const RAX: usize = REGISTERS + 13 * 8;
const RSP: usize = REGISTERS + 15 * 8;
const RIP: usize = REGISTERS + 16 * 8;
const FLAGS: usize = REGISTERS + 17 * 8;

/// The processor stops after every instruction while this flag is set.
const TRAP_FLAG: u64 = 0x100;

/// A signal frame; valid while the handler that was given it has not returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SignalFrame {
    context: *mut u8,
}

impl SignalFrame {
    /// The frame of the signal that is being handled.
    ///
    /// # Safety
    /// `context` is the third argument of a `SA_SIGINFO` handler, and the value is used by that
    /// handler alone and before it returns.
    pub const unsafe fn new(context: *mut u8) -> SignalFrame {
        SignalFrame { context }
    }

    /// What resumes the interrupted thread: see [`crate::DispatchRecord::set_preempted`].
    pub fn address(self) -> u64 {
        self.context as u64
    }

    fn register(self, offset: usize) -> *mut u64 {
        self.context.wrapping_add(offset).cast()
    }

    fn get(self, offset: usize) -> u64 {
        // SAFETY: the kernel's frame has a word there, and it is alive by `new`.
        unsafe { *self.register(offset) }
    }

    /// Where the thread was interrupted: the instruction it has not executed yet.
    pub fn instruction(self) -> u64 {
        self.get(RIP)
    }

    /// Its stack pointer.
    pub fn stack_pointer(self) -> u64 {
        self.get(RSP)
    }

    /// Its `rdi`, `rsi` and `rax`: arguments and result of a call.
    pub fn arguments(self) -> [u64; 3] {
        [self.get(RDI), self.get(RSI), self.get(RAX)]
    }

    /// Makes the thread go on elsewhere.
    ///
    /// # Safety
    /// The registers are what the code there expects.
    pub unsafe fn set_instruction(self, instruction: u64) {
        // SAFETY: as in `get`; what it means is vouched for by the caller.
        unsafe { *self.register(RIP) = instruction };
    }

    /// Whether the thread stops after every instruction.
    pub fn is_stepping(self) -> bool {
        self.get(FLAGS) & TRAP_FLAG != 0
    }

    /// Lets the thread run without stopping.
    pub fn stop_stepping(self) {
        // SAFETY: as in `get`; the flag changes nothing but the stops.
        unsafe { *self.register(FLAGS) &= !TRAP_FLAG };
    }
}
