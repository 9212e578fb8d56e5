//! Gangs: tasks on several CPUs that are admitted together and arrive at one instant.
//!
//! The members of a [`Superstep`] have one constraint, each on a CPU of its own, so their jobs of
//! one number arrive at one instant of all clocks (Nautilus §4: *thread groups*). A gang of bulk
//! synchronous work has several supersteps, at instants of one period, and a barrier between each
//! and the next (Nautilus §6.1).
//!
//! A barrier is a wait like any other: every member of a superstep waits for all members of the one
//! before ([`Gang::barriers`]). Where time alone keeps both apart the wait can be left out.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::id::TaskId;

/// Tasks that are admitted together and kept in step by time.
///
/// # Examples
///
/// ```
/// use punctual_model::{Gang, TaskId};
///
/// let gang = Gang::new("step", [TaskId(0), TaskId(1)]);
/// assert_eq!(gang.members().count(), 2);
/// assert_eq!(gang.barriers().count(), 0);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Gang {
    /// Unique among the gangs of a system.
    pub name: String,
    /// In the order of their instants; one for a gang without barriers.
    pub supersteps: Vec<Superstep>,
}

/// Work that all members of a gang begin together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Superstep {
    /// Unique within its gang; empty where there is only one.
    pub name: String,
    /// Its task on each CPU, in the order of the file.
    pub members: Vec<TaskId>,
}

/// The wait of one superstep for the one before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Barrier {
    /// Place of the superstep that is waited for.
    pub before: usize,
    /// Place of the superstep that waits.
    pub next: usize,
}

impl Barrier {
    /// Whether it leads into the next period: from the last superstep to the first.
    pub const fn wraps(self) -> bool {
        self.next <= self.before
    }
}

impl Gang {
    /// A gang of one superstep.
    pub fn new(name: impl Into<String>, members: impl IntoIterator<Item = TaskId>) -> Gang {
        Gang {
            name: name.into(),
            supersteps: vec![Superstep {
                name: String::new(),
                members: members.into_iter().collect(),
            }],
        }
    }

    /// Its tasks, superstep by superstep.
    pub fn members(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.supersteps
            .iter()
            .flat_map(|superstep| superstep.members.iter().copied())
    }

    /// Its barriers: one behind each superstep, none where there is only one superstep.
    pub fn barriers(&self) -> impl Iterator<Item = Barrier> + use<> {
        let count = self.supersteps.len();
        let several = if count > 1 { count } else { 0 };
        (0..several).map(move |before| Barrier {
            before,
            next: (before + 1) % count,
        })
    }

    /// The same gang where tasks have other numbers. A member that is not there any more is left
    /// out; `None` when none is there.
    pub fn renumbered(&self, number: impl Fn(&TaskId) -> Option<TaskId>) -> Option<Gang> {
        let supersteps = self.supersteps.iter().map(|superstep| Superstep {
            name: superstep.name.clone(),
            members: superstep.members.iter().filter_map(&number).collect(),
        });
        let supersteps: Vec<Superstep> = supersteps.collect();
        let there = supersteps.iter().any(|step| !step.members.is_empty());
        there.then(|| Gang {
            name: self.name.clone(),
            supersteps,
        })
    }

    /// How messages and logs call a superstep: the gang's name, and its own if it has one.
    pub fn name_of(&self, superstep: usize) -> String {
        match self.supersteps.get(superstep) {
            Some(Superstep { name, .. }) if !name.is_empty() => {
                alloc::format!("{}.{name}", self.name)
            }
            _ => self.name.clone(),
        }
    }
}
