//! The code of schedulers that decide on their own supply: a program's own, or what the file names.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;

use punctual_child::ChildScheduler;
use punctual_kern::{Attributes, Event, NodeId, Pick, Plan, Policy, Request};
use punctual_linux::{ChildInput, foreign_policy};
use punctual_model::{
    Change, Frequency, Instant, PolicyCode, PolicyKind, Scheduler, SchedulerId, Step, System,
    ThreadId, Trust,
};
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
    /// Those that changes bring, by the number of the change and the scheduler.
    by_change: BTreeMap<(usize, SchedulerId), Make>,
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
        let load = |scheduler: &Scheduler, code: &PolicyCode| -> Result<Make, Error> {
            let failed = |reason: String| Error::PolicyCode {
                scheduler: scheduler.name.clone(),
                reason,
            };
            let maker = foreign_policy(&beside(base, &code.library), &code.symbol);
            let maker = maker.map_err(|error| failed(error.to_string()))?;
            drop(maker.make(1, frequency).map_err(failed)?);
            Ok(Arc::new(move |threads| {
                match maker.make(threads, frequency) {
                    Ok(policy) => Box::new(policy),
                    Err(reason) => Box::new(Unmade(reason)),
                }
            }))
        };
        for scheduler in &system.schedulers {
            if let Some(code) = &scheduler.code {
                let make = load(scheduler, code)?;
                let _ = all.by_name.insert(scheduler.name.clone(), make);
            }
        }
        for (change, id, code) in codes_of_changes(system) {
            let make = load(&system.schedulers[id.index()], code)?;
            let _ = all.by_change.insert((change, id), make);
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
        let mut later = codes_of_changes(system);
        let later = later.find(|(change, id, _)| !self.by_change.contains_key(&(*change, *id)));
        let later = later.and_then(|(_, id, _)| system.schedulers.get(id.index()));
        match schedulers.find(unloaded).or(later) {
            Some(scheduler) => Err(Error::PolicyCode {
                scheduler: scheduler.name.clone(),
                reason: "the file names it, and the program did not load it: give the options \
                         `policies: ChildPolicies::of_file(..)`, or a policy of its own"
                    .into(),
            }),
            None => Ok(()),
        }
    }

    /// The code of all such schedulers of one CPU, each with its name, and with the code that this
    /// plan brings.
    pub(crate) fn of(
        &self,
        system: &System,
        (tables, plan): (&CpuTables, &Plan),
    ) -> Vec<(String, ChildScheduler)> {
        let nodes = (1_u16..).zip(&tables.nodes);
        let own_time = nodes.filter(|(_, node)| node.terms.trust == Trust::OwnTime);
        let code = |(place, node): (u16, &NodeRow)| {
            let scheduler = system.schedulers.get(node.scheduler.index());
            let name = scheduler.map(|s| s.name.clone()).unwrap_or_default();
            let code = code(tables, place, node, self.by_name.get(&name));
            (
                name,
                code.followed_by(self.later(system, (tables, plan), (place, node.scheduler))),
            )
        };
        own_time.map(code).collect()
    }

    /// The same, for a run.
    pub(crate) fn inputs(&self, system: &System, cpu: (&CpuTables, &Plan)) -> Vec<ChildInput> {
        let codes = self.of(system, cpu).into_iter();
        codes
            .map(|(name, code)| ChildInput { name, code })
            .collect()
    }

    /// The policies that a plan brings for a scheduler, in the order of time: of its changes, and
    /// the declared one where it comes again.
    fn later(
        &self,
        system: &System,
        (tables, plan): (&CpuTables, &Plan),
        (place, id): (u16, SchedulerId),
    ) -> Vec<Box<dyn Policy + Send>> {
        let (threads, entities) = (tables.capacity.threads, tables.capacity.entities());
        let made = |(change, policy)| -> Box<dyn Policy + Send> {
            let change = usize::try_from(change).unwrap_or(usize::MAX);
            let joins = |c: &Change| {
                c.steps
                    .iter()
                    .any(|s| matches!(s, Step::Join(it) if *it == id))
            };
            let own = match system.changes.get(change).is_some_and(joins) {
                true => self.by_name.get(&system.schedulers[id.index()].name),
                false => self.by_change.get(&(change, id)),
            };
            match own {
                Some(make) => make(threads),
                None => Box::new(AnyPolicy::new(policy, entities, &[])),
            }
        };
        asked(plan, place).map(made).collect()
    }
}

/// The policies that a plan asks for the scheduler at a place, each with the number of its change.
fn asked(plan: &Plan, place: u16) -> impl Iterator<Item = (u32, PolicyKind)> {
    let of = move |event: &Event| match event {
        Event::Manage {
            request: Request::Replace { node, policy },
            ..
        } if node.index() == usize::from(place) => Some(*policy),
        _ => None,
    };
    let steps = plan.steps().iter();
    steps.flat_map(move |step| {
        let policies = step.events.iter().filter_map(of);
        policies.map(|policy| (step.change, policy))
    })
}

/// The same as built-in policies, for runs that have no code.
pub(crate) fn built_in_later(
    tables: &CpuTables,
    plan: &Plan,
    place: u16,
) -> Vec<Box<dyn Policy + Send>> {
    let entities = tables.capacity.entities();
    let made =
        |(_, policy)| -> Box<dyn Policy + Send> { Box::new(AnyPolicy::new(policy, entities, &[])) };
    asked(plan, place).map(made).collect()
}

/// The code that changes bring: the number of the change, the scheduler, and which.
fn codes_of_changes(system: &System) -> impl Iterator<Item = (usize, SchedulerId, &PolicyCode)> {
    let changes = system.changes.iter().enumerate();
    changes.flat_map(|(number, change)| {
        let steps = change.steps.iter();
        steps.filter_map(move |step| match step {
            Step::Reorder(id, _, Some(code)) => Some((number, *id, code)),
            _ => None,
        })
    })
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
    use punctual_model::{CpuId, Priority, Supply};
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
