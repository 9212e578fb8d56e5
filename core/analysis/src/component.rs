//! Which CPUs have to be judged together
//!
//! # Assumptions
//! 1. None of its own: precedence, chains and gangs tie CPUs together, nothing else does.

use alloc::vec::Vec;

use punctual_model::{CpuId, Requirement, System, TaskId};

use crate::precedence::Edge;

/// CPUs whose tasks wait for each other, or stand in one chain or gang: directly or through others.
/// No schedule outside of a component changes the schedule in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Component(Vec<bool>);

impl Component {
    /// The CPUs connected with `cpu`. O(cpus · edges).
    pub(crate) fn of(system: &System, edges: &[Edge], cpu: CpuId) -> Component {
        let mut member: Vec<bool> = (0..system.cpus.len()).map(|i| i == cpu.index()).collect();
        let place = |task: TaskId| system.tasks.get(task.index()).map(|t| t.cpu.index());
        loop {
            let mut grown = false;
            let waits = edges.iter().map(|e| (e.from, e.to));
            for (from, to) in waits.chain(links(system)) {
                let (Some(a), Some(b)) = (place(from), place(to)) else {
                    continue;
                };
                if a < member.len() && b < member.len() && member[a] != member[b] {
                    (member[a], member[b]) = (true, true);
                    grown = true;
                }
            }
            if !grown {
                return Component(member);
            }
        }
    }

    /// All components, in the order of their first CPU. O(components · cpus · edges).
    pub(crate) fn all(system: &System, edges: &[Edge]) -> Vec<Component> {
        let mut components: Vec<Component> = Vec::new();
        for (index, _) in (0_u16..).zip(&system.cpus) {
            let cpu = CpuId(index);
            if !components.iter().any(|c| c.contains(cpu)) {
                components.push(Component::of(system, edges, cpu));
            }
        }
        components
    }

    /// Whether the CPU belongs to it.
    pub(crate) fn contains(&self, cpu: CpuId) -> bool {
        self.0.get(cpu.index()).copied().unwrap_or(false)
    }

    /// Its CPUs.
    pub(crate) fn cpus(&self) -> impl Iterator<Item = CpuId> + '_ {
        (0_u16..)
            .zip(&self.0)
            .filter(|&(_, &member)| member)
            .map(|(index, _)| CpuId(index))
    }
}

/// Pairs of tasks that one requirement or gang ties together: neither is judged alone.
fn links(system: &System) -> impl Iterator<Item = (TaskId, TaskId)> + '_ {
    let chains = system.requirements.iter().filter_map(|r| match r {
        Requirement::Chain { tasks, .. } => Some(tasks),
        Requirement::Response { .. } | Requirement::Jitter { .. } => None,
    });
    let gangs = system.gangs.iter().flat_map(|gang| &gang.supersteps);
    let together = chains.map(Vec::as_slice);
    let together = together.chain(gangs.map(|superstep| superstep.members.as_slice()));
    together.flat_map(|tasks| tasks.windows(2).map(|pair| (pair[0], pair[1])))
}
