//! The table of record kinds: names, fields and their meaning, for the text form and for decoding.
//!
//! One table serves the writer, the reader and the decoder, so the three cannot disagree. The
//! numbers of kinds live in memory only; in files a kind is its name.

/// What a field holds, and thereby how it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Field {
    /// A thread or a scheduler: `index`, or `index:generation` when the place was used before.
    Thread,
    /// An instant in ticks; `never` for the end of the timeline.
    Instant,
    /// A number: ticks of work or of time, a job, a slot, a CPU.
    Number,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// A field and whether it can be absent (written `-`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Column {
    pub(crate) field: Field,
    pub(crate) optional: bool,
}

const fn must(field: Field) -> Column {
    Column {
        field,
        optional: false,
    }
}

const fn may(field: Field) -> Column {
    Column {
        field,
        optional: true,
    }
}

/// A kind of record: its number in memory, its name, its columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) kind: u8,
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [Column],
}

pub(crate) const YES_NO: &[&str] = &["no", "yes"];
pub(crate) const CAUSES: &[&str] = &["stolen", "given-back"];
pub(crate) const CLASSES: &[&str] = &["periodic", "sporadic", "reservation", "once", "aperiodic"];
pub(crate) const LATE: &[&str] = &["queue", "skip"];
pub(crate) const OVERRUN: &[&str] = &["throttle", "demote", "stop", "signal"];
pub(crate) const OUTCOMES: &[&str] = &["done", "stopped", "aborted", "short"];
pub(crate) const WHY_BLOCKED: &[&str] = &["request", "predecessors"];
pub(crate) const WHY_WOKEN: &[&str] =
    &["wake", "early", "timeout", "predecessors", "lock", "supply"];
pub(crate) const MODES: &[&str] = &["exclusive", "shared"];
pub(crate) const PROTOCOLS: &[&str] = &[
    "inheritance",
    "immediate-ceiling",
    "srp",
    "non-preemptive",
    "spin",
];
pub(crate) const AT_BUDGET_END: &[&str] = &["overrun", "check-first"];
pub(crate) const URGENCIES: &[&str] = &["priority", "deadline", "turn"];
pub(crate) const REFUSALS: &[&str] = &[
    "stale-thread",
    "nobody-runs",
    "no-thread-left",
    "not-sporadic",
    "no-such-slot",
    "invalid-constraint",
    "no-such-node",
    "no-node-left",
    "too-deep",
    "not-a-parent",
    "quota-exhausted",
    "not-deciding",
    "stale-pick",
    "not-its-own",
    "not-ready",
    "not-its-child",
    "only-root-creates",
    "blocked-by-trusted",
    "not-grantable",
    "not-declared",
    "already-held",
    "not-held",
    "nested-too-deep",
    "deadlock",
    "not-a-sibling",
    "too-little-budget",
    "uses-resources",
];
pub(crate) const TRUST: &[&str] = &["inline", "own-time"];
pub(crate) const SUPPLIES: &[&str] = &[
    "shared",
    "slots",
    "polling",
    "deferrable",
    "sporadic",
    "constant-bandwidth",
    "periodic-resource",
];
pub(crate) const POLICIES: &[&str] = &[
    "fifo",
    "edf",
    "fixed-priority",
    "non-preemptive",
    "round-robin",
    "tdm",
];

/// The twelve columns of a constraint.
macro_rules! constraint {
    ($($before:expr),*) => {
        &[
            $($before,)*
            must(Field::Word(CLASSES)),
            may(Field::Number),
            may(Field::Number),
            may(Field::Number),
            must(Field::Number),
            must(Field::Number),
            must(Field::Word(LATE)),
            may(Field::Number),
            must(Field::Word(OVERRUN)),
            must(Field::Number),
            must(Field::Instant),
            must(Field::Word(YES_NO)),
        ]
    };
}

/// Declares a table of forms and one constant per kind.
macro_rules! forms {
    ($table:ident: $($id:ident = $kind:literal $name:literal $columns:expr;)*) => {
        $(pub(crate) const $id: u8 = $kind;)*
        pub(crate) const $table: &[Form] = &[
            $(Form { kind: $kind, name: $name, columns: $columns }),*
        ];
    };
}

const THREAD: Column = must(Field::Thread);
/// A scheduler is written like a thread.
const NODE: Column = THREAD;
const NUMBER: Column = must(Field::Number);
const INSTANT: Column = must(Field::Instant);
const ARM: Column = may(Field::Instant);

forms! { EVENTS:
    TICK = 0 "tick" &[INSTANT];
    EVENT_MISSING = 1 "missing" &[INSTANT, NUMBER, must(Field::Word(CAUSES))];
    COMPLETE = 2 "complete" &[INSTANT];
    BLOCK = 3 "block" &[INSTANT, ARM];
    YIELD = 4 "yield" &[INSTANT];
    EXIT = 5 "exit" &[INSTANT];
    PROTECT = 6 "protect" &[INSTANT];
    UNPROTECT = 7 "unprotect" &[INSTANT];
    WAKE = 8 "wake" &[INSTANT, THREAD];
    ARRIVE = 9 "arrive" &[INSTANT, THREAD, INSTANT];
    CREATE = 10 "create" constraint!(INSTANT);
    CHANGE = 11 "change" constraint!(INSTANT, THREAD);
    KILL = 12 "kill" &[INSTANT, THREAD];
    REMOTE = 13 "remote" &[INSTANT, NUMBER, NUMBER, NUMBER];
    CHILD_PICKED = 14 "child-picked" &[INSTANT, NODE, NUMBER, may(Field::Thread), ARM];
    CREATE_FOR = 15 "create-for" constraint!(INSTANT, NODE, NODE);
    GRANT = 16 "grant" &[INSTANT, NODE, THREAD, NODE];
    REVOKE = 17 "revoke" &[INSTANT, NODE, THREAD];
    PROMOTE = 18 "promote" &[
        INSTANT, NODE, must(Field::Word(SUPPLIES)), may(Field::Number), may(Field::Number),
        NUMBER, NUMBER, must(Field::Word(TRUST)), may(Field::Number),
    ];
    DEMOTE = 19 "demote" &[INSTANT, NODE, NODE];
    BLOCK_BY = 20 "block-by" &[INSTANT, NODE, THREAD, must(Field::Word(YES_NO)), ARM];
    WAKE_BY = 21 "wake-by" &[INSTANT, NODE, THREAD];
    LOCK = 22 "lock" &[INSTANT, NUMBER, must(Field::Word(MODES)), ARM];
    UNLOCK = 23 "unlock" &[INSTANT, NUMBER];
    LEND = 24 "lend" &[INSTANT, NODE, NODE, NUMBER];
    BLOCK_ON = 25 "block-on" &[INSTANT, THREAD, NUMBER, ARM];
    HAND_OVER = 26 "hand-over" &[INSTANT, NUMBER, THREAD, THREAD];
    RAISE = 27 "raise" &[INSTANT, may(Field::Number), ARM];
}

forms! { TRACES:
    CREATED = 32 "created" &[THREAD];
    ENDED = 33 "ended" &[THREAD];
    CHANGED = 34 "changed" &[THREAD];
    RELEASED = 35 "released" &[THREAD, NUMBER, INSTANT, INSTANT];
    SKIPPED = 36 "skipped" &[THREAD, NUMBER];
    LOST = 37 "lost" &[THREAD, NUMBER];
    STARTED = 38 "started" &[THREAD, NUMBER, may(Field::Number)];
    COMPLETED = 39 "completed"
        &[THREAD, NUMBER, must(Field::Word(OUTCOMES)), INSTANT, INSTANT, NUMBER];
    OVERRAN = 40 "overran" &[THREAD, NUMBER];
    THROTTLED = 41 "throttled" &[THREAD, NUMBER];
    REPLENISHED = 42 "replenished" &[THREAD, NUMBER];
    DEMOTED = 43 "demoted" &[THREAD, NUMBER];
    BLOCKED = 44 "blocked" &[THREAD, NUMBER, must(Field::Word(WHY_BLOCKED))];
    WOKEN = 45 "woken" &[THREAD, must(Field::Word(WHY_WOKEN))];
    SWITCHED = 46 "switched" &[may(Field::Thread), may(Field::Thread), must(Field::Word(YES_NO))];
    MISSING = 47 "missing" &[NUMBER, must(Field::Word(CAUSES))];
    SERVER_REPLENISHED = 48 "server-replenished" &[NODE, NUMBER];
    SERVER_EXHAUSTED = 49 "server-exhausted" &[NODE];
    CHILD_CHARGED = 50 "child-charged" &[NODE, NUMBER];
    MOVED = 51 "moved" &[THREAD, NODE];
    PROMOTED = 52 "promoted" &[NODE, NODE];
    SCHEDULER_ENDED = 53 "scheduler-ended" &[NODE];
    LOCKED = 54 "locked" &[THREAD, NUMBER, must(Field::Word(MODES))];
    WAITS = 55 "waits" &[THREAD, NUMBER, must(Field::Word(MODES))];
    UNLOCKED = 56 "unlocked" &[THREAD, NUMBER];
    SECTION_OVERRAN = 57 "section-overran" &[THREAD, NUMBER];
    LENT = 58 "lent" &[NODE, NODE, NUMBER];
    POSTPONED = 59 "postponed" &[THREAD, NUMBER];
    CAUGHT_UP = 60 "caught-up" &[];
    ORDERED = 61 "ordered"
        &[THREAD, must(Field::Word(YES_NO)), NUMBER, INSTANT, INSTANT, must(Field::Word(YES_NO))];
    QUEUED = 62 "queued" &[NODE, NUMBER, INSTANT, INSTANT, may(Field::Number)];
    UNQUEUED = 63 "unqueued" &[NODE, may(Field::Number)];
}

forms! { DECISIONS:
    RUN = 64 "run" &[THREAD, ARM];
    IDLE = 65 "idle" &[ARM];
    RUN_REFUSING = 66 "run-refusing"
        &[THREAD, ARM, must(Field::Word(REFUSALS)), may(Field::Number)];
    IDLE_REFUSING = 67 "idle-refusing" &[ARM, must(Field::Word(REFUSALS)), may(Field::Number)];
    RUN_CHILD = 68 "run-child" &[NODE, ARM];
    RUN_CHILD_REFUSING = 69 "run-child-refusing"
        &[NODE, ARM, must(Field::Word(REFUSALS)), may(Field::Number)];
}

forms! { PLANS:
    PLAN_THREAD = 96 "thread" constraint!(NUMBER);
    PLAN_REMOTE = 97 "remote" &[INSTANT, may(Field::Number)];
    PLAN_NOTIFY = 98 "notify" &[NUMBER, NUMBER, NUMBER];
    PLAN_AFTER = 99 "after" &[NUMBER, THREAD];
    PLAN_FOLLOWS = 100 "follows" &[NUMBER, THREAD];
    PLAN_AFTER_REMOTE = 101 "after-remote" &[NUMBER, NUMBER];
    PLAN_FOLLOWS_REMOTE = 102 "follows-remote" &[NUMBER, NUMBER];
    PLAN_NODE = 103 "node" &[
        NUMBER, NUMBER, NUMBER, NUMBER, must(Field::Word(TRUST)), may(Field::Number),
        must(Field::Word(SUPPLIES)), may(Field::Number), may(Field::Number),
        must(Field::Word(POLICIES)), may(Field::Number), may(Field::Number),
    ];
    PLAN_HOME = 104 "home" &[NUMBER, NUMBER];
    PLAN_SLOT = 105 "slot" &[NUMBER, NUMBER, NUMBER, NUMBER];
    PLAN_RESOURCE = 106 "resource" &[
        NUMBER, must(Field::Word(PROTOCOLS)), must(Field::Word(AT_BUDGET_END)),
        must(Field::Word(URGENCIES)), NUMBER, NUMBER, must(Field::Word(YES_NO)), NUMBER,
        must(Field::Word(YES_NO)),
    ];
    PLAN_USE = 107 "use" &[NUMBER, NUMBER, must(Field::Word(MODES)), NUMBER, NUMBER];
    PLAN_CREATED = 108 "created" &[THREAD, NUMBER];
}

/// What stands before the name of a kind in a file, so that each kind of line shows at its edge.
pub(crate) fn mark(kind: u8) -> &'static str {
    match kind {
        0..32 => "@ ",
        32..64 => "+ ",
        64..96 => "= ",
        _ => "",
    }
}

/// The form of a record kind. O(1): each table is dense from its first kind on.
pub(crate) fn of_kind(kind: u8) -> Option<&'static Form> {
    let (table, first) = match kind {
        0..32 => (EVENTS, TICK),
        32..64 => (TRACES, CREATED),
        64..96 => (DECISIONS, RUN),
        _ => (PLANS, PLAN_THREAD),
    };
    table.get(usize::from(kind - first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_at_its_number_and_fits_a_record() {
        for table in [EVENTS, TRACES, DECISIONS, PLANS] {
            for form in table {
                let found = of_kind(form.kind).expect("in its table");
                assert_eq!(found.name, form.name);
                assert!(form.columns.len() <= 16, "one absence flag per column");
            }
        }
    }
}
