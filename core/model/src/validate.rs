//! Which systems mean something: the checks that every source of a system shares.
//!
//! Readers of files and programs that build a [`System`] by hand call [`System::validate`]; after
//! it, indices are in range, divisors are not zero and precedence can make progress. Whether the
//! deadlines hold is the question of the analysis, not of this module.

mod change;
mod delegate;
mod gang;
mod graph;
mod group;
mod nesting;
mod planned;
mod precedence;
mod requirement;
mod resource;
mod scheduler;
mod section;
mod slot;
mod task;
mod tree;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::id::CpuId;
use crate::machine::Reserve;
use crate::readable::readable;
use crate::scheduler::PolicyKind;
use crate::system::{Fault, ModelError, System};
use crate::time::Ns;
pub(crate) use delegate::share;
use tree::Tree;

/// Longest name of anything, in bytes.
const MAX_NAME_BYTES: usize = 128;

impl System {
    /// Most CPUs of one system.
    pub const MAX_CPUS: usize = 256;
    /// Most tasks of one system.
    pub const MAX_TASKS: usize = 100_000;
    /// Most schedulers below the CPUs' own.
    pub const MAX_SCHEDULERS: usize = 10_000;
    /// Most resources of one system.
    pub const MAX_RESOURCES: usize = 10_000;
    /// Most changes of one system.
    pub const MAX_CHANGES: usize = 1_000;
    /// Most graphs of one system.
    pub const MAX_GRAPHS: usize = 1_000;
    /// Most gangs of one system.
    pub const MAX_GANGS: usize = 1_000;
    /// Most supersteps of one gang.
    pub const MAX_SUPERSTEPS: usize = 64;
    /// Most planned groups of one system.
    pub const MAX_GROUPS: usize = 1_000;
    /// Most segments of one group; also most threads of one.
    pub const MAX_SEGMENTS: usize = 1_000;

    /// Checks that the system means something. Names are unique and printable, references point at
    /// something, no period is zero, and no budget exceeds its deadline. Every scheduler leads to
    /// its CPU, slots lie apart, critical sections nest in one order, and no precedence waits for
    /// itself.
    ///
    /// O(n log n) in the size of the system.
    ///
    /// # Errors
    ///
    /// Every mistake found, in the order of the system, not only the first.
    pub fn validate(&self) -> Result<(), Vec<ModelError>> {
        let mut errors = Errors(Vec::new());
        self.check_sizes(&mut errors);
        self.check_cpus(&mut errors);
        let tree = Tree::new(self, &mut errors);
        scheduler::check_all(&tree, &mut errors);
        slot::check_all(&tree, &mut errors);
        task::check_all(self, &mut errors);
        let nestings = section::check_all(self, &mut errors);
        nesting::check(self, &nestings, &mut errors);
        resource::check_all(&tree, &mut errors);
        precedence::check(self, &mut errors);
        self.check_machine(&mut errors);
        requirement::check_all(self, &mut errors);
        graph::check_all(self, &mut errors);
        gang::check_all(self, &mut errors);
        planned::check_all(&tree, &mut errors);
        group::check_all(self, &mut errors);
        if self.run.duration.is_some_and(|duration| duration.is_zero()) {
            errors.add(
                Fault::Run("for"),
                "a run of 0s covers no release".into(),
                "give it a length, such as \"10s\"",
            );
        }
        if errors.0.is_empty() {
            change::check_all(self, &mut errors);
        }
        if errors.0.is_empty() {
            Ok(())
        } else {
            Err(errors.0)
        }
    }

    fn check_sizes(&self, errors: &mut Errors) {
        let counts = [
            ("CPUs", self.cpus.len(), System::MAX_CPUS),
            ("schedulers", self.schedulers.len(), System::MAX_SCHEDULERS),
            ("resources", self.resources.len(), System::MAX_RESOURCES),
            ("tasks", self.tasks.len(), System::MAX_TASKS),
            ("changes", self.changes.len(), System::MAX_CHANGES),
            ("graphs", self.graphs.len(), System::MAX_GRAPHS),
            ("gangs", self.gangs.len(), System::MAX_GANGS),
            ("groups", self.groups.len(), System::MAX_GROUPS),
        ];
        for (what, count, most) in counts {
            if count > most {
                errors.add(
                    Fault::System,
                    format!("{count} {what}, more than the {most} that one system can have"),
                    "split the system",
                );
            }
        }
        if self.cpus.is_empty() {
            errors.add(
                Fault::System,
                "a system without CPUs".into(),
                "name at least one CPU",
            );
        }
    }

    fn check_cpus(&self, errors: &mut Errors) {
        let mut names = BTreeMap::new();
        let mut hosts = BTreeMap::new();
        for (id, cpu) in (0..=u16::MAX).map(CpuId).zip(&self.cpus) {
            errors.check_name("CPU", &cpu.name, Fault::Cpu(id, "name"));
            if names.insert(cpu.name.as_str(), id).is_some() {
                errors.add(
                    Fault::Cpu(id, "name"),
                    format!("two CPUs are named `{}`", cpu.name),
                    "rename one of them",
                );
            }
            if let Some(host) = cpu.host
                && let Some(first) = hosts.insert(host, cpu.name.as_str())
            {
                errors.add(
                    Fault::Cpu(id, "host"),
                    format!("CPUs `{first}` and `{}` are both host CPU {host}", cpu.name),
                    "give each its own `host`",
                );
            }
            let what = format!("CPU `{}`", cpu.name);
            errors.check_policy(&cpu.policy, &what, |key| Fault::Cpu(id, key));
        }
    }

    fn check_machine(&self, errors: &mut Errors) {
        if let Some(missing) = &self.machine.missing_time {
            errors.check_reserve(missing, "missing time", Fault::Machine("missing-time"));
        }
        let mut names = BTreeSet::new();
        for (index, reserve) in self.machine.reserves.iter().enumerate() {
            let fault = Fault::Reserve(index);
            errors.check_name("reserve", &reserve.name, fault.clone());
            if !names.insert(reserve.name.as_str()) {
                errors.add(
                    fault.clone(),
                    format!("two reserves are named `{}`", reserve.name),
                    "rename one of them",
                );
            }
            errors.check_reserve(reserve, &format!("reserve `{}`", reserve.name), fault);
        }
        if self.machine.limits.utilization.ppm() == 0 {
            errors.add(
                Fault::Machine("limits"),
                "a utilization limit of 0 % admits nothing".into(),
                "raise it, for example to \"99%\"",
            );
        }
    }
}

/// The mistakes found so far.
struct Errors(Vec<ModelError>);

impl Errors {
    fn add(&mut self, fault: Fault, message: String, help: impl Into<String>) {
        self.0.push(ModelError {
            fault,
            message,
            help: help.into(),
        });
    }

    /// Names appear in traces, tables and pages; nothing in them may need quoting there.
    fn check_name(&mut self, what: &str, name: &str, fault: Fault) {
        let allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
        if name.is_empty() || !name.chars().all(allowed) {
            self.add(
                fault,
                format!("`{}` cannot name a {what}", name.escape_debug()),
                "names consist of letters, digits and `_` `-` `.` `:`",
            );
        } else if name.len() > MAX_NAME_BYTES {
            self.add(
                fault,
                format!("a {what} name of {} bytes", name.len()),
                format!("names have at most {MAX_NAME_BYTES} bytes"),
            );
        }
    }

    /// The parameters of a policy; `fault` makes the place of each from its key.
    fn check_policy(
        &mut self,
        policy: &PolicyKind<Ns>,
        what: &str,
        fault: impl Fn(&'static str) -> Fault,
    ) {
        let (key, help) = match policy {
            PolicyKind::RoundRobin { timeslice } if timeslice.is_zero() => {
                ("timeslice", "give it a length, such as \"10ms\"")
            }
            PolicyKind::Tdm { frame, .. } if frame.is_zero() => {
                ("frame", "give it the length in which the slots repeat")
            }
            _ => return,
        };
        self.add(fault(key), format!("{what} has a {key} of 0s"), help);
    }

    fn check_reserve(&mut self, reserve: &Reserve, what: &str, fault: Fault) {
        if reserve.period.is_zero() {
            self.add(
                fault,
                format!("{what} has a period of 0s"),
                "give it a period above zero",
            );
        } else if reserve.budget.is_zero() {
            self.add(
                fault,
                format!("{what} has a budget of 0s"),
                "raise the budget or leave it out",
            );
        } else if reserve.budget.as_span() > reserve.period {
            self.add(
                fault,
                format!(
                    "{what} takes {} in every {}",
                    readable(reserve.budget.as_ns()),
                    readable(reserve.period.as_ns())
                ),
                "a budget is at most its period",
            );
        }
    }
}

#[cfg(test)]
mod tests;
