//! Groups for virtual time, requests for them, and their outcomes

use punctual_model::{Importance, Instant, Span, ThreadId, Work};
use punctual_planner::{Capacities, Location, Overload, Pace, Refusal, Search, Use};

/// Groups of a simulation, and how they are planned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Groups {
    /// Of the planner; its CPUs are those of `executors`.
    pub capacities: Capacities,
    /// By CPU of the planner: its place in the tables, and by flow the thread that executes it.
    pub executors: Vec<(usize, Vec<ThreadId>)>,
    /// The most that planning takes.
    pub bound: Span,
    /// The most effort.
    pub search: Search,
    /// How fast planning is; `None`: fast enough.
    pub pace: Option<Pace>,
    /// If a request does not fit.
    pub overload: Overload,
    /// The groups, by name.
    pub kinds: Vec<GroupKind>,
    /// Requests: when, and for which kind.
    pub requests: Vec<(Instant, usize)>,
}

/// One group, as often as it is requested.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupKind {
    /// In overload.
    pub importance: Importance,
    /// An answer comes so long after the request, or it is out of time.
    pub max_wait: Option<Span>,
    /// It is planned before anything starts: its request takes no time.
    pub off_line: bool,
    /// In an order that their precedence allows.
    pub segments: Vec<SegmentKind>,
}

/// One segment; spans count from the request of its group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentKind {
    /// The flow of execution that it is part of.
    pub flow: usize,
    /// It does not start before.
    pub release: Span,
    /// It ends by then.
    pub deadline: Span,
    /// The most that it executes.
    pub wcet: Work,
    /// Its resources.
    pub uses: Vec<Use>,
    /// Where it executes best.
    pub location: Option<Location>,
    /// The segments that end before it starts, by place.
    pub after: Vec<usize>,
    /// The work that it does, also more than its wcet.
    pub executes: Work,
    /// The most that a handler in its place executes, and its work; zero: there is none.
    pub cleanup: Work,
    /// At its end: groups of these kinds that are killed.
    pub kills: Vec<usize>,
    /// At its end: kinds that are requested, until one is granted.
    pub asks: Vec<usize>,
}

/// One request and what became of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupOutcome {
    /// The kind.
    pub kind: usize,
    /// When it was requested.
    pub requested: Instant,
    /// When it was answered: the cutoff.
    pub answered: Instant,
    /// Why it was refused.
    pub refused: Option<Refusal>,
    /// It was removed for another.
    pub removed: Option<Instant>,
    /// It was killed.
    pub killed: Option<Instant>,
    /// The last of its segments has ended.
    pub done: Option<Instant>,
    /// A segment ended after its deadline.
    pub missed: bool,
    /// By segment: when and where it was executed, if it was.
    pub executions: Vec<Option<Execution>>,
    /// Handlers of it were executed: where and when.
    pub cleaned: Vec<Execution>,
}

/// One segment as it was executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Execution {
    /// The CPU, by its place in the tables.
    pub cpu: usize,
    /// From then on.
    pub start: Instant,
    /// Until then.
    pub end: Instant,
    /// The start in the plan that was in force.
    pub planned: Instant,
}

impl Groups {
    /// The longest time from a request to the end of its group.
    pub(crate) fn grace(&self) -> Span {
        let segments = self.kinds.iter().flat_map(|kind| &kind.segments);
        let deadline = segments.map(|segment| segment.deadline).max();
        deadline.unwrap_or(Span::ZERO).saturating_add(self.bound)
    }
}
