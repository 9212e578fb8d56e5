//! The preemption signal of a program that is stepped, at an instruction that the program names.
//!
//! All signals stay pending while a program is stepped. [`interrupt`] lets the one of the platform
//! come, as from its timer, after time has passed. The kernel enters a handler without stepping, so
//! another one stands before the platform's: it goes on stepping, and makes a mark.

use core::ffi::c_int;
use core::hint::black_box;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::io;

use punctual_switch::instructions::step_instructions;

use crate::stepper::{Operation, mark};

/// Its number; 0: nothing is prepared.
static SIGNAL: AtomicU32 = AtomicU32::new(0);
/// The platform's handler.
static HANDLER: AtomicUsize = AtomicUsize::new(0);
/// Whether the signal that comes next was asked for.
static ASKED: AtomicU32 = AtomicU32::new(0);

/// The operation that begins with the first instruction of the handler.
pub(crate) const PREEMPTION: Operation = 0;

/// What the kernel knows of a signal, in its own words.
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
        SIGNAL.store(signal.unsigned_abs(), Relaxed);
        action.handler = on_signal as Handler as usize;
        // Another one, of the machine's own time, waits until this one is over.
        action.mask |= bit(signal.unsigned_abs());
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

fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// So many ticks pass, and the timer's signal comes. In a program that is stepped.
#[inline(never)]
pub(crate) extern "C" fn interrupt(ticks: u64) {
    black_box(ticks);
}

/// Whether the instruction at this address is the first of [`interrupt`].
pub(crate) fn is_asked_for(at: u64) -> bool {
    at == interrupt as extern "C" fn(u64) as usize as u64
}

/// Sends the signal to the calling kernel thread: the set that is to be let come.
pub(crate) fn send() -> u64 {
    let signal = SIGNAL.load(Relaxed);
    if signal == 0 {
        return 0;
    }
    ASKED.store(1, Relaxed);
    // SAFETY: all zeros is a valid structure.
    let mut information: libc::siginfo_t = unsafe { core::mem::zeroed() };
    information.si_code = libc::SI_TIMER;
    // SAFETY: calls that may be made in a handler; the structure outlives them.
    unsafe {
        let thread = libc::syscall(libc::SYS_gettid);
        let told = &raw const information;
        libc::syscall(
            libc::SYS_rt_tgsigqueueinfo,
            libc::getpid(),
            thread,
            signal,
            told,
        );
    }
    bit(signal)
}

/// Goes on stepping, and calls the platform's handler. A signal that nobody asked for is one of the
/// machine's own time.
unsafe extern "C" fn on_signal(signal: c_int, information: *mut u8, context: *mut u8) {
    if ASKED.swap(0, Relaxed) == 0 {
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
