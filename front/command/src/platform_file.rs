//! Platform files: the terms of a machine from `doctor` to `check` and `run`.
//!
//! The file says on which machine its terms were measured, and a command that uses it says when
//! that was another one: another processor, kernel or build has other costs.

use std::fmt::Write as _;
use std::path::Path;

use punctual_linux::{Gaps, Mode, Terms};
use punctual_model::{Machine, readable};
use punctual_spec::Platform;

use punctual_terminal::ending::Failure;
use punctual_terminal::json::Json;
use punctual_terminal::machine::{self, Fact};
use punctual_terminal::object;
use punctual_terminal::table::Table;

/// Facts that a figure does not depend on.
const IRRELEVANT: [&str; 1] = ["tool"];
const BEST_EFFORT: &str = "best-effort";

/// The terms of a platform file, and whose they are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Given {
    /// The terms.
    pub(crate) machine: Machine,
    /// Which file.
    pub(crate) origin: Origin,
}

/// Where the terms of a verdict come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    file: String,
    /// What is otherwise than where and as it was measured; empty: nothing.
    differences: Vec<String>,
}

impl Given {
    /// Reads a platform file.
    pub(crate) fn load(path: &Path) -> Result<Given, Failure> {
        let platform = punctual_spec::load_platform(path)
            .map_err(|error| Failure::diagnostics(error.diagnostics().to_vec()))?;
        let mut differences = differences(&platform.measured, &machine::facts());
        if platform
            .measured
            .iter()
            .any(|(name, value)| name == "mode" && *value == BEST_EFFORT)
        {
            differences.push("without real-time priority".to_owned());
        }
        Ok(Given {
            machine: platform.machine,
            origin: Origin {
                file: path.display().to_string(),
                differences,
            },
        })
    }
}

impl Origin {
    pub(crate) fn json(&self) -> Json {
        object! {
            file: &self.file,
            differences: &self.differences,
        }
    }

    /// In one line.
    pub(crate) fn describe(&self) -> String {
        if self.differences.is_empty() {
            return format!("{}, measured on this machine", self.file);
        }
        let differences = self.differences.join("; ");
        format!(
            "{}, not measured on this machine as it is: {differences}",
            self.file
        )
    }
}

/// What is not here as it was there. A file without a word on where it is from is from elsewhere.
fn differences(there: &[(String, String)], here: &[Fact]) -> Vec<String> {
    let relevant = here.iter().filter(|fact| !IRRELEVANT.contains(&fact.name));
    let differ = relevant.filter_map(|fact| {
        let value = there.iter().find(|(name, _)| name == fact.name);
        match value {
            Some((_, value)) if *value == fact.value => None,
            Some((_, value)) => Some(format!(
                "{} `{value}` there, `{}` here",
                fact.name, fact.value
            )),
            None => Some(format!("it does not say which {}", fact.name)),
        }
    });
    differ.collect()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_is_told_fact_by_fact_and_the_tool_does_not_matter() {
        let fact = |name, value: &str| Fact {
            name,
            value: value.into(),
        };
        let here = [
            fact("processor", "A"),
            fact("kernel", "6"),
            fact("tool", "2"),
        ];
        let there = |processor: &str| {
            let pairs = [("processor", processor), ("kernel", "6"), ("tool", "1")];
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        assert_eq!(differences(&there("A"), &here), Vec::<String>::new());
        assert_eq!(
            differences(&there("B"), &here),
            ["processor `B` there, `A` here"]
        );
        assert_eq!(differences(&[], &here).len(), 2);
    }
}
