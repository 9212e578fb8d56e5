//! Graphs in words: the worst circle, and actors that wait for each other
//!
//! # Assumptions
//! 1. None of its own.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use punctual_dataflow::{Contradiction, Fraction, Link, Wait};
use punctual_model::{Graph, Ns, System, readable};

use super::evaluate::{Outcome, Runs};
use super::tile::tile_name;
use crate::units::{Span, Work};
use crate::verdict::{Term, WorstCircle};

/// The worst circle with its actors: each with its firings, by their responses.
pub(super) fn circle(graph: &Graph, runs: &Runs) -> WorstCircle {
    let mut order: Vec<(usize, u64)> = Vec::new();
    let mut counts: BTreeMap<(usize, u64), u64> = BTreeMap::new();
    let mut through: Vec<Link> = Vec::new();
    for arc in &runs.circle.arcs {
        let (actor, _) = runs.unfolded.name(arc.from);
        let kind = (actor, runs.unfolded.time(arc.from));
        let count = counts.entry(kind).or_insert(0);
        *count += 1;
        if *count == 1 {
            order.push(kind);
        }
        if !through.contains(&arc.link) {
            through.push(arc.link);
        }
    }
    let terms = order.into_iter().map(|kind| Term {
        what: actor_name(graph, kind.0).to_string(),
        count: counts[&kind],
        each: Work::from_ns(kind.1),
    });
    WorstCircle {
        time: Span::from_ns(runs.circle.time),
        iterations: runs.circle.tokens,
        terms: terms.collect(),
        through: through.iter().map(|link| link_name(graph, *link)).collect(),
    }
}

/// The period as the sum that it is.
pub(super) fn period(circle: &WorstCircle, period: Fraction) -> String {
    let terms = circle.terms.iter().map(|term| {
        let each = readable(term.each.as_ns());
        match term.count {
            1 => format!("{each} ({})", term.what),
            count => format!("{count} × {each} ({})", term.what),
        }
    });
    let sum = terms.collect::<Vec<_>>().join(" + ");
    let through = circle.through.join(", ");
    match circle.iterations {
        1 => format!("{} = {sum}, through {through}", of_period(period)),
        under_way => format!(
            "{} = ({sum}) / {under_way} iterations under way, through {through}",
            of_period(period)
        ),
    }
}

/// A period as people write it; a fraction of a nanosecond is kept.
pub(crate) fn of_period(period: Fraction) -> String {
    match period.denominator() {
        1 => readable(period.numerator()).to_string(),
        _ => format!("{period} ns"),
    }
}

/// Why a graph that goes on is refused.
pub(super) fn late(graph: &Graph, runs: &Runs) -> Option<String> {
    let period = runs.circle.period;
    if let Some(every) = graph.every
        && period > Fraction::whole(every.as_ns())
    {
        return Some(format!(
            "an iteration takes {}, {} is required",
            of_period(period),
            readable(every.as_ns())
        ));
    }
    let within: Span = graph.within?;
    (runs.latency > within.as_ns()).then(|| {
        format!(
            "its last output comes {} after the start of its period, {} is required",
            readable(runs.latency),
            readable(within.as_ns())
        )
    })
}

/// Why no analysis knows a graph, and what to do where something is required of it.
pub(super) fn unknown(graph: &Graph) -> Option<(String, &'static str)> {
    let (why, advice) = match graph.varying() {
        _ if graph.plain => (
            "its tasks run to completion".into(),
            "remove what is required, or `real-time = false`",
        ),
        Some(actor) => (
            format!(
                "its rates depend on the data of `{}`",
                actor_name(graph, actor.index())
            ),
            "remove what is required, or `varies`",
        ),
        None => return None,
    };
    let why: String = why;
    let why = format!("{why}: it executes, and nothing is promised of it");
    Some((why, advice))
}

/// The advice where no capacity and no slot has a part in it.
pub(super) fn advice(graph: &Graph, outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Unknown => unknown(graph).map(|(_, advice)| advice.into()),
        Outcome::Contradicts(_) => {
            Some("change a rate of this circle: no capacity and no slot matters".into())
        }
        Outcome::OutOfOrder { actor, needed, .. } => Some(format!(
            "list `{}` {} in this order",
            actor_name(graph, *actor),
            how_often(*needed)
        )),
        Outcome::Starves | Outcome::Stops { .. } | Outcome::Runs(_) => None,
    }
}

/// Why a graph does not go on.
pub(super) fn why_not(system: &System, graph: &Graph, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Runs(_) => String::new(),
        Outcome::Unknown => unknown(graph).map_or(String::new(), |(why, _)| why),
        Outcome::Contradicts(found) => contradiction(graph, found),
        Outcome::Starves => "a tile has slots of which nothing is left after overheads".into(),
        Outcome::OutOfOrder {
            order,
            actor,
            listed,
            needed,
        } => {
            let tile = graph.static_orders().nth(*order);
            let tile = tile.map_or(String::new(), |(tile, _)| tile_name(system, tile));
            format!(
                "the order of {tile} has `{}` {}, and an iteration fires it {}",
                actor_name(graph, *actor),
                how_often(*listed),
                how_often(*needed)
            )
        }
        Outcome::Stops { deadlock, .. } => {
            let waits = deadlock.circle.iter().map(|wait| wait_words(graph, *wait));
            let waits: Vec<String> = waits.collect();
            format!(
                "it stops for ever after {}: {}",
                count(deadlock.firings, "firing"),
                waits.join("; ")
            )
        }
    }
}

fn contradiction(graph: &Graph, found: &Contradiction) -> String {
    let names = found
        .fifos
        .iter()
        .map(|&fifo| format!("`{}`", fifo_name(graph, fifo)));
    let names: Vec<String> = names.collect();
    let (more, less) = found.ratio;
    format!(
        "its rates contradict each other: round the circle of {}, `{}` would fire {more} times \
         for every {less} of its own firings",
        names.join(", "),
        actor_name(graph, found.actor.index())
    )
}

fn wait_words(graph: &Graph, wait: Wait) -> String {
    let (actor, other) = (
        actor_name(graph, wait.actor),
        actor_name(graph, wait.for_actor),
    );
    let missing = wait.missing;
    match wait.link {
        Link::Tokens(fifo) => {
            let fifo = fifo_name(graph, fifo);
            let missing = count(missing, "token");
            format!("`{actor}` lacks {missing} in `{fifo}`, which `{other}` would add")
        }
        Link::Space(fifo) => {
            let fifo = fifo_name(graph, fifo);
            format!(
                "`{actor}` lacks space for {} in `{fifo}`, which `{other}` would free",
                count(missing, "token")
            )
        }
        Link::Order(_) | Link::Itself => format!("`{actor}` waits for the turn of `{other}`"),
    }
}

fn how_often(times: u64) -> String {
    match times {
        0 => "never".into(),
        1 => "once".into(),
        times => format!("{times} times"),
    }
}

fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

fn link_name(graph: &Graph, link: Link) -> String {
    match link {
        Link::Tokens(fifo) => format!("tokens of {}", fifo_name(graph, fifo)),
        Link::Space(fifo) => format!("space in {}", fifo_name(graph, fifo)),
        Link::Itself => "one firing at a time".into(),
        Link::Order(_) => "the order of a tile".into(),
    }
}

pub(super) fn actor_name(graph: &Graph, actor: usize) -> &str {
    graph.actors.get(actor).map_or("?", |actor| &actor.name)
}

fn fifo_name(graph: &Graph, fifo: usize) -> &str {
    graph.fifos.get(fifo).map_or("?", |fifo| &fifo.name)
}

/// A span as the file writes it.
pub(super) fn span_text(ns: punctual_model::Span<Ns>) -> String {
    format!("\"{}\"", readable(ns.as_ns()))
}
