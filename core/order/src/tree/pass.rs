//! Charge and choice in one way up, for entries at which nothing is due.
//!
//! ```text
//!   root    asks its policy: still the child that has paid?    until: the end of its turn
//!    |-- child    pays; asks: still the child below?           until: the end of its budget, ...
//!         `-- home    pays; the thread yields; asks: which thread?
//! ```
//!
//! The way visits each node once, and nobody's readiness changes. A server that does more than pay
//! ends it, for that may be due at once: the budget of a sporadic server comes back one period
//! after the instant from which it could be used, which may be long ago. Where a policy answers
//! otherwise, the choice begins again at the root.

use punctual_model::{Instant, ThreadId, Work};

use super::Tree;
use super::lend::Paid;
use super::node::{NONE, ROOT};
use crate::choice::{Band, Choice, Next};
use crate::policy::{Pick, Policy};

impl<P: Policy> Tree<P> {
    /// The running thread has executed for this long, up to `now`, and lets its equals go first if
    /// it `yields`. Returns the choice, which ends with the timers of the tree at the latest;
    /// [`Next::Idle`]: [`Tree::pick`] makes it. `None`: more has changed than budgets, and the
    /// thread has been charged, but has not yielded.
    ///
    /// As long as nothing is due: no timer of the tree, and no end of a choice or of a budget on
    /// the way of the thread. Stands for [`Tree::begin`], [`Tree::charge`] and
    /// [`Tree::yield_now`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn pass(
        &mut self,
        now: Instant,
        (thread, band): (ThreadId, Band),
        work: Work,
        yields: bool,
    ) -> Option<Choice> {
        self.begin(now);
        let home = self.places.at(thread.index());
        if home == NONE || self.nodes[usize::from(home)].is_own_time() {
            return self.only_charge(now, (thread, band), work);
        }
        let way = self.pay_and_ask(now, home, work);
        let node = &mut self.nodes[usize::from(home)];
        if way.moved != 0 || !self.moved.is_empty() {
            if !work.is_zero() {
                node.charge(thread, band, work);
                let beyond = Work::ZERO;
                self.paid(
                    now,
                    (home, Some(thread)),
                    (work, beyond, way.moved),
                    &mut |_, _| {},
                );
            }
            return None;
        }
        let pick = match yields && band == Band::RealTime && node.held.is_none() {
            true => node.policy.yield_to_next(thread).map(Pick::run),
            false => None,
        };
        let pick = pick.unwrap_or_else(|| {
            if !work.is_zero() {
                node.charge(thread, band, work);
            }
            if yields {
                node.yield_now(thread, band);
            }
            node.pick(now)
        });
        let next = pick
            .entity
            .filter(|next| way.is_kept && self.is_at(*next, home));
        let until = Some(way.until).filter(|until| *until < Instant::MAX);
        Some(Choice {
            next: next.map_or(Next::Idle, Next::Thread),
            until: Choice::earlier(Choice::earlier(pick.until, until), self.next_timer()),
        })
    }

    /// The home of the thread is another scheduler's business.
    #[cold]
    fn only_charge(
        &mut self,
        now: Instant,
        (thread, band): (ThreadId, Band),
        work: Work,
    ) -> Option<Choice> {
        if !work.is_zero() {
            self.charge(now, thread, band, work, &mut |_, _| {});
        }
        None
    }

    /// Whether this thread stands in the queue of node `at`.
    fn is_at(&self, thread: ThreadId, at: u16) -> bool {
        let place = self.places.get(thread.index());
        place.is_some_and(|place| place.at == at)
    }

    /// The schedulers from `home` up pay, and each above it says whether it still chooses the one
    /// below.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pay_and_ask(&mut self, now: Instant, home: u16, work: Work) -> Way {
        let mut way = Way {
            moved: 0,
            is_kept: true,
            until: Instant::MAX,
        };
        let mut on = home;
        self.nodes[usize::from(home)].book.executes(work);
        while on != ROOT {
            let index = self.capacity.entity_of(on);
            let node = &mut self.nodes[usize::from(on)];
            let entity = ThreadId::new(index, u32::from(node.generation));
            node.book.pays(work);
            let left = match work.is_zero() {
                true => node.budget(),
                false => match node.pay(now, work) {
                    Paid::Nothing => None,
                    Paid::Some(left) => Some(left),
                    Paid::More => {
                        way.moved |= 1 << node.depth;
                        None
                    }
                },
            };
            if let Some(left) = left {
                way.until = way.until.min(now.saturating_add(left.as_span()));
            }
            on = node.parent;
            let above = &mut self.nodes[usize::from(on)];
            if !work.is_zero() {
                above.policy.charge(entity, work);
            }
            let pick = above.pick(now);
            way.is_kept &= pick.entity == Some(entity);
            way.until = way.until.min(pick.until.unwrap_or(Instant::MAX));
        }
        way
    }
}

/// The answers of the schedulers above a thread.
struct Way {
    /// The levels whose servers have done more than become less.
    moved: u32,
    /// Each of them chooses the one below it.
    is_kept: bool,
    /// Until when, at the latest; [`Instant::MAX`]: until something happens.
    until: Instant,
}
