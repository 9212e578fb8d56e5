//! The common hierarchy: one policy for a CPU, and background work below it.

use punctual_model::{Instant, ThreadId, Work};

use crate::background::Background;
use crate::event::{Next, Refusal};
use crate::hierarchy::{Band, Choice, Hierarchy};
use crate::node::NodeId;
use crate::policy::{Attributes, Pick, Policy};
use crate::shard::Capacity;
use crate::trace::Sink;

/// One policy orders the real-time threads of a CPU; what it leaves idle goes to the background.
///
/// Specialised for its policy: an entry costs what the policy's queues cost, nothing more.
#[derive(Debug)]
pub struct OneLevel<P> {
    policy: P,
    background: Background,
    /// Who executes inside a non-preemptive section: nobody else runs.
    held: Option<ThreadId>,
}

impl<P> OneLevel<P> {
    /// Room for as many threads as the shard, in the order of `policy`.
    pub fn new(capacity: Capacity, policy: P) -> Self {
        OneLevel {
            policy,
            background: Background::new(capacity.threads, capacity.background_turn),
            held: None,
        }
    }

    /// The policy, for inspection.
    pub fn policy(&self) -> &P {
        &self.policy
    }
}

impl<P: Policy> OneLevel<P> {
    /// Whether work of this band is the policy's.
    #[inline]
    fn orders(&self, band: Band) -> bool {
        band == Band::RealTime || self.policy.orders_background()
    }

    /// What the policy leaves idle goes to the background.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn or_background(&self, now: Instant, pick: Pick) -> Choice {
        if pick.entity.is_some() {
            return Choice::of(pick);
        }
        let background = self.background.pick(now);
        Choice::of(Pick {
            entity: background.entity,
            until: Choice::earlier(pick.until, background.until),
        })
    }
}

impl<P: Policy> Hierarchy for OneLevel<P> {
    #[inline]
    fn is_one_level(&self) -> bool {
        true
    }

    fn attach(&mut self, thread: ThreadId, home: NodeId) -> Result<(), Refusal> {
        if home != NodeId::ROOT {
            return Err(Refusal::NoSuchNode(home));
        }
        self.policy.attach(thread);
        Ok(())
    }

    fn detach(&mut self, thread: ThreadId) {
        self.policy.detach(thread);
    }

    #[inline]
    fn wake(&mut self, _: Instant, _: Instant, thread: ThreadId, a: &Attributes, band: Band) {
        if self.orders(band) {
            self.policy.wake(thread, a);
        } else {
            self.background.wake(thread, a.priority);
        }
    }

    #[inline]
    fn block(&mut self, _: Instant, thread: ThreadId, band: Band) {
        if self.orders(band) {
            self.policy.block(thread);
        } else {
            self.background.block(thread);
        }
    }

    fn update(&mut self, thread: ThreadId, attributes: &Attributes, band: Band) {
        if self.orders(band) {
            self.policy.update(thread, attributes);
        } else {
            self.background.update(thread, attributes.priority);
        }
    }

    fn renew(&mut self, thread: ThreadId, attributes: &Attributes, band: Band) {
        if self.orders(band) {
            self.policy.renew(thread, attributes);
        } else {
            self.background.update(thread, attributes.priority);
        }
    }

    #[inline]
    fn yield_now(&mut self, thread: ThreadId, band: Band) {
        if self.orders(band) {
            self.policy.yield_now(thread);
        } else {
            self.background.rotate(thread);
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn heir(&self, thread: ThreadId, band: Band) -> Option<ThreadId> {
        if band != Band::RealTime || self.held.is_some() {
            return None;
        }
        self.policy.heir(thread)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pass_on(&mut self, thread: ThreadId, _: Band) {
        self.policy.pass_on(thread);
    }

    #[inline]
    fn charge<S: Sink>(&mut self, _: Instant, t: ThreadId, band: Band, work: Work, _: &mut S) {
        if self.orders(band) {
            self.policy.charge(t, work);
        } else {
            self.background.charge(t, work);
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn go_on<S: Sink>(
        &mut self,
        now: Instant,
        (thread, band): (ThreadId, Band),
        work: Work,
        gives_way: bool,
        _: &mut S,
    ) -> Choice {
        if self.orders(band) {
            let pick = self.policy.go_on(now, thread, work, gives_way);
            return match self.held {
                None => self.or_background(now, pick),
                Some(_) => self.pick(now),
            };
        }
        if !work.is_zero() {
            self.background.charge(thread, work);
        }
        if gives_way {
            self.background.rotate(thread);
        }
        self.pick(now)
    }

    #[inline]
    fn hold(&mut self, thread: ThreadId, _: Band) {
        self.held = Some(thread);
    }

    #[inline]
    fn release(&mut self, thread: ThreadId) {
        if self.held == Some(thread) {
            self.held = None;
        }
    }

    #[inline]
    fn holds(&self, thread: ThreadId) -> bool {
        self.held == Some(thread)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pick(&mut self, now: Instant) -> Choice {
        if let Some(held) = self.held
            && !self.policy.orders_background()
        {
            return Choice::of(Pick::run(held));
        }
        let pick = self.policy.pick(now);
        self.or_background(now, pick)
    }
}

impl Choice {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn of(pick: Pick) -> Choice {
        Choice {
            next: pick.entity.map_or(Next::Idle, Next::Thread),
            until: pick.until,
        }
    }
}
