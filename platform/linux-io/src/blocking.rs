//! Blocking calls of light threads: they stop the thread that makes them, not the CPU.
//!
//! A call becomes an operation of the CPU's ring ([`crate::ring`]). What need not wait is over at
//! once and costs about as much as the call itself; otherwise the thread blocks, which the core
//! counts as its suspension, and an answer is noticed
//!
//! * at once, when the CPU idles;
//! * at the next entry of the scheduler, which is not far then, when somebody runs.
//!
//! Whoever cannot block makes the call directly: other threads, light threads inside a counted
//! entry of the C library or of the scheduler, and everybody where the kernel has no such ring.

use core::ffi::c_int;

use io_uring::squeue::Entry;
use io_uring::{opcode, types};
use punctual_model::Instant;

use crate::caller::{Caller, current};
use crate::inside::is_inside;
use crate::ring::{Operation, Ring};
use crate::sys::calls::PollEntry;
use crate::sys::{self, KernelClock};

/// So many descriptors are waited for without asking for memory.
const FEW: usize = 32;

/// Where the ring takes no more, those who wait look again after so long.
const LOOK_NS: u64 = 1_000_000;

/// The kernel cancels an operation by itself when a signal keeps it from starting a worker for it.
/// After so many times the call is made directly.
const MOST_TRIES: usize = 8;

/// The calling light thread, if it may block here.
fn able() -> Option<&'static dyn Caller> {
    current().filter(|caller| !is_inside() && caller.may_block())
}

/// Looks at the ring of the thread's CPU, if there is one. Gate closed.
fn with_ring<R>(caller: &dyn Caller, look: impl FnOnce(&mut Ring) -> R) -> Option<R> {
    let (mut look, mut seen) = (Some(look), None);
    caller.with_ring(&mut |ring| seen = look.take().map(|look| look(ring)));
    seen
}

/// Does an operation, blocking the calling light thread alone; `None`: make the call directly.
/// `patience` is asked only when there is something to wait for: nanoseconds, or without end.
/// Returns what the call would: a count, or a negated error.
///
/// # Safety
/// The memory that the entry names stays valid until this returns.
pub(crate) unsafe fn perform(
    entry: Entry,
    patience: impl FnOnce() -> Option<u64>,
) -> Option<c_int> {
    let caller = able()?;
    let (mut patience, mut until) = (Some(patience), None);
    for _ in 0..MOST_TRIES {
        let operation = Operation::new();
        // SAFETY: this function waits for the operation, and the caller vouches for the memory.
        if !unsafe { start(caller, entry.clone(), &operation) } {
            return None;
        }
        let mut in_time = true;
        if operation.result().is_none() {
            if let Some(patience) = patience.take() {
                until = patience().map(|ns| caller.in_ns(ns));
            }
            let operations = core::slice::from_ref(&operation);
            in_time = block_for_any(caller, operations, || is_late(caller, until), until);
            if !in_time {
                give_up(caller, operations);
            }
        }
        match operation.result() {
            // A worker of the kernel is interrupted when it is to give up.
            Some(result) if result != -sys::ECANCELED && result != -sys::EINTR => {
                return Some(result);
            }
            Some(_) if caller.is_cancelled() => return Some(-sys::ECANCELED),
            Some(_) if !in_time => return Some(-sys::EAGAIN),
            // Nobody here has cancelled it, and it was not begun.
            Some(_) => {}
            None => return None,
        }
    }
    None
}

/// Starts an operation, which may be over when this returns; `false`: it cannot be.
///
/// # Safety
/// INV-R1 of `ring`.
unsafe fn start(caller: &dyn Caller, entry: Entry, operation: &Operation) -> bool {
    caller.close_gate();
    let started = with_ring(caller, |ring| {
        // SAFETY: as the caller vouches.
        let started = unsafe { ring.start(entry, operation) };
        ring.collect();
        started
    });
    caller.open_gate();
    started == Some(true)
}

/// Whether there is no waiting any more: the instant has come, or the thread was cancelled.
fn is_late(caller: &dyn Caller, until: Option<Instant>) -> bool {
    until.is_some_and(|until| caller.now() >= until) || caller.is_cancelled()
}

/// Blocks until one of the operations is over (`true`) or it is late, to be asked again at `until`.
fn block_for_any(
    caller: &dyn Caller,
    operations: &[Operation],
    is_late: impl Fn() -> bool,
    until: Option<Instant>,
) -> bool {
    let over = || operations.iter().any(|o| o.result().is_some());
    loop {
        caller.close_gate();
        let _ = with_ring(caller, Ring::collect);
        if over() || is_late() {
            caller.open_gate();
            return over();
        }
        operations.iter().for_each(|o| o.wakes(caller.waiter()));
        caller.block(until);
        operations.iter().for_each(Operation::wakes_nobody);
        if caller.has_run_ended() {
            // The run is over; the carrier has the gate and expects it closed.
            return false;
        }
        caller.open_gate();
    }
}

/// Cancels what is not over, and waits until it is.
fn give_up(caller: &dyn Caller, operations: &[Operation]) {
    let left = || operations.iter().filter(|o| o.result().is_none());
    if caller.has_run_ended() {
        let drained = with_ring(caller, |ring| {
            left().for_each(|o| ring.cancel(o));
            left().for_each(|o| ring.drain(o));
        });
        debug_assert!(drained.is_some(), "an operation was started on the ring");
        return;
    }
    caller.close_gate();
    let _ = with_ring(caller, |ring| left().for_each(|o| ring.cancel(o)));
    caller.open_gate();
    while let Some(operation) = left().next() {
        // To the end, also by a thread that was cancelled: its memory is lent.
        if !block_for_any(caller, core::slice::from_ref(operation), || false, None) {
            return give_up(caller, operations);
        }
    }
}

/// Blocks the calling light thread until one of these descriptors may be ready, or for so many
/// nanoseconds: 0, or a negated error. `None`: it cannot block here.
pub(crate) fn wait_for_any(entries: &[PollEntry], patience: Option<u64>) -> Option<c_int> {
    let caller = able()?;
    let watched = || entries.iter().filter(|entry| entry.fd >= 0);
    let few = [const { Operation::new() }; FEW];
    let many: Vec<Operation>;
    let operations = if entries.len() <= FEW {
        &few[..]
    } else {
        many = entries.iter().map(|_| Operation::new()).collect();
        &many[..]
    };
    let mut started = 0;
    for entry in watched() {
        let events = u32::from(entry.events.cast_unsigned());
        let add = opcode::PollAdd::new(types::Fd(entry.fd), events).build();
        // SAFETY: the entry names no memory, and all operations are waited for below.
        if !unsafe { start(caller, add, &operations[started]) } {
            break;
        }
        started += 1;
    }
    let look = (started < watched().count()).then_some(LOOK_NS);
    let ns = patience.into_iter().chain(look).min();
    let until = ns.map(|ns| caller.in_ns(ns));
    let operations = &operations[..started];
    block_for_any(caller, operations, || is_late(caller, until), until);
    give_up(caller, operations);
    let is_over = caller.has_run_ended() || caller.is_cancelled();
    Some(if is_over { -sys::ECANCELED } else { 0 })
}

/// Sleeps until an instant of the kernel's monotonic clock; `false`: the thread is to end before.
/// `None`: not on a light thread that may block.
pub(crate) fn sleep_until(until_ns: u64) -> Option<bool> {
    sleep_while(until_ns, |caller| !caller.is_to_stop())
}

/// [`sleep_until`] so many nanoseconds from now, by who has still something to do.
pub(crate) fn nap(ns: u64) -> Option<bool> {
    let now = sys::read_clock(KernelClock::Monotonic);
    sleep_while(now.saturating_add(ns), |_| true)
}

fn sleep_while(until_ns: u64, may_sleep: impl Fn(&dyn Caller) -> bool) -> Option<bool> {
    let caller = able()?;
    loop {
        let left = until_ns.saturating_sub(sys::read_clock(KernelClock::Monotonic));
        if left == 0 {
            return Some(true);
        }
        if caller.has_run_ended() || caller.is_cancelled() || !may_sleep(caller) {
            return Some(false);
        }
        let until = Some(caller.in_ns(left));
        caller.close_gate();
        caller.block(until);
        if !caller.has_run_ended() {
            caller.open_gate();
        }
    }
}
