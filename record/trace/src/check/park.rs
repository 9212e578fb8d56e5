//! Sections that wait for a budget: to the servers above, their threads are work that is pending.

use punctual_model::ServerKind;

use super::cpu::CpuCheck;

impl CpuCheck<'_> {
    /// Whether each server above a thread has this much left, or as much as it ever has. What is
    /// borrowed ends by itself: no section counts on it.
    pub(super) fn has_supply_for(&self, thread: usize, length: u64) -> bool {
        let mut above = self.lineage(self.threads[thread].home);
        above.all(|at| {
            let budget = self.nodes[at].budget.as_ref();
            budget.is_none_or(|budget| budget.own_left() >= length.min(budget.full()))
        })
    }

    /// A thread waits until every server above it has `length`.
    pub(super) fn park(&mut self, thread: usize, length: u64) {
        let now = self.now;
        let above: Vec<usize> = self.lineage(self.threads[thread].home).collect();
        for at in above {
            let node = &mut self.nodes[at];
            node.parked += 1;
            if let Some(budget) = node.budget.as_mut() {
                node.fell = None;
                if !budget.is_awake() {
                    budget.wake(now, now);
                }
                // Its budget comes only when the last is used up.
                let short = budget.own_left() < length.min(budget.full());
                if short && budget.kind() == ServerKind::ConstantBandwidth {
                    budget.give_up();
                }
                self.offer(at, now);
            }
        }
    }

    /// A thread waits for budgets no more.
    pub(super) fn unpark(&mut self, thread: usize) {
        let now = self.now;
        let above: Vec<usize> = self.lineage(self.threads[thread].home).collect();
        for at in above {
            let node = &mut self.nodes[at];
            node.parked = node.parked.saturating_sub(1);
            if node.ready == 0 && node.parked == 0 && node.budget.is_some() {
                node.fell = node.fell.or(Some(now));
            }
        }
    }
}
