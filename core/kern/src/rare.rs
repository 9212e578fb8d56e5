//! What few threads have: in a table beside that of the threads, so that all others are small.
//!
//! A thread that needs any of it has a place there until it ends. Its own record says what it has
//! there, by a flag each; so nobody looks here in vain, and to have something no more is one flag.

use alloc::vec::Vec;

use punctual_model::{Constraint, Instant, Mode, Priority};
use punctual_order::{Attributes, Band};

use crate::effective::{Effective, Inherited, WaitOrder};
use crate::lock::Ceiling;
use crate::thread::{LockRequest, Slot, Thread};

/// The first four count where the flag of the thread is set.
#[derive(Debug)]
struct Rare {
    inherited: Inherited,
    request: LockRequest,
    ceiling: Ceiling,
    change: Constraint,
    zero_lag: Instant,
    early: u32,
    /// How many resources a thread holds that keep its siblings away, and that it shares with
    /// threads of other schedulers.
    shields: u32,
    reach: u32,
    /// The next free place, of a free one.
    next: Slot,
}

impl Rare {
    fn new() -> Rare {
        let attributes = Attributes {
            priority: Priority::LOWEST,
            absolute_deadline: Instant::MAX,
            release: Instant::MAX,
            order: 0,
        };
        Rare {
            inherited: Inherited {
                by: WaitOrder::Priority,
                effective: Effective {
                    band: Band::Background,
                    attributes,
                },
            },
            request: LockRequest {
                of: 0,
                mode: Mode::Shared,
                until: None,
            },
            ceiling: Ceiling {
                priority: Priority::LOWEST,
                absolute_deadline: Instant::MAX,
            },
            change: Constraint::default(),
            zero_lag: Instant::ZERO,
            early: 0,
            shields: 0,
            reach: 0,
            next: Slot::NONE,
        }
    }
}

/// Has as many places as there are threads: nothing allocates after construction.
#[derive(Debug)]
pub(crate) struct Rares {
    places: Vec<Rare>,
    free: Slot,
}

impl Rares {
    pub(crate) fn new(threads: usize) -> Self {
        Rares {
            places: Vec::with_capacity(threads),
            free: Slot::NONE,
        }
    }

    /// What a thread has, if it has a place.
    #[inline]
    fn get(&self, t: &Thread) -> Option<&Rare> {
        self.places.get(t.rare.0 as usize)
    }

    /// The same, with a place for it if it has none.
    #[inline]
    fn of(&mut self, t: &mut Thread) -> &mut Rare {
        if t.rare == Slot::NONE {
            t.rare = self.take();
        }
        &mut self.places[t.rare.0 as usize]
    }

    #[cold]
    #[inline(never)]
    fn take(&mut self) -> Slot {
        let slot = self.free;
        match self.places.get_mut(slot.0 as usize) {
            Some(place) => {
                self.free = place.next;
                *place = Rare::new();
                slot
            }
            None => {
                self.places.push(Rare::new());
                Slot(u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX))
            }
        }
    }

    /// A thread has ended, and has nothing of it any more.
    #[inline]
    pub(crate) fn leave(&mut self, t: &mut Thread) {
        let slot = core::mem::take(&mut t.rare);
        if let Some(place) = self.places.get_mut(slot.0 as usize) {
            place.next = core::mem::replace(&mut self.free, slot);
        }
        (t.changes, t.inherits, t.asks, t.has_ceiling) = (false, false, false, false);
        t.shields = false;
    }

    /// A change that takes force at the next zero-lag instant.
    #[inline]
    pub(crate) fn set_change(&mut self, t: &mut Thread, constraint: Constraint) {
        self.of(t).change = constraint;
        t.changes = true;
    }

    /// The change that takes force now, if there is one.
    #[inline]
    pub(crate) fn take_change(&mut self, t: &mut Thread) -> Option<Constraint> {
        match core::mem::take(&mut t.changes) {
            true => self.get(t).map(|rare| rare.change),
            false => None,
        }
    }

    /// What a thread inherits by the locks that it holds; [`Thread::effective`] counts it.
    #[inline]
    pub(crate) fn inherited(&self, t: &Thread) -> Option<&Inherited> {
        match t.inherits {
            true => self.get(t).map(|rare| &rare.inherited),
            false => None,
        }
    }

    #[inline]
    pub(crate) fn set_inherited(&mut self, t: &mut Thread, inherited: Option<Inherited>) {
        t.inherits = inherited.is_some();
        if let Some(inherited) = inherited {
            self.of(t).inherited = inherited;
        }
    }

    /// [`Rares::set_inherited`] for a thread that has a place; `false`: it has none. Without a
    /// call, so that the caller's values stay in registers.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn inherit_in_place(&mut self, t: &mut Thread, inherited: &Inherited) -> bool {
        match self.places.get_mut(t.rare.0 as usize) {
            Some(rare) => {
                rare.inherited = *inherited;
                t.inherits = true;
                true
            }
            None => false,
        }
    }

    /// A resource that a thread asked for and does not have yet. One that is ready tries it when
    /// it is chosen; one that is blocked waits for it, or until its section fits into the supply.
    #[inline]
    pub(crate) fn request(&self, t: &Thread) -> Option<LockRequest> {
        match t.asks {
            true => self.get(t).map(|rare| rare.request),
            false => None,
        }
    }

    #[inline]
    pub(crate) fn set_request(&mut self, t: &mut Thread, request: Option<LockRequest>) {
        t.asks = request.is_some();
        if let Some(request) = request {
            self.of(t).request = request;
        }
    }

    /// How urgent a thread is at least, as its runtime says.
    #[inline]
    pub(crate) fn ceiling(&self, t: &Thread) -> Option<Ceiling> {
        match t.has_ceiling {
            true => self.get(t).map(|rare| rare.ceiling),
            false => None,
        }
    }

    #[inline]
    pub(crate) fn set_ceiling(&mut self, t: &mut Thread, ceiling: Option<Ceiling>) {
        t.has_ceiling = ceiling.is_some();
        if let Some(ceiling) = ceiling {
            self.of(t).ceiling = ceiling;
        }
    }

    /// From here on the bandwidth of a thread's constraints before the last change is free.
    #[inline]
    pub(crate) fn zero_lag(&self, t: &Thread) -> Instant {
        self.get(t).map_or(Instant::ZERO, |rare| rare.zero_lag)
    }

    pub(crate) fn set_zero_lag(&mut self, t: &mut Thread, at: Instant) {
        self.of(t).zero_lag = at;
    }

    /// How many arrivals of a thread came too early, and wait.
    #[inline]
    pub(crate) fn early(&self, t: &Thread) -> u32 {
        self.get(t).map_or(0, |rare| rare.early)
    }

    pub(crate) fn set_early(&mut self, t: &mut Thread, early: u32) {
        if early > 0 || t.rare != Slot::NONE {
            self.of(t).early = early;
        }
    }

    /// How many of the resources that a thread holds it shares with threads of other schedulers.
    #[inline]
    pub(crate) fn reach(&self, t: &Thread) -> u32 {
        self.get(t).map_or(0, |rare| rare.reach)
    }

    /// It holds one more of them.
    pub(crate) fn add_reach(&mut self, t: &mut Thread) {
        self.of(t).reach += 1;
    }

    /// It holds one less.
    pub(crate) fn remove_reach(&mut self, t: &mut Thread) {
        self.of(t).reach -= 1;
    }

    /// It holds one more resource that keeps its siblings away.
    pub(crate) fn add_shield(&mut self, t: &mut Thread) {
        self.of(t).shields += 1;
        t.shields = true;
    }

    /// It holds one less.
    pub(crate) fn remove_shield(&mut self, t: &mut Thread) {
        let shields = &mut self.of(t).shields;
        *shields -= 1;
        t.shields = *shields > 0;
    }

    /// Whether as many threads have a place as there are places that are not free. O(places).
    pub(crate) fn are_all_of(&self, threads: &[Thread]) -> bool {
        let next = |slot: &Slot| self.places.get(slot.0 as usize).map(|place| place.next);
        let is_place = |slot: &Slot| *slot != Slot::NONE;
        let free = core::iter::successors(Some(self.free), next).filter(is_place);
        let used = threads.iter().filter(|t| is_place(&t.rare));
        used.count() + free.count() == self.places.len()
    }

    /// Whether a thread has a place for what it says that it has.
    pub(crate) fn agrees(&self, t: &Thread) -> bool {
        let has_any = t.changes || t.inherits || t.asks || t.has_ceiling;
        match self.get(t) {
            Some(rare) => t.shields == (rare.shields > 0),
            None => !has_any && !t.shields,
        }
    }
}

impl Thread {
    /// Its effective priority: its own, or what it inherits if that is higher.
    #[inline]
    pub(crate) fn effective(&self, rares: &Rares) -> Effective {
        let mut effective = Effective {
            band: self.band,
            attributes: self.own_attributes(),
        };
        if let Some(inherited) = rares.inherited(self) {
            effective = inherited.or_own(effective);
        }
        effective
    }

    /// The zero-lag instant of the last job, not before `now`.
    pub(crate) fn lag_until(&self, now: Instant, rares: &Rares) -> Instant {
        let released_none = self.next_index == self.first_index;
        let zero_lag = match self.deadline_of(self.last_arrival) {
            deadline if deadline < Instant::MAX && !released_none => {
                let separation = self.constraint.class.min_separation().unwrap_or_default();
                let next = self.last_arrival.saturating_add(separation);
                deadline.max(next)
            }
            _ => now,
        };
        zero_lag.max(rares.zero_lag(self)).max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_ends_leaves_its_place_to_the_next_as_new() {
        let mut rares = Rares::new(2);
        let room = rares.places.capacity();
        let mut threads: [Thread; 2] = Default::default();
        rares.set_early(&mut threads[0], 0);
        rares.set_ceiling(&mut threads[0], None);
        assert!(rares.places.is_empty(), "nothing is rare yet");
        for round in 1..4 {
            for t in &mut threads {
                assert_eq!((rares.early(t), rares.ceiling(t)), (0, None));
                rares.set_change(t, Constraint::default());
                rares.set_early(t, round);
                rares.add_shield(t);
                assert!(rares.agrees(t) && t.changes);
            }
            assert_ne!(threads[0].rare, threads[1].rare);
            for t in &mut threads {
                assert_eq!(rares.early(t), round);
                rares.leave(t);
                assert!(rares.agrees(t) && !t.changes && !t.shields);
            }
        }
        assert_eq!((rares.places.len(), rares.places.capacity()), (2, room));
    }

    #[test]
    fn a_place_that_a_thread_does_not_leave_is_found() {
        let mut rares = Rares::new(3);
        let mut threads: [Thread; 3] = Default::default();
        for t in &mut threads {
            rares.set_change(t, Constraint::default());
        }
        rares.leave(&mut threads[1]);
        assert!(rares.are_all_of(&threads));
        threads[2] = Thread::default();
        assert!(rares.agrees(&threads[2]), "it says that it has nothing");
        assert!(!rares.are_all_of(&threads));
    }
}
