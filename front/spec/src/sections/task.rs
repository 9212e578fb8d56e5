//! The keys of a task.

use super::resource::USE;
use super::scheduler::SLOTS;
use super::{COUNT, U32};
use crate::shape::{Key, Keys, Shape, Word, Words};

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

pub(super) static TASK: Keys = Keys {
    selector: Some("class"),
    list: &[
        Key::new(
            "class",
            Shape::Word(&[
                Word {
                    text: "periodic",
                    doc: "one call per release, at phase + k · period",
                },
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
                Word {
                    text: "aperiodic",
                    doc: "a body without deadline",
                },
            ]),
            "The kind of work.",
        )
        .example("\"periodic\"")
        .needed(),
        Key::new(
            "on",
            Shape::Text,
            "What orders it: the CPU \"cpu.NAME\", or \"scheduler.NAME\".",
        )
        .example("\"cpu.0\"")
        .needed(),
        SLOTS,
        Key::new(
            "period",
            Shape::Duration,
            "Distance between releases, or replenishments.",
        )
        .example("\"10ms\"")
        .exactly(PERIODIC | RESERVATION),
        Key::new(
            "min-separation",
            Shape::Duration,
            "Smallest distance between releases; earlier arrivals wait.",
        )
        .example("\"10ms\"")
        .exactly(SPORADIC),
        Key::new(
            "wcet",
            Shape::Duration,
            "Worst-case execution time of a job; also its budget.",
        )
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
        Key::new(
            "phase",
            Shape::Duration,
            "First arrival after the start of the run.",
        )
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
        Key::new(
            "importance",
            U32,
            "What to keep in overload: a larger number is kept longer.",
        )
        .example("1"),
        Key::new(
            "jitter",
            Shape::Duration,
            "A release follows its arrival by at most this.",
        )
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
                Word {
                    text: "queue",
                    doc: "it waits, with at most `backlog` others",
                },
                Word {
                    text: "skip",
                    doc: "it is dropped and counted",
                },
            ]),
            "What becomes of a release that finds the job before unfinished; \"queue\" when \
             absent.",
        )
        .example("\"queue\"")
        .only(RECURRING),
        Key::new(
            "backlog",
            COUNT,
            "Most releases that wait when late ones queue, 64 when absent; others are counted as \
             lost.",
        )
        .example("64")
        .only(RECURRING),
        Key::new(
            "on-overrun",
            Shape::Word(&[
                Word {
                    text: "throttle",
                    doc: "the rest continues at the next replenishment",
                },
                Word {
                    text: "demote",
                    doc: "the rest continues below all real-time work",
                },
                Word {
                    text: "stop",
                    doc: "the job ends at its next scheduling point",
                },
                Word {
                    text: "signal",
                    doc: "the body is told, then as throttle",
                },
            ]),
            "What happens to a job that has used its budget and is not done; \"throttle\" when \
             absent.",
        )
        .example("\"throttle\"")
        .only(RECURRING),
        Key::new(
            "max-suspension",
            Shape::Duration,
            "The longest a job suspends itself in total.",
        )
        .example("\"1ms\"")
        .only(JOBS),
        Key::new(
            "suspensions",
            COUNT,
            "How often a job suspends itself at most; 1 when absent.",
        )
        .example("1")
        .only(JOBS),
        Key::new(
            "non-preemptive",
            Shape::Duration,
            "The longest stretch of a job that lets nobody preempt it.",
        )
        .example("\"50us\""),
        Key::new(
            "uses",
            Shape::List(&Shape::Table(&USE)),
            "The critical sections of a job, in the order in which it enters them.",
        )
        .example("[{ resource = \"bus\", for = \"1ms\" }]")
        .only(RECURRING),
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
        Key::new(
            "work",
            Shape::Choice(&WORK),
            "What a job executes; its budget when absent.",
        )
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

static WORK: [Keys; 4] = [
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
    Keys {
        selector: None,
        list: &[Key::new(
            "command",
            Shape::List(&Shape::Text),
            "A whole program and its arguments, run in place of the thread: reservations and \
             aperiodic tasks. A name with a slash is relative to the folder of this file.",
        )
        .example("[\"program\", \"argument\"]")
        .needed()],
    },
];
