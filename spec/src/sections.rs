//! The one table of sections and keys: the reader obeys it and the schema is made from it.

mod machine;
mod task;

use crate::shape::{Key, Keys, Shape, Word, Words};
use machine::MACHINE;
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
        doc: "One CPU and the policy that orders the tasks on it.",
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

// Words of `policy`.
const ROUND_ROBIN: Words = 1 << 1;
const FIXED_PRIORITY: Words = 1 << 2;

static CPU: Keys = Keys {
    selector: Some("policy"),
    list: &[
        Key::new(
            "policy",
            Shape::Word(&[
                Word {
                    text: "fifo",
                    doc: "first come, first served; nobody is preempted",
                },
                Word {
                    text: "round-robin",
                    doc: "everybody in turn, for at most a timeslice",
                },
                Word {
                    text: "fixed-priority",
                    doc: "the highest priority first",
                },
                Word {
                    text: "edf",
                    doc: "the earliest absolute deadline first",
                },
            ]),
            "Which thread runs next.",
        )
        .example("\"fixed-priority\"")
        .needed(),
        Key::new(
            "host",
            U32,
            "The number of the host CPU to run on. A CPU whose name is a number is that host CPU \
             unless this says otherwise; any other CPU without it exists in virtual time only.",
        )
        .example("1"),
        Key::new(
            "timeslice",
            Shape::Duration,
            "The longest turn; \"10ms\" when absent.",
        )
        .example("\"10ms\"")
        .only(ROUND_ROBIN),
        Key::new(
            "preemptive",
            Shape::Flag,
            "Whether a more urgent job takes the CPU from a running one; true when absent.",
        )
        .example("false")
        .only(FIXED_PRIORITY),
    ],
};

static REQUIRE: Keys = Keys {
    selector: None,
    list: &[Key::new(
        "response",
        Shape::List(&Shape::Table(&RESPONSE)),
        "Longest responses, from arrival to completion.",
    )
    .example("[{ task = \"name\", within = \"8ms\" }]")],
};

static RESPONSE: Keys = Keys {
    selector: None,
    list: &[
        Key::new("task", Shape::TaskName, "The task.")
            .example("\"name\"")
            .needed(),
        Key::new("within", Shape::Duration, "The longest response allowed.")
            .example("\"8ms\"")
            .needed(),
    ],
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
