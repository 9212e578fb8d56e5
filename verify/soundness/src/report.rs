//! What a soundness run prints: counts, sharpness, coverage, violations.

use std::fmt::Write;

use crate::tally::{Sharpness, Tally};
use crate::tightness;

/// Violations that are shown in full.
const SHOWN: usize = 8;

/// Everything but the last line, as text.
pub fn report(tally: &Tally) -> String {
    let mut text = String::new();
    let mut say = |line: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line}");
    };
    say(format!(
        "{} systems: {} admitted, {} refused, {} without an answer",
        tally.systems,
        tally.admitted,
        tally.refused,
        tally.unanswered.values().sum::<u64>()
    ));
    say(format!(
        "{} simulations; {} small systems tried from all phases",
        tally.situations, tally.exhausted
    ));
    say(format!(
        "beside them {} systems with {} admitted changes",
        tally.histories, tally.changes
    ));
    if !tally.unanswered.is_empty() {
        say("\nwithout an answer, by what the analysis says:".into());
        for (reason, count) in &tally.unanswered {
            say(format!("  {count:>7}  {reason}"));
        }
    }
    say("\nrefusals:".into());
    for (word, count) in &tally.witnesses {
        say(format!("  {count:>7}  {word}"));
    }
    say("\nfeature             admitted  refused  unanswered".into());
    for (feature, [admitted, refused, unanswered]) in &tally.features {
        say(format!(
            "  {feature:<16} {admitted:>9} {refused:>8} {unanswered:>11}"
        ));
    }
    say("\nsharpness: bound / longest response seen            p50     p90     max    bounds  exact".into());
    for (test, sharpness) in &tally.sharpness {
        say(sharpness_line(test, sharpness));
    }
    say(format!(
        "\nsharpness by supply of the task {:>24}     p90     max    bounds  exact   limit of p50",
        "p50"
    ));
    for (supply, sharpness) in &tally.supplies {
        let line = sharpness_line(supply, sharpness);
        let limit = f64::from(tightness::limit(supply)) / 1_000.0;
        say(format!("{line} {limit:>14.3}"));
    }
    say("\nbranches of the analysis, and how often they were taken:".into());
    for (branch, count) in &tally.branches {
        say(format!("  {count:>7}  {branch}"));
    }
    violations(tally, &mut say);
    text
}

fn sharpness_line(test: &str, sharpness: &Sharpness) -> String {
    let quantile = |percent| f64::from(tightness::quantile(sharpness, percent)) / 1_000.0;
    format!(
        "  {test:<50} {:>7.3} {:>7.3} {:>7.1} {:>9} {:>6}",
        quantile(50),
        quantile(90),
        quantile(100),
        sharpness.ratios.len(),
        sharpness.exact
    )
}

fn violations(tally: &Tally, say: &mut impl FnMut(String)) {
    for violation in tally.violations.iter().take(SHOWN) {
        say(format!(
            "\nVIOLATION: system {}, {}: {}\n{}",
            violation.index, violation.situation, violation.what, violation.system
        ));
    }
    let hidden = tally.violations.len().saturating_sub(SHOWN);
    if hidden > 0 {
        say(format!("... and {hidden} more violations"));
    }
}
