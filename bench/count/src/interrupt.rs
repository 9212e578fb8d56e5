//! The preemption signal of a program that is stepped, at an instruction that the program names.
//!
//! All signals stay pending while a program is stepped. [`crate::stepper::interrupt`] lets the one
//! of the platform come, as from its timer, after time has passed. The kernel enters a handler
//! without stepping, so another one stands before the platform's: it goes on stepping, and makes a
//! mark.

use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::io;

use punctual_switch::instructions::step_instructions;

use crate::stepper::{Operation, lets_come, mark, signal_bit, was_asked_for};

/// The platform's handler.
static HANDLER: AtomicUsize = AtomicUsize::new(0);

/// The operation that begins with the first instruction of the handler.
pub(crate) const PREEMPTION: Operation = 0;

/// The kernel's own structure of a signal's action.
#[repr(C)]
#[derive(Default)]
struct Action {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

type Handler = unsafe extern "C" fn(c_int, *mut u8, *mut u8);

/// To be called in a run that is about to be stepped: its preemption signal can be let come.
pub(crate) fn prepare() -> io::Result<()> {
    for signal in libc::SIGRTMIN()..=libc::SIGRTMAX() {
        let mut action = Action::default();
        exchange(signal, None, Some(&mut action))?;
        // 0 and 1 are no handlers.
        if action.handler <= 1 {
            continue;
        }
        HANDLER.store(action.handler, Relaxed);
        lets_come(signal.unsigned_abs());
        action.handler = on_signal as Handler as usize;
        // Another one, of the machine's own time, waits until this one is over.
        action.mask |= signal_bit(signal.unsigned_abs());
        action.flags &= !u64::from(libc::SA_NODEFER.unsigned_abs());
        return exchange(signal, Some(&action), None);
    }
    Err(io::Error::other("the run has no signal of its own"))
}

/// A new action for a signal, or a look at the one that is in force.
fn exchange(signal: c_int, new: Option<&Action>, old: Option<&mut Action>) -> io::Result<()> {
    let new = new.map_or(core::ptr::null(), core::ptr::from_ref);
    let old = old.map_or(core::ptr::null_mut(), core::ptr::from_mut);
    let bytes = size_of::<u64>();
    // SAFETY: both are null or structures of the kernel's layout.
    match unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, old, bytes) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Goes on stepping, and calls the platform's handler. A signal that nobody asked for is one of the
/// machine's own time.
unsafe extern "C" fn on_signal(signal: c_int, information: *mut u8, context: *mut u8) {
    if !was_asked_for() {
        return;
    }
    let handler = core::ptr::with_exposed_provenance::<()>(HANDLER.load(Relaxed));
    // SAFETY: the kernel had this function for the signal.
    let handler = unsafe { core::mem::transmute::<*const (), Handler>(handler) };
    // SAFETY: the stepper handles SIGTRAP; the handler is called as by the kernel.
    unsafe {
        step_instructions(true);
        mark(PREEMPTION);
        handler(signal, information, context);
    }
}
