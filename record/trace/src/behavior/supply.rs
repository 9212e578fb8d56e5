//! What each scheduler of a CPU's tree received and decided.

use punctual_kern::{FallbackCause, Grant, NodeId};
use punctual_model::{Instant, PolicyKind, Server, Work};
use punctual_tables::CpuTables;

use super::Starved;

/// A scheduler of a CPU: place 0 is the CPU's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NodeRecord {
    /// The place of its parent; `None` for the CPU's own and for places that are free.
    pub parent: Option<usize>,
    /// The most that its server gave while it was there: a budget in each period.
    pub granted: Work,
    /// What its subtree executed, its own deciding included.
    pub executed: Work,
    /// Of that, without a guarantee: aperiodic work, and jobs that went on behind their budgets.
    pub background: Work,
    /// What it executed deciding, if it decides on its own supply.
    pub deciding: Work,
    /// Answers of it that were believed.
    pub decisions: u64,
    /// Answers of it that were refused.
    pub refused: u64,
    /// Times its server had more budget.
    pub replenished: u64,
    /// Times its server had used its budget.
    pub exhausted: u64,
    /// Budget that it lent to siblings.
    pub lent: Work,
    /// Since when it does not decide on its own supply any more, and why.
    pub fell_back: Option<(Instant, FallbackCause)>,
    /// How often another policy came to order it.
    pub replaced: u64,
    /// The last of these policies.
    pub policy: Option<PolicyKind>,
}

/// The tree of one CPU over the run.
#[derive(Default)]
pub(super) struct Tree {
    pub(super) nodes: Vec<NodeRecord>,
    homes: Vec<usize>,
    starved_since: Vec<Option<Instant>>,
    /// The server of each node that has one, and since when.
    servers: Vec<Option<(Server, Instant)>>,
}

impl Tree {
    pub(super) fn new(tables: &CpuTables) -> Tree {
        let mut nodes = vec![NodeRecord::default()];
        for node in &tables.nodes {
            let parent = usize::from(node.parent).min(nodes.len() - 1);
            nodes.push(NodeRecord {
                parent: Some(parent),
                ..NodeRecord::default()
            });
        }
        let homes = tables.homes.iter().map(|home| usize::from(*home));
        let servers = (1..).zip(&tables.nodes).map(|(place, node)| {
            let is_there = !tables.absent.contains(&place);
            let server = server_of(node.terms.supply).filter(|_| is_there);
            server.map(|server| (server, Instant::ZERO))
        });
        Tree {
            servers: std::iter::once(None).chain(servers).collect(),
            starved_since: vec![None; nodes.len()],
            homes: homes.map(|home| home.min(nodes.len() - 1)).collect(),
            nodes,
        }
    }

    /// The scheduler of a thread.
    pub(super) fn home(&self, thread: usize) -> usize {
        self.homes.get(thread).copied().unwrap_or(0)
    }

    pub(super) fn move_to(&mut self, thread: usize, home: NodeId) {
        if self.homes.len() <= thread {
            self.homes.resize(thread + 1, 0);
        }
        self.homes[thread] = home.index().min(self.nodes.len() - 1);
    }

    pub(super) fn promote(&mut self, node: NodeId, parent: NodeId) {
        let at = node.index();
        // As many places as a tree can have.
        if self.nodes.len() <= at {
            self.nodes.resize(at + 1, NodeRecord::default());
            self.starved_since.resize(at + 1, None);
            self.servers.resize(at + 1, None);
        }
        if parent.index() != at && parent.index() < self.nodes.len() {
            self.nodes[at].parent = Some(parent.index());
        }
    }

    /// From now on a node has this server, or none.
    pub(super) fn serve(&mut self, at: usize, now: Instant, server: Option<Server>) {
        let Some(record) = self.nodes.get_mut(at) else {
            return;
        };
        let next = server.map(|server| (server, now));
        if let Some((old, since)) = std::mem::replace(&mut self.servers[at], next) {
            let periods = now.since(since).ticks().div_ceil(old.period.ticks().max(1));
            let granted = Work::from_ticks(old.budget.ticks().saturating_mul(periods));
            record.granted = record.granted.saturating_add(granted);
        }
    }

    /// A node is there no more, nor what is below it.
    pub(super) fn end(&mut self, top: usize, now: Instant) {
        for at in 0..self.nodes.len() {
            if self.lineage(at).any(|above| above == top) {
                self.serve(at, now, None);
            }
        }
    }

    /// A node and everything above it. A damaged log may have a circle: it ends all the same.
    pub(super) fn lineage(&self, at: usize) -> impl Iterator<Item = usize> {
        let up = |at: &usize| self.nodes.get(*at)?.parent;
        let most = self.nodes.len();
        std::iter::successors(Some(at), up).take(most)
    }

    pub(super) fn execute(&mut self, at: usize, work: Work, deciding: bool) {
        let lineage: Vec<usize> = self.lineage(at).collect();
        for node in lineage {
            let node = &mut self.nodes[node];
            node.executed = node.executed.saturating_add(work);
        }
        if let Some(node) = self.nodes.get_mut(at).filter(|_| deciding) {
            node.deciding = node.deciding.saturating_add(work);
        }
    }

    /// Work without a guarantee has executed at home at `at`.
    pub(super) fn execute_in_background(&mut self, at: usize, work: Work) {
        let lineage: Vec<usize> = self.lineage(at).collect();
        for node in lineage {
            let node = &mut self.nodes[node];
            node.background = node.background.saturating_add(work);
        }
    }

    pub(super) fn record(&mut self, node: NodeId) -> Option<&mut NodeRecord> {
        self.nodes.get_mut(node.index())
    }

    pub(super) fn exhausted(&mut self, node: NodeId, now: Instant) {
        if let Some(record) = self.record(node) {
            record.exhausted += 1;
            self.starved_since[node.index()].get_or_insert(now);
        }
    }

    /// Budget has come, or the run is over; returns the stretch without.
    pub(super) fn replenished(&mut self, at: usize, now: Instant) -> Option<Starved> {
        let since = self.starved_since.get_mut(at)?.take()?;
        Some(Starved {
            node: at,
            start: since,
            end: now,
        })
    }
}

pub(super) fn server_of(supply: Grant) -> Option<Server> {
    match supply {
        Grant::Server(server) => Some(server),
        Grant::Shared | Grant::Slots => None,
    }
}
