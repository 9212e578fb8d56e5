//! The schedulers of a shard's plan: `node`, `home` and `slot` lines.

use punctual_kern::{CpuPlan, Grant, NodePlan, NodeTerms, SlotPlan};
use punctual_model::{PolicyKind, Priority, SchedulerId, Server, ServerKind, Span, Trust, Work};

use crate::decode::Fields;
use crate::form;

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

fn node_words(node: &NodePlan) -> [u64; 13] {
    let terms = &node.terms;
    let (supply, budget, period) = match terms.supply {
        Grant::Shared => (0, None, None),
        Grant::Slots => (1, None, None),
        Grant::Server(server) => {
            let kind = ServerKind::ALL.iter().position(|kind| *kind == server.kind);
            let kind = kind.unwrap_or(0) as u64;
            let (budget, period) = (server.budget.ticks(), server.period.ticks());
            (2 + kind, Some(budget), Some(period))
        }
    };
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
    pub(super) slots: Vec<SlotPlan>,
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
            _ => self.slots.push(SlotPlan {
                node: small(&mut fields)?,
                entity: u32::try_from(fields.maybe()?).ok()?,
                at: Span::from_ticks(fields.maybe()?),
                length: Span::from_ticks(fields.maybe()?),
            }),
        }
        Some(())
    }

    /// The home of each thread.
    pub(super) fn homes(&self, threads: usize) -> Result<Vec<u16>, String> {
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
    let (supply, budget, period) = (fields.maybe()?, fields.maybe(), fields.maybe());
    let supply = match supply {
        0 => Grant::Shared,
        1 => Grant::Slots,
        server => Grant::Server(Server {
            kind: *ServerKind::ALL.get(usize::try_from(server - 2).ok()?)?,
            budget: Work::from_ticks(budget?),
            period: Span::from_ticks(period?),
        }),
    };
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
