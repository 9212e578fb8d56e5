//! The code of schedulers that decide on their own supply: a program's own, or what the file names.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;

use punctual_child::ChildScheduler;
use punctual_kern::{Attributes, NodeId, Pick, Policy};
use punctual_linux::foreign_policy;
use punctual_model::{Frequency, Instant, Scheduler, System, ThreadId, Trust};
use punctual_policy::AnyPolicy;
use punctual_tables::{CpuTables, NodeRow};

use crate::Error;
use crate::bodies::beside;

pub(crate) type Make = Arc<dyn Fn(usize) -> Box<dyn Policy + Send> + Send + Sync>;

/// Policies of a program for schedulers that decide on their own supply (`trust = "own-time"`), by
/// the name of the scheduler. One without an entry here uses the policy that its file names.
///
/// Such a policy runs on the supply of its scheduler, in virtual time and for real: it may be slow,
/// wrong or endless and costs nobody else. (One that a whole CPU relies on is another matter:
/// `punctual conform` says what is wrong with it.)
#[derive(Clone, Default)]
pub struct ChildPolicies {
    by_name: BTreeMap<String, Make>,
}

impl ChildPolicies {
    /// None.
    pub fn new() -> ChildPolicies {
        ChildPolicies::default()
    }

    /// The scheduler `name` orders its threads by what `make` returns, which is called once per run
    /// with a number that all indices of threads are below.
    #[must_use]
    pub fn with<P: Policy + Send + 'static>(
        mut self,
        name: &str,
        make: impl Fn(usize) -> P + Send + Sync + 'static,
    ) -> ChildPolicies {
        let make: Make = Arc::new(move |threads| Box::new(make(threads)));
        let _ = self.by_name.insert(name.to_string(), make);
        self
    }

    /// The policies that the file names as C functions of shared objects, with paths relative to
    /// `base`, on a platform with ticks of this frequency. The objects stay loaded.
    ///
    /// # Errors
    /// When an object, its function or its policy cannot be had.
    pub fn of_file(
        system: &System,
        base: &Path,
        frequency: Frequency,
    ) -> Result<ChildPolicies, Error> {
        let mut all = ChildPolicies::new();
        for scheduler in &system.schedulers {
            let Some(code) = &scheduler.code else {
                continue;
            };
            let failed = |reason: String| Error::PolicyCode {
                scheduler: scheduler.name.clone(),
                reason,
            };
            let maker = foreign_policy(&beside(base, &code.library), &code.symbol);
            let maker = maker.map_err(|error| failed(error.to_string()))?;
            drop(maker.make(1, frequency).map_err(failed)?);
            let make: Make = Arc::new(move |threads| match maker.make(threads, frequency) {
                Ok(policy) => Box::new(policy),
                Err(reason) => Box::new(Unmade(reason)),
            });
            let _ = all.by_name.insert(scheduler.name.clone(), make);
        }
        Ok(all)
    }

    /// Whether every entry has a scheduler that decides on its own supply, and all code that the
    /// file names has an entry: nothing else decides in its place.
    pub(crate) fn check(&self, system: &System) -> Result<(), Error> {
        let decides = |name: &&String| {
            let mut schedulers = system.schedulers.iter();
            schedulers.any(|s| s.name == **name && s.trust == Trust::OwnTime)
        };
        if let Some(name) = self.by_name.keys().find(|name| !decides(name)) {
            return Err(Error::NotOwnTime(name.clone()));
        }
        let mut schedulers = system.schedulers.iter();
        let unloaded = |s: &&Scheduler| s.code.is_some() && !self.by_name.contains_key(&s.name);
        match schedulers.find(unloaded) {
            Some(scheduler) => Err(Error::PolicyCode {
                scheduler: scheduler.name.clone(),
                reason: "the file names it, and the program did not load it: give the options \
                         `policies: ChildPolicies::of_file(..)`, or a policy of its own"
                    .into(),
            }),
            None => Ok(()),
        }
    }

    /// The code of all such schedulers of one CPU, each with its name.
    pub(crate) fn of(&self, system: &System, tables: &CpuTables) -> Vec<(String, ChildScheduler)> {
        let nodes = (1_u16..).zip(&tables.nodes);
        let own_time = nodes.filter(|(_, node)| node.terms.trust == Trust::OwnTime);
        let code = |(place, node): (u16, &NodeRow)| {
            let scheduler = system.schedulers.get(node.scheduler.index());
            let name = scheduler.map(|s| s.name.clone()).unwrap_or_default();
            let code = code(tables, place, node, self.by_name.get(&name));
            (name, code)
        };
        own_time.map(code).collect()
    }
}

/// A policy that could be made before, and not for this run: it fails when it is to decide.
struct Unmade(String);

impl Policy for Unmade {
    fn wake(&mut self, _: ThreadId, _: &Attributes) {}

    fn block(&mut self, _: ThreadId) {}

    fn pick(&mut self, _: Instant) -> Pick {
        resume_unwind(Box::new(self.0.clone()))
    }
}

/// The code of a scheduler: the program's own, or what the tables name.
pub(crate) fn code(
    tables: &CpuTables,
    place: u16,
    node: &NodeRow,
    own: Option<&Make>,
) -> ChildScheduler {
    let threads = tables.capacity.threads;
    let policy = match own {
        Some(make) => make(threads),
        None => {
            let entities = tables.capacity.entities();
            Box::new(AnyPolicy::new(
                node.policy,
                entities,
                &tables.slots_of(place),
            ))
        }
    };
    ChildScheduler::new(NodeId::new(place, 0), threads, policy)
}

impl fmt::Debug for ChildPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use punctual_model::{CpuId, PolicyCode, PolicyKind, Priority, Supply};
    use punctual_policy::Fifo;

    use super::*;

    #[test]
    fn code_that_nobody_loaded_is_refused_and_nothing_decides_in_its_place() {
        let code = PolicyCode {
            library: "libx.so".into(),
            symbol: "mine".into(),
        };
        let guest = Scheduler {
            name: "guest".into(),
            cpu: CpuId(0),
            parent: None,
            policy: PolicyKind::Fifo,
            priority: Priority::new(1),
            supply: Supply::Shared,
            trust: Trust::OwnTime,
            quota: None,
            fallback: None,
            code: Some(code),
            receiver: None,
        };
        let system = System {
            schedulers: vec![guest],
            ..System::default()
        };
        let refused = ChildPolicies::new().check(&system);
        let is_named =
            matches!(&refused, Err(Error::PolicyCode { scheduler, .. }) if scheduler == "guest");
        assert!(is_named, "{refused:?}");
        let own = ChildPolicies::new().with("guest", Fifo::new);
        assert!(own.check(&system).is_ok());
    }
}
