//! Code that crashes on a stack of its own costs itself alone: its thread goes on elsewhere.
//!
//! A scheduler that decides on its own supply calls a policy that nobody has to believe. Before the
//! call it says where its thread goes on if the policy makes an invalid access, divides by zero, or
//! executes what is no instruction ([`Recovery`]). The handler of such faults then leaves the
//! policy's frames as they are, for good, and sets the thread to that place, above them.
//!
//! # Why nobody else is left half-way
//! The fault is the thread's own, in code behind an open gate: the core is in no state between two
//! others. It was in no text of the C library and in no counted entry of it, so it holds no lock of
//! the allocator. Nor did it panic, for which the standard library locks its output. A crash there
//! ends the process, as before. Bytes that the policy wrote to memory
//! of others before it crashed stay written (note 0042).

use punctual_linux_io::is_inside;
use punctual_switch::in_signal_tail;

use crate::record::light::Light;
use crate::record::recovery::Recovery;
use crate::sys;

/// Has the thread that made this fault go on at its [`Recovery`], if it has one and nobody else is
/// concerned. To be called in the handler, which returns then.
///
/// # Safety
/// The arguments are those of a `SA_SIGINFO` handler that has not returned, for a fault of `light`,
/// which is the calling thread.
pub(crate) unsafe fn recover(
    light: &Light,
    signal: i32,
    information: *const u8,
    context: *mut u8,
) -> bool {
    // SAFETY: the host outlives its threads; only its gate and its tables are read.
    let host = unsafe { &*light.host() };
    // SAFETY: as the caller vouches.
    let [instruction, ..] = unsafe { sys::registers(context) };
    let instruction = instruction.cast_unsigned();
    let apart = !host.gate.is_closed()
        && !is_inside()
        && !std::thread::panicking()
        && !host.text.contains(instruction)
        && !in_signal_tail(instruction);
    // SAFETY: as above.
    if !apart || !unsafe { sys::is_own_fault(information) } {
        return false;
    }
    let Some(Recovery {
        resume,
        argument,
        stack,
    }) = light.recovery.take()
    else {
        return false;
    };
    // SAFETY: as above.
    let address = unsafe { sys::fault_address(information) };
    light.fault.set((signal, address));
    // SAFETY: as above; the stack below that address has only frames that nobody returns to.
    unsafe { sys::redirect(context, resume, argument, stack) };
    true
}
