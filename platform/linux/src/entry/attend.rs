//! What the platform does with an entry beside deciding: threads are born, and woken in company.

use punctual_kern::{Decision, Event, NodeId, Policy, Request, Sink};
use punctual_model::{Instant, ThreadId};

use crate::entry::cpu::Core;
use crate::record::per_cpu::{PerCpu, Standing};

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
        if creates(&event)
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

    /// Where a thread stands in the tree of this CPU.
    pub(crate) fn standing(&self, thread: ThreadId) -> Standing {
        let light = self.threads.get(thread.index());
        // SAFETY: records of light threads outlive the run (INV-L1 of `light`).
        let light = light.and_then(|light| unsafe { light.as_ref() });
        Standing {
            home: self.shard.tree().home(thread).unwrap_or(NodeId::ROOT),
            has_job: self.shard.job(thread).is_some(),
            is_held_alive: light.is_some_and(|l| l.id() == thread && l.is_held_alive()),
            promoted: self.shard.last_promoted(),
        }
    }
}

fn creates(event: &Event) -> bool {
    let managed = |request: &Request| matches!(request, Request::Create { .. });
    matches!(event, Event::Create(_))
        || matches!(event, Event::Manage { request, .. } if managed(request))
}
