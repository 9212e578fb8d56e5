//! The graphs of a log, with their promises.

use punctual_dataflow::Fraction;
use punctual_model::{Graph, Instant, Ns, Span};

pub use punctual_firing::{Call, Moved, State};

/// A graph that executes in the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GraphInfo {
    /// As the file declares it; a log does not keep the work of its actors.
    pub graph: Graph,
    /// From its verdict.
    pub bound: Option<GraphBound>,
    /// No room for transitions: the log has none of this graph from then on.
    pub lost_from: Option<Instant>,
}

/// The promises of a graph's verdict.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GraphBound {
    /// Nanoseconds from one iteration to the next in the long run, at worst.
    pub period: Fraction,
    /// From the start until every output has fired once.
    pub first_output: Option<Span<Ns>>,
    /// From the start of an iteration's period to its last output. Periods are those required, or
    /// those of `period`.
    pub latency: Option<Span<Ns>>,
    /// `exact`, `sufficient` or `simulated`.
    pub exactness: String,
}

impl GraphInfo {
    /// A graph of a system, without promises.
    pub fn new(graph: &Graph) -> GraphInfo {
        let mut graph = graph.clone();
        for actor in &mut graph.actors {
            actor.work = None;
        }
        GraphInfo {
            graph,
            bound: None,
            lost_from: None,
        }
    }
}
