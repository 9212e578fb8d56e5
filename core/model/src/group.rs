//! Planned groups: work that is guaranteed whole before its first instruction, or refused.
//!
//! A [`Group`] is threads of [`GroupSegment`]s (Spring's tasks) with precedence, resources and one
//! deadline. All its instants count from one *arrival*:
//!
//! ```text
//!   arrival     release                                          absolute deadline
//!   ---+-----------+====[segment]====[segment]====[segment]=============+--->
//!      |<--------->| no segment starts before                           |
//!      |<----------------------- relative deadline -------------------->| all have ended
//! ```
//!
//! Segments execute on CPUs whose policy is [`PolicyKind::Planned`]. Nobody blocks: the plan says
//! who uses which resource when ([`Protocol::Planned`]). Source: Humphrey and Stankovic,
//! "Predictable Threads for Dynamic, Hard Real-Time Environments" (Spring), §2.2 and §3.
//!
//! [`PolicyKind::Planned`]: crate::PolicyKind::Planned
//! [`Protocol::Planned`]: crate::Protocol::Planned

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::arrival::Arrivals;
use crate::id::{CpuId, GroupId, ResourceId};
use crate::priority::Importance;
use crate::resource::Mode;
use crate::task::{OnOverrun, WorkSource};
use crate::time::{Instant, Ns, Span, Unit, Work};

/// Segments with precedence between them and one deadline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Unique among the groups of a system.
    pub name: String,
    /// The source of its arrivals.
    pub request: Request,
    /// No segment starts before; from the arrival.
    pub release: Span<Ns>,
    /// All segments have ended by then; from the arrival.
    pub relative_deadline: Span<Ns>,
    /// Its value: with [`Overload::Shed`] it may take the place of less important groups.
    pub importance: Importance,
    /// The rule for a segment that exhausts its wcet.
    pub on_overrun: OnOverrun,
    /// In the order of the file; each executes one segment at a time.
    pub threads: Vec<GroupThread>,
    /// Those of a thread in the order in which it executes them.
    pub segments: Vec<GroupSegment>,
}

/// The source of a group's arrivals.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// It arrives once, and is planned before the run (off line).
    Once {
        /// Its arrival.
        at: Instant<Ns>,
    },
    /// It arrives at each multiple of the period, and is planned before the run (off line).
    Periodic {
        /// At least the relative deadline, so that its plan repeats.
        period: Span<Ns>,
    },
    /// It arrives while the system runs, and is planned then (on line): it may be refused.
    OnLine {
        /// The instants of its requests.
        arrivals: Arrivals,
        /// First arrival, for sources that have a rate.
        phase: Span<Ns>,
        /// Smallest distance between two requests; an earlier one waits.
        min_separation: Span<Ns>,
    },
    /// A segment of another group spawns it ([`Spawn`]).
    Spawned,
}

/// One flow of execution of a group. Its place (its stack) is used by one segment at a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupThread {
    /// Unique within its group.
    pub name: String,
    /// The address space that it belongs to: from one thread of a process to another one of the
    /// same, a CPU switches without [`Planning::process_switch`].
    pub process: String,
    /// The CPU near which the memory of its process is; `None`: all CPUs are alike for it.
    pub home: Option<CpuId>,
}

/// A stretch of a thread between two boundaries: planned whole, executed without preemption.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupSegment {
    /// Unique within its group.
    pub name: String,
    /// The place of its thread in [`Group::threads`].
    pub thread: usize,
    /// Worst-case execution time; also its budget.
    pub wcet: Work<Ns>,
    /// The same away from its thread's home; `None`: it is the same everywhere.
    pub wcet_away: Option<Work<Ns>>,
    /// Planned resources that it has from its start to its end.
    pub uses: Vec<SegmentUse>,
    /// The segments of its group that end before it starts, beside the one of its thread before it:
    /// their places in [`Group::segments`].
    pub after: Vec<usize>,
    /// The groups that it spawns at its end.
    pub spawn: Option<Spawn>,
    /// The groups that it kills at its end: those that arrived with it, else the latest instance.
    pub kills: Vec<GroupId>,
    /// When its group is killed at the boundary before it, a handler executes in its place for at
    /// most this; zero: none. At most its wcet, so that it fits into the plan.
    pub cleanup: Work<Ns>,
    /// The work of its body; `None`: it burns its wcet.
    pub work: Option<WorkSource>,
}

/// A planned resource that a segment uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentUse {
    /// Its protocol is planned.
    pub resource: ResourceId,
    /// Alone, or together with others that use it so.
    pub mode: Mode,
}

/// How a segment spawns groups. A child arrives with its parent: its instants count from the
/// arrival of the parent, not from the spawning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Spawn {
    /// Parent and child are useful together only: the child is planned with its parent.
    Dependent {
        /// The child.
        group: GroupId,
    },
    /// The child is desirable: it is requested when the segment ends.
    Independent {
        /// The first of these that is granted executes; the others are not asked for any more.
        groups: Vec<GroupId>,
        /// The longest wait for each answer. The segment waits that long in its plan; zero: it
        /// asks and goes on.
        max_wait: Span<Ns>,
    },
}

/// Which segment a planner places next: the one with the least value.
///
/// d is the effective deadline, s the earliest start, c the wcet. Ties go to the earlier effective
/// deadline, then to the lower number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heuristic {
    /// First come, first served: the release.
    FirstCome,
    /// Shortest first: the wcet c.
    Shortest,
    /// Earliest deadline first: d.
    Deadline,
    /// Earliest start first: s.
    Start,
    /// Least laxity: d - (s + c).
    Laxity,
    /// d + factor · c.
    DeadlineAndWork {
        /// The factor.
        factor: u32,
    },
    /// d + factor · s, the one to use: it sees CPUs, resources and deadlines.
    DeadlineAndStart {
        /// The factor; from 1 to 16 success differs little.
        factor: u32,
    },
}

impl Default for Heuristic {
    fn default() -> Heuristic {
        Heuristic::DeadlineAndStart { factor: 4 }
    }
}

impl Heuristic {
    /// The word for it in files and messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Heuristic::FirstCome => "first-come",
            Heuristic::Shortest => "shortest",
            Heuristic::Deadline => "deadline",
            Heuristic::Start => "start",
            Heuristic::Laxity => "laxity",
            Heuristic::DeadlineAndWork { .. } => "deadline-and-work",
            Heuristic::DeadlineAndStart { .. } => "deadline-and-start",
        }
    }

    /// The value of a segment that is released, may start, executes and has to end so; saturates.
    pub fn value<U: Unit>(
        self,
        release: Instant<U>,
        start: Instant<U>,
        wcet: Work<U>,
        deadline: Instant<U>,
    ) -> Instant<U> {
        let work = wcet.as_span();
        let from_zero = |instant: Instant<U>| instant.since(Instant::ZERO);
        match self {
            Heuristic::FirstCome => release,
            Heuristic::Shortest => Instant::ZERO.saturating_add(work),
            Heuristic::Deadline => deadline,
            Heuristic::Start => start,
            Heuristic::Laxity => deadline.saturating_sub(from_zero(start).saturating_add(work)),
            Heuristic::DeadlineAndWork { factor } => {
                deadline.saturating_add(work.saturating_mul(u64::from(factor)))
            }
            Heuristic::DeadlineAndStart { factor } => {
                deadline.saturating_add(from_zero(start).saturating_mul(u64::from(factor)))
            }
        }
    }

    /// The weight of its second term, where it has one.
    pub const fn factor(&self) -> Option<u32> {
        match *self {
            Heuristic::DeadlineAndWork { factor } | Heuristic::DeadlineAndStart { factor } => {
                Some(factor)
            }
            _ => None,
        }
    }
}

/// The rule for a request that does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Overload {
    /// It is refused: nobody who is guaranteed is removed.
    #[default]
    Keep,
    /// Groups of lower importance that have not begun are removed, the least important first, and
    /// of equals the one planned last. If the request does not fit then either, nobody is.
    Shed,
}

impl Overload {
    /// The word in files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Overload::Keep => "keep",
            Overload::Shed => "shed",
        }
    }
}

/// The CPU for a segment, among those where it could execute (Spring §5.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Locality {
    /// At home if it starts no later there than elsewhere.
    #[default]
    Earliest,
    /// At home, also if it starts later there.
    OnlyLocal,
}

impl Locality {
    /// The word in files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Locality::Earliest => "earliest",
            Locality::OnlyLocal => "only-local",
        }
    }
}

/// How the groups of a system are planned: the `[planning]` section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Planning {
    /// Which segment is next.
    pub heuristic: Heuristic,
    /// How many segments are looked at for each place in the plan; `None`: all, and on line as many
    /// as the time allows.
    pub window: Option<u32>,
    /// How often a place is taken back.
    pub backtracks: u64,
    /// A request is answered so long after it, at the latest: the distance of its cutoff line.
    pub within: Span<Ns>,
    /// Part of [`Planning::within`] that is not spent on looking at segments.
    pub margin: Span<Ns>,
    /// The cost of looking at one segment; zero: the time allowed sets no bound to the window.
    pub evaluation: Work<Ns>,
    /// The cost of each segment of a plan beside its evaluations ([`Planning::segment_cost`]).
    pub segment: Option<Work<Ns>>,
    /// The rule for a request that does not fit.
    pub overload: Overload,
    /// At home, or wherever it is early.
    pub locality: Locality,
    /// Prefers a segment of the process that the CPU executed last.
    pub within_process: bool,
    /// The cost of a switch from one process to another; each segment is planned with it.
    pub process_switch: Work<Ns>,
    /// The cost of setting a thread's place back after a kill.
    pub reset: Work<Ns>,
}

impl Default for Planning {
    fn default() -> Planning {
        Planning {
            heuristic: Heuristic::default(),
            window: None,
            backtracks: Planning::BACKTRACKS,
            within: Span::ZERO,
            margin: Span::ZERO,
            evaluation: Work::ZERO,
            segment: None,
            overload: Overload::default(),
            locality: Locality::default(),
            within_process: false,
            process_switch: Work::ZERO,
            reset: Work::ZERO,
        }
    }
}

impl Planning {
    /// `backtracks` of a file that does not say it.
    pub const BACKTRACKS: u64 = 100;

    /// The cost of a segment beside its evaluations where nobody says it, in evaluations: its share
    /// of the sort, of placing it and of taking the plan over. 20.6 were measured (design note
    /// 0093).
    pub const EVALUATIONS_OF_A_SEGMENT: u64 = 24;

    /// Whether planning takes time, so that the time allowed sets a bound to it.
    pub fn counts(&self) -> bool {
        !self.evaluation.is_zero() || self.segment.is_some_and(|cost| !cost.is_zero())
    }

    /// The cost of each segment of a plan beside its evaluations: [`Planning::segment`], or
    /// [`Planning::EVALUATIONS_OF_A_SEGMENT`].
    pub fn segment_cost(&self) -> Work<Ns> {
        let as_measured = self.evaluation.as_ns();
        let as_measured = as_measured.saturating_mul(Planning::EVALUATIONS_OF_A_SEGMENT);
        self.segment.unwrap_or(Work::from_ns(as_measured))
    }
}

impl Group {
    /// A group of this name that arrives once at the start, without segments yet.
    pub fn new(name: impl Into<String>, relative_deadline: Span<Ns>) -> Group {
        Group {
            name: name.into(),
            request: Request::Once { at: Instant::ZERO },
            release: Span::ZERO,
            relative_deadline,
            importance: Importance::default(),
            on_overrun: OnOverrun::default(),
            threads: Vec::new(),
            segments: Vec::new(),
        }
    }

    /// Adds a thread that is at home everywhere, in a process of its own, and gives its place.
    pub fn thread(&mut self, name: impl Into<String>) -> usize {
        let name = name.into();
        self.threads.push(GroupThread {
            process: alloc::format!("{}.{name}", self.name),
            name,
            home: None,
        });
        self.threads.len() - 1
    }

    /// Adds the next segment of a thread and gives its place.
    pub fn segment(&mut self, name: impl Into<String>, thread: usize, wcet: Work<Ns>) -> usize {
        self.segments.push(GroupSegment {
            name: name.into(),
            thread,
            wcet,
            wcet_away: None,
            uses: Vec::new(),
            after: Vec::new(),
            spawn: None,
            kills: Vec::new(),
            cleanup: Work::ZERO,
            work: None,
        });
        self.segments.len() - 1
    }

    /// The segments that end before one starts: the one of its thread before it, then those that it
    /// comes `after`; by place. O(segments).
    pub fn predecessors(&self, segment: usize) -> impl Iterator<Item = usize> + '_ {
        let own = self.segments.get(segment);
        let before = own.and_then(|own| {
            let earlier = self.segments.get(..segment)?;
            earlier.iter().rposition(|other| other.thread == own.thread)
        });
        let after = own.map_or(&[][..], |own| &own.after);
        before.into_iter().chain(after.iter().copied())
    }

    /// Its segments in an order that their precedence allows, without those of a circle.
    /// O(segments² + orders).
    pub fn in_order(&self) -> Vec<usize> {
        let count = self.segments.len();
        let mut waits = vec![0_usize; count];
        let mut next: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (at, waits) in waits.iter_mut().enumerate() {
            for before in self.predecessors(at) {
                if let Some(next) = next.get_mut(before) {
                    next.push(at);
                    *waits += 1;
                }
            }
        }
        let mut order: Vec<usize> = (0..count).filter(|at| waits[*at] == 0).collect();
        let mut done = 0;
        while let Some(&at) = order.get(done) {
            done += 1;
            for &after in &next[at] {
                waits[after] -= 1;
                if waits[after] == 0 {
                    order.push(after);
                }
            }
        }
        order
    }

    /// Whether it is planned before the run.
    pub const fn is_off_line(&self) -> bool {
        matches!(
            self.request,
            Request::Once { .. } | Request::Periodic { .. }
        )
    }
}

impl GroupSegment {
    /// The longest that it waits in its plan for answers to its requests.
    pub fn wait(&self) -> Span<Ns> {
        match &self.spawn {
            Some(Spawn::Independent { groups, max_wait }) => {
                max_wait.saturating_mul(groups.len() as u64)
            }
            _ => Span::ZERO,
        }
    }

    /// The groups that it spawns or asks for, in order.
    pub fn children(&self) -> &[GroupId] {
        match &self.spawn {
            Some(Spawn::Dependent { group }) => core::slice::from_ref(group),
            Some(Spawn::Independent { groups, .. }) => groups,
            None => &[],
        }
    }
}
