//! The one table of sections and keys: the reader obeys it and the schema is made from it.

mod change;
mod gang;
mod graph;
mod group;
mod machine;
mod policy;
mod require;
mod resource;
mod scheduler;
mod task;

use crate::shape::Shape::{CpuName, Duration, Integer, List};
use crate::shape::{Keys, Shape, keys, text};
use change::CHANGE;
use gang::GANG;
use graph::GRAPH;
use group::{GROUP, PLANNING};
use machine::MACHINE;
use policy::CPU;
use require::REQUIRE;
use resource::RESOURCE;
use scheduler::SCHEDULER;
use task::TASK;

/// A section of the file.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) name: &'static str,
    /// Whether there are many, each with a name of its own: `[task.NAME]`.
    pub(crate) named: bool,
    /// Whether a file cannot do without.
    pub(crate) needed: bool,
    pub(crate) keys: &'static Keys,
    pub(crate) doc: &'static str,
}

/// A table of sections: the name of each, its keys, and whether it is named or needed.
macro_rules! sections {
    ($($(#[doc = $doc:literal])+ $name:literal: $keys:ident $(, $rule:ident)?;)+) => {
        [$(Section {
            $($rule: true,)?
            ..Section::new($name, &$keys, text!($($doc)+))
        }),+]
    };
}

impl Section {
    const fn new(name: &'static str, keys: &'static Keys, doc: &'static str) -> Section {
        Section {
            name,
            named: false,
            needed: false,
            keys,
            doc,
        }
    }
}

/// All sections, in the order in which a file is best written.
pub(crate) const SECTIONS: &[Section] = &sections! {
    /// The CPUs of the system.
    "system": SYSTEM, needed;
    /// One CPU and the policy that orders the tasks and the schedulers on it.
    "cpu": CPU, named;
    /// A scheduler below a CPU or another scheduler: it orders its own tasks on what its parent
    /// grants it.
    "scheduler": SCHEDULER, named;
    /// Something that jobs lock: see `uses` of a task.
    "resource": RESOURCE, named;
    /// Overheads, limits and reserves that admission counts; absent ones are 0, or 100 %.
    "machine": MACHINE;
    /// One task. The order of the tasks in the file is the last tie-break between jobs.
    "task": TASK, named;
    /// Tasks on several CPUs that are admitted together and arrive at one instant: all or none.
    "gang": GANG, named;
    /// A streaming application: actors that fire when their tokens are there, and FIFOs between.
    "graph": GRAPH, named;
    /// Segments with precedence, planned resources and one deadline, guaranteed whole before the
    /// first of them starts, or refused.
    "group": GROUP, named;
    /// How groups are planned.
    "planning": PLANNING;
    /// Requirements beyond the deadlines.
    "require": REQUIRE;
    /// A change of the running system: parts come, go, move and get other terms. All of a change
    /// happens, or nothing of it.
    "change": CHANGE, named;
    /// How to run the system, unless the command line says otherwise.
    "run": RUN;
};

/// The section with this name.
pub(crate) fn find(name: &str) -> Option<&'static Section> {
    SECTIONS.iter().find(|section| section.name == name)
}

const MOST: u64 = u32::MAX as u64;
const U32: Shape = Integer {
    least: 0,
    most: MOST,
};
const COUNT: Shape = Integer {
    least: 1,
    most: MOST,
};

static SYSTEM: Keys = keys! {
    /// Its CPUs: numbers of host CPUs, or names given in `[cpu.NAME]`. At most 256.
    "cpus": List(&CpuName), [0], needed;
};

static RUN: Keys = keys! {
    /// Releases in [0, this) are covered.
    "for": Duration, "10s";
    /// Seed of everything drawn at random.
    "seed": Integer { least: 0, most: u64::MAX }, 1;
};
