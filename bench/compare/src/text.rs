//! The comparison as text: one table, and what it means.

use std::fmt::Write as _;

use punctual_model::readable;
use punctual_terminal::table::Table;
use punctual_trace::RunVerdict;

use crate::report::{Against, Report};
use crate::round::Figures;
use crate::runaway::{Runaway, Victims};

/// All of it; in brief without remarks.
pub(crate) fn render(report: &Report, brief: bool) -> String {
    let mut text = format!("{}: {}\n\n", word(report.verdict), heading(report));
    let _ = write!(text, "{}", table(report));
    text.push('\n');
    for against in &report.against {
        let _ = writeln!(text, "  {}", ratios(against));
        let _ = writeln!(text, "    {}", sign_test(against));
    }
    if let Some(runaway) = &report.runaway {
        let _ = write!(text, "\n{}", of_runaway(runaway));
    }
    if brief {
        return text;
    }
    text.push('\n');
    for remark in remarks(report) {
        let _ = writeln!(text, "  {remark}");
    }
    text
}

/// Punctual's verdict, as the text of a run begins.
pub(crate) fn word(verdict: RunVerdict) -> &'static str {
    match verdict {
        RunVerdict::Missed => "MISSED",
        other => other.name(),
    }
}

/// The file, the rounds and the load in one line.
pub(crate) fn heading(report: &Report) -> String {
    let cpus: Vec<String> = report.cpus.iter().map(u32::to_string).collect();
    let load: Vec<&str> = report.load.iter().map(|kind| kind.name()).collect();
    let load = match load.is_empty() {
        true => "no load".into(),
        false => format!("load: {}", load.join(", ")),
    };
    let rounds = match (report.rounds, report.rounds_wanted) {
        (1, 1) => "1 round".into(),
        (n, wanted) if n == wanted as usize => format!("{n} rounds"),
        (n, wanted) => format!("{n} rounds (of {wanted} wanted)"),
    };
    format!(
        "{} on CPU {}: {rounds} of {} each, {load}",
        report.source,
        cpus.join(", "),
        readable(report.duration_ns)
    )
}

/// A row per rival; the responses are those of the most urgent task.
fn table(report: &Report) -> Table {
    let p50 = format!(">{} p50", report.urgent);
    let columns = [
        "",
        ">jobs",
        ">missed",
        ">own",
        ">missing",
        &p50,
        ">p99",
        ">max",
        ">start late p99",
        ">processor",
    ];
    let mut table = Table::new(&columns);
    for figures in &report.rivals {
        table.row(row(figures));
    }
    table
}

/// The cells of a rival. One that was refused says why instead.
pub(crate) fn row(figures: &Figures) -> Vec<String> {
    let name = figures.name.name().to_owned();
    if figures.refused.is_some() {
        return vec![name, "refused".into()];
    }
    vec![
        name,
        figures.jobs.to_string(),
        figures.misses.to_string(),
        own_misses(figures),
        time(figures.missing_time_ns),
        time(figures.response_ns.p50),
        time(figures.response_ns.p99),
        time(figures.response_ns.max),
        time(figures.start_late_ns.p99),
        time(Some(figures.processor_ns)),
    ]
}

/// From the least to the most that may be its own.
fn own_misses(figures: &Figures) -> String {
    between(figures.own_misses_at_least, figures.own_misses)
}

/// From the least to the most.
pub(crate) fn between(least: Option<u64>, most: Option<u64>) -> String {
    match (least, most) {
        (Some(least), Some(most)) if least < most => format!("{least}–{most}"),
        (_, Some(own)) => own.to_string(),
        (_, None) => "–".into(),
    }
}

/// Three or four digits are enough to compare.
pub(crate) fn time(ns: Option<u64>) -> String {
    match ns {
        None => "–".into(),
        Some(ns @ 0..1_000) => format!("{ns}ns"),
        Some(ns @ 1_000..10_000_000) => format!("{}us", ns.div_ceil(1_000)),
        Some(ns @ 10_000_000..10_000_000_000) => format!("{}ms", ns.div_ceil(1_000_000)),
        Some(ns) => format!("{:.1}s", ns as f64 / 1e9),
    }
}

/// Punctual's figures over those of a rival.
pub(crate) fn ratios(against: &Against) -> String {
    let ratio = |ratio: Option<f64>| ratio.map_or("–".into(), |ratio| format!("{ratio:.2}"));
    format!(
        "Punctual / {}: misses {}, own misses {}, p99 {}, processor {}",
        against.rival.name(),
        ratio(against.misses_ratio),
        ratio(against.own_misses_ratio),
        ratio(against.p99_ratio),
        ratio(against.processor_ratio),
    )
}

/// The sign test and its power in words.
pub(crate) fn sign_test(against: &Against) -> String {
    let test = &against.sign_test;
    let split = format!(
        "sign test: fewer misses in {} rounds, more in {}, as many in {}; p = {:.3}",
        test.fewer, test.more, test.equal, test.p
    );
    let Some(power) = test.power else {
        return format!("{split}; nothing was missed, so no ratio can be seen");
    };
    let wanted = match test.rounds_wanted {
        Some(rounds) => format!("{rounds} rounds"),
        None => "more than 1000 rounds".into(),
    };
    format!(
        "{split}; a ratio of 2 shows with {:.0} % here, with 80 % in {wanted} (Poisson clusters \
         of {:.1} misses)",
        power * 100.0,
        test.cluster
    )
}

fn of_runaway(runaway: &Runaway) -> String {
    let mut text = format!(
        "`{}` loops for ever from its job {} on, {} each:\n",
        runaway.task,
        runaway.from_job,
        readable(runaway.duration_ns)
    );
    for victims in &runaway.rivals {
        let _ = writeln!(text, "  {}: {}", victims.name.name(), damage(victims));
    }
    text
}

/// The cost of a runaway in words.
pub(crate) fn damage(victims: &Victims) -> String {
    if let Some(why) = &victims.refused {
        return format!("refused: {why}");
    }
    let others = match victims.other_tasks.as_slice() {
        [] => "no other task is hurt".to_owned(),
        tasks => format!("hurts {}", tasks.join(", ")),
    };
    format!(
        "itself misses {}; {others} ({} of {} other jobs missed)",
        victims.misses_of_task, victims.misses_of_others, victims.jobs_of_others
    )
}

/// Reasons and limits, one line each.
pub(crate) fn remarks(report: &Report) -> Vec<String> {
    let mut remarks = Vec::new();
    for figures in &report.rivals {
        let name = figures.name.name();
        if let Some(why) = &figures.refused {
            remarks.push(format!("{name} did not run: {why}"));
        }
        remarks.extend(
            figures
                .remarks
                .iter()
                .map(|remark| format!("{name}: {remark}")),
        );
        if let Some(n) = figures.mismatches.filter(|n| *n > 0) {
            remarks.push(format!("{name}: {n} results differ from the reference"));
        }
    }
    remarks.extend(report.remarks.iter().cloned());
    remarks
}
