//! The input of a simulation, its outcome, and the one who watches it.

use punctual_kern::{Plan, Shard};
use punctual_model::{CpuId, Instant, Ns, Span, Step, System, TaskId};

use crate::faults::Faults;
use crate::requests::GroupOutcome;

/// What a simulation is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Releases in [0, this) are covered.
    pub duration: Span<Ns>,
    /// Seed of arrivals and faults.
    pub seed: u64,
    /// What goes wrong.
    pub faults: Faults,
    /// The changes while it runs, CPU by CPU; nothing where there is no plan.
    pub plans: Vec<Plan>,
}

/// One CPU's part of the input: shard and recorder; the tables give the rest.
#[derive(Debug)]
pub struct CpuInput<P, S> {
    /// Its scheduler, built from the tables.
    pub shard: Shard<P>,
    /// What is told about it.
    pub sink: S,
}

/// A job that has just completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Whose.
    pub task: TaskId,
    /// Which.
    pub job: u64,
    /// When it arrived.
    pub arrival: Instant,
    /// When it completed.
    pub now: Instant,
}

/// Watches a simulation from outside.
pub trait Observer {
    /// A job has completed: the moment to execute its function, if it has one.
    fn completed(&mut self, completion: Completion) {
        let _ = completion;
    }

    /// Whether completions of CPUs that exchange no messages must be told in the order of time.
    /// Costs a comparison per CPU and event; otherwise they are told CPU by CPU.
    fn needs_order(&self) -> bool {
        false
    }

    /// Called now and then with the current instant; `false` ends the simulation early.
    fn goes_on(&mut self, now: Instant) -> bool {
        let _ = now;
        true
    }
}

impl Observer for () {}

/// What one CPU did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuOutcome<S> {
    /// Which CPU.
    pub cpu: CpuId,
    /// The recorder, filled.
    pub sink: S,
    /// Numbers of the platform.
    pub counters: Counters,
}

/// What a simulation gives back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome<S> {
    /// One per CPU, in the order of the file.
    pub cpus: Vec<CpuOutcome<S>>,
    /// The instant of the last event.
    pub end: Instant,
    /// The observer ended it early.
    pub stopped: bool,
    /// The requests for groups, in the order in which they were planned.
    pub groups: Vec<GroupOutcome>,
}

/// Counts of one virtual CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Entries of the scheduler.
    pub decisions: u64,
    /// Decisions that changed who runs.
    pub switches: u64,
    /// Time charged to nobody, in total.
    pub missing_total: Span,
    /// The longest piece of it.
    pub missing_max: Span,
}

impl Counters {
    pub(crate) fn missing(&mut self, span: Span) {
        self.missing_total = self.missing_total.saturating_add(span);
        self.missing_max = self.missing_max.max(span);
    }
}

/// How many steps pass between two questions whether to go on ([`Observer::goes_on`]).
pub const STEPS_PER_QUESTION: u32 = 4_096;

/// Whether a change gives this task another constraint.
pub(crate) fn retimed(system: &System, task: TaskId) -> bool {
    let mut steps = system.changes.iter().flat_map(|change| &change.steps);
    steps.any(|step| matches!(step, Step::Constrain(id, _) if *id == task))
}
