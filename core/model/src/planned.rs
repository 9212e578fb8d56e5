//! The nodes of a system that execute the segments of its groups.

use alloc::vec::Vec;

use crate::id::{CpuId, GroupId, SchedulerId};
use crate::scheduler::PolicyKind;
use crate::system::System;

/// A node that executes what is planned on its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedNode {
    /// Its CPU; there is one such node on a CPU.
    pub cpu: CpuId,
    /// The scheduler whose policy is planned; `None`: the CPU's own is.
    pub scheduler: Option<SchedulerId>,
}

impl System {
    /// The nodes on which segments execute, in the order of their CPUs. Their places are the CPUs
    /// of a plan. O(n log n).
    pub fn planned_nodes(&self) -> Vec<PlannedNode> {
        let cpus = (0..=u16::MAX).map(CpuId).zip(&self.cpus);
        let own = cpus.filter(|(_, cpu)| cpu.policy == PolicyKind::Planned);
        let mut nodes: Vec<PlannedNode> = own
            .map(|(cpu, _)| PlannedNode {
                cpu,
                scheduler: None,
            })
            .collect();
        for (id, scheduler) in (0..=u16::MAX).map(SchedulerId).zip(&self.schedulers) {
            if scheduler.policy == PolicyKind::Planned && scheduler.receiver.is_none() {
                nodes.push(PlannedNode {
                    cpu: scheduler.cpu,
                    scheduler: Some(id),
                });
            }
        }
        nodes.sort_by_key(|node| node.cpu);
        nodes
    }

    /// The group with this name.
    pub fn group_named(&self, name: &str) -> Option<GroupId> {
        let mut named = (0..=u16::MAX).map(GroupId).zip(&self.groups);
        named
            .find(|(_, group)| group.name == name)
            .map(|(id, _)| id)
    }
}
