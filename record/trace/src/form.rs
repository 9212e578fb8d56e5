//! The table of record kinds: the number, the name, the fields and the value of each.
//!
//! Writing, reading, storing and restoring are made from the rows, so the four cannot disagree. The
//! numbers of kinds live in memory only; in files a kind is its name.

use punctual_kern::{
    AgendaStep, Ceiling, ChildPick, Constraint, Decision, Edge, Event, FallbackCause, Grant,
    Message, Next, NodeId, NodeTerms, Outcome, PlannedSegment, Refusal, Request, ResourceTerms,
    SlotTerms, Source, Taker, TraceEvent, UseTerms, WaitOrder, WakeCause,
};
use punctual_model::{
    AtBudgetEnd, CpuId, Instant, Mode, PolicyKind, Priority, Protocol, ResourceId, SchedulerId,
    Span, TaskId, ThreadId, Trust, Work,
};
use punctual_tables::{FallbackRow, NodeRow};

use crate::value::{Column, Fields, ForPredecessors, columns, put_all, take_all};

/// A kind of record: its number in memory, its name, its columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) kind: u8,
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [Column],
}

/// What an entry has beside its event, which follows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Prefix {
    Uncharged(Span, Span),
    Ceiling(Option<Ceiling>),
    Taker(Taker),
}

/// One line of what a shard was built from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TablesLine {
    Thread(TaskId, Constraint),
    Remote(Instant, Option<Span>),
    Notify(u32, CpuId, u32),
    Edge(u32, Edge),
    Node(NodeRow),
    Absent(u16),
    /// Room for so many segments of plans.
    AgendaRoom(u32),
    /// A CPU whose segments those of plans here may need, and the slot there of this CPU.
    AgendaPeer(u32, CpuId, u32),
    Home(u32, u16),
    Slot(SlotTerms),
    Resource(ResourceTerms),
    Use(u32, UseTerms),
    /// A thread that was created while it ran, and its task.
    Created(ThreadId, TaskId),
    /// The policy of a node that decides on its own supply for when it does not, and how long it is
    /// asked before.
    Fallback(FallbackRow),
}

/// Declares a table of forms, what stores a value of it (its words go to `put`), and what restores
/// it. A row ends with the value, as a pattern and as an expression of the fields.
macro_rules! forms {
    (
        $table:ident, $(#[$inline:meta])* $store:ident: $by:ty, $restore:ident: $of:ty;
        $($kind:literal $name:literal ($($field:ident: $type:ty),*) [$($value:tt)+];)*
    ) => {
        pub(crate) const $table: &[Form] = &[
            $(Form { kind: $kind, name: $name, columns: columns!($($type),*) }),*
        ];

        /// Hands the words of a value to `put`.
        $(#[$inline])*
        pub(crate) fn $store(of: $by, put: impl FnOnce(&[u64])) {
            match of {
                $($($value)+ => {
                    $(let $field = *$field;)*
                    let mut words = [0; 1 + columns!($($type),*).len()];
                    words[0] = $kind;
                    put_all!(&mut words, 1; $($field: $type),*);
                    put(&words);
                })*
            }
        }

        /// The value of a record; `None` for fields that do not belong together.
        pub(crate) fn $restore(kind: u8, fields: &mut Fields<'_>) -> Option<$of> {
            match kind {
                $($kind => {
                    take_all!(fields; $($field: $type),*);
                    Some($($value)+)
                })*
                _ => None,
            }
        }
    };
}

/// The kinds of the most frequent entries, which are stored without a look at the table.
pub(crate) const TICK: u8 = 0;
pub(crate) const COMPLETE: u8 = 2;
pub(crate) const HAND_OVER: u8 = 1;
pub(crate) const BLOCK: u8 = 3;
pub(crate) const YIELD: u8 = 4;
pub(crate) const EXIT: u8 = 5;
pub(crate) const WAKE: u8 = 8;
pub(crate) const CREATE: u8 = 10;
pub(crate) const BLOCK_ON: u8 = 25;
pub(crate) const CREATED: u8 = 32;
pub(crate) const ENDED: u8 = 33;
pub(crate) const RELEASED: u8 = 35;
pub(crate) const STARTED: u8 = 38;
pub(crate) const COMPLETED: u8 = 39;
pub(crate) const BLOCKED: u8 = 44;
pub(crate) const WOKEN: u8 = 45;
pub(crate) const SWITCHED: u8 = 46;
pub(crate) const ORDERED: u8 = 61;
pub(crate) const RUN: u8 = 72;
pub(crate) const IDLE: u8 = 73;

forms! { EVENTS, #[inline(never)] store_event: (&Instant, &Event), event: (Instant, Event);
    0 "tick" (now: Instant) [(now, Event::Tick)];
    1 "hand-over" (now: Instant, key: u32, from: ThreadId, to: ThreadId)
        [(now, Event::HandOver { key, from, to })];
    2 "complete" (now: Instant) [(now, Event::Complete)];
    3 "block" (now: Instant, until: Option<Instant>) [(now, Event::Block { until })];
    4 "yield" (now: Instant) [(now, Event::Yield)];
    5 "exit" (now: Instant) [(now, Event::Exit)];
    6 "protect" (now: Instant) [(now, Event::Protect)];
    7 "unprotect" (now: Instant) [(now, Event::Unprotect)];
    8 "wake" (now: Instant, thread: ThreadId) [(now, Event::Wake(thread))];
    9 "arrive" (now: Instant, thread: ThreadId, arrival: Instant)
        [(now, Event::Arrive { thread, arrival })];
    10 "create" (now: Instant, constraint: Constraint) [(now, Event::Create(constraint))];
    11 "change" (now: Instant, thread: ThreadId, constraint: Constraint)
        [(now, Event::Change { thread, constraint })];
    12 "kill" (now: Instant, thread: ThreadId) [(now, Event::Kill(thread))];
    13 "remote" (now: Instant, to: CpuId, slot: u32, frontier: u64)
        [(now, Event::Remote(Message { to, slot, frontier }))];
    14 "child-picked" (
        now: Instant, child: NodeId, epoch: u32, thread: Option<ThreadId>, until: Option<Instant>
    ) [(now, Event::ChildPicked(ChildPick { child, epoch, thread, until }))];
    15 "create-for" (now: Instant, by: NodeId, home: NodeId, constraint: Constraint)
        [(now, Event::Manage { by, request: Request::Create { home, constraint } })];
    16 "grant" (now: Instant, by: NodeId, thread: ThreadId, to: NodeId)
        [(now, Event::Manage { by, request: Request::Grant { thread, to } })];
    17 "revoke" (now: Instant, by: NodeId, thread: ThreadId)
        [(now, Event::Manage { by, request: Request::Revoke { thread } })];
    18 "promote" (
        now: Instant, by: NodeId, supply: Grant, priority: Priority, order: u32, trust: Trust,
        quota: Option<u32>, receiver: Option<NodeId>
    ) [(now, Event::Manage {
        by,
        request: Request::Promote(NodeTerms { supply, priority, order, trust, quota, receiver }),
    })];
    19 "demote" (now: Instant, by: NodeId, node: NodeId)
        [(now, Event::Manage { by, request: Request::Demote(node) })];
    20 "block-by" (
        now: Instant, by: NodeId, thread: ThreadId, exclusive: bool, until: Option<Instant>
    ) [(now, Event::Manage { by, request: Request::Block { thread, exclusive, until } })];
    21 "wake-by" (now: Instant, by: NodeId, thread: ThreadId)
        [(now, Event::Manage { by, request: Request::Wake(thread) })];
    22 "lock" (now: Instant, resource: u32, mode: Mode, until: Option<Instant>)
        [(now, Event::Lock { resource, mode, until })];
    23 "unlock" (now: Instant, resource: u32) [(now, Event::Unlock { resource })];
    24 "lend" (now: Instant, by: NodeId, to: NodeId, work: Work)
        [(now, Event::Manage { by, request: Request::Lend { to, work } })];
    25 "block-on" (now: Instant, holder: ThreadId, key: u32, until: Option<Instant>)
        [(now, Event::BlockOn { holder, key, until })];
    26 "replace" (now: Instant, by: NodeId, node: NodeId, policy: PolicyKind)
        [(now, Event::Manage { by, request: Request::Replace { node, policy } })];
    27 "child-failed" (now: Instant, child: NodeId) [(now, Event::ChildFailed(child))];
    28 "supply" (now: Instant, by: NodeId, node: NodeId, supply: Grant)
        [(now, Event::Manage { by, request: Request::Supply { node, supply } })];
    128 "plan-hold" (now: Instant, cutoff: Option<Instant>)
        [(now, Event::Agenda(AgendaStep::Hold { cutoff }))];
    129 "plan-stage" (
        now: Instant, number: u64, thread: ThreadId, earliest: Instant, start: Instant,
        wcet: Work, deadline: Instant, group: u32, cleanup: Work
    ) [(now, Event::Agenda(AgendaStep::Stage(PlannedSegment {
        number, thread, earliest, start, wcet, deadline, group, cleanup,
    })))];
    130 "plan-need" (now: Instant, slot: u32, frontier: u64)
        [(now, Event::Agenda(AgendaStep::Need { slot, frontier }))];
    131 "plan-commit" (now: Instant, from: u64)
        [(now, Event::Agenda(AgendaStep::Commit { from }))];
    132 "plan-kill" (now: Instant, group: u32, cleans: Option<u64>)
        [(now, Event::Agenda(AgendaStep::Kill { group, cleans }))];
}

forms! { PREFIXES, #[inline(never)] store_prefix: &Prefix, prefix: Prefix;
    29 "missing" (stolen: Span, given_back: Span) [Prefix::Uncharged(stolen, given_back)];
    30 "ceiling" (ceiling: Option<Ceiling>) [Prefix::Ceiling(ceiling)];
    31 "taken-by" (taker: Taker) [Prefix::Taker(taker)];
}

forms! { TRACES, #[inline] store_trace: &TraceEvent, trace: TraceEvent;
    32 "created" (thread: ThreadId) [TraceEvent::Created { thread }];
    33 "ended" (thread: ThreadId) [TraceEvent::Ended { thread }];
    34 "changed" (thread: ThreadId) [TraceEvent::Changed { thread }];
    35 "released" (thread: ThreadId, job: u64, arrival: Instant, deadline: Instant)
        [TraceEvent::Released { thread, job, arrival, deadline }];
    36 "skipped" (thread: ThreadId, job: u64) [TraceEvent::Skipped { thread, job }];
    37 "lost" (thread: ThreadId, job: u64) [TraceEvent::Lost { thread, job }];
    38 "started" (thread: ThreadId, job: u64, budget: Option<Work>)
        [TraceEvent::Started { thread, job, budget }];
    39 "completed" (
        thread: ThreadId, job: u64, outcome: Outcome, arrival: Instant, deadline: Instant,
        received: Work
    ) [TraceEvent::Completed { thread, job, outcome, arrival, deadline, received }];
    40 "overran" (thread: ThreadId, job: u64) [TraceEvent::Overran { thread, job }];
    41 "throttled" (thread: ThreadId, job: u64) [TraceEvent::Throttled { thread, job }];
    42 "replenished" (thread: ThreadId, budget: Work) [TraceEvent::Replenished { thread, budget }];
    43 "demoted" (thread: ThreadId, job: u64) [TraceEvent::Demoted { thread, job }];
    44 "blocked" (thread: ThreadId, job: u64, for_predecessors: ForPredecessors)
        [TraceEvent::Blocked { thread, job, for_predecessors }];
    45 "woken" (thread: ThreadId, cause: WakeCause) [TraceEvent::Woken { thread, cause }];
    46 "switched" (from: Option<ThreadId>, to: Option<ThreadId>, preempted: bool)
        [TraceEvent::Switched { from, to, preempted }];
    47 "deferred" (thread: ThreadId, release: Instant, deadline: Instant)
        [TraceEvent::Deferred { thread, release, deadline }];
    48 "server-replenished" (node: NodeId, budget: Work)
        [TraceEvent::ServerReplenished { node, budget }];
    49 "server-exhausted" (node: NodeId) [TraceEvent::ServerExhausted { node }];
    50 "child-charged" (node: NodeId, work: Work) [TraceEvent::ChildCharged { node, work }];
    51 "moved" (thread: ThreadId, home: NodeId) [TraceEvent::Moved { thread, home }];
    52 "promoted" (node: NodeId, parent: NodeId) [TraceEvent::Promoted { node, parent }];
    53 "scheduler-ended" (node: NodeId) [TraceEvent::SchedulerEnded { node }];
    54 "locked" (thread: ThreadId, resource: u32, mode: Mode)
        [TraceEvent::Locked { thread, resource, mode }];
    55 "waits" (thread: ThreadId, resource: u32, mode: Mode)
        [TraceEvent::Waits { thread, resource, mode }];
    56 "unlocked" (thread: ThreadId, resource: u32) [TraceEvent::Unlocked { thread, resource }];
    57 "section-overran" (thread: ThreadId, resource: u32)
        [TraceEvent::SectionOverran { thread, resource }];
    58 "lent" (from: NodeId, to: NodeId, work: Work) [TraceEvent::Lent { from, to, work }];
    59 "postponed" (thread: ThreadId, resource: u32) [TraceEvent::Postponed { thread, resource }];
    60 "caught-up" () [TraceEvent::CaughtUp];
    61 "ordered" (
        thread: ThreadId, background: bool, priority: Priority, deadline: Instant,
        release: Instant, yielded: bool
    ) [TraceEvent::Ordered { thread, background, priority, deadline, release, yielded }];
    62 "queued" (
        node: NodeId, priority: Priority, deadline: Instant, release: Instant,
        budget: Option<Work>
    ) [TraceEvent::Queued { node, priority, deadline, release, budget }];
    63 "unqueued" (node: NodeId, budget: Option<Work>) [TraceEvent::Unqueued { node, budget }];
    64 "policy-replaced" (node: NodeId, policy: PolicyKind)
        [TraceEvent::PolicyReplaced { node, policy }];
    65 "fell-back" (node: NodeId, cause: FallbackCause)
        [TraceEvent::FellBack { node, cause }];
    66 "supplied" (node: NodeId) [TraceEvent::Supplied { node }];
    67 "segment-started" (number: u64, thread: ThreadId, cleans: bool)
        [TraceEvent::SegmentStarted { number, thread, cleans }];
    68 "segment-skipped" (number: u64) [TraceEvent::SegmentSkipped { number }];
}

forms! { DECISIONS, #[inline(never)] store_decision: &Decision, decision: Decision;
    72 "run" (thread: ThreadId, arm: Option<Instant>)
        [Decision { next: Next::Thread(thread), arm, refused: None }];
    73 "idle" (arm: Option<Instant>) [Decision { next: Next::Idle, arm, refused: None }];
    74 "run-refusing" (thread: ThreadId, arm: Option<Instant>, refused: Refusal)
        [Decision { next: Next::Thread(thread), arm, refused: Some(refused) }];
    75 "idle-refusing" (arm: Option<Instant>, refused: Refusal)
        [Decision { next: Next::Idle, arm, refused: Some(refused) }];
    76 "run-child" (child: NodeId, arm: Option<Instant>)
        [Decision { next: Next::RunChild(child), arm, refused: None }];
    77 "run-child-refusing" (child: NodeId, arm: Option<Instant>, refused: Refusal)
        [Decision { next: Next::RunChild(child), arm, refused: Some(refused) }];
}

forms! { TABLES, store_tables: &TablesLine, tables: TablesLine;
    96 "thread" (task: TaskId, constraint: Constraint) [TablesLine::Thread(task, constraint)];
    97 "remote" (first: Instant, period: Option<Span>) [TablesLine::Remote(first, period)];
    98 "notify" (thread: u32, to: CpuId, slot: u32) [TablesLine::Notify(thread, to, slot)];
    99 "after" (successor: u32, thread: ThreadId)
        [TablesLine::Edge(successor, Edge { from: Source::Local(thread), strict: false })];
    100 "follows" (successor: u32, thread: ThreadId)
        [TablesLine::Edge(successor, Edge { from: Source::Local(thread), strict: true })];
    101 "after-remote" (successor: u32, slot: u32)
        [TablesLine::Edge(successor, Edge { from: Source::Remote { slot }, strict: false })];
    102 "follows-remote" (successor: u32, slot: u32)
        [TablesLine::Edge(successor, Edge { from: Source::Remote { slot }, strict: true })];
    103 "node" (
        scheduler: SchedulerId, parent: u16, priority: Priority, order: u32, trust: Trust,
        quota: Option<u32>, receiver: Option<NodeId>, supply: Grant, policy: PolicyKind
    ) [TablesLine::Node(NodeRow {
        scheduler,
        parent,
        policy,
        terms: NodeTerms { supply, priority, order, trust, quota, receiver },
    })];
    104 "home" (thread: u32, home: u16) [TablesLine::Home(thread, home)];
    105 "slot" (node: u16, entity: u32, at: Span, length: Span)
        [TablesLine::Slot(SlotTerms { node, entity, at, length })];
    106 "resource" (
        resource: ResourceId, protocol: Protocol, at_budget_end: AtBudgetEnd,
        wait_order: WaitOrder, ceiling: Priority, floor: Span, real_time: bool, common: NodeId,
        spans_schedulers: bool
    ) [TablesLine::Resource(ResourceTerms {
        resource, protocol, at_budget_end, wait_order, ceiling, floor, real_time, common,
        spans_schedulers,
    })];
    107 "use" (thread: u32, resource: u32, mode: Mode, length: Work, priority: Priority)
        [TablesLine::Use(thread, UseTerms { resource, mode, length, priority })];
    108 "created" (thread: ThreadId, task: TaskId) [TablesLine::Created(thread, task)];
    109 "fallback" (node: u16, policy: PolicyKind, patience: Span)
        [TablesLine::Fallback(FallbackRow { node, policy, patience })];
    110 "absent" (node: u16) [TablesLine::Absent(node)];
    111 "plan-room" (segments: u32) [TablesLine::AgendaRoom(segments)];
    112 "plan-peer" (slot: u32, to: CpuId, there: u32) [TablesLine::AgendaPeer(slot, to, there)];
}

/// What stands before the name of a kind in a file, so that each kind of line shows at its edge.
pub(crate) fn mark(kind: u8) -> &'static str {
    match kind {
        0..32 | 128.. => "@ ",
        32..72 => "+ ",
        72..96 => "= ",
        _ => "",
    }
}

/// The form of a record kind. O(1): each table is dense from its first kind on.
pub(crate) fn of_kind(kind: u8) -> Option<&'static Form> {
    let table = match kind {
        // The events beyond the first 29 are behind all other kinds.
        128.. => return EVENTS.get(29 + usize::from(kind - 128)),
        0..29 => EVENTS,
        29..32 => PREFIXES,
        32..72 => TRACES,
        72..96 => DECISIONS,
        96..128 => TABLES,
    };
    table.get(usize::from(kind - table.first()?.kind))
}

/// The record at the front of `words`: its kind, its fields, its length in words.
pub(crate) fn split(words: &[u64]) -> Option<(u8, Fields<'_>, usize)> {
    let head = *words.first()?;
    let kind = u8::try_from(head & 0xff).ok()?;
    let length = 1 + of_kind(kind)?.columns.len();
    Some((kind, Fields::new(head, words.get(1..length)?), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_at_its_number_and_fits_a_record() {
        for table in [EVENTS, PREFIXES, TRACES, DECISIONS, TABLES] {
            for form in table {
                let found = of_kind(form.kind).expect("in its table");
                assert_eq!(found.name, form.name);
                assert!(form.columns.len() <= 16, "one absence flag per column");
            }
        }
    }
}
