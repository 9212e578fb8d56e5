//! Another constraint for a thread, from an instant of the run on.

use punctual_kern::{Constraint, Event, Policy, Sink};
use punctual_model::{Instant, ThreadId};

use super::Cpu;
use super::enter::enter_slowly;
use crate::record::per_cpu::PerCpu;

/// An entry of the running thread: `thread` gets `constraint` with its first arrival at `at`. The
/// phase is counted at the entry's own instant, so the arrival is exact to the tick. Where the
/// zero-lag instant of its former constraint is later than `at`, the arrival is then.
///
/// # Safety
/// The gate of `host` is closed on the host's kernel thread, `host` is the CPU of this policy and
/// recorder, and no reference into the core is alive.
pub(crate) unsafe fn change<P: Policy, S: Sink, const DIVIDES: bool>(
    host: *const PerCpu,
    thread: ThreadId,
    constraint: Constraint,
    at: Instant,
) {
    // SAFETY: as the caller vouches; the borrow ends with the statement.
    let now = unsafe { (*host).clock().now() };
    // SAFETY: as the caller vouches.
    let from = unsafe { lag::<P, S>(host, thread, now) };
    let phase = at.checked_since(from).unwrap_or_default();
    let constraint = Constraint {
        phase,
        ..constraint
    };
    // SAFETY: as the caller vouches.
    unsafe { enter_slowly::<P, S, DIVIDES>(host, now, Event::Change { thread, constraint }) };
}

/// The zero-lag instant of a thread, seen from `now`.
///
/// # Safety
/// As for [`change`].
pub(crate) unsafe fn lag<P: Policy, S: Sink>(
    host: *const PerCpu,
    thread: ThreadId,
    now: Instant,
) -> Instant {
    let cpu = host.cast::<Cpu<P, S>>();
    // SAFETY: as the caller vouches; the borrow ends with the statement.
    let from = unsafe { (*(*cpu).core()).shard.change_counts_from(thread, now) };
    from.unwrap_or(now)
}
