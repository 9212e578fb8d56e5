//! Urgency that resources lend to whoever holds them.
//!
//! A holder is as urgent as the most urgent thread that waits for what it holds (inheritance, along
//! chains), and under a ceiling protocol as the most urgent thread that might. What is lent is
//! recomputed whenever a lock, an unlock, a wait or its end may have changed it, from the thread at
//! which that happened down the chain of those that it waits for: O(users of the resources there).

use punctual_model::{Instant, Mode, Priority, Protocol, Span};

use super::Shard;
use crate::effective::{Boost, Rank, Standing, Urgency};
use crate::hierarchy::{Band, Hierarchy};
use crate::loan::NOBODY;
use crate::lock::{ResourcePlan, UseState};
use crate::policy::Attributes;
use crate::thread::State;

/// What a ceiling lends from `since` on, to a thread with this place in the order of the file.
///
/// Under deadlines the ceiling is a floor (Burns, Gutierrez, Aldea and Gonzalez 2014): whatever is
/// released from now on, and uses the resource, has a deadline no earlier. Ties go to the holder.
fn ceiling(plan: &ResourcePlan, since: Instant, order: u32) -> Option<Boost> {
    if !matches!(
        plan.protocol,
        Protocol::ImmediateCeiling | Protocol::StackResource
    ) {
        return None;
    }
    let band = if plan.real_time {
        Band::RealTime
    } else {
        Band::Background
    };
    let attributes = Attributes {
        priority: plan.ceiling,
        absolute_deadline: since.saturating_add(plan.floor),
        release: Instant::ZERO,
        order,
    };
    let standing = Standing { band, attributes };
    let by = plan.urgency;
    Some(Boost { by, standing })
}

/// What a resource that reaches beyond the scheduler of its holder lends within it.
fn before_all(order: u32) -> Boost {
    let attributes = Attributes {
        priority: Priority::new(u32::MAX),
        absolute_deadline: Instant::ZERO,
        release: Instant::ZERO,
        order,
    };
    let band = Band::RealTime;
    Boost {
        by: Urgency::Priority,
        standing: Standing { band, attributes },
    }
}

impl<H: Hierarchy> Shard<H> {
    /// What the resources of `thread` lend to it, from scratch. (Between schedulers, urgencies of
    /// threads do not compare; there the scheduler is raised.)
    fn lent_to(&self, thread: usize) -> Option<Boost> {
        let t = &self.threads[thread];
        let most = match t.held {
            0 => None,
            _ => self.lent_by_resources(thread),
        };
        if t.loans.first == NOBODY && t.ceiling.is_none() {
            return most;
        }
        self.lent_by_loans(thread, most)
    }

    fn lent_by_resources(&self, thread: usize) -> Option<Boost> {
        let t = &self.threads[thread];
        let mut most = None;
        for of in self.resources.uses_of(thread) {
            let user = self.resources.get(of);
            let UseState::Holds {
                mode,
                since,
                lapsed: false,
                ..
            } = user.state
            else {
                continue;
            };
            let plan = self.resources.plan(user.plan.resource);
            if self.reaches_out(of) {
                most = Boost::most(most, before_all(t.constraint.order));
                continue;
            }
            if let Some(boost) = ceiling(plan, since, t.constraint.order) {
                most = Boost::most(most, boost);
            }
            if plan.spans_schedulers {
                continue;
            }
            for other in self.resources.users(user.plan.resource) {
                let other = self.resources.get(other);
                if other.waits() {
                    let mut standing = self.threads[other.thread as usize].standing();
                    if mode == Mode::Shared {
                        // Several readers inherit from one writer: they must not tie, and nobody
                        // who does not go before the writer may go before them.
                        let release = standing.attributes.release;
                        let tick = Span::from_ticks(1);
                        standing.attributes.release = release.saturating_sub(tick);
                        standing.attributes.order = t.constraint.order;
                    }
                    let by = plan.urgency;
                    most = Boost::most(most, Boost { by, standing });
                }
            }
        }
        most
    }

    /// Something about the holds of `thread` has changed.
    pub(super) fn lend_again(&mut self, thread: usize) {
        self.resources
            .look_at(u32::try_from(thread).unwrap_or(u32::MAX));
        self.lend();
    }

    /// The waiters for a resource have changed.
    pub(super) fn lend_to_holders(&mut self, resource: u32) {
        self.resources.look_at_holders(resource);
        self.lend();
    }

    /// The urgency of a thread that may wait for a resource has changed.
    pub(super) fn pass_on(&mut self, thread: usize) {
        if let Some(of) = self.threads[thread].waits {
            let resource = self.resources.get(of).plan.resource;
            self.lend_to_holders(resource);
        }
        if let Some(holder) = self.threads[thread].loans.holder() {
            self.lend_again(holder);
        }
    }

    /// Follows the changes down the chains. It ends because nobody waits for itself.
    fn lend(&mut self) {
        while let Some(thread) = self.resources.next_to_look_at() {
            let boost = self.lent_to(thread);
            let t = &mut self.threads[thread];
            if t.boost == boost {
                continue;
            }
            let before = t.standing();
            t.boost = boost;
            // Ties go to who is lent something, also if it let its equals go first before.
            let comes_back = boost.is_some() && t.gave_way && t.place == Band::RealTime;
            if t.standing() == before && !comes_back {
                continue;
            }
            self.reposition(thread);
            if let Some(of) = self.threads[thread].waits {
                let resource = self.resources.get(of).plan.resource;
                self.resources.look_at_holders(resource);
            }
            let lends_to = self.threads[thread].loans.to;
            if lends_to != NOBODY {
                self.resources.look_at(lends_to);
            }
        }
    }

    /// Tells the hierarchy how urgent a ready thread is now.
    pub(super) fn reposition(&mut self, thread: usize) {
        let t = &mut self.threads[thread];
        if !t.queued {
            return;
        }
        let standing = t.standing();
        let (from, to) = (t.place, standing.band);
        t.place = to;
        t.gave_way = false;
        let id = t.id(thread);
        if from == to {
            self.hierarchy.update(id, &standing.attributes, to);
            return;
        }
        let alone = self.hierarchy.holds(id);
        self.hierarchy.release(id);
        self.hierarchy.block(self.now, id, from);
        self.hierarchy
            .wake(self.now, self.since, id, &standing.attributes, to);
        if alone {
            self.hierarchy.hold(id, to);
        }
    }

    /// Where a thread ranks among the users of a resource.
    fn rank(&self, of: u32) -> Rank {
        let user = self.resources.get(of);
        let plan = self.resources.plan(user.plan.resource);
        if plan.spans_schedulers {
            let by_priority = u64::from(u32::MAX - user.plan.priority.number());
            return (false, by_priority, Instant::ZERO, 0);
        }
        let standing = self.threads[user.thread as usize].standing();
        standing.rank(plan.urgency)
    }

    /// Whether a lock is granted at once: nobody holds the resource in a mode that excludes it, and
    /// no more urgent writer waits.
    pub(super) fn is_grantable(&self, of: u32, mode: Mode) -> bool {
        let resource = self.resources.get(of).plan.resource;
        if !self.resources.has_room(resource, mode) {
            return false;
        }
        let rank = self.rank(of);
        let is_ahead = |other: u32| match self.resources.get(other).state {
            UseState::Waits { mode, .. } => mode == Mode::Exclusive && self.rank(other) < rank,
            _ => false,
        };
        mode == Mode::Exclusive || !self.resources.users(resource).any(is_ahead)
    }

    /// Who gets a resource next, and how; equals in the order of their asking.
    pub(super) fn most_urgent_waiter(&self, resource: u32) -> Option<(u32, Mode, Option<Instant>)> {
        let waiter = |of: u32| match self.resources.get(of).state {
            UseState::Waits { mode, until, turn } => {
                Some(((self.rank(of), turn), (of, mode, until)))
            }
            _ => None,
        };
        let waiters = self.resources.users(resource).filter_map(waiter);
        let (_, found) = waiters.min_by_key(|waiter| waiter.0)?;
        Some(found)
    }

    /// Checks I5 to I7.
    pub(super) fn check_resources(&self) -> Result<(), &'static str> {
        self.resources.check()?;
        for (index, t) in self.threads.iter().enumerate() {
            let mut held = 0;
            let mut waits = None;
            for of in self.resources.uses_of(index) {
                held += u32::from(self.resources.get(of).is_held());
                if self.resources.get(of).waits() {
                    waits = Some(of);
                }
            }
            if held != t.held || waits != t.waits {
                return Err("I5: a thread and its uses agree on what it holds and waits for");
            }
            if waits.is_some() && t.state != State::Blocked {
                return Err("I6: whoever waits for a resource is blocked");
            }
            if t.boost != self.lent_to(index) {
                return Err("I7: what is lent to a thread is what its resources lend");
            }
            if t.queued && t.place != t.standing().band {
                return Err("I7: a thread is queued where its urgency counts");
            }
        }
        Ok(())
    }
}
