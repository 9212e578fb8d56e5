//! A scheduler, or a CPU's own, gets another policy in a change.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Stage, mistake};
use crate::change::{Change, Mistake, Step};
use crate::id::{CpuId, ResourceId, SchedulerId};
use crate::scheduler::{PolicyCode, PolicyKind, Trust};
use crate::time::Ns;

impl Stage<'_> {
    /// Most tasks and schedulers of a CPU, times its new policies, in one change: the core tells
    /// the new policies of all of them in one entry, at which what they order is idle.
    pub const MAX_REORDERED: usize = 64;

    pub(super) fn reorder(
        &mut self,
        id: SchedulerId,
        (policy, code): (PolicyKind<Ns>, Option<&PolicyCode>),
        name: &str,
    ) -> Result<(), (String, String)> {
        let Some(scheduler) = self.scheduler(id) else {
            return Ok(());
        };
        let (cpu, old) = (scheduler.cpu, scheduler.policy);
        self.is_no_slice(id, name)?;
        let decides = scheduler.trust == Trust::OwnTime;
        let same_code = scheduler.code.as_ref() == code;
        if code.is_some() && !decides {
            return mistake(
                format!("new code of {name} would decide inside the core"),
                "let it decide on its own supply with `trust = \"own-time\"`",
            );
        }
        if code.is_some_and(|code| code.library.is_empty() || code.symbol.is_empty()) {
            return mistake(
                format!("new code of {name} has no name"),
                "write `code = { library = \"libx.so\", symbol = \"mine\" }`",
            );
        }
        self.may_reorder(cpu, Some(id), (old, policy, same_code), name)?;
        if let Some(scheduler) = &mut self.schedulers[id.index()] {
            (scheduler.policy, scheduler.code) = (policy, code.cloned());
        }
        Ok(())
    }

    pub(super) fn reorder_cpu(
        &mut self,
        id: CpuId,
        policy: PolicyKind<Ns>,
        name: &str,
    ) -> Result<(), (String, String)> {
        let old = self.cpus[id.index()].policy;
        self.may_reorder(id, None, (old, policy, true), name)?;
        self.cpus[id.index()].policy = policy;
        Ok(())
    }

    fn may_reorder(
        &self,
        cpu: CpuId,
        at: Option<SchedulerId>,
        (old, new, same_code): (PolicyKind<Ns>, PolicyKind<Ns>, bool),
        name: &str,
    ) -> Result<(), (String, String)> {
        let divides = |policy| matches!(policy, PolicyKind::Tdm { .. });
        if divides(old) || divides(new) {
            return mistake(
                format!("the table of {name} divides time, and is constant"),
                "change the policy of a scheduler that has no table, to one without",
            );
        }
        if old == new && same_code {
            return mistake(
                format!("{name} orders by that policy already"),
                "leave it out, or name another policy",
            );
        }
        if old.waits_by() != new.waits_by()
            && let Some(shared) = self.shared_at(cpu, at)
        {
            let resource = self.declared.resources.get(shared.index());
            return mistake(
                format!(
                    "{name} hands on resource `{}` {}, and that order holds for the whole run",
                    resource.map_or("?", |resource| resource.name.as_str()),
                    old.waits_by()
                ),
                "choose a policy of the same order (deadlines, priorities or arrival)",
            );
        }
        Ok(())
    }

    /// The first resource whose users on a CPU this scheduler is the closest common one of.
    fn shared_at(&self, cpu: CpuId, at: Option<SchedulerId>) -> Option<ResourceId> {
        let tasks = &self.declared.tasks;
        let uses = |task: usize, id| tasks[task].uses.iter().any(|used| used.resource == id);
        let ids = (0..).map(ResourceId).take(self.declared.resources.len());
        let places = self.places();
        let mut shared = ids.filter(|&id| {
            let users = (0..tasks.len()).filter(|&task| tasks[task].cpu == cpu && uses(task, id));
            let homes: Vec<_> = users.map(|task| places[task]).collect();
            let below = |at: Option<SchedulerId>, home: Option<SchedulerId>| {
                at.is_none() || self.above(home).any(|up| Some(up) == at)
            };
            let all_below = |at| homes.iter().all(|&home| below(at, home));
            let closest = self.above(homes.first().copied().flatten()).map(Some);
            homes.len() > 1 && closest.chain([None]).find(|&up| all_below(up)) == Some(at)
        });
        shared.next()
    }

    fn decides(&self, id: SchedulerId) -> bool {
        let declared = self.declared.schedulers.get(id.index());
        declared.is_some_and(|scheduler| scheduler.trust == Trust::OwnTime)
    }

    fn is_ever_reordered(&self, id: SchedulerId) -> bool {
        let mut steps = self
            .declared
            .changes
            .iter()
            .flat_map(|change| &change.steps);
        steps.any(|step| matches!(step, Step::Reorder(other, ..) if *other == id))
    }

    /// A change with more to tell its new policies than one entry of the core takes.
    pub(super) fn too_many(&self, change: &Change) -> Option<Mistake> {
        let cpu_of = |step: &Step| match *step {
            // Code that decides on its own supply learns its threads there.
            Step::Reorder(id, ..) if self.decides(id) => None,
            Step::Reorder(id, ..) => self.declared.schedulers.get(id.index()).map(|s| s.cpu),
            Step::ReorderCpu(id, _) => Some(id),
            // It comes with its declared policy, which may not be the one that it left with.
            Step::Join(id) if self.is_ever_reordered(id) => {
                self.declared.schedulers.get(id.index()).map(|s| s.cpu)
            }
            _ => None,
        };
        let policies = |cpu| change.steps.iter().filter(move |s| cpu_of(s) == Some(cpu));
        let steps = change.steps.iter().enumerate();
        let mut cpus = steps.filter_map(|(at, step)| Some((at, cpu_of(step)?)));
        cpus.find_map(|(step, cpu)| {
            let tasks = self.declared.tasks.iter().filter(|t| t.cpu == cpu).count();
            let schedulers = self.declared.schedulers.iter();
            let places = 1 + tasks + schedulers.filter(|s| s.cpu == cpu).count();
            let policies = policies(cpu).count();
            (places * policies > Self::MAX_REORDERED).then(|| Mistake {
                step,
                message: format!(
                    "{policies} policies change at once on a CPU of {places} tasks and \
                     schedulers (its own included); the product is at most {}",
                    Self::MAX_REORDERED
                ),
                help: "change one policy at a time, on a CPU with fewer tasks".to_string(),
            })
        })
    }
}
