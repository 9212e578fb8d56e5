//! The ways by which a running thread enters its scheduler.

use core::sync::atomic::Ordering;
use std::panic::resume_unwind;

use punctual_kern::Event;

use crate::entry::switch::switch_to;
use crate::record::body::StopJob;
use crate::record::light::{Light, Phase};
use crate::record::local::current_light;
use crate::record::per_cpu::ByPolicy;
use crate::record::per_cpu::PerCpu;

/// Opens the gate and serves what came meanwhile (INV-8). Called on a light thread.
#[inline]
pub(crate) fn open_gate(host: *const PerCpu) {
    loop {
        // SAFETY: the host outlives its threads; the reference ends before the next entry.
        let (pending, enter) = unsafe { ((*host).gate.open(), (*host).by_policy.enter) };
        if !pending {
            return;
        }
        // SAFETY: as above.
        unsafe { (*host).gate.close() };
        // SAFETY: gate closed, no reference into scheduler state is alive.
        unsafe { enter(host, Event::Tick) };
    }
}

/// Tells the scheduler something as the running thread; returns when the thread runs again.
/// Does nothing when the run is over or the caller is inside the scheduler already.
pub(crate) fn request(light: &Light, event: Event) {
    // SAFETY: gate closed (by `ask`), and nothing of the scheduler's is borrowed.
    ask(light, |host, by| unsafe { (by.enter)(host, event) });
}

/// [`request`] of [`Event::Complete`]: no timer stays for what is left of the budget.
pub(crate) fn complete(light: &Light) {
    ask(light, |host, by| {
        // SAFETY: gate closed (by `ask`); the host outlives its threads.
        unsafe { (*host).end_budget() };
        // SAFETY: as in `request`.
        unsafe { (by.enter)(host, Event::Complete) };
    });
}

#[inline(always)]
fn ask(light: &Light, enter: impl FnOnce(*const PerCpu, ByPolicy)) {
    let host = light.host();
    // SAFETY: the host outlives its threads; the reference ends with the statement.
    let (gate, by_policy) = unsafe { (&(*host).gate, (*host).by_policy) };
    if light.quit.get() || gate.is_closed() {
        return;
    }
    gate.close();
    // Gate closed, and the references above are not used across the call in any way that assumes
    // that nothing changed: the gate is atomic.
    enter(host, by_policy);
    if light.quit.get() {
        // The carrier resumed this thread to end it: it keeps the gate closed.
        return;
    }
    open_gate(host);
}

/// The end of a counted entry of the C library at which a preemption had been put off; the entry
/// returns to `returns_to`. The library itself may hold a lock around such a call, so it is left
/// first.
#[cold]
pub(crate) fn take_deferred_preemption(light: &Light, returns_to: usize) {
    let host = light.host();
    // SAFETY: the host outlives its threads.
    let (gate, text) = unsafe { (&(*host).gate, &(*host).text) };
    if !text.contains(returns_to as u64) || light.quit.get() || gate.is_closed() {
        return request(light, Event::Tick);
    }
    gate.close();
    // SAFETY: as above; the gate is closed.
    unsafe { (*host).retry() };
    open_gate(host);
}

/// An entry of the running thread. Gate closed, before and after; whether the core refused it.
#[inline]
pub(crate) fn enter(light: &Light, event: Event) -> bool {
    let host = light.host();
    // SAFETY: the host outlives its threads; the reference ends with the statement.
    let by = unsafe { &(*host).by_policy };
    // SAFETY: gate closed on the host's kernel thread, and no reference into the core is alive.
    unsafe {
        match event {
            Event::Wake(thread) => (by.wake)(light, thread),
            Event::HandOver { key, from, to } => (by.hand)(light, (key, from, to)),
            Event::Block { until: None } => (by.block)(light),
            Event::BlockOn {
                holder,
                key,
                until: None,
            } => (by.wait_for)(light, (holder, key)),
            event => (by.enter)(host, event),
        }
    };
    light.refused.get().is_some()
}

/// [`enter`] with an event by which a thread comes or goes.
pub(crate) fn enter_birth(light: &Light, event: &Event) -> bool {
    let host = light.host();
    // SAFETY: as in `enter`.
    let birth = unsafe { (*host).by_policy.birth };
    // SAFETY: as in `enter`.
    unsafe { birth(host, event) };
    light.refused.get().is_some()
}

#[inline]
pub(crate) fn is_to_end(light: &Light) -> bool {
    light.stop.load(Ordering::Relaxed) || light.wait_node.cancelled.get()
}

/// [`crate::job::checkpoint`] of this thread, which is the calling one.
#[inline]
pub(crate) fn end_if_asked(light: &Light) {
    if is_to_end(light) && !std::thread::panicking() {
        resume_unwind(Box::new(StopJob));
    }
}

/// [`crate::job::promise_checkpoints`] of this thread, which is the calling one, in ticks. Gate
/// open.
pub(crate) fn promise(light: &Light, ticks: u64) {
    light.look_again();
    if light.promise.swap(ticks, Ordering::Relaxed) != ticks {
        light.look_again();
        // The timer follows.
        request(light, Event::Tick);
    }
}

/// A request that can end the job by unwinding, before and after.
pub(crate) fn rest(event: Event) {
    if let Some(light) = current_light() {
        resting(light, |light, host| enter_at_rest(light, host, event));
    }
}

/// The entry of a thread that rests, out of the way of others.
#[inline(never)]
pub(crate) fn enter_at_rest_apart(light: &Light, host: *const PerCpu, event: Event) {
    enter_at_rest(light, host, event);
}

/// The entry of a thread that rests, by any way. Gate closed, before and after. A thread that is to
/// end already does so here.
#[inline(always)]
fn enter_at_rest(light: &Light, host: *const PerCpu, event: Event) {
    if light.may_end.get() {
        end_before(light, host);
    }
    // SAFETY: gate closed, and nothing of the scheduler's is borrowed; the host outlives its
    // threads.
    unsafe { ((*host).by_policy.enter)(host, event) };
}

/// The same with [`Event::Yield`], by its own way in.
#[inline]
pub(crate) fn give_way(light: &Light) {
    // SAFETY: the host outlives its threads, and was made for its policy; the caller runs.
    unsafe { ((*light.host()).by_policy.give_way)(light) };
}

/// The storage of the thread is not looked into afterwards: right after a switch that would have to
/// wait for the thread pointer. Rare cases are behind calls, so that this needs few registers.
/// `enter` looks whether the thread is to end already ([`enter_at_rest`]).
#[inline(always)]
pub(crate) fn resting(light: &Light, enter: impl FnOnce(&Light, *const PerCpu)) {
    let host = light.host();
    // SAFETY: the host outlives its threads.
    let gate = unsafe { &(*host).gate };
    if gate.is_closed() {
        return end_rest(light);
    }
    gate.close();
    // Behind the closing: a signal that ends the run before finds a thread that does not rest.
    light.phase.set(Phase::Resting);
    // As in `ask`.
    enter(light, host);
    if light.may_end.get() {
        return end_rest_closed(light);
    }
    // Once the gate is open a signal is as one that comes behind the call: a run that is over then
    // leaves the thread there. Only a thread that rests looks whether it is to end.
    light.phase.set(Phase::Inside);
    // SAFETY: the host outlives its threads.
    if unsafe { &(*light.host()).gate }.open() {
        rest_on(light);
    }
}

/// Ends the job if that is to end, before the thread rests. Gate closed, before and after; it is
/// open for the end. (The run is not over: then the gate was closed, and nobody rests.)
#[cold]
#[inline(never)]
fn end_before(light: &Light, host: *const PerCpu) {
    light.phase.set(Phase::Inside);
    open_gate(host);
    end_if_asked(light);
    // SAFETY: the host outlives its threads; its gate is atomic.
    unsafe { (*host).gate.close() };
    light.phase.set(Phase::Resting);
}

/// The end of a rest after which the run may be over, or the job may have to end. Gate: closed on
/// entry.
#[cold]
#[inline(never)]
fn end_rest_closed(light: &Light) {
    if !light.quit.get() {
        open_gate(light.host());
    }
    end_rest(light);
}

/// The gate was opened, and a signal had come meanwhile: its entry is part of the rest.
#[cold]
#[inline(never)]
fn rest_on(light: &Light) {
    let host = light.host();
    // SAFETY: the host outlives its threads; its gate is atomic, and its functions stay the same.
    let (gate, by_policy) = unsafe { (&(*host).gate, &(*host).by_policy) };
    gate.close();
    light.phase.set(Phase::Resting);
    // SAFETY: gate closed, no reference into scheduler state is alive.
    unsafe { (by_policy.enter)(host, Event::Tick) };
    end_rest_closed(light);
}

/// The run may be over, or the job may have to end.
#[cold]
#[inline(never)]
fn end_rest(light: &Light) {
    light.phase.set(Phase::Inside);
    if light.quit.get() && !light.pooled.ending.get() {
        resume_unwind(Box::new(StopJob));
    }
    end_if_asked(light);
}

/// Ends the calling thread where it is, without unwinding, because the run is over. Its stack and
/// its storage stay, as those of a thread that is abandoned: others, on CPUs that have not ended
/// yet, may have been lent what lies there. Gate closed (by the carrier).
pub(crate) fn leave(light: &Light) -> ! {
    light.phase.set(Phase::Left);
    loop {
        // SAFETY: gate closed; the carrier does not come back.
        unsafe { switch_to(light.host(), core::ptr::null()) };
    }
}
