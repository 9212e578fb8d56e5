//! The hook to the platform: the thread that makes a call, and how it waits without its CPU.

use core::ffi::c_long;
use std::sync::OnceLock;

use punctual_model::Instant;

use crate::backoff::Backoff;
use crate::futex::FutexRequest;
use crate::ring::{Ring, Waiter};
use crate::sys::StackBounds;
use crate::sys::calls::Direction;
use crate::sys::origin::Origin;

/// A light thread, as its calls see it. All of this is asked by the thread itself.
///
/// The *gate* keeps preemptions out: while it is closed, no other thread of the CPU executes.
pub trait Caller {
    /// Whether it may block here: it is not inside its scheduler, and its run goes on.
    fn may_block(&self) -> bool;

    /// Its run is over, and has closed the gate: a call that waits returns.
    fn has_run_ended(&self) -> bool;

    /// It was cancelled, so that no wait of its calls goes on.
    fn is_cancelled(&self) -> bool;

    /// Its job is to end at the next opportunity: it does not begin to sleep.
    fn is_to_stop(&self) -> bool;

    /// The instant.
    fn now(&self) -> Instant;

    /// The instant so many nanoseconds from now.
    fn in_ns(&self, ns: u64) -> Instant;

    /// How often its calls in this direction are tried without waiting.
    fn backoff(&self, direction: Direction) -> &Backoff;

    /// The name that its answers have for it.
    fn waiter(&self) -> Waiter;

    /// Closes the gate.
    fn close_gate(&self);

    /// Opens the gate, and takes the preemption that came meanwhile.
    fn open_gate(&self);

    /// Shows the ring of its CPU; `false`: there is none. Gate closed. `look` reaches the ring by
    /// no other way.
    fn with_ring(&self, look: &mut dyn FnMut(&mut Ring)) -> bool;

    /// Blocks until it is woken, or at most until this instant. Gate closed, before and after.
    fn block(&self, until: Option<Instant>);

    /// Does what `futex(2)` was asked to do, in its own way: the call's result. `None`: let the
    /// kernel do it.
    ///
    /// # Safety
    /// The word of the request is valid, by the contract of futex(2).
    unsafe fn futex(&self, request: FutexRequest) -> Option<c_long>;

    /// The heritage of the program's own threads.
    fn origin(&self) -> &Origin;

    /// Its CPU, in the order of the run.
    fn cpu(&self) -> usize;

    /// The stack that it executes on, if it is its own.
    fn stack(&self) -> Option<StackBounds>;

    /// This is the child, in which the thread is alone and no light thread from now on.
    fn in_child(&self);

    /// A preemption has waited for the end of a counted entry, which returns to this address.
    fn preempt(&self, returns_to: usize);
}

/// Names the light thread that calls it; `None` on every other thread.
type Current = fn() -> Option<&'static dyn Caller>;

static CURRENT: OnceLock<Current> = OnceLock::new();

/// Tells who the platform's light threads are. The first call counts.
pub fn install(current: Current) {
    let _ = CURRENT.set(current);
}

/// Whether there may be light threads. Before that nothing here needs storage per thread, which is
/// not there yet when a library is called that the loader initialises first.
pub(crate) fn is_installed() -> bool {
    CURRENT.get().is_some()
}

/// The calling light thread.
#[inline]
pub(crate) fn current() -> Option<&'static dyn Caller> {
    CURRENT.get().and_then(|current| current())
}
