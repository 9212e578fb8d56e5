//! A fault on a light thread: it recovers, or the program mends it, or the process dies.
//!
//! The program's handler is the one from before the run. Without it the process says whose fault
//! it was.

use core::fmt::Write;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::record::light::Light;
use crate::record::local::current_light;
use crate::record::recovery::Role;
use crate::run::recovery::recover;
use crate::sys::action::KernelAction;
use crate::sys::remark::Remark;
use crate::sys::{self, FAULTS};

/// Handler of faults, on the alternate stack of the carrier. Returning repeats the faulting
/// instruction, under the default action then; or goes on where the thread recovers.
pub(crate) unsafe extern "C" fn handle(signal: i32, information: *mut u8, context: *mut u8) {
    if let Some(light) = current_light() {
        // SAFETY: this is a `SA_SIGINFO` handler that has not returned, on the thread's own CPU.
        if let Some(role) = unsafe { recover(light, signal, information, context) } {
            let (what, address) = (sys::fault_name(signal), light.fault.get().1);
            let mut line = Remark::new();
            let (whose, then) = match role {
                Role::Policy => ("the policy", "it decides no more"),
                Role::Function => ("a function", "its application goes no further there"),
            };
            let name = light.name();
            let _ = writeln!(
                line,
                "punctual: {whose} of '{name}' {what} at {address:#x}: {then}"
            );
            line.say();
            return;
        }
    }
    // SAFETY: this is a `SA_SIGINFO` handler that has not returned.
    let address = unsafe { sys::fault_address(information) };
    let overflows = current_light().is_some_and(|light| light.guards(address));
    // SAFETY: as above.
    let was_called = unsafe { before(signal).call(signal, information, context) };
    // A handler that gives up, as that of the standard library, leaves the default action behind.
    let is_handled = was_called && sys::set_action(signal, None).is_ok_and(|now| !now.is_default());
    if is_handled && !overflows {
        return;
    }
    if let Some(light) = current_light() {
        say(light, signal, address, overflows);
    }
    if !is_handled {
        // Nothing can be done about a failure here: the fault would then repeat.
        let _ = sys::set_action(signal, Some(&KernelAction::DEFAULT));
    }
}

/// Names the thread at fault, and what it did.
fn say(light: &Light, signal: i32, address: u64, overflows: bool) {
    let what = if overflows {
        "has overflowed its stack"
    } else {
        sys::fault_name(signal)
    };
    let mut line = Remark::new();
    // What does not fit is cut off.
    let _ = writeln!(
        line,
        "punctual: thread '{}' {what} at {address:#x} ({} of {} bytes of stack were used)",
        light.name(),
        light.stack().high_water(),
        light.stack().bytes(),
    );
    line.say();
}

/// The handlers of the program, from before the run.
static BEFORE: [AtomicU64; FAULTS.len()] = [const { AtomicU64::new(0) }; FAULTS.len()];

/// Faults that the run does not mend are for these from now on.
pub(crate) fn keep_before(actions: &[Option<KernelAction>; FAULTS.len()]) {
    for (place, action) in BEFORE.iter().zip(actions) {
        let handler = action.map_or(0, |action| action.handler());
        place.store(handler, Ordering::Relaxed);
    }
}

fn before(signal: i32) -> KernelAction {
    let place = FAULTS.iter().position(|fatal| *fatal == signal);
    let handler = place.map_or(0, |place| BEFORE[place].load(Ordering::Relaxed));
    KernelAction::of_program(handler)
}
