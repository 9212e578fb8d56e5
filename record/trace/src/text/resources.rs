//! The resources of a shard's plan: `resource` and `use` lines.

use punctual_kern::{CpuPlan, NodeId, ResourcePlan, UsePlan, WaitOrder};
use punctual_model::{AtBudgetEnd, Priority, Protocol, ResourceId};

use crate::codes::mode_word;
use crate::decode::Fields;
use crate::form;

/// Hands the words of each line to `put`.
pub(super) fn write(plan: &CpuPlan, mut put: impl FnMut(&[u64])) {
    for resource in &plan.resources {
        let protocol = Protocol::ALL.iter().position(|p| *p == resource.protocol);
        put(&[
            u64::from(form::PLAN_RESOURCE),
            u64::from(resource.resource.0),
            protocol.unwrap_or(0) as u64,
            u64::from(resource.at_budget_end == AtBudgetEnd::CheckFirst),
            match resource.wait_order {
                WaitOrder::Priority => 0,
                WaitOrder::Deadline => 1,
                WaitOrder::Fifo => 2,
            },
            u64::from(resource.ceiling.number()),
            resource.floor.ticks(),
            u64::from(resource.real_time),
            resource.common.index() as u64,
            u64::from(resource.spans_schedulers),
        ]);
    }
    for (thread, declared) in &plan.uses {
        put(&[
            u64::from(form::PLAN_USE),
            u64::from(*thread),
            u64::from(declared.resource),
            mode_word(declared.mode),
            declared.length.ticks(),
            u64::from(declared.priority.number()),
        ]);
    }
}

/// What has been read of them.
#[derive(Default)]
pub(super) struct ResourceReader {
    pub(super) resources: Vec<ResourcePlan>,
    pub(super) uses: Vec<(u32, UsePlan)>,
}

impl ResourceReader {
    /// Takes in a line; `None`: its fields do not belong together.
    pub(super) fn entry(&mut self, words: &[u64]) -> Option<()> {
        let (kind, mut f, _) = Fields::split(words)?;
        if kind == form::PLAN_USE {
            let thread = f.small()?;
            let declared = UsePlan {
                resource: f.small()?,
                mode: f.mode()?,
                length: f.work()?,
                priority: Priority::new(f.small()?),
            };
            self.uses.push((thread, declared));
            return Some(());
        }
        self.resources.push(ResourcePlan {
            resource: ResourceId(u16::try_from(f.maybe()?).ok()?),
            protocol: *Protocol::ALL.get(usize::try_from(f.maybe()?).ok()?)?,
            at_budget_end: if f.flag()? {
                AtBudgetEnd::CheckFirst
            } else {
                AtBudgetEnd::Overrun
            },
            wait_order: match f.maybe()? {
                0 => WaitOrder::Priority,
                1 => WaitOrder::Deadline,
                2 => WaitOrder::Fifo,
                _ => return None,
            },
            ceiling: Priority::new(f.small()?),
            floor: f.span()?,
            real_time: f.flag()?,
            common: NodeId::new(u16::try_from(f.maybe()?).ok()?, 0),
            spans_schedulers: f.flag()?,
        });
        Some(())
    }
}
