//! From a graph on its tiles to its period, or to what keeps it from going on
//!
//! # Assumptions
//! 1. Those of the graphs.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use punctual_dataflow::{
    Circle, Contradiction, DataflowError, Deadlock, Firings, Fraction, Rates, Schedule, Timed,
    deadlock, firings_per_iteration, first_output, period_by_states, schedule, worst_circle,
};
use punctual_model::{ActorId, Graph, System};

use super::tile;
use crate::error::{AnalysisError, Checked};

/// The future of a graph.
pub(super) enum Outcome {
    /// No analysis knows such a graph, and nothing is promised of it.
    Unknown,
    /// Its rates contradict each other.
    Contradicts(Contradiction),
    /// A static order does not have this actor as often as an iteration.
    OutOfOrder {
        order: usize,
        actor: usize,
        listed: u64,
        needed: u64,
    },
    /// A tile has slots of which nothing is left.
    Starves,
    /// Actors wait for each other.
    Stops {
        firings: Vec<u64>,
        deadlock: Deadlock,
    },
    /// It goes on for ever.
    Runs(Box<Runs>),
}

/// A graph that goes on.
pub(super) struct Runs {
    pub(super) firings: Vec<u64>,
    /// Responses of each phase of each actor.
    pub(super) times: Vec<Vec<u64>>,
    pub(super) unfolded: Firings,
    pub(super) circle: Circle,
    /// At the period required, or its own.
    pub(super) latency: u64,
    /// The schedule that shows it.
    pub(super) schedule: Schedule,
    timed: Timed,
}

/// The error of a graph, with its name.
pub(super) fn named(graph: &str, error: &DataflowError) -> AnalysisError {
    AnalysisError::Graph {
        graph: graph.to_string(),
        why: error.to_string(),
    }
}

/// A graph that no `System::validate` has seen may name what is not there.
fn check_places(graph: &Graph) -> Checked<()> {
    let actors = graph.actors.len();
    let ends = graph.fifos.iter().flat_map(|fifo| [fifo.from, fifo.to]);
    let turns = graph
        .orders
        .iter()
        .flat_map(|order| order.by.listed().iter().copied());
    let known = ends.chain(turns).all(|id| id.index() < actors);
    let cycle = |actor: ActorId, length: usize| length == 1 || length == graph.phases(actor);
    let ids = (0..).map(ActorId).zip(&graph.actors);
    let cycles =
        ids.into_iter()
            .all(|(id, actor)| cycle(id, actor.wcet.len()))
            && graph.fifos.iter().all(|fifo| {
                cycle(fifo.from, fifo.produce.len()) && cycle(fifo.to, fifo.consume.len())
            });
    let times = graph
        .actors
        .iter()
        .all(|a| a.wcet.iter().all(|wcet| !wcet.is_zero()));
    let moves = |cycle: &[u32]| cycle.iter().any(|&rate| rate > 0);
    let rates = graph
        .fifos
        .iter()
        .all(|fifo| moves(&fifo.produce) && moves(&fifo.consume));
    if actors > 0 && known && cycles && times && rates {
        return Ok(());
    }
    let what = format!(
        "graph `{}` names what is not there, or has cycles of nothing",
        graph.name
    );
    Err(AnalysisError::Invalid { what })
}

/// Judges `graph`, which need not be the one of `system`, on the tiles of `system`. O(cost of a
/// worst circle).
pub(super) fn evaluate(system: &System, graph: &Graph) -> Checked<Outcome> {
    check_places(graph)?;
    if !graph.is_analysed() {
        return Ok(Outcome::Unknown);
    }
    tile::check_machine(system, graph)?;
    let failed = |error: &DataflowError| named(&graph.name, error);
    let firings = match firings_per_iteration(graph).map_err(|error| failed(&error))? {
        Rates::Consistent(firings) => firings,
        Rates::Contradict(contradiction) => return Ok(Outcome::Contradicts(contradiction)),
    };
    let Some(times) = tile::responses(system, graph)? else {
        return Ok(Outcome::Starves);
    };
    let timed = match Timed::new(graph, &firings, &times) {
        Ok(timed) => timed,
        Err(DataflowError::Order {
            order,
            actor,
            listed,
            needed,
        }) => {
            return Ok(Outcome::OutOfOrder {
                order,
                actor,
                listed,
                needed,
            });
        }
        Err(error) => return Err(failed(&error)),
    };
    if let Some(deadlock) = deadlock(&timed) {
        return Ok(Outcome::Stops { firings, deadlock });
    }
    let unfolded = Firings::of(&timed);
    let circle = worst_circle(&timed, &unfolded).map_err(|error| failed(&error))?;
    let every = graph.every.map(|every| Fraction::whole(every.as_ns()));
    let period = every.filter(|every| *every >= circle.period);
    let schedule = schedule(&timed, &unfolded, period.unwrap_or(circle.period));
    let schedule = schedule.map_err(|error| failed(&error))?;
    Ok(Outcome::Runs(Box::new(Runs {
        firings,
        times,
        unfolded,
        circle,
        latency: schedule.latency,
        schedule,
        timed,
    })))
}

impl Runs {
    pub(super) fn first_output(&self) -> Checked<u64> {
        first_output(&self.timed).map_err(|error| named("", &error))
    }

    /// Whether the execution of the graph gives the same period; `false` where it is too long.
    ///
    /// # Errors
    /// The two differ: one of them is wrong, and nobody may be told either.
    pub(super) fn confirm(&self, graph: &str) -> Checked<bool> {
        match period_by_states(&self.timed) {
            Ok(period) if period == self.circle.period => Ok(true),
            Ok(period) => {
                let (states, circle) = (period, self.circle.period);
                let why = alloc::format!(
                    "its period is {circle} ns by its worst circle and {states} ns by its states: \
                     please report this file as a mistake of the analysis"
                );
                let graph = graph.to_string();
                Err(AnalysisError::Graph { graph, why })
            }
            Err(_) => Ok(false),
        }
    }
}
