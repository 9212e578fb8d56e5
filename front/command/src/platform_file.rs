//! Platform files that `doctor` proposes: the terms of a machine, for `check`, `run` and `compare`.

use std::fmt::Write as _;

use punctual_linux::{Gaps, Mode, Terms};
use punctual_model::{Machine, readable};
use punctual_spec::Platform;

use punctual_terminal::machine;
use punctual_terminal::platform::BEST_EFFORT;
use punctual_terminal::table::Table;

/// The text of the file that `doctor --measure` proposes.
pub(crate) fn propose(cpu: u32, terms: &Terms, gaps: &Gaps) -> String {
    let mut text = String::from(
        "# Terms of a machine, for `punctual check --platform` and `punctual run --platform`.\n\
         # Made by `punctual doctor --measure --platform`; proposed is the 90th percentile of the\n\
         # quietest quarter of the samples.\n#\n",
    );
    for line in table(terms).lines() {
        let _ = writeln!(text, "# {line}");
    }
    let facts = machine::facts().into_iter();
    let mut measured: Vec<_> = facts.map(|f| (f.name.to_owned(), f.value)).collect();
    measured.push(("cpu".to_owned(), cpu.to_string()));
    measured.push(("mode".to_owned(), mode(terms.overheads.mode).to_owned()));
    // A reserve that would take more than there is takes all.
    let machine = Machine::default().with(&terms.overheads.machine());
    text.push('\n');
    text += &punctual_spec::write_platform(&Platform { machine, measured });
    let _ = write!(
        text,
        "\n# This machine took {} in {} gaps within {}, at most {} in any {}. Nobody counts on it\n\
         # unless the next line is one, above `reserve` (or a system declares its own):\n\
         # missing-time = {{ budget = \"{}\", period = \"{}\" }}\n",
        readable(gaps.total_ns),
        gaps.count,
        readable(gaps.observed_ns),
        readable(gaps.densest_ns),
        readable(Gaps::WINDOW_NS),
        readable(gaps.densest_ns.max(1)),
        readable(Gaps::WINDOW_NS),
    );
    text
}

/// The terms, a line each.
pub(crate) fn table(terms: &Terms) -> String {
    let mut table = Table::new(&["term", ">proposed", ">p50", ">p99", ">max", ">samples", ""]);
    for term in &terms.terms {
        let [p50, p99, max] = term.quantiles_ns.map(|ns| readable(ns).to_string());
        let (name, meaning) = (term.name.to_owned(), term.meaning.to_owned());
        let (proposed, samples) = (readable(term.proposed_ns), term.samples);
        let (proposed, samples) = (proposed.to_string(), samples.to_string());
        table.row(vec![name, proposed, p50, p99, max, samples, meaning]);
    }
    let mut text = String::new();
    for line in table.to_string().lines() {
        let _ = writeln!(text, "{}", line.trim_start());
    }
    for (name, why) in &terms.missing {
        let _ = writeln!(text, "{name}: not measured: {why}");
    }
    text
}

/// The word for a mode.
pub(crate) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::RealTime => "real-time",
        Mode::BestEffort => BEST_EFFORT,
    }
}
