//! The platform does more with an entry than deciding: threads are born, and woken in company.

use core::any::Any;

use punctual_kern::{
    Decision, Event, MAX_PLACES_PER_ENTRY, NodeId, Policy, Refusal, Request, Sink,
};
use punctual_model::{Instant, PolicyKind, ThreadId};

use crate::entry::code::OwnCode;
use crate::entry::cpu::Core;
use crate::entry::missing::MissingTime;
use crate::record::per_cpu::{PerCpu, Standing};

/// A late decision is followed up at once, this often at most, before a timer is set for it.
const FOLLOW_UPS: u32 = 4;

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
        if decision.refused.is_none() {
            self.bind_created(host, &event);
        }
        let refused = decision.refused;
        self.recode(&event, refused);
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

    /// After an event that was not refused: gives a thread that it created its record.
    pub(crate) fn bind_created(&mut self, host: &PerCpu, event: &Event) {
        if creates(event)
            && let Some(id) = self.shard.last_created()
            && let Some(light) = host.pool.bind(id)
            && let Some(place) = self.threads.get_mut(id.index())
        {
            *place = light;
        }
    }

    /// After an event: a scheduler that decides on its own supply has other code.
    pub(crate) fn recode(&mut self, event: &Event, refused: Option<Refusal>) {
        if let Event::Manage { request, .. } = event
            && let Request::Replace { node, .. } = request
            && refused.is_none()
            && let Some(child) = self.children.iter_mut().find(|child| child.is(*node))
        {
            child.successor.permit();
        }
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

    /// The rest of the machine has had what it took.
    pub(crate) fn note_others(&mut self, now: Instant) {
        let others = self.missing.take_others();
        if let Some(owed) = &mut self.owed
            && !others.is_zero()
        {
            let from = Instant::from_ticks(now.ticks().saturating_sub(others.ticks()));
            owed.note_sleep(from, now);
        }
    }

    /// The CPU slept of its own will from `from` to `to`, which counts as slices given back.
    pub(crate) fn slept(&mut self, host: &PerCpu, from: Instant, to: Instant) {
        if let Some(owed) = &mut self.owed {
            owed.note_sleep(from, to);
        }
        // What was spun since then has been executed.
        self.missing = MissingTime::starting(host.clock(), &host.watch);
    }

    /// How often a decision is followed up at once.
    #[cold]
    #[inline(never)]
    pub(crate) fn follow_ups(&self) -> u32 {
        if !self.shard.is_replacing() {
            return FOLLOW_UPS;
        }
        let places = self.shard.tree().capacity().entities();
        let entries = places.div_ceil(MAX_PLACES_PER_ENTRY);
        u32::try_from(entries).map_or(u32::MAX, |entries| FOLLOW_UPS.saturating_add(entries))
    }
}

impl<P: Policy + 'static, S: Sink> Core<P, S> {
    /// Puts the policy in `place`, an `Option<P>`, beside a scheduler, and takes what stood there;
    /// or an [`OwnCode`] beside one that decides on its own supply. Whether one that keeps this
    /// order would come at once.
    pub(crate) fn shelve(&mut self, node: NodeId, policy: PolicyKind, place: &mut dyn Any) -> bool {
        if let Some(place) = place.downcast_mut::<Option<P>>() {
            let stood = self.shard.unshelve(node);
            *place = match place.take().map(|new| self.shard.shelve(node, new)) {
                Some(Err(new)) => Some(new),
                _ => stood,
            };
        }
        if let Some(place) = place.downcast_mut::<OwnCode>()
            && let Some(child) = self.children.iter_mut().find(|child| child.is(node))
        {
            child.successor.shelve(place);
        }
        !self.shard.waits_for_locks(node, policy)
    }
}

fn creates(event: &Event) -> bool {
    let managed = |request: &Request| matches!(request, Request::Create { .. });
    matches!(event, Event::Create(_))
        || matches!(event, Event::Manage { request, .. } if managed(request))
}
