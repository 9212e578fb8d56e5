//! Priority inheritance: a holder is as urgent as the most urgent thread that waits for it.
//!
//! Under a ceiling protocol it is as urgent as the most urgent thread that might wait. One function
//! computes what a thread inherits, [`Shard::inherited`]. That is renewed whenever a lock, an
//! unlock, a wait or its end may have changed it: from the thread at which that happened, along the
//! chain of those that it waits for, whatever kinds of locks are between them. O(waiters) for each
//! of them.

use punctual_model::{Instant, Mode, Priority, Protocol, Span, ThreadId};
use punctual_order::{Attributes, Band, Policy};

use super::Shard;
use crate::effective::{Effective, Inherited, Rank, WaitOrder};
use crate::lock::{Ceiling, ResourceTerms};
use crate::thread::{State, Thread};

/// At least this urgent; ties go to whom it is for, which has this place in the order of the file.
fn at_least(by: WaitOrder, band: Band, ceiling: Ceiling, order: u32) -> Inherited {
    let attributes = Attributes {
        priority: ceiling.priority,
        absolute_deadline: ceiling.absolute_deadline,
        release: Instant::ZERO,
        order,
    };
    let effective = Effective { band, attributes };
    Inherited { by, effective }
}

/// What the ceiling of a resource is worth from `since` on, if its protocol has one.
///
/// Under deadlines the ceiling is a floor (Burns, Gutierrez, Aldea and Gonzalez 2014): whatever is
/// released from now on, and uses the resource, has a deadline no earlier.
fn by_ceiling(terms: &ResourceTerms, since: Instant, order: u32) -> Option<Inherited> {
    if !matches!(
        terms.protocol,
        Protocol::ImmediateCeiling | Protocol::StackResource
    ) {
        return None;
    }
    let band = if terms.real_time {
        Band::RealTime
    } else {
        Band::Background
    };
    let ceiling = Ceiling {
        priority: terms.ceiling,
        absolute_deadline: since.saturating_add(terms.floor),
    };
    Some(at_least(terms.wait_order, band, ceiling, order))
}

/// Who holds what reaches beyond its scheduler is before everybody within it.
const FIRST: Ceiling = Ceiling {
    priority: Priority::new(u32::MAX),
    absolute_deadline: Instant::ZERO,
};

impl<P: Policy> Shard<P> {
    /// By what the threads of this CPU are ordered that wait for a lock of their runtime. Until
    /// told otherwise, by priority.
    pub fn set_wait_order(&mut self, wait_order: WaitOrder) {
        self.wait_order = wait_order;
    }

    /// Whether `a` goes before `b` when both are ready, by their effective priorities. Equals go
    /// before nobody; a thread that has ended goes after all others.
    pub fn goes_before(&self, a: ThreadId, b: ThreadId) -> bool {
        match (self.thread(a), self.thread(b)) {
            (Ok(a), Ok(b)) => {
                let rank = |t: &Thread| {
                    let (background, most, ..) = t.effective(&self.rares).rank(self.wait_order);
                    (background, most)
                };
                rank(a) < rank(b)
            }
            (Ok(_), Err(_)) => true,
            _ => false,
        }
    }

    /// The running thread is at least this urgent until told otherwise.
    pub(super) fn set_ceiling(&mut self, ceiling: Option<Ceiling>) {
        if let Some(id) = self.running {
            self.rares
                .set_ceiling(&mut self.threads[id.index()], ceiling);
            self.inherit(id.index());
        }
    }

    /// What `thread` inherits: the most urgent of its ceilings and of those that wait for what it
    /// holds. (Between schedulers, priorities of threads do not compare; there the scheduler is
    /// raised.)
    fn inherited(&self, thread: usize) -> Option<Inherited> {
        let t = &self.threads[thread];
        let order = t.constraint.order;
        let mut most = self.rares.ceiling(t).map(|ceiling| {
            let band = match ceiling.absolute_deadline {
                Instant::MAX => Band::Background,
                _ => Band::RealTime,
            };
            at_least(self.wait_order, band, ceiling, order)
        });
        for (user, hold) in self.locks.held_by(thread) {
            let terms = self.locks.terms(user.terms.resource);
            if hold.lapsed {
                continue;
            }
            if self.spans(user) {
                let first = at_least(WaitOrder::Priority, Band::RealTime, FIRST, order);
                most = Inherited::most(most, first);
                continue;
            }
            if let Some(ceiling) = by_ceiling(terms, hold.since, order) {
                most = Inherited::most(most, ceiling);
            }
            if terms.spans_schedulers {
                continue;
            }
            for waiter in self.locks.waiters(user.terms.resource) {
                let mut effective = self.threads[waiter].effective(&self.rares);
                if hold.mode == Mode::Shared {
                    // Several readers inherit from one writer: they must not tie, and nobody
                    // who does not go before the writer may go before them.
                    let release = effective.attributes.release;
                    let tick = Span::from_ticks(1);
                    effective.attributes.release = release.saturating_sub(tick);
                    effective.attributes.order = order;
                }
                let by = terms.wait_order;
                most = Inherited::most(most, Inherited { by, effective });
            }
        }
        most
    }

    /// The parameters of a thread have changed, or what it holds or waits for.
    pub(super) fn inherit(&mut self, thread: usize) {
        self.locks.look_at(thread);
        if let Some(lock) = self.locks.waits_for(thread) {
            self.locks.look_at_holders(lock);
        }
        self.propagate();
    }

    /// Renews what those to be looked at inherit, and follows each change along its chain. It ends
    /// because nobody waits for itself.
    pub(super) fn propagate(&mut self) {
        while let Some(thread) = self.locks.next_to_look_at() {
            let inherited = self.inherited(thread);
            let t = &mut self.threads[thread];
            if self.rares.inherited(t) == inherited.as_ref() {
                continue;
            }
            let before = t.effective(&self.rares);
            self.rares.set_inherited(t, inherited);
            t.mark_key();
            // Ties go to who inherits, also if it let its equals go first before.
            let comes_back = inherited.is_some() && t.gave_way && t.place == Band::RealTime;
            if t.effective(&self.rares) == before && !comes_back {
                continue;
            }
            self.reposition(thread);
            if let Some(lock) = self.locks.waits_for(thread) {
                self.locks.look_at_holders(lock);
            }
        }
    }

    /// Whether to wait for those to be looked at would be to wait for `thread`.
    pub(super) fn leads_to(&mut self, thread: usize) -> bool {
        let (threads, rares) = (&self.threads, &self.rares);
        let uses = |at: usize| rares.request(&threads[at]).map(|request| request.of);
        self.locks.leads_to(thread, uses)
    }

    /// Tells the tree how urgent a ready thread is now.
    pub(super) fn reposition(&mut self, thread: usize) {
        let t = &mut self.threads[thread];
        if !t.queued {
            return;
        }
        let effective = t.effective(&self.rares);
        let (from, to) = (t.place, effective.band);
        t.place = to;
        t.gave_way = false;
        let id = t.id(thread);
        self.key_changed(thread);
        if from == to {
            self.tree.update(id, &effective.attributes, to);
            return;
        }
        let alone = self.tree.holds(id);
        self.tree.release(id);
        self.tree.block(self.now, id, from);
        self.tree
            .wake(self.now, self.since, id, &effective.attributes, to);
        if alone {
            self.tree.hold(id, to);
        }
    }

    /// Where a thread ranks among the users of a resource.
    pub(super) fn rank(&self, of: u32) -> Rank {
        let user = self.locks.get(of);
        let terms = self.locks.terms(user.terms.resource);
        if terms.spans_schedulers {
            let by_priority = u64::from(u32::MAX - user.terms.priority.number());
            return (false, by_priority, Instant::ZERO, 0);
        }
        let effective = self.threads[user.thread as usize].effective(&self.rares);
        effective.rank(terms.wait_order)
    }

    /// Checks I5 to I8.
    pub(super) fn check_locks(&self) -> Result<(), &'static str> {
        self.locks.check()?;
        for (index, t) in self.threads.iter().enumerate() {
            let is_held = |&of: &u32| self.locks.get(of).hold.is_some();
            if self.locks.uses_of(index).filter(is_held).count() != usize::from(t.held) {
                return Err("I5: a thread and its uses agree on what it holds");
            }
            if self.locks.waits_for(index).is_some() && t.state != State::Blocked {
                return Err("I6: whoever waits for a lock is blocked");
            }
            if self.rares.inherited(t) != self.inherited(index).as_ref() {
                return Err("I7: a thread inherits what its locks say");
            }
            if t.queued && t.place != t.effective(&self.rares).band {
                return Err("I7: a thread is queued where its effective priority counts");
            }
        }
        Ok(())
    }
}
