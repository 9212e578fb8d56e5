//! The verdicts on graphs, for people and for programs.

use std::fmt::Write as _;

use anstyle::Style;
use punctual_analysis::{ActorVerdict, Fraction, GraphFix, GraphVerdict, Verdict, WorstCircle};
use punctual_model::{Ns, Span, readable};

use crate::words::{count, span};
use punctual_terminal::json::{Json, list};
use punctual_terminal::object;
use punctual_terminal::output::styled;
use punctual_terminal::table::Table;

const HEADING: Style = Style::new().bold();

/// `1 graph of 4 actors`; nothing without graphs.
pub(crate) fn size(verdict: &Verdict) -> Option<String> {
    let actors = verdict.graphs.iter().map(|graph| graph.actors.len()).sum();
    let graphs = verdict.graphs.len();
    (graphs > 0).then(|| format!("{} of {}", count(graphs, "graph"), count(actors, "actor")))
}

/// All graphs in words.
pub(crate) fn text(verdict: &Verdict, coloured: bool) -> String {
    let mut text = String::new();
    for graph in &verdict.graphs {
        let heading = styled(&format!("Graph {}", graph.name), HEADING, coloured);
        let _ = write!(text, "\n{heading}\n{}", actor_table(&graph.actors));
        let _ = write!(text, "\n{}", bounds(graph));
        let _ = writeln!(text, "  why: {}", graph.explanation);
        for assumption in &graph.assumptions {
            let _ = writeln!(text, "  taken for granted: {assumption}");
        }
    }
    text
}

fn actor_table(actors: &[ActorVerdict]) -> Table {
    let mut table = Table::new(&["actor", "on", ">firings", ">wcet", ">response"]);
    for actor in actors {
        table.row(vec![
            actor.name.clone(),
            actor.on.clone(),
            actor
                .firings
                .map_or("-".into(), |firings| firings.to_string()),
            readable(actor.wcet.as_ns()).to_string(),
            span(actor.response),
        ]);
    }
    table
}

/// The bound of the period as people write it; a fraction of a nanosecond is kept.
pub(crate) fn period(graph: &GraphVerdict) -> String {
    graph
        .period
        .map_or("-".into(), |period| match period.denominator() {
            1 => readable(period.numerator()).to_string(),
            _ => format!("{period} ns"),
        })
}

fn bounds(graph: &GraphVerdict) -> Table {
    let mut table = Table::new(&["", ">bound", "required"]);
    let required = |most: Option<Span<Ns>>| {
        let most = most.map(|most| format!("at most {}", readable(most.as_ns())));
        most.unwrap_or_default()
    };
    table.row(vec![
        "period of an iteration".into(),
        period(graph),
        required(graph.every),
    ]);
    table.row(vec![
        "first output".into(),
        span(graph.first_output),
        String::new(),
    ]);
    table.row(vec![
        "latency".into(),
        span(graph.latency),
        required(graph.within),
    ]);
    for (place, bytes) in &graph.memory {
        let bytes = bytes.map_or("no limit".into(), |bytes| format!("{bytes} B"));
        table.row(vec![format!("memory of {place}"), bytes, String::new()]);
    }
    table
}

/// All graphs for programs; `None` without graphs.
pub(crate) fn json(verdict: &Verdict) -> Option<Json> {
    (!verdict.graphs.is_empty()).then(|| list(&verdict.graphs, of_graph))
}

fn of_graph(graph: &GraphVerdict) -> Json {
    object! {
        name: &graph.name,
        actors: list(&graph.actors, |actor| object! {
            name: &actor.name,
            on: &actor.on,
            firings: actor.firings,
            wcet_ns: actor.wcet.as_ns(),
            response_ns: actor.response.map(Span::as_ns),
        }),
        period_ns: graph.period.map(Fraction::rounded_up),
        period: graph.period.map(|period| object! {
            numerator_ns: period.numerator(),
            denominator: period.denominator(),
        }),
        first_output_ns: graph.first_output.map(Span::as_ns),
        latency_ns: graph.latency.map(Span::as_ns),
        every_ns: graph.every.map(Span::as_ns),
        within_ns: graph.within.map(Span::as_ns),
        circle: graph.circle.as_ref().map(of_circle),
        memory: list(&graph.memory, |(place, bytes)| object! {
            place: place,
            bytes: *bytes,
        }),
        confirmed: graph.confirmed,
        exactness: graph.exactness.name(),
        test: graph.test.to_string(),
        explanation: &graph.explanation,
        assumptions: &graph.assumptions,
        fix: graph.fix.as_ref().map(of_fix),
        together: list(&graph.together, of_fix),
    }
}

fn of_circle(circle: &WorstCircle) -> Json {
    object! {
        time_ns: circle.time.as_ns(),
        iterations: circle.iterations,
        terms: list(&circle.terms, |term| object! {
            actor: &term.what,
            firings: term.count,
            each_ns: term.each.as_ns(),
        }),
        through: &circle.through,
    }
}

fn of_fix(fix: &GraphFix) -> Json {
    object! {
        parameter: &fix.parameter,
        from: &fix.from,
        to: &fix.to,
    }
}
