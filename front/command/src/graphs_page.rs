//! The verdicts on graphs, as sections of the page of a verdict.

use std::fmt::Write as _;

use punctual_analysis::{ActorVerdict, Fraction, GraphVerdict, Term, Verdict, WorstCircle};
use punctual_model::{Ns, Span, readable};
use punctual_trace::html::{self, Column, Escaped, bar, no_class, table, text};

use crate::graphs::period;
use crate::words::span;

/// Most graphs, and most actors of one.
const MAX_LINES: usize = 400;
/// Most characters of an explanation.
const MAX_EXPLANATION: usize = 600;

/// The bounds of all graphs, then of each its critical circle and its actors.
pub(crate) fn sections(out: &mut String, verdict: &Verdict) {
    if verdict.graphs.is_empty() {
        return;
    }
    html::section(
        out,
        "Graphs",
        "Bounds against what is required. The period is that of the slowest circle of firings.",
    );
    let columns: &[Column<GraphVerdict>] = &[
        ("graph", "name", |g| text(&g.name, 60)),
        ("period", "n max", period),
        ("required", "n", |g| required(g.every)),
        ("period against required", "", against_required),
        ("first output", "n", |g| span(g.first_output)),
        ("latency", "n max", |g| span(g.latency)),
        ("required", "n", |g| required(g.within)),
        ("exactness", "", |g| match g.period {
            Some(_) => g.exactness.name().into(),
            None => "-".into(),
        }),
        ("why", "detail", |g| text(&g.explanation, MAX_EXPLANATION)),
    ];
    let class = |g: &GraphVerdict| if is_late(g) { "over" } else { "" };
    table(out, columns, (&verdict.graphs, MAX_LINES, "graphs"), class);
    out.push_str("</section>\n");
    for graph in verdict.graphs.iter().take(MAX_LINES) {
        of_graph(out, graph);
    }
}

fn of_graph(out: &mut String, graph: &GraphVerdict) {
    let title = format!("Graph {}", Escaped(&graph.name));
    html::section(
        out,
        &title,
        "Its actors; a response is the longest time from ready to done.",
    );
    let columns: &[Column<ActorVerdict>] = &[
        ("actor", "name", |a| text(&a.name, 60)),
        ("on", "", |a| text(&a.on, 60)),
        ("firings", "n", |a| {
            a.firings.map_or("-".into(), |firings| firings.to_string())
        }),
        ("wcet", "n", |a| readable(a.wcet.as_ns()).to_string()),
        ("response", "n max", |a| span(a.response)),
    ];
    table(out, columns, (&graph.actors, MAX_LINES, "actors"), no_class);
    if let Some(circle) = &graph.circle {
        critical(out, circle);
    }
    let mut lines: Vec<String> = Vec::new();
    for fix in graph.fix.iter().chain(&graph.together) {
        lines.push(format!(
            "fix: {} = {} instead of {}",
            fix.parameter, fix.to, fix.from
        ));
    }
    for (place, bytes) in &graph.memory {
        let bytes = bytes.map_or("no limit".into(), |bytes| format!("{bytes} B"));
        lines.push(format!("memory of {place}: {bytes}"));
    }
    let granted = graph.assumptions.iter();
    lines.extend(granted.map(|granted| format!("taken for granted: {granted}")));
    for line in lines {
        let _ = write!(out, "<p class=\"line\">{}</p>", Escaped(&line));
    }
    out.push_str("</section>\n");
}

/// The circle that holds the period, firing by firing.
fn critical(out: &mut String, circle: &WorstCircle) {
    let time = circle.time.as_ns();
    let rows: Vec<(&Term, u64)> = circle.terms.iter().map(|term| (term, time)).collect();
    let _ = write!(
        out,
        "<p class=\"line\">Critical circle: {} for {}, through {}</p>",
        readable(time),
        match circle.iterations {
            1 => "each iteration".to_string(),
            several => format!("{several} iterations under way"),
        },
        Escaped(&circle.through.join(", "))
    );
    let columns: &[Column<(&Term, u64)>] = &[
        ("firings of", "name", |(term, _)| text(&term.what, 60)),
        ("how many", "n", |(term, _)| term.count.to_string()),
        ("each", "n", |(term, _)| {
            readable(term.each.as_ns()).to_string()
        }),
        ("part of the circle", "", |(term, time)| {
            bar(term.each.as_ns().saturating_mul(term.count), *time)
        }),
    ];
    table(out, columns, (&rows, MAX_LINES, "terms"), no_class);
}

fn required(most: Option<Span<Ns>>) -> String {
    most.map_or_else(String::new, |most| span(Some(most)))
}

fn against_required(graph: &GraphVerdict) -> String {
    match (graph.period, graph.every) {
        (Some(period), Some(every)) => bar(period.rounded_up(), every.as_ns()),
        (None, Some(_)) => "no bound".into(),
        (_, None) => String::new(),
    }
}

/// Whether something that is required is not promised.
pub(crate) fn is_late(graph: &GraphVerdict) -> bool {
    let every = graph.every.map(Span::as_ns);
    let period = graph.period.map(Fraction::rounded_up);
    let above = |seen: Option<u64>, most: Option<u64>| {
        most.is_some_and(|most| seen.is_none_or(|seen| seen > most))
    };
    let within = graph.within.map(Span::as_ns);
    above(period, every) || above(graph.latency.map(Span::as_ns), within)
}
