//! Hyperperiod simulation: every job until all repeats, where all arrivals are known
//!
//! Shares no reasoning with the tests: it runs the schedule that the model describes, from the
//! first arrival on, until the state at two instants one hyperperiod apart is the same. From there
//! on everything repeats, so the longest response seen is the longest that these arrivals have.
//!
//! # Assumptions
//! 1. Arrivals by the clock at phase + k·period, released without jitter; each job takes its whole
//!    wcet and every overhead that the tests charge to it.
//! 2. Sections are whole jobs or none, nobody suspends itself, locks, or takes time at instants
//!    that the file does not say (reserves, missing time, timer entries).
//! 3. A node has its CPU for itself, or the slots of a frame. Servers are not simulated.
//! 4. Equal priorities and deadlines: the earlier release first, then the order in the file.
//!
//! A run in which jobs are shorter is no worse where everything is preemptive and nobody waits (the
//! schedule is predictable: Ha and Liu 1994). Otherwise it may be: then this is one run of many.
//!
//! Sources: Leung and Merrill 1980 (feasibility intervals); Goossens, Grolleau and Cucu-Grosjean
//! 2016 (the state at the end of a hyperperiod decides).

mod lane;
mod run;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use punctual_model::{Instant, Ns, Span, System, TaskId};

use crate::admit;
use crate::component::Component;
use crate::error::{AnalysisError, Checked};
use crate::precedence;

/// Most jobs of a simulation of one component.
pub const MAX_SIMULATED_JOBS: u64 = 1 << 20;

/// The results of simulating every job.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct Simulation {
    /// By task: the longest response; `None`: not simulated, or without a deadline.
    pub responses: Vec<Option<Span<Ns>>>,
    /// Every job that completed, in the order of completion, CPUs that belong together at a time.
    pub jobs: Vec<SimulatedJob>,
    /// By task: why it was not simulated; empty: it was.
    pub reasons: Vec<String>,
    /// Whether some run with shorter jobs could be later than this one.
    pub anomalies: bool,
}

/// One job of a simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SimulatedJob {
    /// The task of the job.
    pub task: TaskId,
    /// When it arrived.
    pub arrival: Instant<Ns>,
    /// When it first ran.
    pub start: Instant<Ns>,
    /// When it was done.
    pub completion: Instant<Ns>,
}

/// Simulates `system` where its arrivals are known. CPUs without precedence between them are
/// simulated by themselves, so that one unknown keeps no others from being simulated.
/// O(events · tasks), at most about three events for each of 2^20 jobs.
///
/// # Errors
///
/// [`AnalysisError`] as for [`crate::admit`].
pub fn simulate_hyperperiod(system: &System) -> Result<Simulation, AnalysisError> {
    admit::check(system)?;
    let mut simulation = Simulation {
        responses: vec![None; system.tasks.len()],
        jobs: Vec::new(),
        reasons: vec![String::new(); system.tasks.len()],
        anomalies: false,
    };
    let edges = precedence::edges(system);
    for component in Component::all(system, &edges) {
        let own = |task: &punctual_model::Task| component.contains(task.cpu);
        match one(system, &component)? {
            Ok(run) => {
                simulation.anomalies |= run.anomalies;
                simulation.note(&run.jobs);
            }
            Err(reason) => {
                let tasks = system.tasks.iter().zip(&mut simulation.reasons);
                let tasks = tasks.filter(|(task, _)| own(task) && task.class.is_real_time());
                tasks.for_each(|(_, slot)| *slot = reason.clone());
            }
        }
    }
    for (task, reason) in system.tasks.iter().zip(&mut simulation.reasons) {
        if !task.class.is_real_time() {
            *reason = "aperiodic work has no jobs".to_string();
        }
    }
    Ok(simulation)
}

impl Simulation {
    fn note(&mut self, jobs: &[SimulatedJob]) {
        for job in jobs {
            let response = job.completion.since(job.arrival);
            let longest = &mut self.responses[job.task.index()];
            *longest = Some(longest.map_or(response, |known| known.max(response)));
        }
        self.jobs.extend_from_slice(jobs);
    }
}

struct Run {
    jobs: Vec<SimulatedJob>,
    anomalies: bool,
}

fn one(system: &System, component: &Component) -> Checked<Result<Run, String>> {
    let lanes = match lane::lanes(system, component)? {
        Ok(lanes) => lanes,
        Err(reason) => return Ok(Err(reason)),
    };
    if lanes.iter().any(lane::Lane::is_overloaded) {
        return Ok(Err(
            "it is overloaded: its backlog grows, and nothing repeats".into(),
        ));
    }
    let shape = match lane::Shape::of(&lanes) {
        Some(shape) => shape,
        None => return Ok(Err("its hyperperiod is beyond 584 years".into())),
    };
    // At least two rounds after the last first arrival.
    let expected = shape
        .jobs_per_round
        .saturating_mul(2)
        .saturating_add(shape.jobs_before);
    if expected > MAX_SIMULATED_JOBS {
        return Ok(Err(format!(
            "two of its hyperperiods have {expected} jobs, the limit is {MAX_SIMULATED_JOBS}"
        )));
    }
    let Some(jobs) = run::until_repeated(&lanes, &shape)? else {
        return Ok(Err(format!(
            "nothing repeats within {MAX_SIMULATED_JOBS} jobs"
        )));
    };
    let waits = lanes
        .iter()
        .any(|l| l.contestants.iter().any(|c| !c.waits_for.is_empty()));
    let kept = lanes
        .iter()
        .any(|l| l.contestants.iter().any(|c| c.runs_through));
    Ok(Ok(Run {
        jobs,
        anomalies: waits || kept,
    }))
}
