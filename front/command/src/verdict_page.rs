//! A verdict as one self-contained HTML page.

use std::fmt::Write as _;

use punctual_analysis::{TaskVerdict, Verdict};
use punctual_model::{Requirement, Span, System};

use crate::verdict_text;

const STYLE: &str = "\
:root { color-scheme: light dark; --good: #1a7f37; --bad: #cf222e; }
@media (prefers-color-scheme: dark) { :root { --good: #3fb950; --bad: #ff7b72; } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.admitted { color: var(--good); } .refused { color: var(--bad); }
pre { white-space: pre-wrap; font: 13px/1.5 ui-monospace, monospace; }
svg { display: block; width: 100%; height: auto; } svg text { fill: currentColor; font-size: 12px; }
.bound { fill: var(--good); } .late { fill: var(--bad); }
.allowed { stroke: currentColor; stroke-width: 2; }";

/// Most tasks with a drawn bound.
const MAX_DRAWN: usize = 400;
/// Height of a task in the drawing.
const ROW: usize = 20;
/// Where the bars begin, and how long a deadline is drawn.
const LEFT: usize = 260;
const LENGTH: u128 = 600;

/// The page of `verdict` on the system of `origin`.
pub(crate) fn page(origin: &str, system: &System, verdict: &Verdict) -> String {
    let word = verdict.word();
    let origin = escape(origin);
    let text = escape(&verdict_text::render(system, verdict, false));
    let (headline, details) = text.split_once('\n').unwrap_or((&text, ""));
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{origin}: {word}</title>\n<style>\n{STYLE}\n</style></head><body>\n\
         <h1>{origin}</h1>\n<p class=\"{word}\"><strong>{headline}</strong></p>\n\
         <h2>Bounds against deadlines and required responses</h2>\n{}\n\
         <h2>Verdict</h2>\n<pre>{}</pre>\n\
         <p>punctual {}</p>\n</body></html>",
        drawing(system, verdict),
        details.trim_matches('\n'),
        env!("CARGO_PKG_VERSION"),
    )
}

/// One bar per task: its bound as a part of what is allowed, which is the line on the right.
fn drawing(system: &System, verdict: &Verdict) -> String {
    let rows: Vec<_> = verdict
        .tasks
        .iter()
        .filter(|t| t.relative_deadline.is_some())
        .collect();
    let drawn = &rows[..rows.len().min(MAX_DRAWN)];
    let height = (drawn.len() + 1) * ROW;
    let mut svg = format!("<svg viewBox=\"0 0 1000 {height}\" role=\"img\">\n");
    for (index, task) in drawn.iter().enumerate() {
        let (y, middle) = (index * ROW, index * ROW + 14);
        let deadline = allowed(system, task);
        let bound = task.response_bound.map(|bound| u128::from(bound.as_ns()));
        let part = bound.map_or(LENGTH, |bound| (bound * LENGTH / deadline).min(LENGTH + 80));
        let late = bound.is_none_or(|bound| bound > deadline);
        let class = if late { "late" } else { "bound" };
        let words = bound.map_or("no bound".into(), |b| format!("{} %", b * 100 / deadline));
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\">{}</text>\
             <rect class=\"{class}\" x=\"{LEFT}\" y=\"{}\" width=\"{part}\" height=\"{}\"/>\
             <text x=\"{}\" y=\"{middle}\">{words}</text>",
            LEFT - 8,
            escape(&task.name.chars().take(36).collect::<String>()),
            y + 3,
            ROW - 6,
            LENGTH + 310,
        );
    }
    let x = LEFT as u128 + LENGTH;
    let _ = writeln!(
        svg,
        "<line class=\"allowed\" x1=\"{x}\" x2=\"{x}\" y1=\"0\" y2=\"{height}\"/>"
    );
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">allowed</text>",
        x - 6,
        height - 5
    );
    svg.push_str("</svg>");
    if rows.len() > MAX_DRAWN {
        let _ = write!(
            svg,
            "\n<p>{} more tasks are not drawn.</p>",
            rows.len() - MAX_DRAWN
        );
    }
    svg
}

/// The longest response that deadline and requirements allow, in nanoseconds; at least 1.
fn allowed(system: &System, task: &TaskVerdict) -> u128 {
    let within = system
        .requirements
        .iter()
        .filter_map(|requirement| match requirement {
            &Requirement::Response {
                task: whose,
                within,
            } => (whose == task.task).then_some(within),
            Requirement::Chain { .. } | Requirement::Jitter { .. } => None,
        });
    let least = within.chain(task.relative_deadline).min();
    u128::from(least.map_or(1, Span::as_ns)).max(1)
}

/// Text inside of HTML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
