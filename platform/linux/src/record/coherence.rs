//! Whether the records of a CPU are coherent, asked between any two of its instructions.
//!
//! For the tests that stop the processor after each instruction of a live run. At every stop, in
//! the middle of a dispatch or of anything else, INV-1 to INV-6 of `punctual_switch` must hold:
//!
//! ```text
//!   current                     executes on its own stack (or is in its record,
//!                               at the instructions of the protocol alone)          INV-1, 4
//!   every other thread          is in its record, or in one frame, never in both    INV-5, 6
//!   a stack pointer in a record lies in that thread's stack, and the instruction
//!                               beside it is one that dispatches leave behind       INV-2, 3
//! ```

use punctual_switch::{DispatchRecord, examine, protocol_instructions};

use crate::record::light::Light;
use crate::record::local::local;

/// The number of an invariant that does not hold on the calling CPU (1 to 6), or 0; 0 outside of a
/// run. To be asked in a signal handler on that CPU's kernel thread, with the instruction and the
/// stack pointer that were interrupted. O(threads).
pub fn broken_invariant(instruction: u64, stack_pointer: u64) -> u32 {
    // SAFETY: the word is null outside of a run, and a host outlives its run.
    let Some(host) = (unsafe { local(|l| l.host.get()).as_ref() }) else {
        return 0;
    };
    let current = host.record.current();
    // SAFETY: set before the run, and not changed while it goes on.
    let lights = unsafe { &*host.lights.get() };
    // The carrier runs on a stack that the kernel gave it, which nobody here knows.
    if current != host.carrier.get() && !has(lights, current) {
        return 6;
    }
    // SAFETY: one of this CPU's records, which nobody changes while this handler runs.
    let in_store = unsafe { (*current).is_resumable() };
    if in_store && !protocol_instructions().any(|step| step == instruction) {
        return 1;
    }
    let all = lights.iter();
    all.map(|&light| {
        // SAFETY: records outlive the run (INV-L1 of `light`).
        let light = unsafe { &*light };
        of_light(light, light.context() == current, stack_pointer)
    })
    .find(|&broken| broken != 0)
    .unwrap_or(0)
}

fn has(lights: &[*const Light], record: *const DispatchRecord) -> bool {
    // SAFETY: records outlive the run (INV-L1 of `light`).
    lights
        .iter()
        .any(|&light| core::ptr::eq(unsafe { (*light).context() }, record))
}

/// One light thread, and the scheduler that it carries.
fn of_light(light: &Light, is_current: bool, stack_pointer: u64) -> u32 {
    let direct = light.direct();
    let owns = |pointer| {
        light.has_on_stack(pointer) || direct.is_some_and(|scheduler| scheduler.owns(pointer))
    };
    // SAFETY: a record of this CPU, which nobody changes while this handler runs.
    let record = unsafe { &*light.context() };
    match examine(record, is_current, stack_pointer, owns) {
        Ok(executes) => direct.map_or(0, |direct| direct.broken_invariant(executes, stack_pointer)),
        Err(broken) => broken,
    }
}
