//! What the kernel does with a signal, in the kernel's own words.

use punctual_switch::{SignalBody, install_bodies, signal_entry, signal_restorer};

use crate::sys;

/// The kernel's own `struct sigaction` (the C library's has another layout and its own restorer).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelAction {
    handler: u64,
    flags: u64,
    restorer: u64,
    mask: u64,
}

/// "The restorer is given": x86-64 demands it, and C libraries hide it.
const SA_RESTORER: u64 = 0x0400_0000;

impl KernelAction {
    /// The default action.
    pub(crate) const DEFAULT: KernelAction = KernelAction {
        handler: 0,
        flags: 0,
        restorer: 0,
        mask: 0,
    };

    /// Enters through the assembly of `switch`; nothing is masked inside, the frame lies on the
    /// stack of the interrupted thread, and interrupted system calls go on.
    pub(crate) fn preemption(body: SignalBody) -> KernelAction {
        install_bodies(body);
        KernelAction::new(signal_entry as *const (), sys::PREEMPTION_FLAGS)
    }

    /// A handler for faults, on the alternate stack: nothing else comes between, so nobody switches
    /// away from there.
    pub(crate) fn fault(handler: unsafe extern "C" fn(i32, *mut u8, *mut u8)) -> KernelAction {
        let faults = sys::FAULTS.iter();
        KernelAction {
            mask: faults.fold(u64::MAX, |mask, signal| mask & !(1 << (signal - 1))),
            ..KernelAction::new(handler as *const (), sys::FAULT_FLAGS)
        }
    }

    fn new(handler: *const (), flags: i32) -> KernelAction {
        KernelAction {
            handler: handler as u64,
            flags: SA_RESTORER | u64::from(flags.cast_unsigned()),
            restorer: signal_restorer(),
            mask: 0,
        }
    }

    /// Calls the function that this action names, as the kernel called for the signal; `false`: it
    /// names none.
    ///
    /// # Safety
    /// All three are those of a `SA_SIGINFO` handler that has not returned.
    pub(crate) unsafe fn call(&self, signal: i32, information: *mut u8, context: *mut u8) -> bool {
        type WithAll = unsafe extern "C" fn(i32, *mut u8, *mut u8);
        // 0 and 1 are no functions.
        if self.handler <= 1 {
            return false;
        }
        let handler =
            core::ptr::with_exposed_provenance::<()>(usize::try_from(self.handler).unwrap_or(0));
        // SAFETY: the program has given this function to the kernel for this signal. One that takes
        // the signal alone is called alike: the further arguments are in registers that it ignores.
        let handler = unsafe { core::mem::transmute::<*const (), WithAll>(handler) };
        // SAFETY: as the caller vouches.
        unsafe { handler(signal, information, context) };
        true
    }

    /// The function that it names, or 0 or 1.
    pub(crate) fn handler(&self) -> u64 {
        self.handler
    }

    /// What a program has given to the kernel, as far as [`KernelAction::call`] needs it.
    pub(crate) fn of_program(handler: u64) -> KernelAction {
        KernelAction {
            handler,
            ..KernelAction::DEFAULT
        }
    }

    /// Whether both name the same function.
    pub(crate) fn is_as(&self, other: &KernelAction) -> bool {
        self.handler == other.handler
    }

    /// Nobody has claimed the signal.
    pub(crate) fn is_default(&self) -> bool {
        self.handler == 0
    }
}
