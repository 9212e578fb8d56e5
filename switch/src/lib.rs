//! All assembly of the workspace: contexts and the switch between them.
//!
//! What it does: saves and restores what one processor needs to go on with a thread
//! ([`Context`], [`switch`]), starts a thread on a fresh stack ([`Context::prepare`]), enters and
//! leaves the preemption signal ([`signal_entry`]), and wraps the few instructions that the
//! language has no word for ([`mod@instructions`], [`system_call`]).
//!
//! What it does not know: time, policy, threads, the C library.
//!
//! # Invariants
//!
//! The design follows the dispatch invariants of Slite §IV (kept here in one word per thread, the
//! saved stack pointer), and the rules of `doc/design/0004-preemption-inside-the-handler.md`.
//!
//! * **INV-1** A context's saved stack pointer is zero exactly while its thread has the processor
//!   (or has not been prepared). It is set by the thread that leaves, and cleared by the switch
//!   that resumes it.
//! * **INV-2** A non-zero saved stack pointer points at a complete frame of the layout in
//!   [`Context`]: it is stored after everything else has been pushed.
//! * **INV-3** A switch happens only while the gate of the processor is closed ([`Gate`]): a signal
//!   that arrives in between finds the gate closed, notes itself in `pending` and returns to the
//!   very instruction that it interrupted. So a half-made switch is never switched again.
//! * **INV-4** Whoever opens the gate looks at `pending` afterwards and serves it. For signal
//!   frames both happen in the tail of [`signal_entry`], and a signal that interrupts the tail or
//!   the return from the signal ([`in_signal_tail`]) makes no switch there: frames do not pile up.
//! * **INV-5** The thread pointer (`fs`) changes together with the stack pointer, so code always
//!   sees the thread-local storage that belongs to the stack it runs on, from the first instruction
//!   after the switch on.
//! * **INV-6** Callee-saved registers, the control bits of MXCSR and the x87 control word survive a
//!   switch; everything else is either dead at a call (System V ABI) or in the frame that the
//!   kernel pushed for the signal (all vector state).
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

mod context;
pub mod instructions;
mod signal;
mod system_call;

pub use context::{Context, Entry, FRAME_BYTES, switch, switch_by_system_call};
pub use signal::{Gate, SignalBody, in_signal_tail, install_bodies, signal_entry, signal_restorer};
pub use system_call::system_call;
