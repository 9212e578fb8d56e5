//! A fault on a light thread: the thread recovers, or the process says whose it was and dies.

use core::fmt::Write;

use crate::record::local::current_light;
use crate::record::recovery::Role;
use crate::run::recovery::recover;
use crate::sys;
use crate::sys::action::KernelAction;
use crate::sys::remark::Remark;

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
        // SAFETY: this is a `SA_SIGINFO` handler that has not returned.
        let address = unsafe { sys::fault_address(information) };
        let overflow = light.guards(address);
        let what = if overflow {
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
    // Nothing can be done about a failure here: the fault would then repeat.
    let _ = sys::set_action(signal, Some(&KernelAction::DEFAULT));
}
