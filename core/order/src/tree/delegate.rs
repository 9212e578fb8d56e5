//! Temporal capabilities: slices of a scheduler's supply in the hands of another.
//!
//! ```text
//!   root -- a  [server: 4 in 10]          b  holds the slice: it binds its threads to it, and
//!    |      |-- a's threads                  delegates from it in turn
//!    |      `-- slice [2 in 10] of b      ready: in the slice, so below `a` and on its supply
//!    |           `-- slice [1 in 20] of c care: of `b`, who alone blocks and takes back
//!    `----- b -- b's threads
//! ```
//!
//! A slice is a node with a server, below the scheduler that delegates it, that no scheduler
//! stands at. A thread that is bound to it has it as its home, and is in the care of its receiver.
//! So it is paid for by each server from the slice up, like any other work there. Used time is the
//! slice's and not the thread's: to re-bind threads gains nothing (the hole of Composite). It also
//! stays used when the slice ends: the share of that counts on until all would have come back.
//! Source: Slite paper §V.A; Gadepalli, Gifford, Baier,
//! Kelly and Parmer 2017.

use punctual_model::{Instant, Server, ThreadId};

use super::node::{NONE, Node, ROOT, Supply};
use super::{Grant, NodeTerms, Tree};
use crate::node::NodeId;
use crate::policy::Policy;
use crate::refusal::Refusal;
use crate::server::Server as _;

/// A share of a processor; 2^32 is all of it.
const WHOLE: u64 = 1 << 32;

impl<P: Policy> Tree<P> {
    /// Whether a node is a slice of time, and no scheduler.
    pub(super) fn is_slice(&self, at: u16) -> bool {
        let node = self.nodes.get(usize::from(at));
        node.is_some_and(|node| node.receiver != NONE)
    }

    /// The scheduler that has what is at home at `at` in its care.
    #[inline]
    pub(super) fn care(&self, at: u16) -> u16 {
        match self.nodes.get(usize::from(at)) {
            Some(node) if node.receiver != NONE => node.receiver,
            _ => at,
        }
    }

    /// The scheduler that holds a slice; `None`: this is no slice.
    pub fn receiver(&self, node: NodeId) -> Option<NodeId> {
        let at = self.nodes.get(usize::from(self.node(node).ok()?))?.receiver;
        Some(self.nodes.get(usize::from(at))?.id(at))
    }

    /// Whether a delegation from `from` on these terms is lawful, if it is one. A slice has none
    /// but slices below it. O(nodes).
    pub(super) fn permit_delegate(&self, from: u16, terms: &NodeTerms) -> Result<(), Refusal> {
        let giver = &self.nodes[usize::from(from)];
        let id = giver.id(from);
        let Some(to) = terms.receiver else {
            return match self.is_slice(from) {
                true => Err(Refusal::NotAScheduler(id)),
                false => Ok(()),
            };
        };
        let to_at = self.node(to)?;
        if self.is_slice(to_at) {
            return Err(Refusal::NotAScheduler(to));
        }
        let Grant::Server(server) = terms.supply else {
            return Err(Refusal::NotGrantable(id));
        };
        if to_at == self.care(from) || terms.trust != punctual_model::Trust::Inline {
            return Err(Refusal::NotGrantable(id));
        }
        self.has_share(from, giver.granted.as_ref(), part(&server))
    }

    /// Whether the server of a node may become this one: it is no slice, which would be full again
    /// within its period, and its slices fit into it. O(nodes).
    pub(super) fn permit_resupply(&self, at: u16, server: &Server) -> Result<(), Refusal> {
        if self.is_slice(at) {
            return Err(Refusal::NotAScheduler(self.nodes[usize::from(at)].id(at)));
        }
        match self.delegated(at) > 0 {
            true => self.has_share(at, Some(server), 0),
            false => Ok(()),
        }
    }

    /// Whether `more` can be delegated from a node with this server. O(nodes).
    fn has_share(&self, from: u16, server: Option<&Server>, more: u64) -> Result<(), Refusal> {
        let id = self.nodes[usize::from(from)].id(from);
        let all = match server {
            Some(server) => whole(server),
            None if from == ROOT => WHOLE,
            // The time of everybody above is not its own to give.
            None => return Err(Refusal::NotGrantable(id)),
        };
        match self.delegated(from).saturating_add(more) <= all {
            true => Ok(()),
            false => Err(Refusal::TooLittleBudget(id)),
        }
    }

    /// The share that a node has delegated, or delegated and may have been used lately. O(nodes).
    fn delegated(&self, from: u16) -> u64 {
        let node = &self.nodes[usize::from(from)];
        let ended = match node.ended.until > self.now {
            true => node.ended.share,
            false => 0,
        };
        let slices = self.nodes.iter();
        let slices = slices.filter(|n| n.alive && n.parent == from && n.receiver != NONE);
        let shares = slices.filter_map(|n| n.granted.as_ref()).map(part);
        shares.fold(ended, u64::saturating_add)
    }

    /// Whether a scheduler holds each slice, and nobody has delegated more than it has: of a tree
    /// that was built from tables. O(nodes²).
    ///
    /// # Errors
    /// The node that is not so.
    pub fn check_slices(&self) -> Result<(), Refusal> {
        for (at, node) in (0..).zip(&self.nodes).filter(|(_, node)| node.alive) {
            let receiver = self.nodes.get(usize::from(node.receiver));
            let holds = receiver.is_some_and(|node| node.alive && node.receiver == NONE);
            if node.receiver != NONE && !holds {
                return Err(Refusal::NotAScheduler(node.id(at)));
            }
            if self.delegated(at) > 0 {
                self.has_share(at, node.granted.as_ref(), 0)?;
            }
        }
        Ok(())
    }

    /// Whether a node would have delegated more than it has, with these slices in addition and
    /// any of these supplies. O(nodes + slices + supplies).
    pub fn gives_too_much<'a>(
        &self,
        giver: NodeId,
        slices: impl Iterator<Item = &'a Grant>,
        mut supplies: impl Iterator<Item = &'a Grant>,
    ) -> bool {
        let Ok(at) = self.node(giver) else {
            return false;
        };
        let server = |grant: &'a Grant| match grant {
            Grant::Server(server) => Some(server),
            Grant::Shared | Grant::Slots => None,
        };
        let more = slices
            .filter_map(server)
            .map(part)
            .fold(0, u64::saturating_add);
        if more == 0 && self.delegated(at) == 0 {
            return false;
        }
        let too_much = |server: Option<&Server>| {
            let refused = self.has_share(at, server, more);
            matches!(refused, Err(Refusal::TooLittleBudget(_)))
        };
        let own = self.nodes[usize::from(at)].granted.as_ref();
        too_much(own) || supplies.any(|supply| too_much(server(supply)))
    }

    /// From when on the slices that a node has taken back count no more; `None`: none does. O(1).
    pub fn shares_return(&self, node: NodeId) -> Option<Instant> {
        let until = self
            .nodes
            .get(usize::from(self.node(node).ok()?))?
            .ended
            .until;
        (until > self.now).then_some(until)
    }

    /// The share of a slice that ends counts on until all that it has used has come back.
    pub(super) fn close_book(&mut self, now: Instant, at: u16) {
        let node = &self.nodes[usize::from(at)];
        let parent = usize::from(node.parent);
        if let (true, Some(server)) = (self.is_slice(at), &node.granted) {
            let period_on = now.saturating_add(server.period);
            let returns = match &node.supply {
                Supply::Server(server) => server.returns(),
                Supply::Shared | Supply::Slots => None,
            };
            let until = returns.map_or(period_on, |returns| returns.max(period_on));
            let share = part(server);
            let ended = &mut self.nodes[parent].ended;
            if ended.until <= now {
                ended.share = 0;
            }
            ended.share = ended.share.saturating_add(share);
            ended.until = ended.until.max(until);
        }
        let executed = self.nodes[usize::from(at)].book.executed();
        self.nodes[parent].book.inherits(executed);
    }

    /// A slice that ends with the scheduler `node`, which holds it, and is not below that.
    /// O(nodes · depth).
    pub fn slice_held_below(&self, node: NodeId) -> Option<NodeId> {
        let top = self.node(node).ok()?;
        let places = (0..).zip(&self.nodes);
        let mut slices = places.filter(|(_, n)| n.alive && n.receiver != NONE);
        let ends =
            |(at, n): &(u16, &Node<P>)| self.is_below(n.receiver, top) && !self.is_below(*at, top);
        slices.find(ends).map(|(at, n)| n.id(at))
    }

    /// Whether a thread is at home in what ends with `node`: below it, or on a slice of what is.
    /// O(depth²).
    pub fn falls_with(&self, thread: ThreadId, node: NodeId) -> bool {
        let (Some(place), Ok(top)) = (self.places.get(thread.index()), self.node(node)) else {
            return false;
        };
        let mut at = place.home;
        while at != NONE {
            if at == top || (self.is_slice(at) && self.is_below(self.care(at), top)) {
                return true;
            }
            at = self.nodes[usize::from(at)].parent;
        }
        false
    }

    /// Where a thread that is at home below `node` goes when that ends: from a slice to the
    /// scheduler that holds it, never to another slice; else to the scheduler above. O(depth).
    pub fn heir(&self, thread: ThreadId, node: NodeId) -> Option<NodeId> {
        let top = self.node(node).ok()?;
        let home = self.places.get(thread.index())?.home;
        let care = self.care(home);
        let heir = match self.is_slice(home) && !self.is_below(care, top) {
            true => care,
            false => self.nodes[usize::from(top)].parent,
        };
        Some(self.nodes.get(usize::from(heir))?.id(heir))
    }

    /// Whether work on the capability `a` preempts work on `b`, neither's scheduler being asked:
    /// each scheduler that had a say in both finds `a` at least as urgent, and one more urgent. A
    /// capability is a slice, a scheduler with its own supply, or one that shares that of others.
    /// O(depth²).
    ///
    /// # Errors
    /// One is not there.
    pub fn preempts(&self, a: NodeId, b: NodeId) -> Result<bool, Refusal> {
        let (a, b) = (self.node(a)?, self.node(b)?);
        let mut is_higher = false;
        for (scheduler, urgency) in self.opinions(a) {
            match self.opinion(b, scheduler) {
                Some(theirs) if urgency.min(self.opinion(a, scheduler).unwrap_or(0)) < theirs => {
                    return Ok(false);
                }
                Some(theirs) => is_higher |= urgency > theirs,
                None => {}
            }
        }
        Ok(is_higher)
    }

    /// The lowest urgency that a scheduler gave a capability, if it had a say in it.
    fn opinion(&self, at: u16, scheduler: u16) -> Option<u64> {
        let opinions = self.opinions(at);
        let its_own = opinions.filter(|(who, _)| *who == scheduler);
        its_own.map(|(_, urgency)| urgency).min()
    }

    /// The schedulers that had a say in a capability, the last one first, each with its urgency.
    fn opinions(&self, at: u16) -> impl Iterator<Item = (u16, u64)> + '_ {
        let mut at = at;
        core::iter::from_fn(move || {
            let node = self.nodes.get(usize::from(at))?;
            let parent = node.parent;
            let above = self.nodes.get(usize::from(parent))?;
            at = parent;
            Some((self.care(parent), above.policy.urgency(&node.attributes())))
        })
    }

    /// INV-TIME. O(nodes²).
    pub(super) fn check_time(&self) -> Result<(), &'static str> {
        for (at, node) in (0..).zip(&self.nodes).filter(|(_, node)| node.alive) {
            let delegated = self.delegated(at);
            if delegated > 0 && self.has_share(at, node.granted.as_ref(), 0).is_err() {
                return Err("INV-TIME: no scheduler has delegated more than it has");
            }
            if node.receiver != NONE {
                let receiver = &self.nodes[usize::from(node.receiver)];
                if !receiver.alive || receiver.receiver != NONE {
                    return Err("INV-TIME: a scheduler holds each slice");
                }
            }
            let below = self.nodes.iter().filter(|n| n.alive && n.parent == at);
            if at != ROOT {
                node.book.check(node.borrowed.left, below.map(|n| n.book))?;
            }
        }
        Ok(())
    }
}

/// The least share of a processor that a slice with this server can stand for. From time to ticks
/// a budget is rounded up and a period to the nearest: slices that fit in time fit in ticks.
fn part(server: &Server) -> u64 {
    let (budget, period) = (server.budget.ticks(), server.period.ticks());
    share(budget.saturating_sub(1), 2 * u128::from(period) + 1)
}

/// The greatest share of a processor that the server of a giver can stand for.
fn whole(server: &Server) -> u64 {
    let period = server.period.ticks().max(1);
    share(server.budget.ticks(), 2 * u128::from(period) - 1)
}

/// A budget in a period of so many half ticks, as a share.
fn share(budget: u64, half_ticks: u128) -> u64 {
    let share = 2 * u128::from(budget) * u128::from(WHOLE) / half_ticks;
    u64::try_from(share).unwrap_or(u64::MAX)
}
