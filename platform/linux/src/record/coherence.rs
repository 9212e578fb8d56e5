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

use punctual_switch::{DispatchRecord, is_entry, protocol_instructions};

use crate::direct::Group;
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

/// One light thread, and the direct threads that it carries.
fn of_light(light: &Light, is_current: bool, stack_pointer: u64) -> u32 {
    // SAFETY: set and cleared by the light thread itself, while the group lives.
    let group = unsafe { light.direct.get().as_ref() };
    let owns = |pointer| {
        let direct = |group: &Group| {
            let mut stacks = group.threads.iter().filter_map(|t| t.stack.as_ref());
            stacks.any(|stack| stack.contains(pointer))
        };
        light.has_on_stack(pointer) || group.is_some_and(direct)
    };
    let executes = match of_record(light.context(), is_current, stack_pointer, owns) {
        Ok(executes) => executes,
        Err(broken) => return broken,
    };
    let Some(group) = group else { return 0 };
    let current = group.record.current();
    let places = group.threads.iter().zip(&group.records);
    for (thread, record) in places {
        let owns = |pointer| match &thread.stack {
            Some(stack) => stack.contains(pointer),
            None => light.has_on_stack(pointer),
        };
        let is_current = record.get() == current;
        if is_current && !executes {
            // The core has taken the processor from all of them together.
            continue;
        }
        if let Err(broken) = of_record(record.get(), is_current, stack_pointer, owns) {
            return broken;
        }
    }
    0
}

/// One record: whether its thread executes, or which invariant is broken.
fn of_record(
    record: *const DispatchRecord,
    is_current: bool,
    stack_pointer: u64,
    owns: impl Fn(u64) -> bool,
) -> Result<bool, u32> {
    // SAFETY: its thread does not execute while this handler does, and no other one writes it.
    let (preempted, (instruction, stack)) = unsafe { ((*record).is_preempted(), (*record).says()) };
    if stack != 0 && !is_entry(instruction) {
        return Err(2);
    }
    if stack != 0 && !owns(stack) {
        return Err(3);
    }
    if preempted && stack != 0 {
        return Err(5);
    }
    let executes = stack == 0 && !preempted;
    match (is_current, executes) {
        (true, true) if !owns(stack_pointer) => Err(4),
        (false, true) => Err(6),
        _ => Ok(executes),
    }
}
