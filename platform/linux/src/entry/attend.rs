//! What the platform does with an entry beside deciding: threads are born, and woken in company.

use punctual_kern::{Decision, Event, Policy, Sink};
use punctual_model::Instant;

use crate::entry::cpu::Core;
use crate::record::per_cpu::PerCpu;

impl<P: Policy, S: Sink> Core<P, S> {
    /// After an event: gives a thread that was created its record, and wakes those that the event
    /// lets go on. O(woken · log n). The answer is that of the last event, but for a refusal.
    pub(crate) fn attend(
        &mut self,
        host: &PerCpu,
        now: Instant,
        event: Event,
        mut decision: Decision,
    ) -> Decision {
        if let Event::Create(_) = event
            && decision.refused.is_none()
            && let Some(id) = self.shard.last_created()
            && let Some(light) = host.pool.bind(id)
            && let Some(place) = self.threads.get_mut(id.index())
        {
            *place = light;
        }
        let refused = decision.refused;
        let mut next = host.pool.waking.replace(core::ptr::null());
        // SAFETY: records outlive the run (INV-L1 of `light`).
        while let Some(light) = unsafe { next.as_ref() } {
            next = light.wait_node.also.replace(core::ptr::null());
            decision = self.handle(host, now, Event::Wake(light.id()));
            // One that has ended since needs no waking.
            decision.refused = None;
        }
        decision.refused = refused;
        decision
    }
}
