//! The schedulers of a system as nodes of their CPUs' trees, in ticks.

use alloc::vec::Vec;

use punctual_kern::{Grant, NodeId, NodeTerms, Plan, SlotTerms};
use punctual_model::{
    Frequency, Ns, PolicyKind, Receiver, SchedulerId, Slot, Span, Supply, System, Trust,
};

use super::{CpuTables, small};

/// A node of a tree, before it is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeRow {
    /// Which scheduler of the system it is.
    pub scheduler: SchedulerId,
    /// The place of its parent; 0 is the CPU's own policy.
    pub parent: u16,
    /// How it orders its threads and children; spans count ticks.
    pub policy: PolicyKind,
    /// Its terms with its parent.
    pub terms: NodeTerms,
}

impl CpuTables {
    /// The policies that a plan asks for inside the core. Code of a scheduler that decides on its
    /// own supply stands with that.
    pub(super) fn policies_in_core(&self, plan: &Plan) -> impl Iterator<Item = PolicyKind> {
        let decides = |node: NodeId| {
            let row = node
                .index()
                .checked_sub(1)
                .and_then(|at| self.nodes.get(at));
            row.is_some_and(|row| row.terms.trust == Trust::OwnTime)
        };
        let policies = plan.policies();
        policies.filter_map(move |(node, kind)| (!decides(node)).then_some(kind))
    }
}

/// The policy that takes the place of a scheduler's own code, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FallbackRow {
    /// The place of the scheduler, which decides on its own supply.
    pub node: u16,
    /// How it orders the threads.
    pub policy: PolicyKind,
    /// How long the code may be asked without a lawful answer.
    pub patience: Span,
}

/// Where each scheduler stands in the tree of its CPU.
pub(super) struct Trees {
    frequency: Frequency,
    /// By scheduler.
    places: Vec<u16>,
    /// Schedulers in an order in which parents come first.
    order: Vec<SchedulerId>,
}

impl Trees {
    /// O(schedulers · depth).
    pub(super) fn new(system: &System, frequency: Frequency) -> Trees {
        let count = u16::try_from(system.schedulers.len()).unwrap_or(u16::MAX);
        let depth = |id: SchedulerId| {
            let up = |id: &SchedulerId| system.schedulers[id.index()].parent;
            core::iter::successors(Some(id), up)
                .take(usize::from(count))
                .count()
        };
        let mut order: Vec<SchedulerId> = (0..count).map(SchedulerId).collect();
        order.sort_by_cached_key(|id| depth(*id));
        let mut places = alloc::vec![0; usize::from(count)];
        let mut next = alloc::vec![0_u16; system.cpus.len()];
        for id in &order {
            let next = &mut next[system.schedulers[id.index()].cpu.index()];
            *next += 1;
            places[id.index()] = *next;
        }
        Trees {
            frequency,
            places,
            order,
        }
    }

    /// The place of a scheduler in the tree of its CPU; `None` is the CPU's own.
    pub(super) fn place(&self, scheduler: Option<SchedulerId>) -> u16 {
        scheduler.map_or(0, |id| self.places[id.index()])
    }

    /// Puts the schedulers and the slots into the tables of their CPUs, whose threads are counted
    /// already. `threads` has the place of each task among those of its CPU.
    pub(super) fn plant(&self, system: &System, threads: &[u32], cpus: &mut [CpuTables]) {
        let first = small(system.tasks.len());
        for &id in &self.order {
            let scheduler = &system.schedulers[id.index()];
            let cpu = &mut cpus[scheduler.cpu.index()];
            cpu.capacity.nodes += 1;
            cpu.nodes.push(NodeRow {
                scheduler: id,
                parent: self.place(scheduler.parent),
                policy: scheduler.policy.in_ticks(self.frequency),
                terms: NodeTerms {
                    supply: grant(&scheduler.supply, self.frequency),
                    priority: scheduler.priority,
                    order: first.saturating_add(u32::from(id.0)),
                    trust: scheduler.trust,
                    quota: scheduler.quota,
                    receiver: scheduler
                        .receiver
                        .as_ref()
                        .map(|receiver| NodeId::new(self.place(holder(system, receiver)), 0)),
                },
            });
            cpu.fallbacks.extend(self.fallback(system, id));
        }
        for &id in &self.order {
            let scheduler = &system.schedulers[id.index()];
            if let Supply::Slots(slots) = &scheduler.supply {
                let cpu = &mut cpus[scheduler.cpu.index()];
                let entity = cpu.capacity.entity_of(self.place(Some(id)));
                self.divide(cpu, (self.place(scheduler.parent), entity), slots);
            }
        }
        for (task, &thread) in system.tasks.iter().zip(threads) {
            let cpu = &mut cpus[task.cpu.index()];
            self.divide(cpu, (self.place(task.scheduler), thread), &task.slots);
        }
    }

    /// A slot that begins where another ends still does so in ticks: both ends are rounded alike.
    fn divide(&self, cpu: &mut CpuTables, (node, entity): (u16, u32), slots: &[Slot<Ns>]) {
        for slot in slots {
            let end = slot.at.saturating_add(slot.length);
            let at = slot.at.ticks_nearest(self.frequency);
            let length = end.ticks_nearest(self.frequency).saturating_sub(at);
            cpu.slots.push(SlotTerms {
                node,
                entity,
                at,
                length,
            });
        }
    }

    /// Its patience is so many periods of its server, or frames of its parent.
    fn fallback(&self, system: &System, id: SchedulerId) -> Option<FallbackRow> {
        let scheduler = &system.schedulers[id.index()];
        let fallback = scheduler.fallback?;
        let above = match scheduler.parent {
            Some(parent) => system.schedulers[parent.index()].policy,
            None => system.cpus[scheduler.cpu.index()].policy,
        };
        let period = match (&scheduler.supply, above) {
            (Supply::Server(server), _) => server.period.ticks_nearest(self.frequency),
            (_, PolicyKind::Tdm { frame, .. }) => frame.ticks_nearest(self.frequency),
            _ => return None,
        };
        let patience = period.ticks().saturating_mul(u64::from(fallback.after));
        Some(FallbackRow {
            node: self.place(Some(id)),
            policy: fallback.policy.in_ticks(self.frequency),
            patience: Span::from_ticks(patience),
        })
    }
}

/// The scheduler that holds a slice; `None`: the CPU's own.
pub(super) fn holder(system: &System, receiver: &Receiver) -> Option<SchedulerId> {
    system.scheduler_named(receiver.scheduler.as_deref()?)
}

/// The supply of a scheduler in ticks.
pub(super) fn grant(supply: &Supply, frequency: Frequency) -> Grant {
    match supply {
        Supply::Shared => Grant::Shared,
        Supply::Slots(_) => Grant::Slots,
        Supply::Server(server) => Grant::Server(server.in_ticks(frequency)),
    }
}
