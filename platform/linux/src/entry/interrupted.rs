//! Where a signal found its thread, read from the registers that the kernel saved.

use crate::sys::{self, futex};

/// Where a signal found its thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Interrupted {
    /// The instruction it goes on with.
    pub(crate) instruction: u64,
    /// It was in a system call, or about to make one.
    pub(crate) in_call: bool,
    /// It was waiting in the kernel for something that is no futex: in the call of this number, if
    /// that is known.
    pub(crate) waits_in: Option<Option<i64>>,
    /// It was waiting on a futex in the kernel, and will wait again.
    pub(crate) awaits_futex: bool,
}

const SYSCALL_INSTRUCTION: [u8; 2] = [0x0f, 0x05];
const PAGE: usize = 4_096;

impl Interrupted {
    /// A thread in a system call goes on behind the instruction (with a result), or on it again
    /// when the call is to be restarted.
    ///
    /// # Safety
    /// `context` is the third argument of a `SA_SIGINFO` handler that has not returned.
    pub(crate) unsafe fn read(context: *const u8) -> Interrupted {
        // SAFETY: as the caller vouches.
        let [instruction, result, operation, behind_call] = unsafe { sys::registers(context) };
        let instruction = instruction.cast_unsigned();
        // SAFETY: the thread was executing at this address.
        let (before, here) = unsafe { text_around(instruction) };
        let on_call = here == SYSCALL_INSTRUCTION;
        let behind = before == SYSCALL_INSTRUCTION && result == i64::from(-sys::EINTR);
        let operation = i32::try_from(operation & 0x7f).unwrap_or(0);
        let waits = matches!(operation, futex::WAIT | futex::WAIT_BITSET);
        let awaits_futex = on_call && result == sys::FUTEX_CALL && waits;
        // The instruction leaves the address behind it in a register; one that was about to be
        // executed for the first time has not.
        let was_in = on_call && behind_call == instruction.cast_signed().wrapping_add(2);
        let waits_in = match (behind, was_in && !awaits_futex) {
            (true, _) => Some(None),
            (_, true) => Some(Some(result)),
            _ => None,
        };
        Interrupted {
            instruction,
            in_call: on_call || behind,
            waits_in,
            awaits_futex,
        }
    }
}

/// The two bytes before an instruction and the two at it, as far as they are on its page.
///
/// # Safety
/// The instruction is being executed, so its page is mapped.
unsafe fn text_around(instruction: u64) -> ([u8; 2], [u8; 2]) {
    let Ok(at) = usize::try_from(instruction) else {
        return ([0; 2], [0; 2]);
    };
    let text = core::ptr::with_exposed_provenance::<[u8; 2]>(at);
    let (mut before, mut here) = ([0; 2], [0; 2]);
    if at % PAGE >= 2 {
        // SAFETY: on the page of the instruction; text that is executed can be read.
        before = unsafe { text.sub(1).read() };
    }
    if at % PAGE <= PAGE - 2 {
        // SAFETY: as above.
        here = unsafe { text.read() };
    }
    (before, here)
}
