//! Blocking calls of light threads: they stop the thread that makes them, not the CPU.
//!
//! A call becomes an operation of the CPU's ring ([`crate::uring`]). What need not wait is over at
//! once and costs about as much as the call itself; otherwise the thread blocks, which the core
//! counts as its suspension, and an answer is noticed
//!
//! * at once, when the CPU idles;
//! * at the next entry of the scheduler, at most `ANSWER_LOOK_NS` later, when somebody runs.
//!
//! Whoever cannot block makes the call directly: other threads, light threads inside a counted
//! entry of the C library or of the scheduler, and everybody where the kernel has no such ring.

use core::ffi::c_int;
use core::sync::atomic::Ordering;

use io_uring::squeue::Entry;
use io_uring::{opcode, types};
use punctual_kern::Event;
use punctual_model::{Instant, ThreadId};

use crate::host::Host;
use crate::light::{Light, open_gate};
use crate::local::{current_light, local};
use crate::monitor::is_to_end;
use crate::sys::calls::PollEntry;
use crate::sys::{self, KernelClock};
use crate::uring::{Operation, Uring};

/// So many descriptors are waited for without asking for memory.
const FEW: usize = 32;

/// Where the ring takes no more, those who wait look again after so long.
const LOOK_NS: u64 = 1_000_000;

/// The kernel cancels an operation by itself when a signal keeps it from starting a worker for it.
/// After so many times the call is made directly.
const MOST_TRIES: usize = 8;

/// The calling light thread, if it may block here.
fn able() -> Option<&'static Light> {
    let light = current_light()?;
    // SAFETY: the host outlives its threads.
    let inside = unsafe { (*light.host()).gate.is_closed() };
    let foreign = local(|l| l.foreign.get()) > 0;
    (!inside && !foreign && !light.quit.get()).then_some(light)
}

/// Looks at the ring of the thread's CPU. Gate closed.
fn with_ring<R>(light: &Light, look: impl FnOnce(&mut Uring) -> R) -> Option<R> {
    // SAFETY: the host outlives its threads.
    let host = unsafe { &*light.host() };
    debug_assert!(
        host.gate.is_closed(),
        "the ring is looked at with the gate closed"
    );
    // SAFETY: gate closed, and `look` reaches the ring by no other way; the borrow ends here.
    unsafe { &mut *host.uring.get() }.as_mut().map(look)
}

fn close_gate(light: &Light) {
    // SAFETY: the host outlives its threads.
    unsafe { (*light.host()).gate.close() };
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
    let light = able()?;
    let (mut patience, mut until) = (Some(patience), None);
    for _ in 0..MOST_TRIES {
        let operation = Operation::new();
        // SAFETY: this function waits for the operation, and the caller vouches for the memory.
        if !unsafe { start(light, entry.clone(), &operation) } {
            return None;
        }
        let mut in_time = true;
        if operation.result().is_none() {
            if let Some(patience) = patience.take() {
                until = patience().map(|ns| in_ns(light, ns));
            }
            let operations = core::slice::from_ref(&operation);
            in_time = block_for_any(light, operations, || is_late(light, until), until);
            if !in_time {
                give_up(light, operations);
            }
        }
        match operation.result() {
            // A worker of the kernel is interrupted when it is to give up.
            Some(result) if result != -sys::ECANCELED && result != -sys::EINTR => {
                return Some(result);
            }
            Some(_) if is_to_end(light) => return Some(-sys::ECANCELED),
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
/// INV-R1 of `uring`.
unsafe fn start(light: &Light, entry: Entry, operation: &Operation) -> bool {
    close_gate(light);
    let started = with_ring(light, |ring| {
        // SAFETY: as the caller vouches.
        let started = unsafe { ring.start(entry, operation) };
        ring.collect();
        started
    });
    open_gate(light.host());
    started == Some(true)
}

/// Whether there is no waiting any more: the instant has come, or the thread was cancelled.
fn is_late(light: &Light, until: Option<Instant>) -> bool {
    until.is_some_and(|until| light.now() >= until) || is_to_end(light)
}

/// Blocks until one of the operations is over (`true`) or it is late, to be asked again at `until`.
fn block_for_any(
    light: &Light,
    operations: &[Operation],
    is_late: impl Fn() -> bool,
    until: Option<Instant>,
) -> bool {
    let over = || operations.iter().any(|o| o.result().is_some());
    loop {
        close_gate(light);
        let _ = with_ring(light, Uring::collect);
        if over() || is_late() {
            open_gate(light.host());
            return over();
        }
        operations.iter().for_each(|o| o.wakes(light));
        // SAFETY: the host outlives its threads.
        let enter = unsafe { (*light.host()).by_policy.enter };
        // SAFETY: gate closed, no reference into scheduler state is alive.
        light.wait_by(|| unsafe { enter(light.host(), Event::Block { until }) });
        operations.iter().for_each(Operation::wakes_nobody);
        if light.quit.get() {
            // The run is over; the carrier has the gate and expects it closed.
            return false;
        }
        open_gate(light.host());
    }
}

/// Cancels what is not over, and waits until it is.
fn give_up(light: &Light, operations: &[Operation]) {
    let left = || operations.iter().filter(|o| o.result().is_none());
    if light.quit.get() {
        let drained = with_ring(light, |ring| {
            left().for_each(|o| ring.cancel(o));
            left().for_each(|o| ring.drain(o));
        });
        debug_assert!(drained.is_some(), "an operation was started on the ring");
        return;
    }
    close_gate(light);
    let _ = with_ring(light, |ring| left().for_each(|o| ring.cancel(o)));
    open_gate(light.host());
    while let Some(operation) = left().next() {
        // To the end, also by a thread that was cancelled: its memory is lent.
        if !block_for_any(light, core::slice::from_ref(operation), || false, None) {
            return give_up(light, operations);
        }
    }
}

fn in_ns(light: &Light, ns: u64) -> Instant {
    // SAFETY: the host outlives its threads.
    let clock = unsafe { (*light.host()).clock() };
    Instant::from_ticks(clock.now().ticks().saturating_add(clock.ticks(ns)))
}

/// Blocks the calling light thread until one of these descriptors may be ready, or for so many
/// nanoseconds: 0, or a negated error. `None`: it cannot block here.
pub(crate) fn wait_for_any(entries: &[PollEntry], patience: Option<u64>) -> Option<c_int> {
    let light = able()?;
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
        if !unsafe { start(light, add, &operations[started]) } {
            break;
        }
        started += 1;
    }
    let look = (started < watched().count()).then_some(LOOK_NS);
    let ns = patience.into_iter().chain(look).min();
    let until = ns.map(|ns| in_ns(light, ns));
    let operations = &operations[..started];
    block_for_any(light, operations, || is_late(light, until), until);
    give_up(light, operations);
    let is_over = light.quit.get() || is_to_end(light);
    Some(if is_over { -sys::ECANCELED } else { 0 })
}

/// Sleeps until an instant of the kernel's monotonic clock; `false`: the thread is to end before.
/// `None`: not on a light thread that may block.
pub(crate) fn sleep_until(until_ns: u64) -> Option<bool> {
    sleep_while(until_ns, |light| !light.stop.load(Ordering::Relaxed))
}

/// [`sleep_until`] so many nanoseconds from now, by who has still something to do.
pub(crate) fn nap(ns: u64) -> Option<bool> {
    let now = sys::read_clock(KernelClock::Monotonic);
    sleep_while(now.saturating_add(ns), |_| true)
}

fn sleep_while(until_ns: u64, may_sleep: impl Fn(&Light) -> bool) -> Option<bool> {
    let light = able()?;
    loop {
        let left = until_ns.saturating_sub(sys::read_clock(KernelClock::Monotonic));
        if left == 0 {
            return Some(true);
        }
        if light.quit.get() || is_to_end(light) || !may_sleep(light) {
            return Some(false);
        }
        let until = Some(in_ns(light, left));
        light.wait_by(|| crate::light::request(light, Event::Block { until }));
    }
}

/// Whether blocking calls of this CPU are outstanding.
#[inline]
pub(crate) fn awaits_answers(host: &Host) -> bool {
    // SAFETY: gate closed; the borrow ends here.
    unsafe { &*host.uring.get() }
        .as_ref()
        .is_some_and(Uring::is_busy)
}

/// The next thread whose blocking call is over.
#[inline]
pub(crate) fn next_answered(host: &Host) -> Option<ThreadId> {
    // SAFETY: gate closed; the borrow ends here.
    let uring = unsafe { &mut *host.uring.get() }.as_mut()?;
    let waiter = uring.next_woken()?;
    // SAFETY: records outlive the run (INV-L1 of `light`).
    Some(unsafe { &*waiter }.id())
}
