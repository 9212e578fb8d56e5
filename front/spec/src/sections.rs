//! The one table of sections and keys: the reader obeys it and the schema is made from it.

mod machine;
mod policy;
mod require;
mod resource;
mod scheduler;
mod task;

use crate::shape::{Key, Keys, Shape};
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

/// All sections, in the order in which a file is best written.
pub(crate) const SECTIONS: &[Section] = &[
    Section {
        name: "system",
        named: false,
        needed: true,
        keys: &SYSTEM,
        doc: "What the system consists of.",
    },
    Section {
        name: "cpu",
        named: true,
        needed: false,
        keys: &CPU,
        doc: "One CPU and the policy that orders the tasks and the schedulers on it.",
    },
    Section {
        name: "scheduler",
        named: true,
        needed: false,
        keys: &SCHEDULER,
        doc: "A scheduler below a CPU or another scheduler: it orders its own tasks on what its \
              parent grants it.",
    },
    Section {
        name: "resource",
        named: true,
        needed: false,
        keys: &RESOURCE,
        doc: "Something that jobs lock: see `uses` of a task.",
    },
    Section {
        name: "machine",
        named: false,
        needed: false,
        keys: &MACHINE,
        doc: "Overheads, limits and reserves that admission counts; absent ones are 0, or 100 %.",
    },
    Section {
        name: "task",
        named: true,
        needed: false,
        keys: &TASK,
        doc: "One task. The order of the tasks in the file is the last tie-break between jobs.",
    },
    Section {
        name: "require",
        named: false,
        needed: false,
        keys: &REQUIRE,
        doc: "What must hold beyond the deadlines.",
    },
    Section {
        name: "run",
        named: false,
        needed: false,
        keys: &RUN,
        doc: "How to run the system, unless the command line says otherwise.",
    },
];

/// The section with this name.
pub(crate) fn find(name: &str) -> Option<&'static Section> {
    SECTIONS.iter().find(|section| section.name == name)
}

const U32: Shape = Shape::Integer {
    least: 0,
    most: u32::MAX as u64,
};
const COUNT: Shape = Shape::Integer {
    least: 1,
    most: u32::MAX as u64,
};

static SYSTEM: Keys = Keys {
    selector: None,
    list: &[Key::new(
        "cpus",
        Shape::List(&Shape::CpuName),
        "Its CPUs: numbers of host CPUs, or names given in `[cpu.NAME]`. At most 256.",
    )
    .example("[0]")
    .needed()],
};

static RUN: Keys = Keys {
    selector: None,
    list: &[
        Key::new("for", Shape::Duration, "Releases in [0, this) are covered.").example("\"10s\""),
        Key::new(
            "seed",
            Shape::Integer {
                least: 0,
                most: u64::MAX,
            },
            "Seed of everything drawn at random.",
        )
        .example("1"),
    ],
};
