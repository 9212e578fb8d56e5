//! The keys of a resource, and of the sections in which jobs hold one.

use crate::shape::{Key, Keys, Shape, Word};

pub(super) static RESOURCE: Keys = Keys {
    selector: None,
    list: &[
        Key::new(
            "protocol",
            Shape::Word(&[
                Word {
                    text: "inheritance",
                    doc: "the holder is as urgent as the most urgent job that waits for it",
                },
                Word {
                    text: "immediate-ceiling",
                    doc: "the holder is as urgent as the most urgent task that uses it",
                },
                Word {
                    text: "srp",
                    doc: "no job starts unless it could lock everything it may need",
                },
                Word {
                    text: "non-preemptive",
                    doc: "the holder is not preempted by its siblings",
                },
                Word {
                    text: "spin",
                    doc: "across CPUs: first come, first served, waiting without preemption",
                },
            ]),
            "What keeps the wait for it short; \"inheritance\" when absent.",
        )
        .example("\"inheritance\""),
        Key::new(
            "at-budget-end",
            Shape::Word(&[
                Word {
                    text: "overrun",
                    doc: "it finishes its section; the next budget pays",
                },
                Word {
                    text: "check-first",
                    doc: "a section that does not fit into what is left is not begun",
                },
            ]),
            "What becomes of a holder whose server runs out of budget; \"overrun\" when absent.",
        )
        .example("\"overrun\""),
    ],
};

pub(super) static USE: Keys = Keys {
    selector: None,
    list: &[
        Key::new("resource", Shape::ResourceName, "What is locked.")
            .example("\"bus\"")
            .needed(),
        Key::new(
            "for",
            Shape::Duration,
            "Longest execution while it is locked, inner sections included.",
        )
        .example("\"1ms\"")
        .needed(),
        Key::new(
            "mode",
            Shape::Word(&[
                Word {
                    text: "exclusive",
                    doc: "alone",
                },
                Word {
                    text: "shared",
                    doc: "together with others that lock it so",
                },
            ]),
            "Alone or with other readers; \"exclusive\" when absent.",
        )
        .example("\"exclusive\""),
        Key::new(
            "inside",
            Shape::ResourceName,
            "The resource in whose section, written before, this one is nested.",
        )
        .example("\"other\""),
    ],
};
