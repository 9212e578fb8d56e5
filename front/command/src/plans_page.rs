//! The verdict on planned groups, as sections of the page of a verdict: a table and a timeline.

use std::fmt::Write as _;

use punctual_analysis::{GroupVerdict, Plan, Verdict};
use punctual_model::{System, readable};
use punctual_trace::html::{self, Column, Escaped, no_class, table, text};

use crate::plans::{assumptions, instances, name_of, repeats, resources};
use crate::words::span;

/// Most groups.
const MAX_LINES: usize = 400;
/// Most segments that are drawn.
const MAX_DRAWN: usize = 1_000;
/// Most characters of an explanation.
const MAX_EXPLANATION: usize = 600;

/// The width of a timeline, the height of a row, and the height of a bar in it.
const WIDTH: u64 = 1_000;
const ROW: usize = 34;
const BAR: usize = 24;
/// The least width of a bar with its name inside, for each letter.
const LETTER: u64 = 6;

/// The groups, and their plan as a timeline.
pub(crate) fn sections(out: &mut String, system: &System, verdict: &Verdict) {
    let Some(answer) = &verdict.plan else {
        return;
    };
    html::section(out, "Groups", "Planned whole before the first segment.");
    let columns: &[Column<GroupVerdict>] = &[
        ("group", "name", |g| text(&g.name, 60)),
        ("instances", "n", instances),
        ("ends", "n max", |g| span(g.ends)),
        ("deadline", "n", |g| {
            readable(g.relative_deadline.as_ns()).to_string()
        }),
        ("exactness", "", |g| g.exactness.name().into()),
        ("why", "detail", |g| text(&g.explanation, MAX_EXPLANATION)),
    ];
    table(
        out,
        columns,
        (&answer.groups, MAX_LINES, "groups"),
        no_class,
    );
    for granted in assumptions(answer) {
        let line = format!("taken for granted: {granted}");
        let _ = write!(out, "<p class=\"line\">{}</p>", Escaped(&line));
    }
    out.push_str("</section>\n");
    if let Some(plan) = answer
        .plan
        .as_ref()
        .filter(|plan| !plan.segments.is_empty())
    {
        html::section(out, "Plan", &repeats(plan));
        timeline(out, system, plan);
        out.push_str("</section>\n");
    }
}

/// A row for each node, a bar for each segment; its text says all of it.
fn timeline(out: &mut String, system: &System, plan: &Plan) {
    let end = plan.segments.iter().map(|segment| segment.end.as_ns());
    let end = end.max().unwrap_or(0).max(1);
    let scale = |at: u64| {
        let scaled = u128::from(at) * u128::from(WIDTH) / u128::from(end);
        u64::try_from(scaled).unwrap_or(WIDTH)
    };
    let height = plan.nodes.len() * ROW + ROW;
    let _ = write!(
        out,
        "<svg class=\"plan\" viewBox=\"0 0 {WIDTH} {height}\" width=\"100%\" role=\"img\" \
         font-size=\"11\" fill=\"currentColor\"><title>Segments by node and time</title>"
    );
    for (row, node) in plan.nodes.iter().enumerate() {
        let _ = write!(
            out,
            "<text x=\"0\" y=\"{}\">{}</text>",
            row * ROW + 9,
            Escaped(node)
        );
    }
    for planned in plan.segments.iter().take(MAX_DRAWN) {
        let (from, to) = (scale(planned.start.as_ns()), scale(planned.end.as_ns()));
        let (name, top) = (name_of(system, planned), planned.node * ROW + 10);
        let uses = resources(system, planned);
        let (start, stop) = (
            readable(planned.start.as_ns()),
            readable(planned.end.as_ns()),
        );
        let width = to.saturating_sub(from).max(1);
        let _ = write!(
            out,
            "<g><title>{} from {start} to {stop} {}</title><rect x=\"{from}\" y=\"{top}\" \
             width=\"{width}\" height=\"{BAR}\" fill=\"currentColor\" fill-opacity=\"0.15\" \
             stroke=\"currentColor\"/>",
            Escaped(&name),
            Escaped(&uses)
        );
        if width > LETTER * name.chars().count() as u64 {
            let (x, y) = (from + 3, top + BAR - 8);
            let _ = write!(out, "<text x=\"{x}\" y=\"{y}\">{}</text>", Escaped(&name));
        }
        out.push_str("</g>");
    }
    let base = plan.nodes.len() * ROW + 20;
    let _ = write!(
        out,
        "<text x=\"0\" y=\"{base}\">0</text><text x=\"{WIDTH}\" y=\"{base}\" \
         text-anchor=\"end\">{}</text></svg>",
        readable(end)
    );
    if plan.segments.len() > MAX_DRAWN {
        let line = format!("{MAX_DRAWN} of {} segments are drawn", plan.segments.len());
        let _ = write!(out, "<p class=\"line\">{}</p>", Escaped(&line));
    }
}
