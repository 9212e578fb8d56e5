//! The comparison as one HTML page, in the style of the page of a run.

use std::fmt::Write as _;

use punctual_model::readable;
use punctual_trace::RunVerdict;
use punctual_trace::html::{self, Column};

use crate::report::Report;
use crate::round::{Figures, Rival};
use crate::text;

/// Most rows of a table.
const MAX_ROWS: usize = 400;

/// A rival with the largest 99th percentile of all, for its bar.
struct Row<'a> {
    figures: &'a Figures,
    longest: u64,
}

/// One task, or one round, under one rival.
struct Part {
    of: String,
    rival: Rival,
    cells: [String; 5],
    has_missed: bool,
}

/// The page.
pub(crate) fn page(report: &Report) -> String {
    let mut out = String::with_capacity(1 << 15);
    html::begin(&mut out, &report.source, verdict(report));
    let load: Vec<&str> = report.load.iter().map(|kind| kind.name()).collect();
    let cpus: Vec<String> = report.cpus.iter().map(u32::to_string).collect();
    html::facts(
        &mut out,
        &[
            (report.rounds.to_string(), "rounds"),
            (readable(report.duration_ns).to_string(), "of each rival"),
            (cpus.join(", "), "CPU"),
            (
                if load.is_empty() {
                    "none".into()
                } else {
                    load.join(", ")
                },
                "load",
            ),
            (report.urgent.clone(), "most urgent task"),
        ],
    );
    rivals(&mut out, report);
    against(&mut out, report);
    runaway(&mut out, report);
    let heading = "Each task under each rival, over all rounds.";
    parts(
        &mut out,
        ("Tasks", heading),
        ["task", "jobs", "missed", "own", "p50", "p99"],
        &tasks(report),
    );
    let heading = "The order of the rivals changes from round to round.";
    let columns = ["round", "jobs", "missed", "own", "missing", "processor"];
    parts(&mut out, ("Rounds", heading), columns, &rounds(report));
    html::section(&mut out, "Limits", "");
    list(&mut out, text::remarks(report));
    html::section(&mut out, "Machine", "");
    let facts = report
        .machine
        .iter()
        .map(|fact| format!("{}: {}", fact.name, fact.value));
    list(&mut out, facts);
    html::end(
        &mut out,
        concat!("punctual ", env!("CARGO_PKG_VERSION")),
        "",
    );
    out
}

/// Punctual's verdict over all rounds, and a headline.
fn verdict(report: &Report) -> (&'static str, &'static str) {
    let headline = match report.verdict {
        RunVerdict::Met => "Punctual missed nothing",
        RunVerdict::Excused => "Punctual was late only by missing time",
        RunVerdict::Missed => "Punctual missed deadlines or requirements",
    };
    (report.verdict.name(), headline)
}

fn rivals(out: &mut String, report: &Report) {
    let remark = "All misses, and own misses: without those that missing time excuses. Responses \
                  and starts are those of the most urgent task.";
    html::section(out, "Rivals", remark);
    let longest = report
        .rivals
        .iter()
        .filter_map(|one| one.response_ns.p99)
        .max();
    let row = |figures| Row {
        figures,
        longest: longest.unwrap_or(0),
    };
    let rows: Vec<Row<'_>> = report.rivals.iter().map(row).collect();
    let columns: &[Column<Row<'_>>] = &[
        ("", "name", |row| cell(row, 0)),
        ("jobs", "n", |row| cell(row, 1)),
        ("missed", "n miss", |row| cell(row, 2)),
        ("own", "n", |row| cell(row, 3)),
        ("missing", "n", |row| cell(row, 4)),
        ("p50", "n", |row| cell(row, 5)),
        ("p99", "n", |row| cell(row, 6)),
        ("p99 against the longest", "", |row| {
            let p99 = row.figures.response_ns.p99;
            p99.map_or(String::new(), |p99| html::bar(p99, row.longest))
        }),
        ("max", "n", |row| cell(row, 7)),
        ("start late p99", "n", |row| cell(row, 8)),
        ("processor", "n", |row| cell(row, 9)),
    ];
    let class = |row: &Row<'_>| match (row.figures.misses, row.figures.own_misses) {
        (0, _) => "",
        (_, Some(0)) => "excused",
        _ => "missed",
    };
    html::table(out, columns, (&rows, MAX_ROWS, "rivals"), class);
    out.push_str("</section>\n");
}

/// The same cells as in the text.
fn cell(row: &Row<'_>, at: usize) -> String {
    let cells = text::row(row.figures);
    cells
        .get(at)
        .map_or(String::new(), |cell| html::text(cell, 40))
}

fn against(out: &mut String, report: &Report) {
    if report.against.is_empty() {
        return;
    }
    let remark = "Figures of Punctual over those of the rival: below 1 they are smaller.";
    html::section(out, "Ratios", remark);
    let lines = report
        .against
        .iter()
        .flat_map(|one| [text::ratios(one), text::sign_test(one)]);
    list(out, lines);
}

fn runaway(out: &mut String, report: &Report) {
    let Some(runaway) = &report.runaway else {
        return;
    };
    let remark = format!(
        "`{}` never ends from its job {} on; each rival ran for {}.",
        html::text(&runaway.task, 60),
        runaway.from_job,
        readable(runaway.duration_ns)
    );
    html::section(out, "A body that loops for ever", &remark);
    let rivals = runaway.rivals.iter();
    let lines = rivals.map(|one| format!("{}: {}", one.name.name(), text::damage(one)));
    list(out, lines);
}

/// Lines, and the end of their section.
fn list(out: &mut String, lines: impl IntoIterator<Item = String>) {
    out.push_str("<ul>");
    for line in lines {
        let _ = write!(out, "<li>{}</li>", html::text(&line, 500));
    }
    out.push_str("</ul></section>\n");
}

fn parts(
    out: &mut String,
    (title, remark): (&str, &str),
    names: [&'static str; 6],
    parts: &[Part],
) {
    html::section(out, title, remark);
    let [of, a, b, c, d, e] = names;
    let columns: &[Column<Part>] = &[
        (of, "name", |part| html::text(&part.of, 60)),
        ("rival", "", |part| part.rival.name().into()),
        (a, "n", |part| part.cells[0].clone()),
        (b, "n miss", |part| part.cells[1].clone()),
        (c, "n", |part| part.cells[2].clone()),
        (d, "n", |part| part.cells[3].clone()),
        (e, "n", |part| part.cells[4].clone()),
    ];
    let class = |part: &Part| if part.has_missed { "missed" } else { "" };
    html::table(out, columns, (parts, MAX_ROWS, "rows"), class);
    out.push_str("</section>\n");
}

fn known(n: Option<u64>) -> String {
    n.map_or("–".into(), |n| n.to_string())
}

fn tasks(report: &Report) -> Vec<Part> {
    let count = report
        .rivals
        .iter()
        .map(|one| one.tasks.len())
        .max()
        .unwrap_or(0);
    let mut parts = Vec::new();
    for at in 0..count {
        for rival in report.rivals.iter().filter(|one| one.refused.is_none()) {
            let Some(task) = rival.tasks.get(at) else {
                continue;
            };
            parts.push(Part {
                of: task.name.clone(),
                rival: rival.name,
                cells: [
                    task.jobs.to_string(),
                    task.misses.to_string(),
                    known(task.own_misses),
                    text::time(task.response_ns.p50),
                    text::time(task.response_ns.p99),
                ],
                has_missed: task.misses > 0,
            });
        }
    }
    parts
}

fn rounds(report: &Report) -> Vec<Part> {
    let mut parts = Vec::new();
    for at in 0..report.rounds {
        for rival in &report.rivals {
            let Some(round) = rival.rounds.get(at) else {
                continue;
            };
            parts.push(Part {
                of: (at + 1).to_string(),
                rival: rival.name,
                cells: [
                    round.jobs.to_string(),
                    round.misses.to_string(),
                    known(round.own_misses),
                    text::time(round.missing_time_ns),
                    text::time(Some(round.processor_ns)),
                ],
                has_missed: round.misses > 0,
            });
        }
    }
    parts
}
