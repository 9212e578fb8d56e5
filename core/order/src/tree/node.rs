//! One scheduler of a tree: its policy, its supply, and what of its subtree is ready.

use punctual_model::{Instant, Priority, Server, ThreadId, Trust, Work};

use super::book::Book;
use crate::background::Background;
use crate::choice::{Band, Choice};
use crate::node::NodeId;
use crate::policy::{Attributes, Pick, Policy};
use crate::server::Server as _;
use crate::servers::AnyServer;

/// No node.
pub(super) const NONE: u16 = u16::MAX;
/// Place of the root.
pub(super) const ROOT: u16 = 0;

/// What a parent grants a child, with the state of it.
#[derive(Debug)]
pub(super) enum Supply {
    /// The processor whenever the child is chosen.
    Shared,
    /// A budget.
    Server(AnyServer),
    /// Slots, in the table of the parent's policy.
    Slots,
}

/// Budget that a node has from a sibling.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Borrowed {
    pub(super) left: Work,
    /// From then on it is gone.
    pub(super) until: Instant,
}

/// The share of slices that have ended, until all that they have used has come back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ended {
    pub(super) share: u64,
    pub(super) until: Instant,
}

/// The answer of a child, until its ready threads change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) thread: Option<ThreadId>,
    pub(super) until: Option<Instant>,
}

/// One place of the table of nodes.
#[derive(Debug)]
pub(super) struct Node<P> {
    pub(super) generation: u16,
    pub(super) alive: bool,
    pub(super) parent: u16,
    pub(super) depth: u8,
    pub(super) trust: Trust,
    /// Most threads in the subtree.
    pub(super) quota: u32,
    /// Threads in the subtree.
    pub(super) threads: u32,
    /// The scheduler that holds this slice of time; [`NONE`]: it is a scheduler.
    pub(super) receiver: u16,
    /// The terms of its server.
    pub(super) granted: Option<Server>,
    /// Slices of it that have ended.
    pub(super) ended: Ended,
    /// The work below it, in debug builds.
    pub(super) book: Book,

    pub(super) policy: P,
    pub(super) background: Background,
    /// The node whose background level takes work without guarantees: this one if its supply is
    /// bounded, else the nearest above that is.
    pub(super) background_at: u16,
    /// Who keeps its siblings away.
    pub(super) held: Option<ThreadId>,
    /// Threads and eligible children in its queues.
    pub(super) ready: u32,

    /// Budget from a sibling.
    pub(super) borrowed: Borrowed,
    /// What its children have lent each other.
    pub(super) lent_below: Work,
    /// Threads of the subtree that are not ready but wait for budgets.
    pub(super) parked: u32,

    pub(super) supply: Supply,
    pub(super) priority: Priority,
    /// At least as urgent as this while somebody in it holds a resource of several schedulers.
    pub(super) raised: Option<Priority>,
    pub(super) order: u32,
    /// Its place is kept for the scheduler of this order, which comes and goes.
    pub(super) kept: bool,
    /// It stands in its parent's queue: it is eligible.
    pub(super) queued: bool,
    /// Its attributes there.
    pub(super) release: Instant,
    pub(super) deadline: Instant,
    /// Its policy idles on purpose until this instant, so others may run.
    pub(super) resting: Option<Instant>,
    /// It had nothing ready from this instant on, which its server has not been told.
    pub(super) fell: Option<Instant>,
    /// How often what is ready in it has changed, for a node that decides on its own supply.
    pub(super) epoch: u32,
    pub(super) answer: Option<Answer>,
    /// It is in [`super::Tree::fallen`], in [`super::Tree::news`].
    pub(super) is_fallen: bool,
    pub(super) has_news: bool,
    /// Its server believes that it has something to run.
    pub(super) awake: bool,
    /// Budget that has been reported, less what has been used since.
    pub(super) reported: Work,
    /// It was reported as queued; it has left the queue since; it is in [`super::Tree::moved`].
    pub(super) told: bool,
    pub(super) left: bool,
    pub(super) has_moved: bool,
}

impl<P> Node<P> {
    /// What its server still gives, and what it has borrowed; `None`: its supply has no budget.
    #[inline]
    pub(super) fn budget(&self) -> Option<Work> {
        match &self.supply {
            Supply::Server(server) => Some(server.budget().saturating_add(self.borrowed.left)),
            Supply::Shared | Supply::Slots => None,
        }
    }

    #[inline]
    pub(super) fn is_funded(&self) -> bool {
        self.budget().is_none_or(|budget| !budget.is_zero())
    }

    pub(super) fn is_own_time(&self) -> bool {
        self.trust == Trust::OwnTime
    }

    /// How its parent's policy sees it.
    #[inline]
    pub(super) fn attributes(&self) -> Attributes {
        let mut attributes = Attributes {
            priority: self.priority,
            absolute_deadline: self.deadline,
            release: self.release,
            order: self.order,
        };
        if let Some(raised) = self
            .raised
            .filter(|raised| !self.priority.is_higher_than(*raised))
        {
            attributes.priority = raised;
            attributes.release = Instant::ZERO;
        }
        attributes
    }

    pub(super) fn id(&self, index: u16) -> NodeId {
        NodeId::new(index, self.generation)
    }
}

/// Work of a band is ordered by the policy, or below it.
impl<P: Policy> Node<P> {
    #[inline]
    fn orders(&self, band: Band) -> bool {
        band == Band::RealTime || self.policy.orders_background()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn wake(&mut self, thread: ThreadId, attributes: &Attributes, band: Band) {
        if self.orders(band) {
            self.policy.wake(thread, attributes);
        } else {
            self.background.wake(thread, attributes.priority);
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn block(&mut self, thread: ThreadId, band: Band) {
        if self.orders(band) {
            self.policy.block(thread);
        } else {
            self.background.block(thread);
        }
    }

    pub(super) fn update(&mut self, thread: ThreadId, attributes: &Attributes, band: Band) {
        if self.orders(band) {
            self.policy.update(thread, attributes);
        } else {
            self.background.update(thread, attributes.priority);
        }
    }

    pub(super) fn renew(&mut self, thread: ThreadId, attributes: &Attributes, band: Band) {
        if self.orders(band) {
            self.policy.renew(thread, attributes);
        } else {
            self.background.update(thread, attributes.priority);
        }
    }

    #[inline]
    pub(super) fn yield_now(&mut self, thread: ThreadId, band: Band) {
        if self.orders(band) {
            self.policy.yield_now(thread);
        } else {
            self.background.rotate(thread);
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn charge(&mut self, thread: ThreadId, band: Band, work: Work) {
        if self.orders(band) {
            self.policy.charge(thread, work);
        } else {
            self.background.charge(thread, work);
        }
    }

    /// A thread keeps its siblings away no longer, if it did.
    #[inline]
    pub(super) fn release(&mut self, thread: ThreadId) {
        if self.held == Some(thread) {
            self.held = None;
        }
    }

    /// Whom this node lets run: who keeps its siblings away, else whom its policy chooses, else
    /// work without guarantees.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn pick(&mut self, now: Instant) -> Pick {
        if let Some(held) = self.held
            && !self.policy.orders_background()
        {
            return Pick::run(held);
        }
        let pick = self.policy.pick(now);
        if pick.entity.is_some() {
            return pick;
        }
        let background = self.background.pick(now);
        Pick {
            entity: background.entity,
            until: Choice::earlier(pick.until, background.until),
        }
    }
}
