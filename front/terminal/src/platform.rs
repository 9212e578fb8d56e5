//! Terms of a machine from a platform file, and how that machine differs from this one.
//!
//! The file says on which machine its terms were measured, and a command that uses it says when
//! that was another one: another processor, kernel or build has other costs.

use std::path::Path;

use punctual_model::Machine;

use crate::ending::Failure;
use crate::input::{STANDARD_INPUT, standard_input, text};
use crate::json::Json;
use crate::machine::{self, Fact};
use crate::object;

/// The mode of a measurement without real-time priority.
pub const BEST_EFFORT: &str = "best-effort";
/// Facts that a figure does not depend on.
const IRRELEVANT: [&str; 1] = ["tool"];

/// The terms of a platform file, and whose they are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Given {
    /// The terms.
    pub machine: Machine,
    /// Which file.
    pub origin: Origin,
}

/// Where the terms of a verdict come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    file: String,
    /// Each fact that is not as it was where it was measured.
    differences: Vec<String>,
}

impl Given {
    /// Reads a platform file; `-` is standard input.
    pub fn load(path: &Path) -> Result<Given, Failure> {
        let platform = match standard_input(path) {
            Some(_) => punctual_spec::parse_platform(&text(path)?, STANDARD_INPUT),
            None => {
                punctual_spec::load_platform(path).map_err(|error| error.diagnostics().to_vec())
            }
        };
        let platform = platform.map_err(Failure::diagnostics)?;
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
                file: match standard_input(path) {
                    Some(_) => STANDARD_INPUT.to_owned(),
                    None => path.display().to_string(),
                },
                differences,
            },
        })
    }
}

impl Origin {
    /// For programs.
    pub fn json(&self) -> Json {
        object! {
            file: &self.file,
            differences: &self.differences,
        }
    }

    /// In one line.
    pub fn describe(&self) -> String {
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

/// The facts that are not here as they were there.
///
/// A file without a word on where it is from is from elsewhere.
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
