//! The entry by which a thread comes or goes.

use punctual_kern::{Event, Front, Policy, Sink};
use punctual_model::Instant;

use super::enter::enter_slowly;
use super::{Core, Cpu};
use crate::entry::switch::{switch_here, switch_to};
use crate::record::light::Light;
use crate::record::per_cpu::PerCpu;

/// The thread that has run, and for how long.
type Interval = (&'static Light, u64);

impl<P: Policy, S: Sink> Core<P, S> {
    /// The shortest way of these events in the core, of which a thread that was created has its
    /// record.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn birth_front(&mut self, host: &PerCpu, now: Instant, event: &Event) -> Front {
        let (shard, sink) = (&mut self.shard, &mut self.sink);
        match event {
            Event::Create(_) => {
                let front = shard.create_front(now, event, sink);
                if front != Front::Closed {
                    self.bind_created(host, event);
                }
                front
            }
            Event::Exit => shard.exit_front(now, sink),
            _ => Front::Closed,
        }
    }

    /// The shortest way was not enough: [`Core::step_behind`] for these events.
    #[inline(never)]
    pub(super) fn step_birth(
        &mut self,
        host: &PerCpu,
        now: Instant,
        event: &Event,
        (interval, front): (Interval, Front),
    ) -> Option<*const Light> {
        let outcome = match front {
            Front::Turn(turn) => turn.outcome(),
            Front::Chosen(arm) => self.shard.chosen(arm),
            Front::Closed => {
                let outcome = self.shard.handle_birth(now, event, &mut self.sink)?;
                self.bind_created(host, event);
                outcome
            }
        };
        Some(self.finish_fast(host, now, event, interval, outcome))
    }
}

/// [`super::enter::enter`] for the creation of a thread and the end of the running one.
///
/// # Safety
/// As for [`super::decide`].
pub(super) unsafe fn birth<P: Policy, S: Sink, const DIVIDES: bool>(
    host: *const PerCpu,
    event: &Event,
) {
    // SAFETY: as in `decide`.
    let cpu = unsafe { &*host.cast::<Cpu<P, S>>() };
    let now = cpu.host.clock().now();
    // SAFETY: as in `decide`; the borrow ends before each switch and each other entry below.
    let core = unsafe { &mut *cpu.core() };
    let Some(interval) = core.fast_interval(&cpu.host, now) else {
        // SAFETY: as the caller vouches.
        return unsafe { enter_slowly::<P, S, DIVIDES>(host, now, *event) };
    };
    let front = core.birth_front(&cpu.host, now, event);
    // A signal's entry may come before the thread has read what was refused.
    interval.0.tell(None);
    if let Front::Turn(turn) = front {
        // On the fast path no group is at work that would have to be suspended.
        return match core.take_turn(&cpu.host, now, interval, turn) {
            // SAFETY: gate closed; the one runs, the other is another thread of this host, which
            // has been started; the borrows above have ended.
            Some(to) => unsafe { switch_here(host, to) },
            None => {
                let target = core.end_turn(&cpu.host, now, turn.next, turn.arm);
                // SAFETY: as above.
                unsafe { switch_to(host, target) }
            }
        };
    }
    match core.step_birth(&cpu.host, now, event, (interval, front)) {
        // SAFETY: gate closed; the target is a thread of this host that has been started, or the
        // running one; the borrows above have ended.
        Some(target) => unsafe { switch_here(host, target) },
        // SAFETY: as the caller vouches.
        None => unsafe { enter_slowly::<P, S, DIVIDES>(host, now, *event) },
    }
}
