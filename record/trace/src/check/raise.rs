//! Schedulers are more urgent while somebody in them holds what others share.

use punctual_kern::ResourcePlan;
use punctual_model::Priority;

use super::cpu::CpuCheck;

impl CpuCheck<'_> {
    /// Whether who holds this delays threads of schedulers other than its own.
    pub(super) fn reaches_out(&self, thread: usize, plan: &ResourcePlan) -> bool {
        let common = plan.common.index();
        let home = self.threads[thread].home;
        plan.spans_schedulers && home != common && self.is_below(home, common)
    }

    /// At least how urgent a scheduler is while somebody in it holds what others share.
    pub(super) fn raised(&self, at: usize) -> Option<Priority> {
        let parent = self.nodes[at].parent?;
        let mut raised: Option<Priority> = None;
        for (thread, t) in self.threads.iter().enumerate() {
            if !t.ready || !self.is_below(t.home, at) {
                continue;
            }
            for (plan, ..) in self.locks.sections(thread) {
                let common = plan.common.index();
                if !self.reaches_out(thread, plan) || !self.is_below(parent, common) {
                    continue;
                }
                let to = match parent == common {
                    true => plan.ceiling,
                    false => Priority::new(u32::MAX),
                };
                let higher = |old: Priority| if to.is_higher_than(old) { to } else { old };
                raised = Some(raised.map_or(to, higher));
            }
        }
        raised
    }
}
