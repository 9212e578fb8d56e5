//! Time passes: charges go up to every server on the way, and budgets come back.

use punctual_model::{Instant, Span, ThreadId, Work};

use super::lend::Paid;
use super::node::{ROOT, Supply};
use super::replace::Change;
use super::{Tell, Tree};
use crate::choice::{Band, Choice};
use crate::node::NodeId;
use crate::policy::{Attributes, Policy};
use crate::server::Server;

impl<P: Policy> Tree<P> {
    /// Tells the servers of nodes that had nothing ready at the end of an earlier instant.
    pub(super) fn tell_idle(&mut self, now: Instant) {
        let mut index = 0;
        while let Some(&at) = self.fallen.get(index) {
            let node = &mut self.nodes[usize::from(at)];
            match (node.fell, &mut node.supply) {
                (Some(since), _) if since >= now => {
                    index += 1;
                    continue;
                }
                (Some(since), Supply::Server(server)) => {
                    server.idle(since);
                    // Nor has it had a timer since it fell.
                    debug_assert_eq!(server.next(), None, "what sleeps waits for nothing");
                    node.awake = false;
                    node.fell = None;
                    let budget = node.budget().unwrap_or_default();
                    self.budget_fell(at, budget);
                }
                _ => {}
            }
            self.nodes[usize::from(at)].is_fallen = false;
            let _ = self.fallen.swap_remove(index);
        }
    }

    /// The subtree of node `at` has executed: every server from there up pays.
    pub(super) fn charge_path(
        &mut self,
        now: Instant,
        (at, thread): (u16, Option<ThreadId>),
        work: Work,
        tell: Tell<'_>,
    ) {
        let mut beyond = Work::ZERO;
        // The levels whose servers have done more than become less.
        let mut moved = 0_u32;
        let overruns = !self.overruns.is_empty();
        let mut on = at;
        self.nodes[usize::from(at)].book.executes(work);
        while on != ROOT {
            let entity = self.entity(on);
            let node = &mut self.nodes[usize::from(on)];
            node.book.pays(work);
            if overruns && let Some(budget) = node.budget_until(now, work) {
                beyond = beyond.max(work.saturating_sub(budget));
            }
            if node.pay(now, work) == Paid::More {
                moved |= 1 << node.depth;
            }
            on = node.parent;
            self.nodes[usize::from(on)].policy.charge(entity, work);
        }
        if moved != 0 {
            self.paid(now, (at, thread), (work, beyond, moved), tell);
        }
    }

    /// Servers on the way up have paid, and at these levels more has changed than that.
    #[inline(never)]
    pub(super) fn paid(
        &mut self,
        now: Instant,
        (at, thread): (u16, Option<ThreadId>),
        (work, beyond, moved): (Work, Work, u32),
        tell: Tell<'_>,
    ) {
        if let Some(thread) = thread.filter(|_| !beyond.is_zero()) {
            self.overdraw(thread, beyond);
        }
        let mut on = at;
        while on != ROOT {
            let node = &mut self.nodes[usize::from(on)];
            if moved & 1 << node.depth != 0 {
                let budget = node.budget().unwrap_or_default();
                let is_used_up = budget.is_zero() && !node.reported.is_zero();
                node.reported = node.reported.saturating_sub(work);
                // A bandwidth server that is starved past its deadline is renewed as it pays.
                self.has_come |= budget > node.reported && !self.parked.is_empty();
                if is_used_up {
                    tell(node.id(on), budget);
                }
                self.supply_changed(on);
                self.offer(now, now, on);
            }
            on = self.nodes[usize::from(on)].parent;
        }
    }

    /// Serves what was due by itself before `before`, which has passed: a late entry takes releases
    /// and budgets in the order in which they were due.
    #[inline]
    pub fn catch_up(&mut self, now: Instant, before: Instant) {
        if !self.is_flat && before > Instant::ZERO {
            self.serve(now, before.saturating_sub(Span::from_ticks(1)));
        }
    }

    /// Serves what is due by `limit`, at most `now`.
    pub(super) fn serve(&mut self, now: Instant, limit: Instant) {
        while let Some(((due, _), index)) = self.timers.first() {
            if due > limit {
                break;
            }
            let at = u16::try_from(index).unwrap_or(ROOT);
            let node = &mut self.nodes[usize::from(at)];
            let rested = node.resting.is_some_and(|until| until <= limit);
            if let Supply::Server(server) = &mut node.supply {
                let mut since = due;
                // What sleeps catches up when it wakes.
                if node.awake && node.fell.is_none() {
                    if server.budget().is_zero() {
                        since = server.returns().unwrap_or(due).clamp(due, limit);
                    }
                    let before = server.budget();
                    server.timer(limit);
                    self.has_come |= server.budget() > before && !self.parked.is_empty();
                }
                self.end_loan(limit, at);
                self.supply_changed(at);
                self.offer(now, since, at);
            }
            if rested {
                self.end_rest(now, at);
            }
            self.lose_patience(now, at, limit);
            self.arm(at);
        }
    }

    /// The server of a node has moved: its timer, its urgency, its budget.
    pub(super) fn supply_changed(&mut self, at: u16) {
        self.arm(at);
        let node = &mut self.nodes[usize::from(at)];
        let Supply::Server(server) = &node.supply else {
            return;
        };
        let deadline = server.deadline();
        let budget = node.budget().unwrap_or_default();
        if budget > node.reported && !node.has_news {
            node.has_news = true;
            self.news.push(at);
        }
        self.budget_fell(at, budget);
        let node = &mut self.nodes[usize::from(at)];
        if deadline != node.deadline {
            node.deadline = deadline;
            if node.queued {
                let (parent, attributes) = (node.parent, node.attributes());
                let entity = self.entity(at);
                self.moves(at);
                let policy = &mut self.nodes[usize::from(parent)].policy;
                policy.renew(entity, &attributes);
                self.follow(parent, entity, Change::Renew(&attributes, Band::RealTime));
            }
        }
    }

    /// Reports budgets that have come since the last report.
    pub fn report_budgets(&mut self, tell: Tell<'_>) {
        while let Some(at) = self.news.pop() {
            let node = &mut self.nodes[usize::from(at)];
            let budget = node.budget().unwrap_or_default();
            node.has_news = false;
            if budget > node.reported {
                tell(node.id(at), budget);
            }
            self.nodes[usize::from(at)].reported = budget;
        }
    }

    /// A budget that has become less otherwise than by being used is to be reported.
    #[inline]
    fn budget_fell(&mut self, at: u16, budget: Work) {
        let node = &mut self.nodes[usize::from(at)];
        if budget < node.reported {
            node.reported = budget;
            self.moves(at);
        }
    }

    /// The key or the budget of a node is to be reported.
    #[inline]
    pub(super) fn moves(&mut self, at: u16) {
        let node = &mut self.nodes[usize::from(at)];
        if !node.has_moved {
            node.has_moved = true;
            self.moved.push(at);
        }
    }

    /// Whether a key or a budget is to be reported.
    #[inline]
    pub fn has_moved(&self) -> bool {
        !self.moved.is_empty()
    }

    /// Reports by which key a node is queued among its siblings (`None`: it is not), as far as that
    /// has changed, and the budget that its server has left.
    #[inline]
    pub fn report_keys(&mut self, mut tell: impl FnMut(NodeId, Option<Attributes>, Option<Work>)) {
        for index in 0..self.moved.len() {
            let at = self.moved[index];
            let node = &mut self.nodes[usize::from(at)];
            node.has_moved = false;
            let (left, told) = (core::mem::take(&mut node.left), node.told);
            node.told = node.queued;
            if !node.alive {
                continue;
            }
            let (id, budget) = (node.id(at), node.budget());
            if (left && told) || !node.queued {
                tell(id, None, budget);
            }
            if node.queued {
                tell(id, Some(node.attributes()), budget);
            }
        }
        self.moved.clear();
    }

    /// Sets the timer of a node to what it waits for next.
    pub(super) fn arm(&mut self, at: u16) {
        let node = &self.nodes[usize::from(at)];
        let mut due = match &node.supply {
            // What fell idle waits for nothing, unless it is woken at this very instant.
            Supply::Server(server) if node.fell.is_none() => server.next(),
            _ => None,
        };
        let patience = self.patience_ends(at);
        if node.resting.is_some() || !node.borrowed.left.is_zero() || patience.is_some() {
            let rest = node.resting.filter(|until| *until != Instant::MAX);
            let loan = (!node.borrowed.left.is_zero()).then_some(node.borrowed.until);
            let own = Choice::earlier(Choice::earlier(rest, patience), loan);
            due = Choice::earlier(due, own);
        }
        match due {
            Some(due) => self.timers.set(u32::from(at), (due, u32::from(at))),
            None => self.timers.remove(u32::from(at)),
        }
    }
}
