//! The table of capabilities and the operations on it.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::Work;
use punctual_order::NodeId;

use super::{CapabilityError, CapabilityId, Opinions, Transfer};

#[derive(Clone, Copy, Debug)]
struct Capability {
    holder: NodeId,
    time: Work,
    /// The capability that it was delegated from.
    source: Option<CapabilityId>,
    opinions: Opinions,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    generation: u32,
    capability: Option<Capability>,
    /// It is about to be removed.
    doomed: bool,
}

/// All capabilities of one CPU. Nothing allocates after construction.
#[derive(Debug)]
pub struct Capabilities {
    places: Vec<Place>,
    free: Vec<u32>,
    ledger: VecDeque<Transfer>,
    minted: Work,
    expended: Work,
}

type Outcome<T> = Result<T, CapabilityError>;

impl Capabilities {
    /// Room for `capacity` capabilities, and for as many transfers that wait to be seen.
    pub fn new(capacity: u32) -> Self {
        let room = capacity as usize;
        let vacant = Place {
            generation: 0,
            capability: None,
            doomed: false,
        };
        Capabilities {
            places: vec![vacant; room],
            free: (0..capacity).rev().collect(),
            ledger: VecDeque::with_capacity(room),
            minted: Work::ZERO,
            expended: Work::ZERO,
        }
    }

    /// New time, in the hands of `holder`: for a scheduler with time of its own, the root. O(1).
    ///
    /// # Errors
    /// No room.
    pub fn mint(&mut self, holder: NodeId, time: Work) -> Outcome<CapabilityId> {
        let id = self.put(Capability {
            holder,
            time,
            source: None,
            opinions: Opinions::default(),
        })?;
        self.minted = self.minted.saturating_add(time);
        Ok(id)
    }

    /// `by` hands `time` of its capability `from` to `to`, as work of this urgency to `by`
    /// (larger: more urgent). The new capability keeps the opinions of all who delegated before.
    /// O(delegations).
    ///
    /// # Errors
    /// Not `by`'s, too little time, no room, or too many delegations.
    pub fn delegate(
        &mut self,
        by: NodeId,
        from: CapabilityId,
        to: NodeId,
        (time, urgency): (Work, u64),
    ) -> Outcome<CapabilityId> {
        let source = self.held(by, from)?;
        covers(&source, time)?;
        let mut opinions = source.opinions;
        if !opinions.join(by, urgency) {
            return Err(CapabilityError::TooManyDelegations);
        }
        let id = self.put(Capability {
            holder: to,
            time,
            source: Some(from),
            opinions,
        })?;
        self.take(from, time);
        Ok(id)
    }

    /// `by` gives `time` of its capability `from` to another capability. Each scheduler with a say
    /// in either has one in the receiver from now on, and the lower one counts: no urgency is
    /// gained. The one that delegated to both finds it in the ledger. O(delegations²).
    ///
    /// # Errors
    /// Not `by`'s, too little time, too many delegations, or no room in the ledger.
    pub fn transfer(
        &mut self,
        by: NodeId,
        from: CapabilityId,
        to: CapabilityId,
        time: Work,
    ) -> Outcome<()> {
        let giver = self.held(by, from)?;
        let mut receiver = self.get(to)?;
        covers(&giver, time)?;
        if from == to {
            return Ok(());
        }
        for (scheduler, urgency) in giver.opinions.iter() {
            if !receiver.opinions.join(scheduler, urgency) {
                return Err(CapabilityError::TooManyDelegations);
            }
        }
        if self.ledger.len() >= self.places.len() {
            return Err(CapabilityError::LedgerFull);
        }
        self.ledger.push_back(Transfer {
            seen_by: self.common_delegator(from, to),
            from: giver.holder,
            to: receiver.holder,
            time,
        });
        receiver.time = receiver.time.saturating_add(time);
        self.set(to, receiver);
        self.take(from, time);
        Ok(())
    }

    /// `by` takes back a capability that was delegated, by itself or by others, from one that it
    /// holds, and everything delegated from it in turn. Returns the time that came back.
    /// O(capabilities · delegations).
    ///
    /// # Errors
    /// Nothing that `by` holds was its source.
    pub fn revoke(&mut self, by: NodeId, capability: CapabilityId) -> Outcome<Work> {
        let mut source = self.get(capability)?.source;
        let into = loop {
            let id = source.ok_or(CapabilityError::NotHeld(capability))?;
            let above = self.get(id)?;
            if above.holder == by {
                break id;
            }
            source = above.source;
        };
        // Marked first: what comes from it is found by way of those in between.
        for index in 0..self.places.len() {
            let generation = self.places[index].generation;
            let index_word = u32::try_from(index).unwrap_or(u32::MAX);
            let id = CapabilityId {
                index: index_word,
                generation,
            };
            self.places[index].doomed = self.get(id).is_ok() && self.comes_from(id, capability);
        }
        let back = self.drop_doomed();
        if let Ok(mut into_capability) = self.get(into) {
            into_capability.time = into_capability.time.saturating_add(back);
            self.set(into, into_capability);
        }
        Ok(back)
    }

    /// Work was executed on a capability. Returns how much of it its time covered.
    ///
    /// # Errors
    /// It was revoked, or never was.
    pub fn expend(&mut self, capability: CapabilityId, work: Work) -> Outcome<Work> {
        let covered = self.get(capability)?.time.min(work);
        self.take(capability, covered);
        self.expended = self.expended.saturating_add(covered);
        Ok(covered)
    }

    /// Whether work on `a` preempts work on `b`: every scheduler that delegated to both finds `a`
    /// at least as urgent, and one more urgent. Nobody in common: no. O(delegations²).
    ///
    /// # Errors
    /// One was revoked, or never was.
    pub fn preempts(&self, a: CapabilityId, b: CapabilityId) -> Outcome<bool> {
        Ok(self.get(a)?.opinions.outrank(&self.get(b)?.opinions))
    }

    /// The time that a capability has left.
    ///
    /// # Errors
    /// It was revoked, or never was.
    pub fn left(&self, capability: CapabilityId) -> Outcome<Work> {
        Ok(self.get(capability)?.time)
    }

    /// Takes the next transfer out of the ledger, for the scheduler that must see it.
    pub fn take_transfer(&mut self) -> Option<Transfer> {
        self.ledger.pop_front()
    }

    /// INV-TIME. O(capabilities).
    ///
    /// # Errors
    /// Its name.
    pub fn check(&self) -> Result<(), &'static str> {
        let held = self.places.iter().filter_map(|place| place.capability);
        let held = held.fold(Work::ZERO, |sum, c| sum.saturating_add(c.time));
        match held.saturating_add(self.expended) == self.minted {
            true => Ok(()),
            false => Err("INV-TIME: what is held and what was expended is what was minted"),
        }
    }

    /// Removes what is marked. Returns the time that it had.
    fn drop_doomed(&mut self) -> Work {
        let mut back = Work::ZERO;
        for (index, place) in (0..).zip(&mut self.places) {
            if !core::mem::take(&mut place.doomed) {
                continue;
            }
            if let Some(capability) = place.capability.take() {
                back = back.saturating_add(capability.time);
                place.generation = place.generation.wrapping_add(1);
                self.free.push(index);
            }
        }
        back
    }

    fn get(&self, id: CapabilityId) -> Outcome<Capability> {
        let place = self.places.get(id.index as usize);
        let place = place.filter(|place| place.generation == id.generation);
        let capability = place.and_then(|place| place.capability);
        capability.ok_or(CapabilityError::Stale(id))
    }

    fn held(&self, by: NodeId, id: CapabilityId) -> Outcome<Capability> {
        let capability = self.get(id)?;
        match capability.holder == by {
            true => Ok(capability),
            false => Err(CapabilityError::NotHeld(id)),
        }
    }

    fn put(&mut self, capability: Capability) -> Outcome<CapabilityId> {
        let index = self.free.pop().ok_or(CapabilityError::NoRoom)?;
        let place = &mut self.places[index as usize];
        place.capability = Some(capability);
        let generation = place.generation;
        Ok(CapabilityId { index, generation })
    }

    fn set(&mut self, id: CapabilityId, capability: Capability) {
        self.places[id.index as usize].capability = Some(capability);
    }

    fn take(&mut self, id: CapabilityId, time: Work) {
        if let Some(capability) = &mut self.places[id.index as usize].capability {
            capability.time = capability.time.saturating_sub(time);
        }
    }

    /// Whether `id` is `source`, or was delegated from it. O(delegations).
    fn comes_from(&self, id: CapabilityId, source: CapabilityId) -> bool {
        let mut at = Some(id);
        while let Some(id) = at {
            if id == source {
                return true;
            }
            at = self.get(id).ok().and_then(|capability| capability.source);
        }
        false
    }

    /// The closest holder of something from which both were delegated.
    fn common_delegator(&self, a: CapabilityId, b: CapabilityId) -> Option<NodeId> {
        let mut at = Some(a);
        while let Some(id) = at {
            if self.comes_from(b, id) {
                return self.get(id).ok().map(|capability| capability.holder);
            }
            at = self.get(id).ok().and_then(|capability| capability.source);
        }
        None
    }
}

fn covers(capability: &Capability, time: Work) -> Outcome<()> {
    let left = capability.time;
    match time <= left {
        true => Ok(()),
        false => Err(CapabilityError::TooLittle { left }),
    }
}
