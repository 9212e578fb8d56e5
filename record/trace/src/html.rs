//! A run as one self-contained HTML page: verdict, timeline, distributions against bounds, misses.
//!
//! Nothing is loaded from anywhere: styles, drawings and one small script are inside, light or dark
//! as the reader's system asks. The script only zooms and scrolls; the page does without it.
//! Everything is capped ([`MAX_TASKS`] and its neighbours), so the page stays below a megabyte
//! however long the log. It says so where it leaves something out.

/// Writes into a string, which cannot fail.
macro_rules! put {
    ($out:expr, $($words:tt)*) => {{
        let _ = write!($out, $($words)*);
    }};
}

/// Writes a line into a string, which cannot fail.
macro_rules! putln {
    ($out:expr, $($words:tt)*) => {{
        let _ = writeln!($out, $($words)*);
    }};
}

mod distribution;
mod overview;
mod stretch;
mod supply;
mod svg;
mod tables;
mod timeline;

use std::fmt::Write;

use crate::behavior::Behavior;
use crate::log::Log;
use crate::short::{Count, Short};
use crate::summary::{RunReport, RunVerdict};
use svg::{Escaped, clip};

/// Most tasks in the table.
pub const MAX_TASKS: usize = 400;
/// Most tasks with a drawn distribution.
pub const MAX_DISTRIBUTIONS: usize = 60;
/// Most misses listed.
pub const MAX_MISSES: usize = 200;
/// Most CPUs, and most lines of the machine's fingerprint.
pub const MAX_LINES: usize = 300;

const STYLE: &str = include_str!("html/style.css");
/// Zooms and scrolls the timeline, and nothing else.
const SCRIPT: &str = include_str!("html/page.js");
/// The arrows of releases and deadlines.
const SYMBOLS: &str = "<svg class=\"symbols\" aria-hidden=\"true\"><defs>\
    <path id=\"up\" d=\"M0 18V1M-2.5 4.5L0 1l2.5 3.5\"/>\
    <path id=\"down\" d=\"M0 1v17M-2.5 14.5L0 18l2.5-3.5\"/></defs></svg>";

/// The page of a log and its summary. O(records · log records).
pub fn page(log: &Log, report: &RunReport) -> String {
    let behaviors = Behavior::of_all(log);
    let mut out = String::with_capacity(1 << 17);
    write_page(&mut out, log, &behaviors, report);
    out
}

fn write_page(out: &mut String, log: &Log, behaviors: &[Behavior], report: &RunReport) {
    let source = clip(&report.source, 120);
    putln!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}: {}</title>\n<style>\n{STYLE}</style></head><body>{SYMBOLS}<main>",
        Escaped(&source),
        report.verdict.name()
    );
    head(out, report);
    remarks(out, report);
    section(
        out,
        "Tasks",
        "Responses from arrival to completion, beside their bounds.",
    );
    tables::tasks(out, report);
    out.push_str("</section>\n");
    let misses = tables::listed(report);
    let linked = timeline::write(out, log, behaviors, (report, &misses));
    if !misses.is_empty() {
        section(
            out,
            "Misses",
            "How many have each cause, then each late job with what delayed it in its busy window. \
             The number of a job leads to its place in the timeline.",
        );
        tables::misses(out, report, (&misses, &linked));
        out.push_str("</section>\n");
    }
    section(
        out,
        "Response times",
        "Every completed job; counts on a logarithmic scale, so that single outliers show.",
    );
    distribution::write(out, log, behaviors, report);
    out.push_str("</section>\n");
    section(
        out,
        "CPUs",
        "What was decided, what was missing, and how that was measured.",
    );
    tables::cpus(out, report);
    out.push_str("</section>\n");
    composition(out, report);
    if !report.machine.is_empty() {
        section(out, "Machine", "");
        tables::machine(out, report);
        out.push_str("</section>\n");
    }
    putln!(
        out,
        "<footer>{}</footer></main><script>\n{SCRIPT}</script></body></html>",
        Escaped(&clip(&report.tool, 120))
    )
}

/// Schedulers below CPUs, and resources.
fn composition(out: &mut String, report: &RunReport) {
    if !report.schedulers.is_empty() {
        section(
            out,
            "Schedulers",
            "What each was granted and used, and how often its budget was used up.",
        );
        tables::schedulers(out, report);
        out.push_str("</section>\n");
    }
    if !report.resources.is_empty() {
        section(
            out,
            "Resources",
            "Locks, and how long they were waited for.",
        );
        tables::resources(out, report);
        out.push_str("</section>\n");
    }
}

fn section(out: &mut String, title: &str, remark: &str) {
    put!(out, "<section><h2>{title}</h2>");
    if !remark.is_empty() {
        put!(out, "<p class=\"remark\">{remark}</p>");
    }
    out.push('\n');
}

fn head(out: &mut String, report: &RunReport) {
    let jobs: u64 = report.tasks.iter().map(|t| t.jobs).sum();
    let misses: u64 = report.tasks.iter().map(|t| t.misses).sum();
    let missing: u64 = report.cpus.iter().map(|c| c.missing_time_ns).sum();
    let verdict = match report.verdict {
        RunVerdict::Met => "Every deadline was met",
        RunVerdict::Missed => "Deadlines were missed",
        RunVerdict::Excused => "Late only by missing time",
    };
    let mode = match report.mode {
        "real-time" => "real time",
        "virtual" => "virtual time",
        other => other,
    };
    putln!(
        out,
        "<header class=\"{}\"><p class=\"source\">{}</p><h1><span class=\"verdict\">{}</span> \
         {verdict}</h1>",
        report.verdict.name(),
        Escaped(&clip(&report.source, 120)),
        report.verdict.name()
    );
    let facts = [
        (Count(jobs).to_string(), "jobs (N)"),
        (Count(misses).to_string(), "missed"),
        (Short(report.duration_ns).to_string(), "covered"),
        (Short(missing).to_string(), "missing time"),
        (mode.to_string(), "mode"),
        (clip(&report.platform, 20), "platform"),
    ];
    out.push_str("<dl class=\"facts\">");
    for (value, name) in facts {
        put!(
            out,
            "<div><dt>{name}</dt><dd>{}</dd></div>",
            Escaped(&value)
        );
    }
    out.push_str("</dl></header>\n");
}

/// Remarks that a reader needs before trusting a figure.
fn remarks(out: &mut String, report: &RunReport) {
    let mut all: Vec<(&str, String)> = Vec::new();
    if report.mode == "best-effort" {
        let what = "Best effort: without the privileges below, figures are observations only.";
        all.push(("warn", what.into()));
    }
    let lost = report.lost_capabilities.iter().take(MAX_LINES);
    all.extend(lost.map(|lost| ("warn", format!("Not guaranteed: {}", clip(lost, 300)))));
    if let Some(why) = &report.stopped {
        let after = Short(report.elapsed_ns);
        all.push(("warn", format!("Stopped after {after}: {}", clip(why, 300))));
    }
    for cpu in report.cpus.iter().take(MAX_LINES) {
        if let Some(at) = cpu.lost_from_ns {
            let what = format!(
                "CPU {}: the recorder was full; nothing is known after {}",
                cpu.id,
                Short(at)
            );
            all.push(("bad", what));
        }
    }
    let faults = report.faults.iter().take(MAX_LINES);
    all.extend(faults.map(|fault| ("bad", format!("Fault: {}", clip(fault, 300)))));
    for requirement in report.requirements.iter().take(MAX_LINES) {
        let kind = match requirement.verdict {
            RunVerdict::Met => "good",
            RunVerdict::Missed => "bad",
            RunVerdict::Excused => "warn",
        };
        all.push((kind, clip(&requirement.to_string(), 300)));
    }
    if let Some(why) = &report.unexcused {
        all.push(("warn", format!("Nothing is excused: {}", clip(why, 300))));
    }
    if let Some(oracle) = report.oracle {
        let steps = Count(oracle.steps);
        all.push(match oracle.mismatches {
            0 => (
                "good",
                format!("Results: {steps} steps equal to the reference."),
            ),
            n => (
                "bad",
                format!(
                    "Results: {} of {steps} steps differ from the reference.",
                    Count(n)
                ),
            ),
        });
    }
    if all.is_empty() {
        return;
    }
    out.push_str("<ul class=\"remarks\">");
    for (class, text) in all {
        put!(out, "<li class=\"{class}\">{}</li>", Escaped(&text));
    }
    out.push_str("</ul>\n");
}
