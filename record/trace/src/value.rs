//! Values as columns of a record: each type says once how it is stored, read and written in a file.

use punctual_kern::{
    Ceiling, Constraint, FallbackCause, Grant, MissingCause, NodeId, Outcome, Refusal, Taker,
    WaitOrder, WakeCause,
};
use punctual_model::{
    AtBudgetEnd, Class, CpuId, Instant, Late, Mode, OnOverrun, PolicyKind, Priority, Protocol,
    ResourceId, SchedulerId, Server, ServerKind, Span, TaskId, ThreadId, Trust, Work,
};

/// What a column holds, and thereby how it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Field {
    /// A thread: `index`, or `index:generation` when the place was used before.
    Thread,
    /// A scheduler, likewise.
    Node,
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

/// The columns of several values, one after the other.
pub(crate) const fn join<const N: usize>(parts: &[&[Column]]) -> [Column; N] {
    let number = Column {
        field: Field::Number,
        optional: false,
    };
    let mut all = [number; N];
    let (mut part, mut at, mut length) = (0, 0, 0);
    while part < parts.len() {
        if at < parts[part].len() {
            all[length] = parts[part][at];
            (at, length) = (at + 1, length + 1);
        } else {
            (part, at) = (part + 1, 0);
        }
    }
    all
}

/// The columns of values of these types.
macro_rules! columns {
    ($($type:ty),*) => {{
        const N: usize = 0 $(+ <$type as $crate::value::Value>::COLUMNS.len())*;
        const ALL: [$crate::value::Column; N] =
            $crate::value::join(&[$(<$type as $crate::value::Value>::COLUMNS),*]);
        &ALL
    }};
}

/// Stores values one after the other, from word `$at` of a record on.
macro_rules! put_all {
    ($words:expr, $at:expr; $($field:ident: $type:ty),*) => {
        let at: usize = $at;
        $(
            <$type as $crate::value::Value>::put($field, $words, at);
            let at = at + <$type as $crate::value::Value>::COLUMNS.len();
        )*
        let _ = at;
    };
}

/// Takes values one after the other out of fields, each under its name.
macro_rules! take_all {
    ($fields:expr; $($field:ident: $type:ty),*) => {
        $(let $field = <$type as $crate::value::Value>::take($fields)?;)*
    };
}

pub(crate) use {columns, put_all, take_all};

/// The fields of one record that are not read yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    absent: u64,
    words: &'a [u64],
}

impl<'a> Fields<'a> {
    /// The fields of a record with its head.
    pub(crate) fn new(head: u64, words: &'a [u64]) -> Fields<'a> {
        let absent = head >> 8;
        Fields { absent, words }
    }

    /// The next field, which may be absent; `None`: there is none.
    fn next(&mut self) -> Option<Option<u64>> {
        let (first, rest) = self.words.split_first()?;
        let present = self.absent & 1 == 0;
        self.absent >>= 1;
        self.words = rest;
        Some(present.then_some(*first))
    }
}

/// A type of one column, for values of type `Of`.
pub(crate) trait Scalar {
    type Of: Copy;
    const FIELD: Field;
    fn word(of: Self::Of) -> u64;
    /// Undoes `word`; `None` for a word that it does not make.
    fn of(word: u64) -> Option<Self::Of>;
}

/// A type of one column or of several, for values of type `Of`.
pub(crate) trait Value {
    type Of: Copy;
    const COLUMNS: &'static [Column];
    /// Stores the value from word `at` of a record on, and says in the head what is absent.
    fn put(of: Self::Of, words: &mut [u64], at: usize);
    /// Undoes `put`; `None` for words that it does not make.
    fn take(fields: &mut Fields<'_>) -> Option<Self::Of>;
}

impl<S: Scalar> Value for S {
    type Of = S::Of;
    const COLUMNS: &'static [Column] = &[Column {
        field: S::FIELD,
        optional: false,
    }];

    #[inline]
    fn put(of: S::Of, words: &mut [u64], at: usize) {
        words[at] = S::word(of);
    }

    fn take(fields: &mut Fields<'_>) -> Option<S::Of> {
        S::of(fields.next()??)
    }
}

impl<S: Scalar> Value for Option<S> {
    type Of = Option<S::Of>;
    const COLUMNS: &'static [Column] = &[Column {
        field: S::FIELD,
        optional: true,
    }];

    #[inline]
    fn put(of: Self::Of, words: &mut [u64], at: usize) {
        words[at] = of.map_or(0, S::word);
        words[0] |= u64::from(of.is_none()) << (7 + at);
    }

    fn take(fields: &mut Fields<'_>) -> Option<Self::Of> {
        match fields.next()? {
            Some(word) => S::of(word).map(Some),
            None => Some(None),
        }
    }
}

/// Types that are one word: how it is made, and undone.
macro_rules! scalars {
    ($($type:ty, $field:ident: |$of:ident| $word:expr, |$from:ident| $back:expr;)*) => {
        $(impl Scalar for $type {
            type Of = $type;
            const FIELD: Field = Field::$field;

            #[inline]
            fn word($of: $type) -> u64 {
                $word
            }

            fn of($from: u64) -> Option<$type> {
                $back
            }
        })*
    };
}

scalars! {
    u64, Number: |n| n, |word| Some(word);
    u32, Number: |n| u64::from(n), |word| u32::try_from(word).ok();
    u16, Number: |n| u64::from(n), |word| u16::try_from(word).ok();
    Span, Number: |span| span.ticks(), |word| Some(Span::from_ticks(word));
    Work, Number: |work| work.ticks(), |word| Some(Work::from_ticks(word));
    Priority, Number: |p| u64::from(p.number()), |word| u32::of(word).map(Priority::new);
    CpuId, Number: |cpu| u64::from(cpu.0), |word| u16::of(word).map(CpuId);
    TaskId, Number: |task| u64::from(task.0), |word| u32::of(word).map(TaskId);
    SchedulerId, Number: |s| u64::from(s.0), |word| u16::of(word).map(SchedulerId);
    ResourceId, Number: |r| u64::from(r.0), |word| u16::of(word).map(ResourceId);
    Instant, Instant: |at| at.ticks(), |word| Some(Instant::from_ticks(word));
    ThreadId, Thread: |thread| u64::from(thread.generation()) << 32 | thread.index() as u64,
        |word| Some(ThreadId::new(u32::of(word & u64::from(u32::MAX))?, u32::of(word >> 32)?));
    NodeId, Node: |node| u64::from(node.generation()) << 32 | node.index() as u64,
        |word| Some(NodeId::new(u16::of(word & u64::from(u32::MAX))?, u16::of(word >> 32)?));
}

/// Types whose values have names: their numbers in memory and their words in a file.
macro_rules! named {
    ($($type:ty, of $of:ty: $([$($value:tt)+] = $word:literal $name:literal),*;)*) => {
        $(impl Scalar for $type {
            type Of = $of;
            const FIELD: Field = Field::Word(&[$($name),*]);

            #[inline]
            fn word(of: $of) -> u64 {
                match of {
                    $($($value)+ => $word),*
                }
            }

            fn of(word: u64) -> Option<$of> {
                match word {
                    $($word => Some($($value)+),)*
                    _ => None,
                }
            }
        })*
    };
}

/// What a thread waits for: predecessors, or what it asked for.
pub(crate) struct ForPredecessors;

named! {
    bool, of bool: [false] = 0 "no", [true] = 1 "yes";
    ForPredecessors, of bool: [false] = 0 "request", [true] = 1 "predecessors";
    MissingCause, of MissingCause:
        [MissingCause::Stolen] = 0 "stolen", [MissingCause::GivenBack] = 1 "given-back";
    Taker, of Taker:
        [Taker::Unknown] = 0 "unknown", [Taker::Kernel] = 1 "kernel",
        [Taker::Below] = 2 "below", [Taker::LateSlice] = 3 "late-slice";
    OnOverrun, of OnOverrun:
        [OnOverrun::Throttle] = 0 "throttle", [OnOverrun::Demote] = 1 "demote",
        [OnOverrun::Stop] = 2 "stop", [OnOverrun::Signal] = 3 "signal";
    Outcome, of Outcome:
        [Outcome::Done] = 0 "done", [Outcome::Stopped] = 1 "stopped",
        [Outcome::Aborted] = 2 "aborted", [Outcome::Short] = 3 "short";
    WakeCause, of WakeCause:
        [WakeCause::Wake] = 0 "wake", [WakeCause::EarlyWake] = 1 "early",
        [WakeCause::Timeout] = 2 "timeout", [WakeCause::Predecessors] = 3 "predecessors",
        [WakeCause::Lock] = 4 "lock", [WakeCause::Supply] = 5 "supply";
    Mode, of Mode: [Mode::Exclusive] = 0 "exclusive", [Mode::Shared] = 1 "shared";
    Protocol, of Protocol:
        [Protocol::Inheritance] = 0 "inheritance",
        [Protocol::ImmediateCeiling] = 1 "immediate-ceiling",
        [Protocol::StackResource] = 2 "srp",
        [Protocol::NonPreemptive] = 3 "non-preemptive", [Protocol::Spin] = 4 "spin",
        [Protocol::Planned] = 5 "planned";
    AtBudgetEnd, of AtBudgetEnd:
        [AtBudgetEnd::Overrun] = 0 "overrun", [AtBudgetEnd::CheckFirst] = 1 "check-first";
    WaitOrder, of WaitOrder:
        [WaitOrder::Priority] = 0 "priority", [WaitOrder::Deadline] = 1 "deadline",
        [WaitOrder::Fifo] = 2 "turn";
    FallbackCause, of FallbackCause:
        [FallbackCause::Failed] = 0 "failed", [FallbackCause::Unanswered] = 1 "unanswered";
    Trust, of Trust: [Trust::Inline] = 0 "inline", [Trust::OwnTime] = 1 "own-time";
}

/// Types whose columns depend on their variant: the columns, how a value becomes them, and back.
macro_rules! compounds {
    ($($type:ty: ($($field:ident: $part:ty),*) |$of:ident| $parts:expr, $back:expr;)*) => {
        $(impl Value for $type {
            type Of = $type;
            const COLUMNS: &'static [Column] = columns!($($part),*);

            fn put($of: $type, words: &mut [u64], at: usize) {
                let ($($field),*) = $parts;
                put_all!(words, at; $($field: $part),*);
            }

            fn take(fields: &mut Fields<'_>) -> Option<$type> {
                take_all!(fields; $($field: $part),*);
                $back
            }
        })*
    };
}

/// Numbers of variants, with their words in a file.
macro_rules! tags {
    ($($tag:ident: $($name:literal)*;)*) => {
        $(struct $tag;

        impl Scalar for $tag {
            type Of = usize;
            const FIELD: Field = Field::Word(&[$($name),*]);

            fn word(of: usize) -> u64 {
                of as u64
            }

            fn of(word: u64) -> Option<usize> {
                usize::try_from(word).ok()
            }
        })*
    };
}

tags! {
    ClassTag: "periodic" "sporadic" "reservation" "once" "aperiodic";
    LateTag: "queue" "skip";
    SupplyTag: "shared" "slots" "polling" "deferrable" "sporadic" "constant-bandwidth"
        "periodic-resource";
    PolicyTag: "fifo" "edf" "fixed-priority" "non-preemptive" "round-robin" "tdm"
        "planned";
}

compounds! {
    Class:
        (tag: ClassTag, period: Option<Span>, budget: Option<Work>, deadline: Option<Span>)
        |class| match class {
            Class::Periodic { period, wcet, relative_deadline } =>
                (0, Some(period), Some(wcet), Some(relative_deadline)),
            Class::Sporadic { min_separation, wcet, relative_deadline } =>
                (1, Some(min_separation), Some(wcet), Some(relative_deadline)),
            Class::Reservation { period, slice } => (2, Some(period), Some(slice), None),
            Class::Once { size, relative_deadline } =>
                (3, None, Some(size), Some(relative_deadline)),
            Class::Aperiodic => (4, None, None, None),
        },
        Some(match tag {
            0 => Class::Periodic {
                period: period?,
                wcet: budget?,
                relative_deadline: deadline?,
            },
            1 => Class::Sporadic {
                min_separation: period?,
                wcet: budget?,
                relative_deadline: deadline?,
            },
            2 => Class::Reservation { period: period?, slice: budget? },
            3 => Class::Once { size: budget?, relative_deadline: deadline? },
            4 => Class::Aperiodic,
            _ => return None,
        });
    Late: (tag: LateTag, backlog: Option<u32>)
        |late| match late {
            Late::Queue { backlog } => (0, Some(backlog)),
            Late::Skip => (1, None),
        },
        match tag {
            0 => Some(Late::Queue { backlog: backlog? }),
            1 => Some(Late::Skip),
            _ => None,
        };
    Constraint:
        (class: Class, priority: Priority, phase: Span, late: Late, on_overrun: OnOverrun,
            order: u32, until: Instant, fed: bool)
        |c| (c.class, c.priority, c.phase, c.late, c.on_overrun, c.order, c.until, c.fed),
        Some(Constraint { class, priority, phase, late, on_overrun, order, until, fed });
    Grant: (tag: SupplyTag, budget: Option<Work>, period: Option<Span>)
        |supply| match supply {
            Grant::Shared => (0, None, None),
            Grant::Slots => (1, None, None),
            Grant::Server(server) => {
                let kind = ServerKind::ALL.iter().position(|kind| *kind == server.kind);
                (2 + kind.unwrap_or(0), Some(server.budget), Some(server.period))
            }
        },
        Some(match tag {
            0 => Grant::Shared,
            1 => Grant::Slots,
            server => Grant::Server(Server {
                kind: *ServerKind::ALL.get(server - 2)?,
                budget: budget.filter(|budget| !budget.is_zero())?,
                period: period.filter(|period| !period.is_zero())?,
            }),
        });
    PolicyKind: (tag: PolicyTag, first: Option<Span>, second: Option<Span>)
        |policy| match policy {
            PolicyKind::Fifo => (0, None, None),
            PolicyKind::EarliestDeadlineFirst => (1, None, None),
            PolicyKind::FixedPriority { preemptive: true } => (2, None, None),
            PolicyKind::FixedPriority { preemptive: false } => (3, None, None),
            PolicyKind::RoundRobin { timeslice } => (4, Some(timeslice), None),
            PolicyKind::Tdm { frame, scheduling } => (5, Some(frame), Some(scheduling)),
            PolicyKind::Planned => (6, None, None),
        },
        Some(match tag {
            0 => PolicyKind::Fifo,
            1 => PolicyKind::EarliestDeadlineFirst,
            2 => PolicyKind::FixedPriority { preemptive: true },
            3 => PolicyKind::FixedPriority { preemptive: false },
            4 => PolicyKind::RoundRobin { timeslice: first? },
            5 => PolicyKind::Tdm { frame: first?, scheduling: second? },
            6 => PolicyKind::Planned,
            _ => return None,
        });
    Option<Ceiling>: (priority: Option<Priority>, deadline: Option<Instant>)
        |ceiling| (ceiling.map(|c| c.priority), ceiling.map(|c| c.absolute_deadline)),
        Some(priority.zip(deadline).map(|(priority, absolute_deadline)| Ceiling {
            priority,
            absolute_deadline,
        }));
}

/// Refusals: their numbers in memory, their words in a file, and what each is about.
macro_rules! refusals {
    ($($refusal:ident $(($what:ident: $type:ty))? = $word:literal $name:literal;)*) => {
        impl Value for Refusal {
            type Of = Refusal;
            const COLUMNS: &'static [Column] = &[
                Column { field: Field::Word(&[$($name),*]), optional: false },
                Column { field: Field::Number, optional: true },
            ];

            fn put(of: Refusal, words: &mut [u64], at: usize) {
                let (why, what): (u64, Option<u64>) = match of {
                    $(Refusal::$refusal $(($what))? => {
                        ($word, None $(.or(Some(<$type as Scalar>::word($what))))?)
                    })*
                };
                put_all!(words, at; why: u64, what: Option<u64>);
            }

            fn take(fields: &mut Fields<'_>) -> Option<Refusal> {
                let (why, what) = (fields.next()??, fields.next()?);
                match why {
                    $($word => Some(
                        Refusal::$refusal $(({ let $what = what?; <$type as Scalar>::of($what)? }))?
                    ),)*
                    _ => None,
                }
            }
        }
    };
}

refusals! {
    StaleThread(thread: ThreadId) = 0 "stale-thread";
    NobodyRuns = 1 "nobody-runs";
    NoThreadLeft = 2 "no-thread-left";
    NotSporadic(thread: ThreadId) = 3 "not-sporadic";
    NoSuchSlot(slot: u32) = 4 "no-such-slot";
    InvalidConstraint = 5 "invalid-constraint";
    NoSuchNode(node: NodeId) = 6 "no-such-node";
    NoNodeLeft = 7 "no-node-left";
    TooDeep(node: NodeId) = 8 "too-deep";
    NotAParent(node: NodeId) = 9 "not-a-parent";
    QuotaExhausted(node: NodeId) = 10 "quota-exhausted";
    NotDeciding(node: NodeId) = 11 "not-deciding";
    StalePick(node: NodeId) = 12 "stale-pick";
    NotItsOwn(thread: ThreadId) = 13 "not-its-own";
    NotReady(thread: ThreadId) = 14 "not-ready";
    NotItsChild(node: NodeId) = 15 "not-its-child";
    OnlyRootCreates(node: NodeId) = 16 "only-root-creates";
    BlockedByTrusted(thread: ThreadId) = 17 "blocked-by-trusted";
    NotGrantable(node: NodeId) = 18 "not-grantable";
    NotDeclared(resource: u32) = 19 "not-declared";
    AlreadyHeld(resource: u32) = 20 "already-held";
    NotHeld(resource: u32) = 21 "not-held";
    NestedTooDeep(resource: u32) = 22 "nested-too-deep";
    Deadlock(resource: u32) = 23 "deadlock";
    NotASibling(node: NodeId) = 24 "not-a-sibling";
    TooLittleBudget(node: NodeId) = 25 "too-little-budget";
    UsesResources(thread: ThreadId) = 26 "uses-resources";
    NotReplaceable(node: NodeId) = 27 "not-replaceable";
    NothingShelved(node: NodeId) = 28 "nothing-shelved";
    BeingReplaced(node: NodeId) = 29 "being-replaced";
    NotIdle(node: NodeId) = 30 "not-idle";
    NotAScheduler(node: NodeId) = 31 "not-a-scheduler";
    NotPlannable = 32 "not-plannable";
}
