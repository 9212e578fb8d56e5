//! The answer about the groups of a system: their plan, and a row for each

use alloc::string::String;
use alloc::vec::Vec;

use punctual_model::{GroupId, Instant, Ns, Span, Work};

use crate::grade::{Exactness, Slack, Test};

/// The plan of a system's groups, and the answer about each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanVerdict {
    /// Every group, in the order of the file.
    pub groups: Vec<GroupVerdict>,
    /// The plan of all that is planned before the run; `None`: it was refused.
    pub plan: Option<Plan>,
    /// The planned lengths of the segments, by group and place.
    pub lengths: Vec<Vec<PlannedLength>>,
    /// The cost of a switch between processes, where the planner adds it to lengths.
    pub process_switch: Work<Ns>,
    /// Segments looked at until the plan was there, or given up.
    pub evaluations: u64,
}

/// How long a segment is in plans: its wcet with all that is counted for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedLength {
    /// At home, or anywhere if it has none.
    pub home: Work<Ns>,
    /// Elsewhere.
    pub away: Work<Ns>,
}

/// A CPU and a start for each segment. The first part is executed once. The part behind it is as
/// long as the period, and is repeated.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// The names of the planned nodes, as the file writes them: the CPUs of the plan.
    pub nodes: Vec<String>,
    /// In the order of their starts.
    pub segments: Vec<PlannedSegment>,
    /// The plan repeats from this instant on.
    pub repeats_from: Span<Ns>,
    /// The length of the part that repeats; zero: none does.
    pub period: Span<Ns>,
}

/// A segment of one instance of a group, with its place in a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedSegment {
    /// Its group.
    pub group: GroupId,
    /// Which arrival of its family, counted from 0.
    pub instance: u64,
    /// Its place in its group.
    pub segment: usize,
    /// The arrival of its instance.
    pub arrival: Instant<Ns>,
    /// The planned node: its place in [`Plan::nodes`].
    pub node: usize,
    /// It starts then at the latest.
    pub start: Instant<Ns>,
    /// It has ended by then.
    pub end: Instant<Ns>,
}

/// The answer about one group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupVerdict {
    /// The group.
    pub group: GroupId,
    /// Its name in the file.
    pub name: String,
    /// Whether it is planned before the run; else its requests are answered when they come.
    pub off_line: bool,
    /// Its instances in the plan.
    pub instances: u64,
    /// From arrival to the end of its last segment, at worst in this plan. Of a group that is asked
    /// for on line: of a request beside the plan that repeats, when nothing else is asked for.
    /// `None`: it has no place.
    pub ends: Option<Span<Ns>>,
    /// From arrival to deadline.
    pub relative_deadline: Span<Ns>,
    /// How far to trust a refusal of this group.
    pub exactness: Exactness,
    /// The way to the plan.
    pub test: Test,
    /// The end in words, or why there is none.
    pub explanation: String,
    /// The assumptions of the plan.
    pub assumptions: Vec<String>,
    /// Of each segment, how far it may grow in this plan; empty without a plan.
    pub slack: Vec<SegmentSlack>,
}

/// How far one segment may grow in its plan, in all its instances: others may start later for it,
/// in the order of the plan, and nobody is late.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentSlack {
    /// Its name.
    pub segment: String,
    /// Its wcet now.
    pub wcet: Work<Ns>,
    /// The largest growth.
    pub slack: Slack,
}
