//! The entry by which a thread comes or goes.

use punctual_kern::{Event, Policy, Sink};
use punctual_model::Instant;

use super::enter::enter_slowly;
use super::{Core, Cpu};
use crate::entry::switch::switch_here;
use crate::record::light::Light;
use crate::record::per_cpu::PerCpu;

impl<P: Policy, S: Sink> Core<P, S> {
    /// [`Core::step_fast`] for these events.
    pub(super) fn step_birth(
        &mut self,
        host: &PerCpu,
        now: Instant,
        event: &Event,
    ) -> Option<*const Light> {
        let (light, executed) = self.fast_interval(host, now)?;
        let outcome = self.shard.handle_birth(now, event, &mut self.sink)?;
        self.bind_created(host, event);
        Some(self.finish_fast(host, now, event, (light, executed), outcome))
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
    // SAFETY: as in `decide`; the borrow ends with the block.
    let (now, target) = unsafe {
        let cpu = &*host.cast::<Cpu<P, S>>();
        let now = cpu.host.clock().now();
        (now, (*cpu.core()).step_birth(&cpu.host, now, event))
    };
    match target {
        // SAFETY: gate closed; the target is a thread of this host that has been started, or the
        // running one; the borrows above have ended.
        Some(target) => unsafe { switch_here(host, target) },
        // SAFETY: as the caller vouches.
        None => unsafe { enter_slowly::<P, S, DIVIDES>(host, now, *event) },
    }
}
