//! The dispatch as its test needs it, also with two stores swapped: that the test must notice.

use crate::dispatch::{protocol, step};
use crate::record::{
    FRAME, INSTRUCTION, KEEPS_CONTROL, MXCSR, RBP, RBX, STACK_POINTER, THREAD_POINTER, X87_CONTROL,
};
use crate::scheduler::{CURRENT, EPOCH};
use crate::{DispatchRecord, Dispatched, SchedulerRecord, dispatch_to_own};

/// [`dispatch_to_own`] as a function with a calling convention.
pub(super) unsafe extern "C" fn dispatches_to_own(
    scheduler: *const SchedulerRecord,
    from: *mut DispatchRecord,
    to: *mut DispatchRecord,
    epoch: u64,
) -> Dispatched {
    // SAFETY: as the caller vouches.
    unsafe { dispatch_to_own(scheduler, from, to, epoch) }
}

/// The commitment before the one who leaves is in store: INV-6 broken.
pub(super) unsafe extern "C" fn commits_before_it_publishes(
    scheduler: *const SchedulerRecord,
    from: *mut DispatchRecord,
    to: *mut DispatchRecord,
    epoch: u64,
) -> Dispatched {
    // SAFETY: none; that is the point.
    unsafe {
        protocol!(
            [from, to, scheduler, epoch],
            table: "punctual_broken",
            pointer: ["wrfsbase rax"],
            asks: 1,
            publish: "mov [rdx + {current}], rsi",
            commit: "mov [rdi + {stack}], rsp",
            take: ["mov rsp, r8", "jmp [rsi + {instruction}]"]
        )
    }
}

/// The record that restores a thread cleared before the thread is on its stack: INV-4 broken.
pub(super) unsafe extern "C" fn clears_before_it_takes(
    scheduler: *const SchedulerRecord,
    from: *mut DispatchRecord,
    to: *mut DispatchRecord,
    epoch: u64,
) -> Dispatched {
    // SAFETY: none; that is the point.
    unsafe {
        protocol!(
            [from, to, scheduler, epoch],
            table: "punctual_broken",
            pointer: ["wrfsbase rax"],
            asks: 1,
            publish: "mov [rdi + {stack}], rsp",
            commit: "mov [rdx + {current}], rsi",
            take: [
                "mov qword ptr [rsi + {stack}], 0",
                "mov rsp, r8",
                "jmp [rsi + {instruction}]"
            ]
        )
    }
}
