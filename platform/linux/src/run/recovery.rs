//! Code that crashes on a stack of its own costs itself alone: its thread goes on elsewhere.
//!
//! A scheduler that decides on its own supply calls a policy that nobody has to believe; a tile
//! calls functions in C of its application. Before the call it says where its thread goes on if
//! these make an invalid access, divide by zero, or execute what is no instruction ([`Recovery`]).
//! The handler of such faults then leaves their frames as they are, for good, and sets the thread
//! to that place, above them.
//!
//! # Why nobody else is left half-way
//! The fault is the thread's own, in code behind an open gate: the core is in no state between two
//! others. It was in no text of the C library and in no counted entry of it, so it holds no lock of
//! the allocator. Nor did it panic, for which the standard library locks its output. A crash there
//! ends the process, as before. Bytes that it wrote to memory of others before it crashed stay
//! written (note 0042).

use punctual_linux_io::is_inside;
use punctual_switch::in_signal_tail;

use crate::record::light::Light;
use crate::record::local::local;
use crate::record::recovery::{Recovery, Role};
use crate::sys;

/// Has the thread that made this fault go on at its [`Recovery`], if it has one and nobody else is
/// concerned: the code that crashed. To be called in the handler, which returns then.
///
/// # Safety
/// The arguments are those of a `SA_SIGINFO` handler that has not returned, for a fault of `light`,
/// which is the calling thread.
pub(crate) unsafe fn recover(
    light: &Light,
    signal: i32,
    information: *const u8,
    context: *mut u8,
) -> Option<Role> {
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
        return None;
    }
    let Recovery {
        resume,
        argument,
        stack,
        role,
    } = local(|l| l.recovery.take())?;
    // SAFETY: as above.
    let address = unsafe { sys::fault_address(information) };
    light.fault.set((signal, address));
    // SAFETY: it lives in a frame above those of the call.
    let stack = unsafe { stack.read_volatile() };
    // SAFETY: as above; the stack below that address has only frames that nobody returns to.
    unsafe { sys::redirect(context, resume, argument, stack) };
    Some(role)
}
