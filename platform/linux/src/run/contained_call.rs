//! Calls of functions in C that may crash: the caller goes on, and hears of it.

use core::cell::Cell;
use core::sync::atomic::{Ordering, compiler_fence};

use punctual_switch::{call_guarded, return_crashed};

use crate::record::local::{current_light, local};
use crate::record::recovery::{Recovery, Role};

/// Calls code in C, which may crash: an invalid access, a division by zero, an instruction that is
/// none. On light threads its frames are left as they are then, and nothing in them is dropped; on
/// other threads the process ends. So it does where others could be left half-way: in the text of
/// the C library, and in counted entries of it (note 0042).
///
/// # Errors
/// In words: it crashed.
///
/// # Safety
/// The closure calls code in C and does nothing else that a crash must not leave half-way. What it
/// calls does not unwind.
pub unsafe fn contained_call<R: Copy>(call: impl FnOnce() -> R + Copy) -> Result<R, String> {
    let Some(light) = current_light() else {
        return Ok(call());
    };
    let result = Cell::new(None);
    let mut both = (call, &result);
    let mut place = 0_u64;
    let recovery = Recovery {
        resume: return_crashed,
        argument: (&raw mut place).cast(),
        stack: &raw const place,
        role: Role::Function,
    };
    let outer = local(|l| l.recovery.replace(Some(recovery)));
    // The handler of faults reads it, in the midst of the call.
    compiler_fence(Ordering::SeqCst);
    let argument = (&raw mut both).cast();
    // SAFETY: the argument is what the function expects; neither the closure nor its result has
    // anything to drop, and the place is this frame's.
    let crashed = unsafe { call_guarded(enter_of(&both), argument, &raw mut place) };
    compiler_fence(Ordering::SeqCst);
    local(|l| l.recovery.set(outer));
    match result.get() {
        Some(result) if crashed == 0 => Ok(result),
        _ => Err(light.fault_in_words("it")),
    }
}

type Both<'a, F, R> = (F, &'a Cell<Option<R>>);

/// The function that executes such a closure.
fn enter_of<F: FnOnce() -> R + Copy, R: Copy>(_: &Both<'_, F, R>) -> unsafe extern "C" fn(*mut u8) {
    unsafe extern "C" fn enter<F: FnOnce() -> R + Copy, R: Copy>(argument: *mut u8) {
        // SAFETY: the caller's, who waits.
        let (call, result) = unsafe { &*argument.cast::<Both<'_, F, R>>() };
        result.set(Some(call()));
    }
    enter::<F, R>
}
