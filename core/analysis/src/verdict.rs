//! The answer: admitted with bounds, or refused with witnesses, in words and in numbers

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use punctual_dataflow::Fraction;
use punctual_model::{Barrier, CpuId, GraphId, GroupId, Ns, SchedulerId, Span, TaskId, Work};

pub use crate::grade::{Exactness, Slack, Test};
use crate::plan::answer::PlanVerdict;

/// The answer of the analysis about a whole system.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct Verdict {
    /// Whether every deadline, requirement and limit holds: there is no refusal.
    pub admitted: bool,
    /// Every task, in the order of the file.
    pub tasks: Vec<TaskVerdict>,
    /// Every CPU, in the order of the file.
    pub cpus: Vec<CpuVerdict>,
    /// Every scheduler below a CPU's own, in the order of the file.
    pub schedulers: Vec<SchedulerVerdict>,
    /// Every required chain, in the order of the file.
    pub chains: Vec<ChainVerdict>,
    /// Every required difference of responses, in the order of the file.
    pub jitters: Vec<JitterVerdict>,
    /// Every graph, in the order of the file.
    pub graphs: Vec<GraphVerdict>,
    /// Every gang, in the order of the file.
    pub gangs: Vec<GangVerdict>,
    /// The planned groups; `None` without any.
    pub plan: Option<PlanVerdict>,
    /// Why it is refused; empty when admitted.
    pub refusals: Vec<Refusal>,
}

/// The answer of the analysis about one gang. Whether its members are admitted is in their rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GangVerdict {
    /// Its place in [`punctual_model::System::gangs`].
    pub gang: usize,
    /// Its name in the file.
    pub name: String,
    /// How far apart the members start each superstep; one for a gang without barriers.
    pub supersteps: Vec<SkewVerdict>,
    /// Which of its barriers are needed.
    pub barriers: Vec<BarrierVerdict>,
}

impl GangVerdict {
    /// Leaves out its other barriers, too, without proof: the result of such a run is unsafe, and
    /// says so. One stays where the next superstep has no instant. O(barriers).
    pub fn leave_out_all(&mut self) {
        let kept = self.barriers.iter_mut().filter(|b| !b.left_out);
        for barrier in kept.filter(|barrier| barrier.gap.is_some()) {
            (barrier.left_out, barrier.forced) = (true, true);
        }
    }
}

/// How far apart the members of one superstep start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SkewVerdict {
    /// The gang's name, with that of the superstep.
    pub name: String,
    /// Its tasks.
    pub members: Vec<TaskId>,
    /// The greatest difference between the starts of two members at one arrival; `None`: nothing
    /// bounds it.
    pub bound: Option<Span<Ns>>,
    /// The way to the bound.
    pub test: Test,
    /// The summands of the bound.
    pub terms: Vec<Term>,
    /// The terms in words, or why there is no bound.
    pub explanation: String,
    /// The assumptions of the bound.
    pub assumptions: Vec<String>,
}

/// Whether a barrier between two supersteps is needed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BarrierVerdict {
    /// Which.
    pub barrier: Barrier,
    /// The superstep that is waited for.
    pub before: String,
    /// The superstep that waits.
    pub next: String,
    /// Time alone keeps both apart.
    pub left_out: bool,
    /// When the last member has ended the one before, counted from the gang's arrival; `None`:
    /// nothing bounds it.
    pub worst_end: Option<Span<Ns>>,
    /// When the next begins, counted likewise.
    pub begins: Option<Span<Ns>>,
    /// From the arrival of the superstep before to that of the next.
    pub gap: Option<Span<Ns>>,
    /// It was left out without proof ([`GangVerdict::leave_out_all`]).
    pub forced: bool,
    /// The most by which clocks differ, as counted.
    pub clock_error: Span<Ns>,
    /// Why it is left out or kept.
    pub reason: String,
}

/// The answer of the analysis about one task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskVerdict {
    /// The task.
    pub task: TaskId,
    /// Its name in the file.
    pub name: String,
    /// The CPU that it is placed on.
    pub cpu: CpuId,
    /// Longest time from arrival to completion; `None`: nothing bounds it.
    pub response_bound: Option<Span<Ns>>,
    /// From arrival to deadline; `None` for aperiodic work.
    pub relative_deadline: Option<Span<Ns>>,
    /// How far to trust a refusal of this task.
    pub exactness: Exactness,
    /// The test that gave the bound.
    pub test: Test,
    /// The terms of the bound in words, with their values; or why there is no bound.
    pub explanation: String,
    /// The same terms as numbers; empty when the bound is not a sum of them.
    pub terms: Vec<Term>,
    /// The assumptions of the bound, and why it is not exact where it is not.
    pub assumptions: Vec<String>,
    /// How far the wcet may grow; `None` when the system is refused, for aperiodic work, and where
    /// it was not asked for.
    pub slack: Option<Slack>,
}

/// One summand of a bound: `count` times `each`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Term {
    /// The task whose work it is, or the name of the demand.
    pub what: String,
    /// How many jobs, or how often it is taken.
    pub count: u64,
    /// The work of each.
    pub each: Work<Ns>,
}

/// The answer of the analysis about one CPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuVerdict {
    /// The CPU.
    pub cpu: CpuId,
    /// Its name in the file.
    pub name: String,
    /// Everything with a guarantee, overheads, reserves and missing time included, in parts per
    /// million, rounded up.
    pub utilization_ppm: u64,
    /// Quick answers: information, never the reason of a verdict.
    pub quick: Vec<Quick>,
    /// The price of the wake ahead of its slots; `None`: it divides no time, or declares none.
    pub between_slots: Option<BetweenSlots>,
}

/// The time in front of slots that is nobody's. The next slot is decided in it and its program
/// woken, so the slot begins at its start (CompOSe §4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BetweenSlots {
    /// In front of each slot.
    pub each: Span<Ns>,
    /// In each frame: the supply of all slots together is less by it.
    pub all: Span<Ns>,
    /// The frame.
    pub frame: Span<Ns>,
}

/// The answer of the analysis about one scheduler below a CPU's own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchedulerVerdict {
    /// The scheduler.
    pub scheduler: SchedulerId,
    /// Its name in the file.
    pub name: String,
    /// The CPU at the root of its tree.
    pub cpu: CpuId,
    /// The need of its tasks, servers and children, in parts per million of a CPU, rounded up.
    pub utilization_ppm: u64,
    /// Its sure supply in the long run, in parts per million of a CPU, rounded down, without the
    /// loss to more urgent work.
    pub supply_ppm: u64,
    /// From a replenishment until the whole budget has been given; `None` without a server, and
    /// when nothing bounds it.
    pub budget_bound: Option<Span<Ns>>,
    /// The longest time without any supply while it has work; `None`: there may be no end.
    pub blackout: Option<Span<Ns>>,
    /// Its supply in words.
    pub explanation: String,
    /// The answer about a slice of another's supply; `None`: it is a scheduler.
    pub slice: Option<SliceVerdict>,
}

/// The answer of the analysis about a slice that a scheduler has delegated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SliceVerdict {
    /// Name of the giver.
    pub by: String,
    /// The receiver, as the file names it.
    pub to: String,
    /// Whether it is given whole in each of its periods. If not, what executes on it is
    /// background: nothing bounds it.
    pub is_guaranteed: bool,
    /// Why, or why not.
    pub reason: String,
}

/// A classic test that needs no iteration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quick {
    /// The test.
    pub test: Test,
    /// Its answer.
    pub answer: QuickAnswer,
}

/// The answer of a quick test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuickAnswer {
    /// It admits.
    Admits,
    /// It cannot tell: the bound is passed (or within rounding of it).
    CannotTell,
    /// Its model is another one.
    DoesNotApply(&'static str),
}

/// One reason why a system is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The task, CPU, scheduler or requirement.
    pub subject: Subject,
    /// Its name in the file; of a chain, the names along it.
    pub name: String,
    /// The fault, in words, with the values.
    pub reason: String,
    /// A concrete situation that shows it; `None` when the test is only sufficient and has none, or
    /// when a limit is exceeded rather than the processor.
    pub witness: Option<Witness>,
    /// In which situation the witness is seen; empty without one.
    pub situation: String,
    /// One parameter that mends the whole system.
    pub fix: Option<Fix>,
    /// The fix in words; without one, why there is none and what would mend this refusal alone.
    pub advice: String,
}

impl Refusal {
    /// Without a witness and without a fix.
    pub(crate) fn new(subject: Subject, name: &str, reason: String) -> Refusal {
        Refusal {
            subject,
            name: name.into(),
            reason,
            witness: None,
            situation: String::new(),
            fix: None,
            advice: String::new(),
        }
    }
}

/// The subject of a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// A task.
    Task(TaskId),
    /// A CPU.
    Cpu(CpuId),
    /// A scheduler below a CPU's own.
    Scheduler(SchedulerId),
    /// A chain or a difference of responses: its place in `System::requirements`.
    Requirement(usize),
    /// A graph.
    Graph(GraphId),
    /// A planned group.
    Group(GroupId),
}

/// A concrete counter-example. Simulating the situation that [`Refusal::situation`] names shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Witness {
    /// When everything is released at 0, more is due by an instant than can be supplied; of a
    /// server, more goes before the end of its budget.
    Demand {
        /// The instant, from the common release on.
        at: Span<Ns>,
        /// Work due by then, and the section that may have begun before.
        demand: Work<Ns>,
        /// The supply by then.
        supply: Work<Ns>,
    },
    /// A job's response exceeds what is allowed.
    Response {
        /// The task.
        task: TaskId,
        /// Which job of the busy window, counted from 0.
        job: u64,
        /// Its release, after the common release of those that delay it.
        offset: Span<Ns>,
        /// From its arrival to its completion.
        response: Span<Ns>,
        /// The longest response allowed: the relative deadline, or a required response.
        deadline: Span<Ns>,
    },
}

impl Verdict {
    /// The answer as tools print it.
    pub fn word(&self) -> &'static str {
        if self.admitted { "admitted" } else { "refused" }
    }

    /// The row of a task.
    pub fn task(&self, task: TaskId) -> Option<&TaskVerdict> {
        self.tasks.get(task.index())
    }
}

/// The answer of the analysis about one required chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainVerdict {
    /// Its place in `System::requirements`.
    pub requirement: usize,
    /// `a -> b -> c`.
    pub name: String,
    /// The longest latency allowed.
    pub within: Span<Ns>,
    /// The longest latency; `None`: nothing bounds it.
    pub bound: Option<Span<Ns>>,
    /// Whether some arrivals reach the bound.
    pub exactness: Exactness,
    /// The test that gave the bound.
    pub test: Test,
    /// The hand-overs in the worst case found, in order; empty without a bound.
    pub handovers: Vec<Handover>,
    /// The terms of the bound in words, or why there is none.
    pub explanation: String,
    /// The assumptions of the bound.
    pub assumptions: Vec<String>,
}

/// From the arrival of one job to that of the job that takes its effect on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handover {
    /// The task that hands on.
    pub from: TaskId,
    /// The task that takes over.
    pub to: TaskId,
    /// The reason why the next job sees it.
    pub how: How,
    /// The distance of the two arrivals.
    pub length: Span<Ns>,
}

/// Why a job of the next task surely sees what was handed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// It waits for its predecessor.
    Triggered,
    /// It cannot overtake the other on their CPU.
    Ordered,
    /// It arrives after the other has completed.
    Sampled,
}

impl How {
    /// The word in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            How::Triggered => "triggered",
            How::Ordered => "ordered",
            How::Sampled => "sampled",
        }
    }
}

/// The answer of the analysis about one required difference of responses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JitterVerdict {
    /// Its place in `System::requirements`.
    pub requirement: usize,
    /// The task.
    pub task: TaskId,
    /// Its name in the file.
    pub name: String,
    /// The largest difference allowed.
    pub within: Span<Ns>,
    /// The largest difference; `None`: nothing bounds it.
    pub bound: Option<Span<Ns>>,
    /// The bound in words, or why there is none.
    pub explanation: String,
}

/// One parameter and its new value. Applied, the whole system is admitted; one nanosecond short of
/// it, it is refused. Of a planned group the latter is not said: its search is not sustainable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fix {
    /// Which parameter.
    pub target: FixTarget,
    /// Its place in the file, such as `task.planner.wcet`.
    pub parameter: String,
    /// Its value now.
    pub from: Span<Ns>,
    /// Its new value.
    pub to: Span<Ns>,
}

/// A parameter that a fix may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FixTarget {
    /// The wcet (slice, size) of a task.
    Budget(TaskId),
    /// The relative deadline of a task.
    Deadline(TaskId),
    /// The period or minimum separation of a task, and the deadline where it equals it.
    Period(TaskId),
    /// The limit of the requirement with this index.
    Within(usize),
    /// The budget of the server of a scheduler.
    ServerBudget(SchedulerId),
    /// The period of the server of a scheduler.
    ServerPeriod(SchedulerId),
    /// The length of a slot of a scheduler, by its place in the list.
    SlotLength(SchedulerId, usize),
    /// The length of a slot of a task that stands directly in a frame, by its place in the list.
    TaskSlotLength(TaskId, usize),
    /// The relative deadline of a group.
    GroupDeadline(GroupId),
    /// The wcet of a segment of a group, by its place in it.
    SegmentWcet(GroupId, usize),
    /// The budget that a change transfers, by its place in `System::changes`.
    Transfer(usize),
}

impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.from.readable(), self.to.readable());
        write!(f, "{} = \"{to}\" instead of \"{from}\"", self.parameter)
    }
}

/// The answer of the analysis about one graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GraphVerdict {
    /// The graph.
    pub graph: GraphId,
    /// Its name in the file.
    pub name: String,
    /// Its actors, in the order of the file.
    pub actors: Vec<ActorVerdict>,
    /// Nanoseconds from one iteration to the next in the long run, at worst; `None`: it cannot go
    /// on, or nothing bounds it.
    pub period: Option<Fraction>,
    /// From the start until every output has fired once, at worst.
    pub first_output: Option<Span<Ns>>,
    /// From the start of an iteration's period to the end of its last output, at worst. Periods
    /// are those required, or those of `period`.
    pub latency: Option<Span<Ns>>,
    /// The longest period allowed.
    pub every: Option<Span<Ns>>,
    /// The longest latency allowed.
    pub within: Option<Span<Ns>>,
    /// The firings that hold the period; `None` without one.
    pub circle: Option<WorstCircle>,
    /// Bytes of its FIFOs in each memory; `None`: one of them has no limit.
    pub memory: Vec<(String, Option<u64>)>,
    /// Whether the execution of the graph until a state came again gave the same period. It is not
    /// tried beyond the limits of `punctual_dataflow::period_by_states`.
    pub confirmed: bool,
    /// How far to trust a refusal of this graph.
    pub exactness: Exactness,
    /// The test that gave the period.
    pub test: Test,
    /// The period in words, or why there is none.
    pub explanation: String,
    /// The assumptions of the bounds.
    pub assumptions: Vec<String>,
    /// One parameter that mends it, when it is refused.
    pub fix: Option<GraphFix>,
    /// Where none does: capacities and slots that mend it together.
    pub together: Vec<GraphFix>,
}

/// The answer of the analysis about one actor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ActorVerdict {
    /// Its name.
    pub name: String,
    /// Its tile as the file names it.
    pub on: String,
    /// Firings in an iteration; `None` where the rates contradict each other.
    pub firings: Option<u64>,
    /// The longest wcet of its phases.
    pub wcet: Work<Ns>,
    /// From the instant at which a firing becomes ready to its end, at worst over its phases.
    pub response: Option<Span<Ns>>,
}

/// A schedule of a graph that repeats: nobody who fires as soon as it may is later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GraphSchedule {
    /// Nanoseconds from one iteration to the next.
    pub period: Fraction,
    /// Of each actor: the starts of its firings in the first iteration, in parts of a nanosecond
    /// as the denominator of the period says.
    pub starts: Vec<Vec<u128>>,
    /// Of each actor: the response of each of its phases, in nanoseconds.
    pub responses: Vec<Vec<u64>>,
    /// From the start of a period to the end of the last output of its iteration.
    pub latency: Span<Ns>,
}

/// Firings that wait for each other in a circle, and take longest for each iteration on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorstCircle {
    /// Their responses together.
    pub time: Span<Ns>,
    /// How many iterations are under way on it at once.
    pub iterations: u64,
    /// The actors of its firings, how often, and with which response.
    pub terms: Vec<Term>,
    /// The reasons why each waits for the one before, in words.
    pub through: Vec<String>,
}

/// One parameter and its new value. Applied, the graph is admitted; one step short of it, refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GraphFix {
    /// Its place in the file, such as `graph.decoder.fifos[1].capacity`.
    pub parameter: String,
    /// Its value now, as the file writes it.
    pub from: String,
    /// Its new value, as the file writes it.
    pub to: String,
}
