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
    /// Planned before the run.
    pub plan: OffLine,
    /// Requests: when, and for which kind.
    pub requests: Vec<(Instant, usize)>,
    /// A mistake that the planner makes on purpose.
    pub misplanning: Option<Misplanning>,
}

/// A mistake of a planner, planted to see that a judge finds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misplanning {
    /// It plans from the request on, and so moves segments that start before the cutoff.
    Moves,
    /// It tells no CPU what a segment needs of the others before it starts.
    Hastens,
    /// A kill ends the segment that executes, wherever that is.
    Cuts,
}

/// A plan that was made before the run: a part that is executed once, and one that repeats.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct OffLine {
    /// From the start on.
    pub first: Vec<PlannedFamily>,
    /// The other part begins then.
    pub repeats_from: Span,
    /// Its instants count from each of its beginnings.
    pub repeating: Vec<PlannedFamily>,
    /// Its length; zero: nothing repeats.
    pub period: Span,
}

/// One arrival of a group, with the children that are planned with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedFamily {
    /// The group.
    pub kind: usize,
    /// Its arrival, from the beginning of its part.
    pub arrival: Span,
    /// The segments of each member, in the order of [`Groups::family`]: the CPU of the planner, the
    /// start and the end.
    pub places: Vec<Vec<(usize, Span, Span)>>,
}

/// One group, as often as it is requested.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupKind {
    /// In overload.
    pub importance: Importance,
    /// An answer comes so long after the request, or it is out of time.
    pub max_wait: Option<Span>,
    /// It is asked for before the run, and has no plan yet: its request takes no time.
    pub off_line: bool,
    /// In an order that their precedence allows.
    pub segments: Vec<SegmentKind>,
}

/// One segment; spans count from the arrival of its group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentKind {
    /// The flow of execution that it is part of.
    pub flow: usize,
    /// It does not start before.
    pub release: Span,
    /// It ends by then.
    pub deadline: Span,
    /// Its length in a plan.
    pub wcet: Work,
    /// The most that it executes: at its home or without one, and away from it.
    pub budgets: [Work; 2],
    /// Its resources.
    pub uses: Vec<Use>,
    /// Where it executes best.
    pub location: Option<Location>,
    /// The segments that end before it starts, by place.
    pub after: Vec<usize>,
    /// The work that it does, also more than its budget; `None`: just that.
    pub executes: Option<Work>,
    /// The most that a handler in its place executes, and its work; zero: there is none.
    pub cleanup: Work,
    /// A group of this kind is planned with its own, to start at its end.
    pub spawns: Option<usize>,
    /// At its end: the groups of these kinds that arrived with its own are killed; where none
    /// did, the latest of the kind that has not ended.
    pub kills: Vec<usize>,
    /// At its end: kinds that are requested, until one is granted. They arrive with its own group.
    pub asks: Vec<usize>,
}

/// One request and what became of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupOutcome {
    /// The kind.
    pub kind: usize,
    /// All its instants count from then.
    pub arrival: Instant,
    /// The place among the outcomes of the group that it was planned with, if not itself.
    pub family: usize,
    /// The same for the group that arrived: others were asked for by that or by its children.
    pub origin: usize,
    /// When it was requested.
    pub requested: Instant,
    /// When it was answered: the cutoff; of a plan made before the run, when that was continued.
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
    /// Handlers of it were executed: in the place of which segment, where and when.
    pub cleaned: Vec<(usize, Execution)>,
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
    /// A group and the children that are planned with it, each child with its parent's place in
    /// this list and the segment behind which it starts. O(members · segments).
    pub fn family(&self, kind: usize) -> Vec<(usize, Option<(usize, usize)>)> {
        let mut members = vec![(kind, None)];
        let mut at = 0;
        while let Some(&(kind, _)) = members.get(at) {
            // A kind that spawns itself would never end.
            for (place, segment) in self.kinds[kind].segments.iter().enumerate() {
                let child = segment.spawns.filter(|_| members.len() <= self.kinds.len());
                members.extend(child.map(|child| (child, Some((at, place)))));
            }
            at += 1;
        }
        members
    }

    /// The longest time from a request to the end of its group.
    pub(crate) fn grace(&self) -> Span {
        let segments = self.kinds.iter().flat_map(|kind| &kind.segments);
        let deadline = segments.map(|segment| segment.deadline).max();
        deadline.unwrap_or(Span::ZERO).saturating_add(self.bound)
    }
}
