//! Schedulers below CPUs and resources: what was granted, used, waited for.

use punctual_kern::{FallbackCause, Grant};
use punctual_model::{Instant, Span};
use punctual_tables::{CpuTables, NodeRow};

use super::starved::starved;
use crate::behavior::{Behavior, NodeRecord, WaitReason};
use crate::log::Log;
use crate::slots;

/// One scheduler below a CPU.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct SchedulerReport {
    /// From the file.
    pub name: String,
    /// Name of its CPU.
    pub cpu: String,
    /// The scheduler above it: the name of a CPU or of a scheduler.
    pub on: String,
    /// The scheduler that holds it, if it is a slice of the supply of the one above it.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub receiver: Option<String>,
    /// How it orders.
    pub policy: &'static str,
    /// `shared`, `slots`, or the kind of its server.
    pub supply: &'static str,
    /// `inline` or `own-time`.
    pub trust: &'static str,
    /// Budget of its server in each period.
    pub budget_ns: Option<u64>,
    /// Period of its server, or of the frame that its slots lie in.
    pub period_ns: Option<u64>,
    /// The most that its server or its slots gave in the run; `None`: nothing bounds it.
    pub granted_ns: Option<u64>,
    /// What its subtree executed, its own deciding included.
    pub executed_ns: u64,
    /// Of a slice: the background work in that.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub background_ns: Option<u64>,
    /// What it spent on deciding.
    pub deciding_ns: u64,
    /// Answers of it that were believed.
    pub decisions: u64,
    /// Answers of it that were refused.
    pub refused: u64,
    /// Times its server had more budget.
    pub replenished: u64,
    /// Times its server had used its budget.
    pub exhausted: u64,
    /// How long work below it waited because it had none, in total.
    pub starved_ns: u64,
    /// Budget that it lent to siblings.
    pub lent_ns: u64,
    /// How often another policy came to order it.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "is_zero"))]
    pub policies_replaced: u64,
    /// The end of its deciding on its own supply.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub fell_back: Option<FellBack>,
}

/// A scheduler decided on its own supply until it failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FellBack {
    /// When.
    pub at_ns: u64,
    /// `failed` or `unanswered`.
    pub cause: &'static str,
    /// The policy of its threads since.
    pub policy: &'static str,
}

impl FellBack {
    /// Why, in words.
    pub fn reason(&self) -> &'static str {
        match self.cause {
            "failed" => "its code failed",
            _ => "it gave no lawful answer in time",
        }
    }
}

#[cfg(feature = "serde")]
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out references"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// One resource, on one CPU.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ResourceReport {
    /// From the file.
    pub name: String,
    /// Name of the CPU.
    pub cpu: String,
    /// What keeps waits short.
    pub protocol: &'static str,
    /// Times it was locked.
    pub locks: u64,
    /// Times somebody had to wait for it.
    pub waits: u64,
    /// The longest wait.
    pub wait_max_ns: u64,
    /// The longest time from locking to giving back.
    pub held_max_ns: u64,
    /// Sections longer than declared.
    pub overran: u64,
}

/// All schedulers below CPUs, in the order of CPUs and places.
pub(super) fn schedulers(log: &Log, behaviors: &[Behavior]) -> Vec<SchedulerReport> {
    let mut all = Vec::new();
    for (cpu, (tables, behavior)) in log.tables.cpus.iter().zip(behaviors).enumerate() {
        for (node, at) in tables.nodes.iter().zip(1..) {
            all.push(scheduler(log, (cpu, tables), (at, node), behavior));
        }
    }
    all
}

fn scheduler(
    log: &Log,
    (cpu, tables): (usize, &CpuTables),
    (at, node): (usize, &NodeRow),
    behavior: &Behavior,
) -> SchedulerReport {
    let record = behavior.nodes.get(at).copied().unwrap_or_default();
    let receiver = node.terms.receiver;
    let (supply, budget, period) = match node.terms.supply {
        Grant::Shared => ("shared", None, None),
        Grant::Slots => ("slots", None, slots::frame(tables, node.parent)),
        Grant::Server(server) => {
            let budget = Some(server.budget.ticks());
            (server.kind.name(), budget, Some(server.period))
        }
    };
    let granted = match (node.terms.supply, period) {
        (Grant::Server(_), _) => Some(record.granted.ticks()),
        (Grant::Slots, Some(frame)) => Some(slots_until(tables, at, frame, behavior.end.ticks())),
        _ => None,
    };
    SchedulerReport {
        name: log.node_name(cpu, at).into(),
        cpu: log.cpus[cpu].name.clone(),
        on: log.node_name(cpu, usize::from(node.parent)).into(),
        receiver: receiver.map(|at| log.node_name(cpu, at.index()).into()),
        policy: node.policy.name(),
        supply,
        trust: node.terms.trust.name(),
        budget_ns: budget.map(|budget| log.ns(budget)),
        period_ns: period.map(|period| log.ns(period.ticks())),
        granted_ns: granted.map(|granted| log.ns(granted)),
        executed_ns: log.ns(record.executed.ticks()),
        background_ns: receiver.map(|_| log.ns(record.background.ticks())),
        deciding_ns: log.ns(record.deciding.ticks()),
        decisions: record.decisions,
        refused: record.refused,
        replenished: record.replenished,
        exhausted: record.exhausted,
        starved_ns: log.ns(starved(behavior, at)),
        lent_ns: log.ns(record.lent.ticks()),
        policies_replaced: record.replaced,
        fell_back: record.fell_back.map(|fell| fell_back(log, fell, &record)),
    }
}

fn fell_back(log: &Log, fell: (Instant, FallbackCause), record: &NodeRecord) -> FellBack {
    FellBack {
        at_ns: log.ns(fell.0.ticks()),
        cause: match fell.1 {
            FallbackCause::Failed => "failed",
            FallbackCause::Unanswered => "unanswered",
        },
        policy: record.policy.map_or("none yet", |policy| policy.name()),
    }
}

/// What the slots of node `at` come to in [0, `end`). O(slots).
fn slots_until(tables: &CpuTables, at: usize, frame: Span, end: u64) -> u64 {
    let frame = frame.ticks().max(1);
    let entity = u16::try_from(at).map(|at| tables.capacity.entity_of(at));
    let own = tables.slots.iter().filter(|slot| Ok(slot.entity) == entity);
    let total = own.map(|slot| {
        let whole = (end / frame).saturating_mul(slot.length.ticks());
        let rest = (end % frame).saturating_sub(slot.at.ticks());
        whole.saturating_add(rest.min(slot.length.ticks()))
    });
    total.fold(0, u64::saturating_add)
}

/// All resources on the CPUs where they are used.
pub(super) fn resources(log: &Log, behaviors: &[Behavior]) -> Vec<ResourceReport> {
    let mut all = Vec::new();
    for (cpu, (tables, behavior)) in log.tables.cpus.iter().zip(behaviors).enumerate() {
        for (number, resource) in (0_u32..).zip(&tables.resources) {
            let holds = behavior.holds.iter().filter(|h| h.resource == number);
            let waits = behavior.waits.iter();
            let waits = waits.filter(|w| w.reason == WaitReason::Resource(number));
            let held = holds.clone().map(|h| h.end.since(h.start).ticks());
            let waited = waits.clone().map(|w| w.end.since(w.start).ticks());
            all.push(ResourceReport {
                name: log.resource_name(cpu, number).into(),
                cpu: log.cpus[cpu].name.clone(),
                protocol: resource.protocol.name(),
                locks: holds.clone().count() as u64,
                waits: waits.count() as u64,
                wait_max_ns: log.ns(waited.max().unwrap_or(0)),
                held_max_ns: log.ns(held.max().unwrap_or(0)),
                overran: holds.filter(|h| h.overran).count() as u64,
            });
        }
    }
    all
}
