//! Slices of a scheduler's supply in other hands: no time is made, and nobody is re-bound.
//!
//! What is executed on a slice is charged to the slice and to all above it like any other work, and
//! `supply` holds each to its terms. Here stands what is left: the terms themselves.

use punctual_kern::{Event, Grant, NodeTerms, Request};
use punctual_model::{Server, Trust};

use crate::Rule;
use crate::entry::Judge;
use crate::node::ROOT;
use crate::queue::Entity;

/// All of a processor, in shares.
const WHOLE: u64 = 1 << 32;

impl Judge<'_> {
    /// The scheduler that has the threads of a node in its care: of a slice, the one that holds it.
    pub(crate) fn care(&self, at: usize) -> usize {
        let receiver = self.nodes[at].terms.receiver;
        receiver.and_then(|id| self.node(id)).unwrap_or(at)
    }

    pub(crate) fn is_slice(&self, at: usize) -> bool {
        self.nodes[at].terms.receiver.is_some()
    }

    /// Whether `by` may promote on these terms: a slice has slices below it, and these go to
    /// schedulers other than the one that delegates.
    pub(crate) fn may_delegate(&self, by: usize, terms: &NodeTerms) -> Option<bool> {
        let Some(to) = terms.receiver else {
            return Some(!self.is_slice(by));
        };
        let to = self.node(to)?;
        let Grant::Server(server) = terms.supply else {
            return Some(false);
        };
        let inline = terms.trust == Trust::Inline;
        let fits = self.delegated(by).saturating_add(part(&server)) <= self.share_of(by);
        Some(inline && fits && !self.is_slice(to) && to != self.care(by))
    }

    /// A node has delegated, or has another supply.
    pub(crate) fn has_delegated(&mut self, at: usize) {
        let (given, has) = (self.delegated(at), self.share_of(at));
        let what = format_args!("has delegated {given} of 2^32, and has {has}");
        let right = given == 0 || given <= has;
        self.must(right, Rule::TimeConserved, Entity::Node(at), what);
    }

    /// A slice ends: what was used of it comes back one of its periods later.
    pub(crate) fn slice_ended(&mut self, at: usize) {
        let node = &self.nodes[at];
        if let (Some(_), Some(giver), Grant::Server(server)) =
            (node.terms.receiver, node.parent, node.terms.supply)
        {
            let until = self.now.saturating_add(server.period);
            self.nodes[giver].ended.push((part(&server), until));
        }
    }

    /// A thread that was at home at `from` has moved: when a slice ends, to the scheduler in whose
    /// care it was all the time.
    pub(crate) fn falls_home(&mut self, thread: usize, from: usize) {
        let Event::Manage {
            request: Request::Demote(top),
            ..
        } = self.event
        else {
            return;
        };
        let care = self.care(from);
        let survives = self.node(top).is_some_and(|top| !self.is_below(care, top));
        let right = !self.is_slice(from) || !survives || self.threads[thread].home == care;
        let what = "was on a slice that ended, and is not back with its scheduler";
        self.must(right, Rule::TimeConserved, Entity::Thread(thread), what);
    }

    /// The share that a node has delegated, or had and may have been used lately.
    fn delegated(&self, from: usize) -> u64 {
        let ended = self.nodes[from].ended.iter();
        let ended = ended.filter(|(_, until)| *until > self.now);
        let slices = self.nodes.iter();
        let slices = slices.filter(|n| n.parent == Some(from) && n.terms.receiver.is_some());
        let shares = slices.filter_map(|n| match n.terms.supply {
            Grant::Server(server) => Some(part(&server)),
            Grant::Shared | Grant::Slots => None,
        });
        let all = shares.chain(ended.map(|(share, _)| *share));
        all.fold(0, u64::saturating_add)
    }

    /// The share that a node has to delegate from.
    fn share_of(&self, at: usize) -> u64 {
        match self.nodes[at].terms.supply {
            Grant::Server(server) => whole(&server),
            Grant::Shared | Grant::Slots if at == ROOT => WHOLE,
            Grant::Shared | Grant::Slots => 0,
        }
    }
}

/// The least share that a slice stands for: in ticks its budget was rounded up by less than one,
/// and its period by at most half of one.
fn part(server: &Server) -> u64 {
    let budget = server.budget.ticks().saturating_sub(1);
    share(budget, 2 * u128::from(server.period.ticks()) + 1)
}

/// The greatest share that the server of a giver stands for.
fn whole(server: &Server) -> u64 {
    let period = u128::from(server.period.ticks().max(1));
    share(server.budget.ticks(), 2 * period - 1)
}

/// A budget in a period of so many half ticks.
fn share(budget: u64, half_ticks: u128) -> u64 {
    let share = 2 * u128::from(budget) * u128::from(WHOLE) / half_ticks;
    u64::try_from(share).unwrap_or(u64::MAX)
}
