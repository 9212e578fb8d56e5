//! The keys of what is required beyond the deadlines.

use crate::shape::{Key, Keys, Shape};

pub(super) static REQUIRE: Keys = Keys {
    selector: None,
    list: &[
        Key::new(
            "response",
            Shape::List(&Shape::Table(&RESPONSE)),
            "Longest responses, from arrival to completion.",
        )
        .example("[{ task = \"name\", within = \"8ms\" }]"),
        Key::new(
            "chain",
            Shape::List(&Shape::Table(&CHAIN)),
            "Longest times from the arrival of a job of the first task to the completion of the \
             first job of the last one that has seen its effect.",
        )
        .example("[{ tasks = [\"first\", \"last\"], within = \"30ms\" }]"),
        Key::new(
            "jitter",
            Shape::List(&Shape::Table(&JITTER)),
            "Largest differences between the responses of a task.",
        )
        .example("[{ task = \"name\", within = \"1ms\" }]"),
    ],
};

const TASK: Key = Key::new("task", Shape::TaskName, "The task.")
    .example("\"name\"")
    .needed();

static RESPONSE: Keys = Keys {
    selector: None,
    list: &[
        TASK,
        Key::new("within", Shape::Duration, "The longest response allowed.")
            .example("\"8ms\"")
            .needed(),
    ],
};

static CHAIN: Keys = Keys {
    selector: None,
    list: &[
        Key::new(
            "tasks",
            Shape::List(&Shape::TaskName),
            "At least two, each handing on to the next.",
        )
        .example("[\"first\", \"last\"]")
        .needed(),
        Key::new("within", Shape::Duration, "The longest time allowed.")
            .example("\"30ms\"")
            .needed(),
    ],
};

static JITTER: Keys = Keys {
    selector: None,
    list: &[
        TASK,
        Key::new("within", Shape::Duration, "The largest difference allowed.")
            .example("\"1ms\"")
            .needed(),
    ],
};
