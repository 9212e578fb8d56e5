//! What happens inside the preemption signal.
//!
//! ```text
//!   signal arrives
//!     no run on this thread                      -> return
//!     gate closed (the scheduler was at work)    -> note it, return; served at the exit
//!     in the tail of an earlier signal           -> ask again soon, return (no frames pile up)
//!     inside a counted entry of the C library    -> note it, return; taken when it is left
//!     in other text of the C library             -> ask again soon, return
//!     waiting for a lock inside the C library    -> block the light thread for a while
//!       (in the kernel, or in a function that spins)
//!     else                                       -> enter the scheduler; it may switch, here
//!       in a light thread with a scheduler of its own -> that scheduler is asked who goes on
//! ```

use punctual_kern::Event;
use punctual_linux_io::{is_inside, set_wanted};
use punctual_model::Instant;
use punctual_switch::{Gate, abandon_to, in_signal_tail};

use crate::entry::interrupted::Interrupted;
use crate::entry::missing::note_hole;
use crate::entry::request::open_gate;
use crate::entry::switch::running_group;
use crate::record::light::Light;
use crate::record::limits::DEFERRAL_LIMIT_NS;
use crate::record::local::{current_light, local};
use crate::record::per_cpu::PerCpu;
use crate::sys;

/// How long a thread that waits for a lock inside the C library has the processor for each try.
/// Many times what it takes to leave the handler: with less, the next signal would find it at the
/// same instruction, for good.
const TRY_NS: u64 = 30_000;

/// Called by the assembly around it; see `punctual_switch::SignalBody` for the contract.
pub(crate) unsafe extern "C" fn body(number: i32, info: *mut u8, context: *mut u8) -> *const Gate {
    let host = local(|l| l.host.get());
    // SAFETY: the word is null outside of a run, and a host outlives its run.
    let Some(gate) = (unsafe { host.as_ref() }).map(|host| &raw const host.gate) else {
        return sys::NO_GATE;
    };
    // SAFETY: `errno` of the thread that was interrupted; it goes on with the same value.
    let errno = unsafe { *sys::errno() };
    if number == 0 {
        // The tail found a pending signal and has closed the gate again.
        // SAFETY: the gate is closed and this is the host's kernel thread.
        unsafe { take(host, Event::Tick) };
        if current_light().is_some_and(|light| light.library_wait.may_spin()) {
            // This signal was to look at it again.
            // SAFETY: the host is alive; the gate is closed.
            unsafe { (*host).retry_in(TRY_NS) };
        }
    } else {
        // SAFETY: the host is alive; the reference ends here.
        let entered = unsafe { arrive(&*host, sys::is_of_timer(info), context) };
        match entered {
            Arrival::GateWasClosed => return sys::NO_GATE,
            Arrival::Later => {}
            // SAFETY: `arrive` has closed the gate; no reference into the host is alive.
            Arrival::Now => unsafe { preempt(host, Event::Tick, context, errno) },
            Arrival::Waits(until) => {
                let event = Event::Block { until: Some(until) };
                // SAFETY: as above.
                unsafe { preempt(host, event, context, errno) };
                // The thread goes back to where it waited and stops the CPU there: look again, but
                // not before it can have executed something. It may be the holder itself, found
                // on its way out of the function.
                // SAFETY: the host is alive; the gate is closed.
                unsafe { (*host).retry_in(TRY_NS) };
            }
        }
    }
    // SAFETY: as above; the thread may have been away in between, its `errno` is its own.
    unsafe { *sys::errno() = errno };
    gate
}

enum Arrival {
    GateWasClosed,
    Later,
    Now,
    /// The thread waits on a lock of the C library: it blocks until this instant, then looks again.
    Waits(Instant),
}

/// Decides whether the preemption can be taken here and now; closes the gate unless it was closed.
///
/// `is_timer`: it is not somebody on another CPU who wants a look.
///
/// # Safety
/// `context` is that of the signal being handled on the host's kernel thread.
unsafe fn arrive(host: &PerCpu, is_timer: bool, context: *const u8) -> Arrival {
    if host.gate.is_closed() {
        host.gate.note_pending();
        return Arrival::GateWasClosed;
    }
    host.gate.close();
    host.count_entry();
    let armed = host.timer_fired();
    // SAFETY: as the caller vouches.
    let found = unsafe { Interrupted::read(context) };
    if in_signal_tail(found.instruction) {
        host.count(|c| c.nested += 1);
        host.retry();
        return Arrival::Later;
    }
    let now = host.clock().now();
    // In a call the kernel works for the thread, with its timers held back; where a group runs in
    // its place, the call is its sleep.
    let sleeps = running_group(host).is_some();
    note_hole(host, now, armed.filter(|_| sleeps || !found.in_call));
    if host.defers && is_inside() {
        host.defer(now);
        set_wanted(true);
        return Arrival::Later;
    }
    let library = host.defers && !found.in_call && host.text.contains(found.instruction);
    let light = current_light();
    let spins = library && host.text.spins(found.instruction);
    let spins = light.is_some_and(|light| {
        let step = host.limits.spin_step;
        light.library_wait.spins(now, spins, step) >= host.limits.spin
    });
    if library && host.defer(now) < DEFERRAL_LIMIT_NS && !spins {
        host.retry();
        return Arrival::Later;
    }
    if let Some(light) = light {
        if let Some(call) = found.waits_in
            && light.group().is_none()
        {
            light.note_wait(call);
        }
        let waits = (found.awaits_futex && host.defers) || spins;
        if let Some(ns) = light.library_wait.next_try(waits) {
            let until = now.ticks().saturating_add(host.clock().ticks(ns));
            host.arrived.set(Some(now));
            return Arrival::Waits(Instant::from_ticks(until));
        }
    }
    let now = match armed.filter(|_| is_timer) {
        Some(armed) => wait_until(host, armed, now),
        None => now,
    };
    host.arrived.set(Some(now));
    Arrival::Now
}

/// The timer for `armed` has come, perhaps early: two clocks differ a little, and so does the way
/// of a signal. Then this waits for the instant. Returns the time.
fn wait_until(host: &PerCpu, armed: Instant, now: Instant) -> Instant {
    let ahead = host.early.came(armed, now);
    if ahead > 0 && now < armed {
        host.count(|c| c.early_timers += 1);
    }
    let longest = ahead.max(host.limits.early_spin);
    let mut last = now;
    while last < armed && armed.since(last).ticks() <= longest {
        punctual_switch::instructions::pause();
        let now = host.clock().now();
        let gap = now.since(last).ticks();
        if gap > host.limits.late {
            host.note_missing(gap);
        }
        last = now;
    }
    last
}

/// Takes the preemption; a light thread that carries a scheduler may go on with another of its
/// threads than was interrupted: then this does not return.
///
/// # Safety
/// As for [`take`]; `context` is that of the signal being handled.
unsafe fn preempt(host: *const PerCpu, event: Event, context: *mut u8, errno: i32) {
    // SAFETY: as the caller vouches, also for the hook, which calls it once.
    let mut enter = || unsafe { take(host, event) };
    let Some(direct) = current_light().and_then(Light::direct) else {
        return enter();
    };
    // SAFETY: gate closed; the light thread is the one that was interrupted, by this handler.
    let Some(next) = (unsafe { direct.preempted(context, &mut enter) }) else {
        return;
    };
    // SAFETY: the thread pointer is that of the interrupted thread, which gets its `errno` back.
    unsafe { *sys::errno() = errno };
    // A signal from here on finds `next` as current and in store, and this frame dead (INV-6).
    open_gate(host);
    // SAFETY: `next` is current and in store; this frame is dead, or kept in its thread's record;
    // WRFSBASE was tried before there was a scheduler of that kind.
    unsafe { abandon_to(next) }
}

/// # Safety
/// The gate of `host` is closed by the caller, on the host's kernel thread.
unsafe fn take(host: *const PerCpu, event: Event) {
    set_wanted(false);
    // SAFETY: the host is alive.
    let by_policy = unsafe { &raw const (*host).by_policy };
    // SAFETY: gate closed, no reference into scheduler state is alive.
    unsafe {
        match event {
            Event::Tick => ((*by_policy).preempt)(host),
            _ => ((*by_policy).enter)(host, event),
        }
    }
}
