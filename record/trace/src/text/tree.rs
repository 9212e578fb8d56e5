//! The schedulers of a shard's plan: `node`, `home` and `slot` lines.

use punctual_kern::{Capacity, CpuPlan, Grant, NodePlan, NodeTerms, SlotTerms};
use punctual_model::{PolicyKind, Priority, SchedulerId, Server, ServerKind, Span, Trust, Work};

use crate::decode::Fields;
use crate::form;

/// Most places for threads in the queues of all nodes together: what a log says is allocated when
/// it is run again.
const MAX_PLACES: usize = 1 << 24;

/// Hands the words of each line to `put`.
pub(super) fn write(plan: &CpuPlan, mut put: impl FnMut(&[u64])) {
    for node in &plan.nodes {
        put(&node_words(node));
    }
    for (thread, home) in (0_u64..).zip(&plan.homes) {
        if *home != 0 {
            put(&[u64::from(form::PLAN_HOME), thread, u64::from(*home)]);
        }
    }
    for slot in &plan.slots {
        put(&[
            u64::from(form::PLAN_SLOT),
            u64::from(slot.node),
            u64::from(slot.entity),
            slot.at.ticks(),
            slot.length.ticks(),
        ]);
    }
}

/// The kind of a supply, and the budget and the period of a server.
pub(crate) fn supply_words(supply: &Grant) -> (u64, Option<u64>, Option<u64>) {
    match supply {
        Grant::Shared => (0, None, None),
        Grant::Slots => (1, None, None),
        Grant::Server(server) => {
            let kind = ServerKind::ALL.iter().position(|kind| *kind == server.kind);
            let kind = kind.unwrap_or(0) as u64;
            let (budget, period) = (server.budget.ticks(), server.period.ticks());
            (2 + kind, Some(budget), Some(period))
        }
    }
}

/// Undoes [`supply_words`], from three fields.
pub(crate) fn supply(fields: &mut Fields<'_>) -> Option<Grant> {
    let (supply, budget, period) = (fields.maybe()?, fields.maybe(), fields.maybe());
    Some(match supply {
        0 => Grant::Shared,
        1 => Grant::Slots,
        server => Grant::Server(Server {
            kind: *ServerKind::ALL.get(usize::try_from(server - 2).ok()?)?,
            budget: Work::from_ticks(budget.filter(|budget| *budget > 0)?),
            period: Span::from_ticks(period.filter(|period| *period > 0)?),
        }),
    })
}

fn node_words(node: &NodePlan) -> [u64; 13] {
    let terms = &node.terms;
    let (supply, budget, period) = supply_words(&terms.supply);
    let (policy, first, second) = match node.policy {
        PolicyKind::Fifo => (0, None, None),
        PolicyKind::EarliestDeadlineFirst => (1, None, None),
        PolicyKind::FixedPriority { preemptive: true } => (2, None, None),
        PolicyKind::FixedPriority { preemptive: false } => (3, None, None),
        PolicyKind::RoundRobin { timeslice } => (4, Some(timeslice.ticks()), None),
        PolicyKind::Tdm { frame, scheduling } => (5, Some(frame.ticks()), Some(scheduling.ticks())),
    };
    let fields = [
        Some(u64::from(node.scheduler.0)),
        Some(u64::from(node.parent)),
        Some(u64::from(terms.priority.number())),
        Some(u64::from(terms.order)),
        Some(u64::from(terms.trust == Trust::OwnTime)),
        terms.quota.map(u64::from),
        Some(supply),
        budget,
        period,
        Some(policy),
        first,
        second,
    ];
    let mut words = [u64::from(form::PLAN_NODE); 13];
    for (index, field) in fields.into_iter().enumerate() {
        words[0] |= u64::from(field.is_none()) << (8 + index);
        words[1 + index] = field.unwrap_or(0);
    }
    words
}

/// Collects the lines of one CPU.
#[derive(Default)]
pub(super) struct TreeReader {
    pub(super) nodes: Vec<NodePlan>,
    pub(super) slots: Vec<SlotTerms>,
    homes: Vec<(u64, u16)>,
}

impl TreeReader {
    /// `None`: the fields do not belong together.
    pub(super) fn entry(&mut self, words: &[u64]) -> Option<()> {
        let (kind, mut fields, _) = Fields::split(words)?;
        match kind {
            form::PLAN_NODE => self.nodes.push(node(&mut fields)?),
            form::PLAN_HOME => {
                let thread = fields.maybe()?;
                self.homes.push((thread, small(&mut fields)?));
            }
            _ => self.slots.push(SlotTerms {
                node: small(&mut fields)?,
                entity: u32::try_from(fields.maybe()?).ok()?,
                at: Span::from_ticks(fields.maybe()?),
                length: Span::from_ticks(fields.maybe()?),
            }),
        }
        Some(())
    }

    /// The home of each thread, when schedulers, slots and threads belong together.
    pub(super) fn homes(&self, threads: usize, room: &Capacity) -> Result<Vec<u16>, String> {
        let nodes = self.nodes.len();
        if nodes > usize::from(room.nodes) {
            return Err(format!("{nodes} nodes, and room for {}", room.nodes));
        }
        if (nodes + 1).saturating_mul(room.threads) > MAX_PLACES {
            return Err("more nodes and threads than a replay can hold".into());
        }
        for (place, node) in self.nodes.iter().enumerate() {
            if usize::from(node.parent) > place {
                let parent = node.parent;
                return Err(format!(
                    "node {} stands before its parent {parent}",
                    place + 1
                ));
            }
        }
        let known = |at: u16| usize::from(at) <= nodes;
        let most = room.entities();
        let slot = |slot: &SlotTerms| known(slot.node) && (slot.entity as usize) < most;
        if !self.slots.iter().all(slot) || !self.homes.iter().all(|(_, home)| known(*home)) {
            return Err("a slot or a home in a node that is not planned".into());
        }
        let mut homes = vec![0; threads];
        for (thread, home) in &self.homes {
            let place = usize::try_from(*thread).ok().and_then(|t| homes.get_mut(t));
            *place.ok_or_else(|| format!("thread {thread} has a home but is not planned"))? = *home;
        }
        Ok(homes)
    }
}

fn small(fields: &mut Fields<'_>) -> Option<u16> {
    u16::try_from(fields.maybe()?).ok()
}

fn node(fields: &mut Fields<'_>) -> Option<NodePlan> {
    let (scheduler, parent) = (SchedulerId(small(fields)?), small(fields)?);
    let priority = Priority::new(u32::try_from(fields.maybe()?).ok()?);
    let order = u32::try_from(fields.maybe()?).ok()?;
    let trust = match fields.maybe()? {
        0 => Trust::Inline,
        _ => Trust::OwnTime,
    };
    let quota = match fields.maybe() {
        None => None,
        Some(quota) => Some(u32::try_from(quota).ok()?),
    };
    let supply = supply(fields)?;
    let (policy, first, second) = (fields.maybe()?, fields.maybe(), fields.maybe());
    let (first, second) = (first.map(Span::from_ticks), second.map(Span::from_ticks));
    let policy = match policy {
        0 => PolicyKind::Fifo,
        1 => PolicyKind::EarliestDeadlineFirst,
        2 => PolicyKind::FixedPriority { preemptive: true },
        3 => PolicyKind::FixedPriority { preemptive: false },
        4 => PolicyKind::RoundRobin { timeslice: first? },
        _ => PolicyKind::Tdm {
            frame: first?,
            scheduling: second?,
        },
    };
    Some(NodePlan {
        scheduler,
        parent,
        policy,
        terms: NodeTerms {
            supply,
            priority,
            order,
            trust,
            quota,
        },
    })
}
