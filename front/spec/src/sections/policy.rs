//! The keys of a policy, which CPUs and schedulers share, and those of a CPU.

use super::U32;
use crate::shape::{Key, Keys, Shape, Word, Words};

// Words of `policy`.
const ROUND_ROBIN: Words = 1 << 1;
const FIXED_PRIORITY: Words = 1 << 2;
const TDM: Words = 1 << 4;

pub(super) const POLICY: Key = Key::new(
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
        Word {
            text: "tdm",
            doc: "each in its own slots of a frame that repeats",
        },
    ]),
    "Which thread runs next.",
)
.example("\"fixed-priority\"")
.needed();

pub(super) const TIMESLICE: Key = Key::new(
    "timeslice",
    Shape::Duration,
    "The longest turn; \"10ms\" when absent.",
)
.example("\"10ms\"")
.only(ROUND_ROBIN);

pub(super) const PREEMPTIVE: Key = Key::new(
    "preemptive",
    Shape::Flag,
    "Whether a more urgent job takes the CPU from a running one; true when absent.",
)
.example("false")
.only(FIXED_PRIORITY);

pub(super) const FRAME: Key = Key::new(
    "frame",
    Shape::Duration,
    "The length in which the slots repeat. All frames start with the run.",
)
.example("\"10ms\"")
.exactly(TDM);

pub(super) const SCHEDULING_TIME: Key = Key::new(
    "scheduling-time",
    Shape::Duration,
    "Nobody's time between two slots, always the same, in which the next is prepared; \"0s\" when \
     absent.",
)
.example("\"20us\"")
.only(TDM);

pub(super) static CPU: Keys = Keys {
    selector: Some("policy"),
    list: &[
        POLICY,
        Key::new(
            "host",
            U32,
            "The number of the host CPU to run on. A CPU whose name is a number is that host CPU \
             unless this says otherwise; any other CPU without it exists in virtual time only.",
        )
        .example("1"),
        TIMESLICE,
        PREEMPTIVE,
        FRAME,
        SCHEDULING_TIME,
    ],
};
