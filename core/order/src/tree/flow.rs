//! Readiness flows upwards: a node stands in its parent's queue while it is eligible.

use punctual_model::{Instant, Span};

use super::Tree;
use super::node::{ROOT, Supply};
use super::replace::Change;
use crate::choice::Band;
use crate::policy::Policy;
use crate::server::Server;

impl<P: Policy> Tree<P> {
    /// One more stands in the queues of node `at`.
    #[inline]
    pub(super) fn joined(&mut self, now: Instant, since: Instant, at: u16) {
        if self.count_in(now, since, at) {
            self.offer(now, since, at);
        }
    }

    /// One less stands in the queues of node `at`.
    #[inline]
    pub(super) fn left(&mut self, now: Instant, at: u16) {
        if self.count_out(now, at) {
            self.offer(now, now, at);
        }
    }

    /// Whether node `at` has something to run with one more, and had nothing before.
    #[inline]
    fn count_in(&mut self, now: Instant, since: Instant, at: u16) -> bool {
        self.nodes[usize::from(at)].ready += 1;
        self.stir(now, at);
        let node = &mut self.nodes[usize::from(at)];
        let rises = node.ready == 1;
        if rises && let Supply::Server(server) = &mut node.supply {
            if node.awake {
                // It fell idle at this very instant, so it never was.
                node.fell = None;
            } else {
                node.awake = true;
                server.wake(now, since);
            }
            self.supply_changed(at);
        }
        rises
    }

    /// Whether node `at` has nothing left to run with one less.
    #[inline]
    fn count_out(&mut self, now: Instant, at: u16) -> bool {
        self.nodes[usize::from(at)].ready -= 1;
        self.stir(now, at);
        let falls = self.nodes[usize::from(at)].ready == 0;
        if falls {
            self.fall_asleep(now, at);
        }
        falls
    }

    /// The node has nothing left to run.
    pub(super) fn fall(&mut self, now: Instant, at: u16) {
        self.fall_asleep(now, at);
        self.offer(now, now, at);
    }

    /// The server of a node that has nothing left to run hears of it when this instant is over.
    #[inline]
    fn fall_asleep(&mut self, now: Instant, at: u16) {
        self.asks_no_more(at);
        let node = &mut self.nodes[usize::from(at)];
        if let Supply::Server(_) = node.supply
            && node.awake
            && node.fell.is_none()
            && node.parked == 0
        {
            node.fell = Some(now);
            if !node.is_fallen {
                node.is_fallen = true;
                self.fallen.push(at);
            }
            self.arm(at);
        }
    }

    /// Whether its parent may choose a node.
    #[inline]
    pub(super) fn is_eligible(&self, at: u16) -> bool {
        let node = &self.nodes[usize::from(at)];
        let may_run = || node.is_funded() || self.overdrawer(at).is_some();
        node.ready > 0 && node.resting.is_none() && may_run()
    }

    /// Brings the parent's queue in line with whether the node is eligible, and those above, as far
    /// as that matters to them. O(depth · log n).
    pub(super) fn offer(&mut self, now: Instant, mut since: Instant, mut at: u16) {
        while at != ROOT {
            let eligible = self.is_eligible(at);
            let node = &mut self.nodes[usize::from(at)];
            if eligible == node.queued {
                return;
            }
            node.queued = eligible;
            if eligible {
                node.release = since;
            }
            node.left |= !eligible;
            self.moves(at);
            let node = &self.nodes[usize::from(at)];
            let (parent, attributes, entity) = (node.parent, node.attributes(), self.entity(at));
            let policy = &mut self.nodes[usize::from(parent)].policy;
            let goes_on = if eligible {
                policy.wake(entity, &attributes);
                self.follow(parent, entity, Change::Wake(&attributes, Band::RealTime));
                self.count_in(now, since, parent)
            } else {
                policy.block(entity);
                self.follow(parent, entity, Change::Block(Band::RealTime));
                since = now;
                self.count_out(now, parent)
            };
            if !goes_on {
                return;
            }
            at = parent;
        }
    }

    /// Something changed in the subtree of `at`: nobody on the way up has a reason to rest any
    /// more.
    #[inline]
    pub(super) fn stir(&mut self, now: Instant, at: u16) {
        if self.resting != 0 {
            self.stir_way(now, at);
        }
    }

    #[cold]
    fn stir_way(&mut self, now: Instant, at: u16) {
        let mut at = at;
        while at != ROOT {
            if self.nodes[usize::from(at)].resting.take().is_some() {
                self.resting -= 1;
                self.arm(at);
                self.offer(now, now, at);
            }
            at = self.nodes[usize::from(at)].parent;
        }
    }

    /// The policy of the node idles on purpose: let others run until then.
    pub(super) fn rest(&mut self, now: Instant, at: u16, until: Option<Instant>) {
        let node = &mut self.nodes[usize::from(at)];
        if node.resting.is_none() {
            self.resting += 1;
        }
        let next = now.saturating_add(Span::from_ticks(1));
        node.resting = Some(until.map_or(Instant::MAX, |until| until.max(next)));
        self.arm(at);
        self.offer(now, now, at);
    }

    /// The rest of a node has come to its end.
    pub(super) fn end_rest(&mut self, now: Instant, at: u16) {
        if self.nodes[usize::from(at)].resting.take().is_some() {
            self.resting -= 1;
            self.offer(now, now, at);
        }
    }
}
