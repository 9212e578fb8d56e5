//! The keys of the machine.

use crate::shape::{Key, Keys, Shape, Word};

pub(super) static MACHINE: Keys = Keys {
    selector: None,
    list: &[
        Key::new(
            "switch",
            Shape::Duration,
            "One switch from thread to thread; each job pays two, in and out.",
        )
        .example("\"1us\""),
        Key::new(
            "timer",
            Shape::Duration,
            "One timer entry; each release pays one.",
        )
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
        Key::new(
            "limits",
            Shape::Table(&LIMITS),
            "Upper limits on what is admitted on each CPU.",
        )
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
                doc: "a limit of 99 %, and reserves sporadic and aperiodic of 10us in 100us each",
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
