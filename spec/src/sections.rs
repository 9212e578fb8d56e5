//! The one table of sections and keys: the reader obeys it and the schema is made from it.

use crate::shape::{Key, Keys, Shape, Word, Words};

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
        doc: "Overheads, limits and reserves that admission counts. What is absent is zero, or 100 %.",
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

// Words of `class`.
const PERIODIC: Words = 1 << 0;
const SPORADIC: Words = 1 << 1;
const RESERVATION: Words = 1 << 2;
const ONCE: Words = 1 << 3;
const APERIODIC: Words = 1 << 4;
/// Classes whose jobs complete.
const JOBS: Words = PERIODIC | SPORADIC | ONCE;
/// Classes whose jobs are released again and again and complete.
const RECURRING: Words = PERIODIC | SPORADIC;

static TASK: Keys = Keys {
    selector: Some("class"),
    list: &[
        Key::new(
            "class",
            Shape::Word(&[
                Word { text: "periodic", doc: "one call per release, at phase + k · period" },
                Word {
                    text: "sporadic",
                    doc: "one call per arrival, never closer than min-separation",
                },
                Word {
                    text: "reservation",
                    doc: "an endless body, guaranteed a slice in every period",
                },
                Word {
                    text: "once",
                    doc: "one body, its size of work by its deadline, afterwards aperiodic",
                },
                Word { text: "aperiodic", doc: "a body without deadline" },
            ]),
            "The kind of work.",
        )
        .example("\"periodic\"")
        .needed(),
        Key::new("on", Shape::Text, "The CPU that it is placed on: \"cpu.NAME\".")
            .example("\"cpu.0\"")
            .needed(),
        Key::new("period", Shape::Duration, "Distance between releases, or replenishments.")
            .example("\"10ms\"")
            .exactly(PERIODIC | RESERVATION),
        Key::new(
            "min-separation",
            Shape::Duration,
            "Smallest distance between releases; earlier arrivals wait.",
        )
        .example("\"10ms\"")
        .exactly(SPORADIC),
        Key::new("wcet", Shape::Duration, "Worst-case execution time of a job; also its budget.")
            .example("\"2ms\"")
            .exactly(RECURRING),
        Key::new("slice", Shape::Duration, "Work guaranteed in each period.")
            .example("\"2ms\"")
            .exactly(RESERVATION),
        Key::new("size", Shape::Duration, "Work guaranteed by the deadline.")
            .example("\"2ms\"")
            .exactly(ONCE),
        Key::new(
            "deadline",
            Shape::Duration,
            "From arrival to absolute deadline; the period when absent from a periodic task.",
        )
        .example("\"10ms\"")
        .only(JOBS)
        .needed_by(SPORADIC | ONCE),
        Key::new("phase", Shape::Duration, "First arrival after the start of the run.")
            .example("\"0s\"")
            .needed_by(ONCE),
        Key::new(
            "priority",
            U32,
            "A larger number is more urgent. Needed under fixed priority; orders once tasks after \
             their deadline and aperiodic tasks under every policy.",
        )
        .example("1")
        .needed_by(ONCE | APERIODIC),
        Key::new("importance", U32, "What to keep in overload: a larger number is kept longer.")
            .example("1"),
        Key::new("jitter", Shape::Duration, "A release follows its arrival by at most this.")
            .example("\"100us\"")
            .only(RECURRING),
        Key::new(
            "arrivals",
            Shape::Choice(&ARRIVALS),
            "Where arrivals come from; every min-separation when absent.",
        )
        .example("{ every = \"10ms\" }")
        .only(SPORADIC),
        Key::new(
            "late",
            Shape::Word(&[
                Word { text: "queue", doc: "it waits, with at most `backlog` others" },
                Word { text: "skip", doc: "it is dropped and counted" },
            ]),
            "What becomes of a release that finds the job before unfinished; \"queue\" when absent.",
        )
        .example("\"queue\"")
        .only(RECURRING),
        Key::new(
            "backlog",
            COUNT,
            "Most releases that wait when late ones queue, 64 when absent; others are counted as lost.",
        )
        .example("64")
        .only(RECURRING),
        Key::new(
            "on-overrun",
            Shape::Word(&[
                Word { text: "throttle", doc: "the rest continues at the next replenishment" },
                Word { text: "demote", doc: "the rest continues below all real-time work" },
                Word { text: "stop", doc: "the job ends at its next scheduling point" },
                Word { text: "signal", doc: "the body is told, then as throttle" },
            ]),
            "What happens to a job that has used its budget and is not done; \"throttle\" when absent.",
        )
        .example("\"throttle\"")
        .only(RECURRING),
        Key::new("max-suspension", Shape::Duration, "The longest a job suspends itself in total.")
            .example("\"1ms\"")
            .only(JOBS),
        Key::new("suspensions", COUNT, "How often a job suspends itself at most; 1 when absent.")
            .example("1")
            .only(JOBS),
        Key::new(
            "non-preemptive",
            Shape::Duration,
            "The longest stretch of a job that lets nobody preempt it.",
        )
        .example("\"50us\""),
        Key::new(
            "after",
            Shape::List(&Shape::TaskName),
            "A job released at r starts when every job of these released at or before r completed.",
        )
        .example("[\"other\"]")
        .only(JOBS),
        Key::new(
            "follows",
            Shape::List(&Shape::TaskName),
            "A job released at r starts when every job of these released before r completed.",
        )
        .example("[\"other\"]")
        .only(JOBS),
        Key::new("work", Shape::Choice(&WORK), "What a job executes; its budget when absent.")
            .example("{ burn = \"1ms\" }"),
    ],
};

static ARRIVALS: [Keys; 4] = [
    Keys {
        selector: None,
        list: &[Key::new(
            "every",
            Shape::Duration,
            "One arrival every span, from the phase on.",
        )
        .example("\"10ms\"")
        .needed()],
    },
    Keys {
        selector: None,
        list: &[Key::new(
            "random",
            Shape::Duration,
            "Seeded random gaps with this mean, uniform from min-separation to twice the mean less \
             min-separation.",
        )
        .example("\"15ms\"")
        .needed()],
    },
    Keys {
        selector: None,
        list: &[Key::new(
            "at",
            Shape::List(&Shape::Duration),
            "These instants of the run, in order.",
        )
        .example("[\"1ms\"]")
        .needed()],
    },
    Keys {
        selector: None,
        list: &[Key::new(
            "external",
            Shape::Yes,
            "The program itself announces arrivals.",
        )
        .example("true")
        .needed()],
    },
];

static WORK: [Keys; 3] = [
    Keys {
        selector: None,
        list: &[Key::new(
            "burn",
            Shape::Duration,
            "Burns this much executed processor time.",
        )
        .example("\"1ms\"")
        .needed()],
    },
    Keys {
        selector: None,
        list: &[
            Key::new(
                "call",
                Shape::Text,
                "The name of a C function in the library.",
            )
            .example("\"symbol\"")
            .needed(),
            Key::new(
                "library",
                Shape::Text,
                "The path of the shared object, relative to the folder of this file.",
            )
            .example("\"libx.so\"")
            .needed(),
        ],
    },
    Keys {
        selector: None,
        list: &[Key::new(
            "function",
            Shape::Text,
            "The name under which a program or a linked workload registered it.",
        )
        .example("\"name\"")
        .needed()],
    },
];

static MACHINE: Keys = Keys {
    selector: None,
    list: &[
        Key::new(
            "switch",
            Shape::Duration,
            "One switch from thread to thread; each job pays two, in and out.",
        )
        .example("\"1us\""),
        Key::new("timer", Shape::Duration, "One timer entry; each release pays one.")
            .example("\"1us\""),
        Key::new(
            "preemption",
            Shape::Duration,
            "One preemption by signal; each job causes at most one, and pays it.",
        )
        .example("\"4us\""),
        Key::new(
            "cache-delay",
            Shape::Duration,
            "Caches to fill again after a preemption; each job pays one.",
        )
        .example("\"10us\""),
        Key::new(
            "missing-time",
            Shape::Table(&MISSING_TIME),
            "Time that the machine takes from everybody, unasked.",
        )
        .example("{ budget = \"50us\", period = \"10ms\" }"),
        Key::new("limits", Shape::Table(&LIMITS), "Upper limits on what is admitted on each CPU.")
            .example("{ utilization = \"99%\" }"),
        Key::new(
            "reserve",
            Shape::List(&Shape::Table(&RESERVE)),
            "Supply set aside above all tasks on each CPU.",
        )
        .example("[{ name = \"fair-server\", budget = \"600us\", period = \"10ms\" }]"),
        Key::new(
            "defaults",
            Shape::Word(&[Word {
                text: "nautilus",
                doc: "a limit of 99 %, and reserves \"sporadic\" and \"aperiodic\" of 10us in 100us",
            }]),
            "Named values for keys that are absent. A given limit replaces the default one; a \
             given reserve replaces the default one of its name and joins the others.",
        )
        .example("\"nautilus\""),
    ],
};

static MISSING_TIME: Keys = Keys {
    selector: None,
    list: &[
        Key::new(
            "budget",
            Shape::Duration,
            "At most this is taken in any window of `period`.",
        )
        .example("\"50us\"")
        .needed(),
        Key::new(
            "period",
            Shape::Duration,
            "Smallest distance between the starts of two takings.",
        )
        .example("\"10ms\"")
        .needed(),
    ],
};

static LIMITS: Keys = Keys {
    selector: None,
    list: &[Key::new(
        "utilization",
        Shape::Percentage,
        "Everything with a guarantee together, reserves included.",
    )
    .example("\"99%\"")
    .needed()],
};

static RESERVE: Keys = Keys {
    selector: None,
    list: &[
        Key::new(
            "name",
            Shape::Text,
            "The name under which explanations show it.",
        )
        .example("\"fair-server\"")
        .needed(),
        Key::new("budget", Shape::Duration, "Supply taken per period.")
            .example("\"600us\"")
            .needed(),
        Key::new(
            "period",
            Shape::Duration,
            "Smallest distance between the starts of two takings.",
        )
        .example("\"10ms\"")
        .needed(),
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
