//! The ways into the scheduler of a CPU that end in a switch.
//!
//! One is for any event; the most frequent events have ways of their own.

use punctual_kern::{Event, Front, Policy, Shard, Sink};
use punctual_model::{Instant, ThreadId};

use super::{Cpu, decide};
use crate::entry::request::{enter_at_rest_apart, resting};
use crate::entry::switch::{switch_between, switch_here, switch_to};
use crate::record::light::Light;
use crate::record::per_cpu::PerCpu;
use crate::time::clock::Clock;

/// An entry of the running thread, or of the signal that interrupted it: decides and switches.
/// Returns when the thread runs again, with the gate closed. `DIVIDES`: the CPU has slots.
///
/// # Safety
/// As for [`decide`].
pub(super) unsafe fn enter<P: Policy, S: Sink, const DIVIDES: bool>(
    host: *const PerCpu,
    event: Event,
) {
    // SAFETY: as the caller vouches.
    unsafe { enter_here::<P, S, DIVIDES>(host, &event) };
}

/// # Safety
/// As for [`decide`].
#[cfg_attr(not(debug_assertions), inline(always))]
unsafe fn enter_here<P: Policy, S: Sink, const DIVIDES: bool>(host: *const PerCpu, event: &Event) {
    // SAFETY: as in `decide`; the borrow ends with the block.
    let (now, target) = unsafe {
        let cpu = &*host.cast::<Cpu<P, S>>();
        let now = cpu.host.clock().now();
        (now, (*cpu.core.get()).step_fast(&cpu.host, now, event))
    };
    match target {
        // On the fast path no group is at work that would have to be suspended.
        // SAFETY: gate closed; the target is a thread of this host that has been started, or the
        // running one; the borrows above have ended.
        Some(target) => unsafe { switch_here(host, target) },
        // SAFETY: as the caller vouches.
        None => unsafe { enter_slowly::<P, S, DIVIDES>(host, now, *event) },
    }
}

/// # Safety
/// As for [`decide`].
#[cold]
#[inline(never)]
pub(super) unsafe fn enter_slowly<P: Policy, S: Sink, const DIVIDES: bool>(
    host: *const PerCpu,
    now: Instant,
    event: Event,
) {
    // SAFETY: as in `decide`; the borrow ends with the call.
    let is_tree = unsafe { (*(*host.cast::<Cpu<P, S>>()).core.get()).is_open_in_tree(now) };
    // SAFETY: as the caller vouches.
    if is_tree && unsafe { enter_tree::<P, S>(host, now, &event) } {
        return;
    }
    // SAFETY: as the caller vouches.
    let target = unsafe { decide::<P, S>(host, now, event, None) };
    // SAFETY: the host is alive, and this reference ends here.
    unsafe { &*host }.suspend_for(target);
    if DIVIDES {
        // SAFETY: the same.
        unsafe { &*host }.leave_entry(target, None);
    }
    // SAFETY: gate closed; the target is a thread of this host that has been started, or the
    // running one; the borrows of `decide` have ended.
    unsafe { switch_here(host, target) };
}

/// The fast path of a tree of schedulers; `false`: it is closed, and nothing has happened.
///
/// # Safety
/// As for [`decide`].
#[inline(never)]
unsafe fn enter_tree<P: Policy, S: Sink>(host: *const PerCpu, at: Instant, event: &Event) -> bool {
    // SAFETY: as in `decide`; the borrow ends with the call.
    let cpu = unsafe { &*host.cast::<Cpu<P, S>>() };
    // SAFETY: the same.
    let target = unsafe { (*cpu.core.get()).step_in_tree(&cpu.host, at, event) };
    let Some(target) = target else { return false };
    // SAFETY: as in `enter_here`.
    unsafe { switch_here(host, target) };
    true
}

/// The whole call of the running thread by which it yields: most switches of a busy CPU are yields,
/// wake-ups and waits, and for those the core has a shorter way ([`Front`]). `SWIFT`: it is tried
/// (`by_policy`).
///
/// # Safety
/// `light` is the calling thread, of a CPU of this policy and recorder.
pub(super) unsafe fn give_way<P: Policy, S: Sink, const DIVIDES: bool, const SWIFT: bool>(
    light: &Light,
) {
    let front = |shard: &mut Shard<P>, now, sink: &mut S| shard.yield_front(now, sink);
    resting(light, |light, host| match light.is_plain() {
        // SAFETY: gate closed (by `resting`), nothing of the scheduler's is borrowed; else as the
        // caller vouches.
        true => unsafe {
            enter_plain::<P, S, DIVIDES, SWIFT>((light, host), front, || Event::Yield);
        },
        false => enter_at_rest_apart(light, host, Event::Yield),
    });
}

/// [`enter`] of the thread that runs for [`Event::Wake`].
///
/// # Safety
/// As for [`decide`], of the host of `light`, which is the calling thread.
pub(super) unsafe fn wake<P: Policy, S: Sink, const DIVIDES: bool, const SWIFT: bool>(
    light: &Light,
    thread: ThreadId,
) {
    let front = |shard: &mut Shard<P>, now, sink: &mut S| shard.wake_front(now, thread, sink);
    // SAFETY: as the caller vouches.
    unsafe { enter_front::<P, S, DIVIDES, SWIFT>(light, front, || Event::Wake(thread)) };
}

/// [`enter`] of the thread that runs for [`Event::Block`] without a time-out.
///
/// # Safety
/// As for [`wake`].
pub(super) unsafe fn block<P: Policy, S: Sink, const DIVIDES: bool, const SWIFT: bool>(
    light: &Light,
) {
    let front = |shard: &mut Shard<P>, now, sink: &mut S| shard.block_front(now, sink);
    // SAFETY: as the caller vouches.
    unsafe { enter_front::<P, S, DIVIDES, SWIFT>(light, front, || Event::Block { until: None }) };
}

/// [`enter`] of the thread that runs for [`Event::HandOver`].
///
/// # Safety
/// As for [`wake`].
pub(super) unsafe fn hand<P: Policy, S: Sink, const DIVIDES: bool, const SWIFT: bool>(
    light: &Light,
    lock: (u32, ThreadId, ThreadId),
) {
    let front = |shard: &mut Shard<P>, now, sink: &mut S| shard.hand_front(now, lock, sink);
    let (key, from, to) = lock;
    let event = || Event::HandOver { key, from, to };
    // SAFETY: as the caller vouches.
    unsafe { enter_front::<P, S, DIVIDES, SWIFT>(light, front, event) };
}

/// [`enter`] of the thread that runs for [`Event::BlockOn`] without a time-out.
///
/// # Safety
/// As for [`wake`].
pub(super) unsafe fn wait_for<P: Policy, S: Sink, const DIVIDES: bool, const SWIFT: bool>(
    light: &Light,
    (holder, key): (ThreadId, u32),
) {
    let lock = (holder, key);
    let front = |shard: &mut Shard<P>, now, sink: &mut S| shard.wait_front(now, lock, sink);
    let until = None;
    let event = || Event::BlockOn { holder, key, until };
    // SAFETY: as the caller vouches.
    unsafe { enter_front::<P, S, DIVIDES, SWIFT>(light, front, event) };
}

/// # Safety
/// As for [`wake`].
#[cfg_attr(not(debug_assertions), inline(always))]
unsafe fn enter_front<P: Policy, S: Sink, const DIVIDES: bool, const SWIFT: bool>(
    light: &Light,
    front: impl FnOnce(&mut Shard<P>, Instant, &mut S) -> Front,
    event: impl FnOnce() -> Event,
) {
    let host = light.host();
    // SAFETY: as the caller vouches.
    unsafe {
        match light.is_plain() {
            true => enter_plain::<P, S, DIVIDES, SWIFT>((light, host), front, event),
            false => enter::<P, S, DIVIDES>(host, event()),
        }
    }
}

/// The same by a thread that is plain ([`Light::is_plain`]).
///
/// # Safety
/// As for [`wake`]; `host` is the thread's.
#[cfg_attr(not(debug_assertions), inline(always))]
unsafe fn enter_plain<P: Policy, S: Sink, const DIVIDES: bool, const SWIFT: bool>(
    (light, host): (&Light, *const PerCpu),
    front: impl FnOnce(&mut Shard<P>, Instant, &mut S) -> Front,
    event: impl FnOnce() -> Event,
) {
    if !SWIFT {
        // SAFETY: as the caller vouches.
        return unsafe { enter::<P, S, DIVIDES>(host, event()) };
    }
    // SAFETY: as in `decide`.
    let cpu = unsafe { &*host.cast::<Cpu<P, S>>() };
    let reading = cpu.host.clock().count();
    // SAFETY: as in `decide`; the borrow ends before each switch and each other entry below.
    let core = unsafe { &mut *cpu.core.get() };
    let Some(executed) = core.plain_interval(&cpu.host, light, reading) else {
        let now = Clock::instant_of(reading);
        // SAFETY: as the caller vouches.
        return unsafe { enter_slowly::<P, S, DIVIDES>(host, now, event()) };
    };
    let now = Instant::from_ticks(reading);
    let front = front(&mut core.shard, now, &mut core.sink);
    let interval = (light, executed);
    // Two calls, so that none of what they differ in is in a register before.
    let turn = match front {
        Front::Turn(turn) => turn,
        Front::Closed => {
            // SAFETY: as the caller vouches.
            return unsafe { enter_closed::<P, S, DIVIDES>(host, now, event(), interval) };
        }
        Front::Chosen(arm) => {
            let chosen = (interval, arm);
            // SAFETY: as the caller vouches.
            return unsafe { enter_chosen::<P, S, DIVIDES>(host, now, event(), chosen) };
        }
    };
    match core.take_turn(&cpu.host, now, interval, turn) {
        // On the fast path no group is at work that would have to be suspended.
        // SAFETY: gate closed; the one runs, the other is another thread of this host, which has
        // been started; the borrows above have ended.
        Some(to) => unsafe { switch_between(host, light, to) },
        None => {
            let target = core.end_turn(&cpu.host, now, turn.next, turn.arm);
            // SAFETY: as in `enter_here`.
            unsafe { switch_to(host, target) }
        }
    }
}

/// An entry for which the shortest way is closed.
///
/// # Safety
/// As for [`decide`].
#[inline(never)]
unsafe fn enter_closed<P: Policy, S: Sink, const DIVIDES: bool>(
    host: *const PerCpu,
    now: Instant,
    event: Event,
    interval: (&Light, u64),
) {
    // SAFETY: as the caller vouches.
    unsafe { enter_behind::<P, S, DIVIDES>(host, now, event, (interval, Front::Closed)) };
}

/// An entry that is over in the core, which chose in another way.
///
/// # Safety
/// As for [`decide`].
#[inline(never)]
unsafe fn enter_chosen<P: Policy, S: Sink, const DIVIDES: bool>(
    host: *const PerCpu,
    now: Instant,
    event: Event,
    (interval, arm): ((&Light, u64), Option<Instant>),
) {
    // SAFETY: as the caller vouches.
    unsafe { enter_behind::<P, S, DIVIDES>(host, now, event, (interval, Front::Chosen(arm))) };
}

/// # Safety
/// As for [`decide`].
#[cfg_attr(not(debug_assertions), inline(always))]
unsafe fn enter_behind<P: Policy, S: Sink, const DIVIDES: bool>(
    host: *const PerCpu,
    now: Instant,
    event: Event,
    behind: ((&Light, u64), Front),
) {
    // SAFETY: as in `decide`; the borrow ends with the block.
    let target = unsafe {
        let cpu = &*host.cast::<Cpu<P, S>>();
        (*cpu.core.get()).step_behind(&cpu.host, now, &event, behind)
    };
    match target {
        // SAFETY: as in `enter_here`.
        Some(target) => unsafe { switch_to(host, target) },
        // SAFETY: as the caller vouches.
        None => unsafe { enter_slowly::<P, S, DIVIDES>(host, now, event) },
    }
}
