//! Workloads: the work of tasks when a file names a function.

/// The knowledge of a step about the job that it executes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobContext {
    /// Which job of its task this is, from 0.
    pub job: u64,
    /// Arrival of the job, in nanoseconds since the start of the run.
    pub arrival_ns: u64,
}

/// The body of a task: called once per job (or once, for the classes whose body is endless).
pub type Step = Box<dyn FnMut(JobContext) + Send>;

/// The result of a comparison with a reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Oracle {
    /// Results that were compared.
    pub steps: u64,
    /// Results that differed from the reference.
    pub mismatches: u64,
}

/// A library of named steps that share state, and optionally know what the result should be.
///
/// In a file, `work = { function = "rosace::elevator" }` names the workload and its step. A
/// workload is made anew for every run; its steps are asked for once per task, before the start.
pub trait Workload: Send {
    /// The part of the name before `::`.
    fn name(&self) -> &str;

    /// The names of the steps, for messages that suggest one.
    fn steps(&self) -> Vec<&'static str>;

    /// The body for one task, or `None` when there is no step of this name.
    fn step(&mut self, name: &str) -> Option<Step>;

    /// Compares what the steps produced with the reference, after the run; `None` without one.
    fn check(&mut self) -> Option<Oracle> {
        None
    }
}
