//! The keys of a scheduler below a CPU, and of what its parent grants it.

use super::policy::{FRAME, POLICY, PREEMPTIVE, SCHEDULING_TIME, TIMESLICE};
use super::{COUNT, U32};
use crate::shape::{Key, Keys, Shape, Word};

pub(super) static SCHEDULER: Keys = Keys {
    selector: Some("policy"),
    list: &[
        Key::new(
            "on",
            Shape::Text,
            "What grants it supply: \"cpu.NAME\", or \"scheduler.NAME\" at most 8 levels deep.",
        )
        .example("\"cpu.0\"")
        .needed(),
        POLICY,
        TIMESLICE,
        PREEMPTIVE,
        FRAME,
        SCHEDULING_TIME,
        Key::new(
            "priority",
            U32,
            "Its urgency among what its parent orders; a larger number is more urgent. Needed \
             below fixed priority.",
        )
        .example("1"),
        Key::new(
            "server",
            Shape::Table(&SERVER),
            "A budget that its parent grants it again and again; without it and without slots it \
             runs whenever it is the most urgent. Needed below edf.",
        )
        .example("{ kind = \"deferrable\", budget = \"2ms\", period = \"10ms\" }"),
        SLOTS,
        Key::new(
            "trust",
            Shape::Word(&[
                Word {
                    text: "inline",
                    doc: "it decides inside the core, in nobody's budget",
                },
                Word {
                    text: "own-time",
                    doc: "it decides on its own supply, and its answers are checked",
                },
            ]),
            "Who executes its decisions, on whose time; \"inline\" when absent.",
        )
        .example("\"inline\""),
        Key::new(
            "quota",
            COUNT,
            "Most threads that it and the schedulers below it may have; no limit when absent.",
        )
        .example("8"),
    ],
};

pub(super) const SLOTS: Key = Key::new(
    "slots",
    Shape::List(&SLOT_TABLE),
    "Its places in the frame; needed below tdm, and nowhere else.",
)
.example("[{ at = \"0ms\", length = \"4ms\" }]");

static SERVER: Keys = Keys {
    selector: None,
    list: &[
        Key::new(
            "kind",
            Shape::Word(&[
                Word {
                    text: "polling",
                    doc: "full at each period start if something is pending then; what finds \
                          nothing to do is lost",
                },
                Word {
                    text: "deferrable",
                    doc: "full at each period start, and kept to the end of the period",
                },
                Word {
                    text: "sporadic",
                    doc: "what is used comes back one period after its use began",
                },
                Word {
                    text: "constant-bandwidth",
                    doc: "a deadline that moves with the use of the budget; throttled until it \
                          when exhausted",
                },
                Word {
                    text: "periodic-resource",
                    doc: "full at each period start; passes whether used or not",
                },
            ]),
            "The rule by which budget comes, stays and goes.",
        )
        .example("\"deferrable\"")
        .needed(),
        Key::new("budget", Shape::Duration, "Work granted in each period.")
            .example("\"2ms\"")
            .needed(),
        Key::new(
            "period",
            Shape::Duration,
            "Distance between replenishments.",
        )
        .example("\"10ms\"")
        .needed(),
    ],
};

static SLOT_TABLE: Shape = Shape::Table(&SLOT);

static SLOT: Keys = Keys {
    selector: None,
    list: &[
        Key::new(
            "at",
            Shape::Duration,
            "Its start, from the start of the frame.",
        )
        .example("\"0ms\"")
        .needed(),
        Key::new("length", Shape::Duration, "Its length.")
            .example("\"4ms\"")
            .needed(),
    ],
};
