//! CPUs that divide their time into slots: the home of a first thread, and the tree of the start.

use std::sync::Arc;

use punctual_kern::NodeId;
use punctual_model::{Cpu, CpuId, Ns, PolicyKind, Scheduler, SchedulerId, System, Tile, Trust};
use punctual_tables::{CpuTables, NodeRow, Tables};

use crate::admission::NotAdmitted;

/// The CPUs and schedulers that a run started with.
#[derive(Debug)]
pub(crate) struct Start {
    system: Arc<System>,
    /// By CPU, the scheduler at each place of its tree behind the root.
    nodes: Vec<Vec<SchedulerId>>,
}

impl Start {
    pub(crate) fn of(
        (tables, schedulers): (&Tables, &[Scheduler]),
        policies: &[PolicyKind<Ns>],
    ) -> Start {
        let cpu = |(place, policy): (usize, &PolicyKind<Ns>)| Cpu {
            name: place.to_string(),
            host: None,
            policy: *policy,
        };
        let nodes = |cpu: &CpuTables| cpu.nodes.iter().map(|node| node.scheduler).collect();
        Start {
            system: Arc::new(System {
                cpus: policies.iter().enumerate().map(cpu).collect(),
                schedulers: schedulers.to_vec(),
                ..System::default()
            }),
            nodes: tables.cpus.iter().map(nodes).collect(),
        }
    }

    /// The system, and the processor time of a scheduler there; `None`: it came later.
    pub(crate) fn home(&self, cpu: usize, node: NodeId) -> Option<(Arc<System>, Tile)> {
        let scheduler = match node.index().checked_sub(1) {
            None => None,
            Some(place) => Some(*self.nodes.get(cpu)?.get(place)?),
        };
        let cpu = CpuId(u16::try_from(cpu).ok()?);
        let tile = (node.generation() == 0).then_some(Tile { cpu, scheduler })?;
        Some((Arc::clone(&self.system), tile))
    }
}

/// The place of the scheduler that has the first thread of a CPU in its care: the root, but where
/// that divides its time. There it is the first one that the core decides for and that divides no
/// time itself.
pub(crate) fn home_of_first(cpu: &CpuTables) -> Result<u16, NotAdmitted> {
    if !matches!(cpu.policy, PolicyKind::Tdm { .. }) {
        return Ok(0);
    }
    let serves = |node: &NodeRow| {
        let divides = matches!(node.policy, PolicyKind::Tdm { .. });
        !divides && node.terms.trust == Trust::Inline && node.terms.receiver.is_none()
    };
    let nodes = (1..).zip(&cpu.nodes).filter(|(_, node)| serves(node));
    // In the order of the program, and not of the tree.
    let first = nodes.min_by_key(|(_, node)| node.scheduler);
    first.map(|(place, _)| place).ok_or_else(|| {
        NotAdmitted::Meaningless(
            "a CPU divides its time into slots, and none is for its first thread".to_owned(),
        )
    })
}
