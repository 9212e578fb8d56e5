//! Figures for people, as a table with its notes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use punctual_model::readable;
use punctual_terminal::machine::Fact;
use punctual_terminal::table::Table;

use super::{Figure, Quantiles, Rival};

/// The operation of each rival of these figures.
fn rivals_told(figures: &[Figure]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for rival in figures.iter().flat_map(|figure| &figure.rivals) {
        let line = format!("  {}: {}", rival.name, rival.does);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    match lines.is_empty() {
        true => String::new(),
        false => format!("\n\nrivals\n{}", lines.join("\n")),
    }
}

/// Why figures have no instructions.
fn not_counted_told(figures: &[Figure]) -> String {
    let mut rows: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for figure in figures {
        if let Some(why) = &figure.not_counted {
            rows.entry(why).or_default().push(&figure.name);
        }
    }
    let lines = rows
        .iter()
        .map(|(why, rows)| format!("\n  {why}: {}", rows.join(", ")));
    match rows.is_empty() {
        true => String::new(),
        false => format!(
            "\n\ninstructions that are not counted\n{}",
            lines.collect::<String>().trim_start_matches('\n')
        ),
    }
}

/// The figures for people.
pub(crate) fn render(facts: &[Fact], figures: &[Figure]) -> String {
    let mut text = String::new();
    for fact in facts {
        let _ = writeln!(text, "{:9} {}", fact.name, fact.value);
    }
    let number = |value: f64| format!("{value:.1}");
    let mut table = Table::new(&[
        "figure",
        "unit",
        ">p50",
        ">p99",
        ">max",
        ">n",
        ">instructions",
        ">missing",
        "rivals, p50 (times ours: least to most of the turns)",
    ]);
    for figure in figures {
        let missing = figure
            .missing_ns
            .map_or_else(String::new, |ns| readable(ns).to_string());
        table.row(vec![
            figure.name.clone(),
            figure.unit.name().into(),
            number(figure.p50),
            number(figure.p99),
            number(figure.max),
            figure.n.to_string(),
            figure
                .instructions
                .map_or_else(|| "-".into(), |count| count.to_string()),
            missing,
            figure
                .rivals
                .iter()
                .map(Rival::told)
                .collect::<Vec<_>>()
                .join(", "),
        ]);
        for part in &figure.parts {
            let of = |value: fn(&Quantiles) -> f64| {
                part.all
                    .as_ref()
                    .map_or_else(String::new, |all| number(value(all)))
            };
            let n = part.all.as_ref().map_or(0, |all| all.n);
            table.row(vec![
                format!("  {}", part.name),
                figure.unit.name().into(),
                of(|all| all.p50),
                of(|all| all.p99),
                of(|all| all.max),
                n.to_string(),
                String::new(),
                String::new(),
                String::new(),
            ]);
        }
    }
    let _ = write!(text, "\n{table}");
    text.push_str(&rivals_told(figures));
    text.push_str(&not_counted_told(figures));
    text.truncate(text.trim_end().len());
    text
}
