//! All assembly of the workspace: records of threads, and the dispatch between them.
//!
//! What it does: goes from one thread to another ([`dispatch()`]) by what their records say
//! ([`DispatchRecord`], [`SchedulerRecord`]), starts a thread on a fresh stack
//! ([`DispatchRecord::prepare`]), enters and leaves the preemption signal ([`signal_entry`]), finds
//! out whom it interrupted ([`recover()`]), has a caller go on behind a call that crashed
//! ([`call_guarded`]) or that an exception of another language left ([`call_catching`]), and wraps
//! the few instructions that the language has no word for ([`mod@instructions`], [`system_call`]).
//!
//! What it does not know: time, policy, the C library.
//!
//! # Invariants
//!
//! The first six are those of Slite §IV; `doc/design/0010-dispatch-records.md` tells why they are
//! enough at every instruction, 0004 what the signal adds.
//!
//! * **INV-1** A record's stack pointer is zero while its thread executes, and when it was
//!   preempted.
//! * **INV-2** The stack pointer is stored after everything else: when it is not zero, the
//!   instruction and the rest of the record are valid.
//! * **INV-3** Only a thread itself sets its instruction and stack pointer to something (a new
//!   thread's creator stands for it).
//! * **INV-4** Whoever is dispatched to sets his own stack pointer to zero, as his first act.
//! * **INV-5** If and only if the stack pointer is not zero, the record restores the thread; else,
//!   if it does not execute, the frame that the preemption signal kept for it does.
//! * **INV-6** `current` of a scheduler always names a thread that executes or that can be
//!   restored: it is stored after the one who leaves is in store, and before he is left.
//! * **INV-7** While the gate of a processor is closed ([`Gate`]), a signal notes itself in
//!   `pending` and returns to the very instruction that it interrupted. The scheduler core, and the
//!   dispatches that it decides on, run behind it.
//! * **INV-8** Whoever opens the gate looks at `pending` afterwards and serves it. For signal
//!   frames both happen in the tail of [`signal_entry`], and a signal that interrupts the tail or
//!   the return from the signal ([`in_signal_tail`]) makes no switch there: frames do not pile up.
//! * **INV-9** The thread pointer (`fs`) changes with the stack pointer, between the commitment and
//!   the first instruction of the thread that is resumed: code always sees the thread-local storage
//!   that belongs to the stack it runs on.
//! * **INV-10** A dispatch changes no register that its caller keeps something in: the compiler
//!   knows of all but `rbx`, `rbp` and the stack pointer, which the record keeps; the control words
//!   of MXCSR and x87 are kept for threads that ask. A preempted thread has all of its registers in
//!   the kernel's frame.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

mod caller;
mod catching;
mod dispatch;
#[cfg(test)]
mod every_instruction;
mod frame;
mod gate;
mod guarded;
pub mod instructions;
mod record;
mod recover;
mod restartable;
mod ring;
mod scheduler;
mod signal;
pub mod stepping;
mod system_call;
mod words;

pub use catching::call_catching;
pub use dispatch::{
    Dispatched, abandon_to, dispatch, dispatch_by_system_call, dispatch_call, dispatch_to_own,
};
pub use frame::SignalFrame;
pub use gate::Gate;
pub use guarded::{call_guarded, return_crashed};
pub use record::{Control, DispatchRecord, Entry};
pub use recover::{Recovered, examine, is_entry, protocol_instructions, recover};
pub use restartable::{
    exchange_if, exchange_if_by_kernel, exchange_if_on_one_processor, roll_back,
};
pub use ring::{EventRing, PreemptionEvent, RING_SLOTS};
pub use scheduler::{RecordCell, SchedulerRecord};
pub use signal::{SignalBody, in_signal_tail, install_bodies, signal_entry, signal_restorer};
pub use system_call::system_call;
