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

mod admission;
mod distribution;
mod frame;
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
use crate::summary::{RunReport, RunVerdict, TaskReport};
pub use frame::{Column, bar, begin, end, facts, no_class, section, table, text};
pub use svg::Escaped;
use svg::clip;

/// Most tasks in the table.
pub const MAX_TASKS: usize = 300;
/// Most tasks with a drawn distribution.
pub const MAX_DISTRIBUTIONS: usize = 60;
/// Most misses listed.
pub const MAX_MISSES: usize = 200;
/// Most CPUs, and most lines of the machine's fingerprint.
pub const MAX_LINES: usize = 300;

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

fn gangs(out: &mut String, report: &RunReport) {
    if !report.gangs.is_empty() {
        let remark = "How far apart the members started, at each arrival, beside the bound.";
        section(out, "Gangs", remark);
        tables::gangs(out, report);
        out.push_str("</section>\n");
    }
}

fn groups(out: &mut String, report: &RunReport) {
    if !report.groups.is_empty() {
        let remark = "What was guaranteed and what was refused, and whether guarantees were kept.";
        section(out, "Groups", remark);
        tables::groups(out, report);
        out.push_str("</section>\n");
    }
}

fn graphs(out: &mut String, report: &RunReport) {
    if !report.graphs.is_empty() {
        let remark = "Iterations and firings, beside their bounds.";
        section(out, "Graphs", remark);
        tables::graphs(out, report);
        out.push_str("</section>\n");
    }
}

fn write_page(out: &mut String, log: &Log, behaviors: &[Behavior], report: &RunReport) {
    head(out, report);
    out.push_str(SYMBOLS);
    remarks(out, report);
    section(
        out,
        "Tasks",
        "Responses from arrival to completion, beside their bounds.",
    );
    tables::tasks(out, report);
    out.push_str("</section>\n");
    gangs(out, report);
    groups(out, report);
    graphs(out, report);
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
    if !report.changes.is_empty() {
        section(
            out,
            "Changes",
            "What changed while it ran: when it was asked for, when the scheduler had been told all \
             of it, and why it is safe from then on.",
        );
        tables::changes(out, report);
        out.push_str("</section>\n");
    }
    admission::write(out, report);
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
        section(
            out,
            "Origin",
            "The command, the program and the machine of this run.",
        );
        tables::machine(out, report);
        out.push_str("</section>\n");
    }
    frame::end(out, &report.tool, SCRIPT);
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

/// The verdict in words.
fn headline(report: &RunReport) -> &'static str {
    let some = |of: fn(&TaskReport) -> u64| report.tasks.iter().any(|t| of(t) > 0);
    let late = some(|t| t.misses - t.excused);
    let gone = some(|t| t.lost + t.skipped);
    let wrong = report.oracle.is_some_and(|oracle| oracle.mismatches > 0);
    match report.verdict {
        RunVerdict::Met if report.requirements.is_empty() => "Every deadline was met",
        RunVerdict::Met => "Every deadline and requirement was met",
        RunVerdict::Excused => "Not on time, by missing time alone",
        RunVerdict::Missed if late => "Deadlines were missed",
        RunVerdict::Missed if wrong => "Results differ from the reference",
        RunVerdict::Missed if gone => "Jobs were dropped",
        RunVerdict::Missed => "Requirements were not met",
    }
}

fn head(out: &mut String, report: &RunReport) {
    let jobs: u64 = report.tasks.iter().map(|t| t.jobs).sum();
    let misses: u64 = report.tasks.iter().map(|t| t.misses).sum();
    let missing: u64 = report.cpus.iter().map(|c| c.missing_time_ns).sum();
    let mode = match report.mode {
        "real-time" => "real time",
        "virtual" => "virtual time",
        other => other,
    };
    frame::begin(
        out,
        &report.source,
        (report.verdict.name(), headline(report)),
    );
    let sum = |of: fn(&TaskReport) -> u64| report.tasks.iter().map(of).sum::<u64>();
    let mut facts = vec![
        (Count(jobs).to_string(), "jobs (N)"),
        (Count(misses).to_string(), "missed"),
    ];
    let others = [
        (sum(|t| t.excused), "of them excused"),
        (sum(|t| t.lost), "lost"),
        (sum(|t| t.skipped), "skipped"),
        (sum(|t| t.unfinished), "not over at the end"),
    ];
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    facts.extend(others.map(|(count, name)| (Count(count).to_string(), name)));
    facts.extend([
        (Short(report.duration_ns).to_string(), "covered"),
        (Short(missing).to_string(), "missing time"),
        (mode.to_string(), "mode"),
        (clip(&report.platform, 20), "platform"),
    ]);
    let origin = report.machine.iter();
    let origin = origin.filter(|fact| matches!(fact.name.as_str(), "host" | "date"));
    let origin = origin.map(|fact| (clip(&fact.value, 40), fact.name.as_str()));
    facts.extend(origin.take(2));
    frame::facts(out, &facts);
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
                "CPU {}: the recording ended; nothing is known after {}",
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
