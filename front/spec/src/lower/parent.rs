//! The target of the `on` of tasks and schedulers: a CPU, or a scheduler that leads to one.

use punctual_model::{CpuId, Ns, PolicyKind, SchedulerId};

use super::Names;
use super::policy::{has_policy, lower_policy};
use crate::file::Named;
use crate::nearest::nearest;
use crate::record::{Node, Record, Value};
use crate::report::{Report, quote};

/// The parent that orders a task or a scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Parent {
    Cpu(CpuId),
    Scheduler(SchedulerId),
}

/// A parent, as far as it is known.
#[derive(Clone, Copy, Debug)]
struct Orderer {
    cpu: CpuId,
    policy: PolicyKind<Ns>,
    /// Whether nothing is wrong with its policy and with what is above it.
    sound: bool,
}

/// The parent of every scheduler, and the CPU to which that leads.
pub(super) struct Parents {
    cpus: Vec<Orderer>,
    schedulers: Vec<Orderer>,
    /// Of each scheduler; `None` where that is a mistake.
    of_schedulers: Vec<Option<Parent>>,
    cpu_names: Vec<String>,
    scheduler_names: Vec<String>,
}

impl Parents {
    /// Reads the `on` of every scheduler and follows it up to a CPU. O(n log n).
    pub(super) fn new(
        sections: &[Named],
        cpus: &[Named],
        names: &Names,
        report: &mut Report<'_>,
    ) -> Parents {
        let of_schedulers: Vec<Option<Parent>> = sections
            .iter()
            .map(|section| find_parent(&section.record, names, report))
            .collect();
        let names_of = |sections: &[Named]| -> Vec<String> {
            let names = sections.iter().map(|section| section.name.clone());
            names.collect()
        };
        let cpu_names = names_of(cpus);
        let cpus = cpus.iter().zip((0..=u16::MAX).map(CpuId));
        let cpus: Vec<Orderer> = cpus
            .map(|(section, cpu)| Orderer {
                cpu,
                policy: lower_policy(&section.record),
                sound: has_policy(&section.record),
            })
            .collect();
        Parents {
            schedulers: follow(sections, &of_schedulers, &cpus),
            cpus,
            of_schedulers,
            cpu_names,
            scheduler_names: names_of(sections),
        }
    }

    /// The parent of the scheduler with this number; `None` where that is a mistake.
    pub(super) fn of_scheduler(&self, id: usize) -> Option<Parent> {
        self.of_schedulers.get(id).copied().flatten()
    }

    /// The CPU at the root of the scheduler with this number; the first one where that is a
    /// mistake.
    pub(super) fn cpu_of_scheduler(&self, id: usize) -> CpuId {
        self.schedulers.get(id).map_or(CpuId(0), |found| found.cpu)
    }

    /// The CPU that a parent leads to; the first one where that is a mistake.
    pub(super) fn cpu_of(&self, parent: Parent) -> CpuId {
        self.get(parent).map_or(CpuId(0), |found| found.cpu)
    }

    /// The policy of a parent, when nothing is wrong with it and what is above.
    pub(super) fn policy_of(&self, parent: Parent) -> Option<PolicyKind<Ns>> {
        let found = self.get(parent).filter(|found| found.sound);
        found.map(|found| found.policy)
    }

    /// Reports a missing `priority` below fixed priority; returns whether it did.
    pub(super) fn lacks_priority(
        &self,
        parent: Parent,
        section: &Named,
        kind: &str,
        report: &mut Report<'_>,
    ) -> bool {
        let by_priority = matches!(
            self.get(parent).map(|found| found.policy),
            Some(PolicyKind::FixedPriority { .. })
        );
        if !by_priority || section.record.get("priority").is_some() {
            return false;
        }
        let above = match parent {
            Parent::Cpu(id) => ("CPU", self.cpu_names.get(id.index())),
            Parent::Scheduler(id) => ("scheduler", self.scheduler_names.get(id.index())),
        };
        let (what, name) = (above.0, above.1.map_or("?", String::as_str));
        let message = format!(
            "[{kind}.{}] needs `priority`: the policy of {what} `{name}` is fixed-priority",
            section.name
        );
        report.add(&section.record.range, message, || {
            "add `priority = 1`; a larger number is more urgent".into()
        });
        true
    }

    fn get(&self, parent: Parent) -> Option<&Orderer> {
        match parent {
            Parent::Cpu(id) => self.cpus.get(id.index()),
            Parent::Scheduler(id) => self.schedulers.get(id.index()),
        }
    }
}

/// Leads every scheduler to its CPU. One in a circle leads to the first CPU: the model reports it.
fn follow(sections: &[Named], parents: &[Option<Parent>], cpus: &[Orderer]) -> Vec<Orderer> {
    #[derive(Clone, Copy)]
    enum Mark {
        Unseen,
        OnPath,
        Leads(CpuId, bool),
    }
    let mut marks = vec![Mark::Unseen; sections.len()];
    let mut path = Vec::new();
    for start in 0..sections.len() {
        let mut at = start;
        let (cpu, above) = loop {
            match marks.get(at) {
                Some(Mark::Unseen) => {}
                Some(Mark::OnPath) => break (CpuId(0), true),
                Some(Mark::Leads(cpu, sound)) => break (*cpu, *sound),
                None => break (CpuId(0), false),
            }
            marks[at] = Mark::OnPath;
            path.push(at);
            match parents.get(at).copied().flatten() {
                Some(Parent::Scheduler(id)) => at = id.index(),
                Some(Parent::Cpu(id)) => {
                    let sound = cpus.get(id.index()).is_some_and(|cpu| cpu.sound);
                    break (id, sound);
                }
                None => break (CpuId(0), false),
            }
        };
        let mut sound = above;
        while let Some(id) = path.pop() {
            sound &= has_policy(&sections[id].record);
            marks[id] = Mark::Leads(cpu, sound);
        }
    }
    let orderers = sections.iter().zip(marks).map(|(section, mark)| {
        let (cpu, sound) = match mark {
            Mark::Leads(cpu, sound) => (cpu, sound),
            Mark::Unseen | Mark::OnPath => (CpuId(0), false),
        };
        let policy = lower_policy(&section.record);
        Orderer { cpu, policy, sound }
    });
    orderers.collect()
}

/// The target of the `on` of a section, or its mistake.
pub(super) fn find_parent(
    record: &Record,
    names: &Names,
    report: &mut Report<'_>,
) -> Option<Parent> {
    let node = record.get("on")?;
    let Value::Text(on) = &node.value else {
        return None;
    };
    let cpu = on.strip_prefix("cpu.");
    let scheduler = on.strip_prefix("scheduler.");
    let found = cpu.and_then(|name| names.cpus.get(name).copied().map(Parent::Cpu));
    let found = found.or_else(|| {
        let id = names.schedulers.get(scheduler?).copied();
        id.map(Parent::Scheduler)
    });
    if found.is_none() {
        dangling(node, on, names, report);
    }
    found
}

/// Reports that nothing has the name `on`.
fn dangling(node: &Node, on: &str, names: &Names, report: &mut Report<'_>) {
    // A file without CPUs has been told so: that there is none of this name follows.
    if on.starts_with("cpu.") && names.cpus.is_empty() && !report.is_empty() {
        return;
    }
    let message = match (on.strip_prefix("cpu."), on.strip_prefix("scheduler.")) {
        (Some(name), _) => format!("there is no CPU {}", quote(name)),
        (None, Some(name)) => format!("there is no scheduler {}", quote(name)),
        (None, None) => format!("{} is not the name of a CPU or of a scheduler", quote(on)),
    };
    report.add(&node.range, message, || match meant(on, names) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None if on.starts_with("scheduler.") => {
            format!("add a section `[{on}]`, or name another scheduler or a CPU")
        }
        None => match names.cpus.keys().next() {
            Some(first) => format!("name a CPU or a scheduler, such as \"cpu.{first}\""),
            None => "list a CPU in [system] and give it a section".into(),
        },
    });
}

/// The nearest name of the kind that is nearest, with its kind; without one, of any kind.
fn meant(on: &str, names: &Names) -> Option<String> {
    let (kind, name) = on.split_once('.').unwrap_or(("", on));
    let slip = nearest(kind, ["cpu", "scheduler"]);
    let of_kind = |known: &'static str| kind.is_empty() || slip == Some(known);
    let cpu = || nearest(name, names.cpus.keys().map(String::as_str));
    let scheduler = || nearest(name, names.schedulers.keys().map(String::as_str));
    let found = of_kind("cpu").then(cpu).flatten();
    let found = found.map(|name| format!("cpu.{name}"));
    found.or_else(|| {
        let found = of_kind("scheduler").then(scheduler).flatten();
        found.map(|name| format!("scheduler.{name}"))
    })
}
