//! The admission beside the run: utilization, and for each task its bound with the terms of it.

use super::frame::{self, Column, bar, table, text};
use super::{MAX_LINES, MAX_TASKS};
use crate::short::Short;
use crate::summary::{CpuReport, RunReport, TaskReport};

/// Most characters of all explanations together, and most and least of one.
const MAX_EXPLANATIONS: usize = 200_000;
const MAX_EXPLANATION: usize = 4_000;
const MIN_EXPLANATION: usize = 200;

/// Writes the section, if something was admitted.
pub(super) fn write(out: &mut String, report: &RunReport) {
    let known = |t: &&TaskReport| t.bound_ns.or(t.machine_bound_ns).is_some();
    if !report.tasks.iter().any(|task| known(&task)) {
        return;
    }
    frame::section(
        out,
        "Admission",
        "What was promised before the run, why, and what was observed. A bound is the sum of its terms.",
    );
    utilization(out, report);
    // Each task may have two: with the terms of the file, and with the machine's.
    let shown = report.tasks.len().clamp(1, MAX_TASKS);
    let most = (MAX_EXPLANATIONS / 2 / shown).clamp(MIN_EXPLANATION, MAX_EXPLANATION);
    let rows: Vec<(&TaskReport, usize)> = report.tasks.iter().map(|task| (task, most)).collect();
    let columns: &[Column<(&TaskReport, usize)>] = &[
        ("task", "name", |(t, _)| text(&t.name, 60)),
        ("bound", "n", |(t, _)| bound(t.bound_ns)),
        ("machine bound", "n", |(t, _)| bound(t.machine_bound_ns)),
        ("observed", "n max", |(t, _)| bound(t.response_ns.max)),
        ("exactness", "", |(t, _)| {
            text(t.exactness.as_deref().unwrap_or("–"), 20)
        }),
        ("why", "detail", |(t, most)| why(t, *most)),
    ];
    let class = |(t, _): &(&TaskReport, usize)| if t.exceeds_bound() { "over" } else { "" };
    table(out, columns, (&rows, MAX_TASKS, "tasks"), class);
    out.push_str("</section>\n");
}

fn utilization(out: &mut String, report: &RunReport) {
    if report
        .cpus
        .iter()
        .all(|cpu| cpu.utilization_percent.is_none())
    {
        return;
    }
    let elapsed = report.elapsed_ns;
    let rows: Vec<(&CpuReport, u64)> = report.cpus.iter().map(|cpu| (cpu, elapsed)).collect();
    let columns: &[Column<(&CpuReport, u64)>] = &[
        ("CPU", "name", |(c, _)| text(&c.id, 30)),
        ("policy", "", |(c, _)| c.policy.into()),
        ("utilization", "n", |(c, _)| percent(c.utilization_percent)),
        ("with this machine's terms", "n", |(c, _)| {
            percent(c.machine_utilization_percent)
        }),
        ("observed", "n", |(c, elapsed)| {
            let tenths = tenths(c, *elapsed);
            format!("{}.{} %", tenths / 10, tenths % 10)
        }),
        // As precise as what stands beside it: a run that uses just what was admitted is not over.
        ("observed against admitted", "", |(c, elapsed)| {
            let admitted = c.machine_utilization_percent.or(c.utilization_percent);
            let allowed = admitted.unwrap_or(100.0) * 10.0;
            bar(tenths(c, *elapsed), super::svg::whole(allowed.round()))
        }),
    ];
    table(out, columns, (&rows, MAX_LINES, "CPUs"), frame::no_class);
}

/// The executed part of a run, in tenths of a percent.
fn tenths(cpu: &CpuReport, elapsed_ns: u64) -> u64 {
    let tenths = u128::from(cpu.executed_ns) * 1_000 / u128::from(elapsed_ns).max(1);
    u64::try_from(tenths).unwrap_or(u64::MAX)
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |value| format!("{value:.1} %"))
}

fn bound(ns: Option<u64>) -> String {
    ns.map_or_else(|| "–".into(), |ns| Short(ns).to_string())
}

/// The terms of a task's bounds; those of the machine's, which are many, only where they differ.
fn why(t: &TaskReport, most: usize) -> String {
    let file = t.explanation.as_deref();
    let machine = t.machine_explanation.as_deref();
    let words = file.map_or_else(String::new, |words| text(words, most));
    match machine.filter(|words| Some(*words) != file) {
        None => words,
        Some(machine) => {
            let machine = text(machine, most);
            format!(
                "{words}<details><summary>with this machine's terms</summary>{machine}</details>"
            )
        }
    }
}
