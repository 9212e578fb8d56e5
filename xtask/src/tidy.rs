//! `cargo xtask tidy`: the house rules that no compiler holds.
//!
//! Each file beside this one is one rule or a few of a kind, a pure function from the [`Tree`] to
//! its [`Finding`]s, with tests that show it both silent and speaking. Style that a lint can hold
//! (function length, SAFETY comments, formatting) is left to clippy and rustfmt.

mod changelog;
mod circles;
mod edges;
mod guarantees;
mod invariants;
mod layers;
mod links;
mod manifests;
mod modules;
mod placement;
mod rust;
mod safety;
mod sentences;
mod sizes;
mod tree;
mod untested;
mod words;

use std::fmt;

use crate::step::Outcome;
use crate::workspace::Workspace;
use tree::Tree;

/// One place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// File, relative to the top folder.
    path: String,
    /// Line, from 1; 0 means the file as a whole.
    line: usize,
    /// The mistake and its remedy.
    message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding {
            path: path.to_string(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// The rules that look at files alone. The import edges and targets without tests also ask cargo.
const RULES: [fn(&Tree) -> Vec<Finding>; 13] = [
    placement::check,
    placement::modules,
    sizes::check,
    safety::check,
    invariants::check,
    links::check,
    manifests::check,
    words::check,
    sentences::check,
    guarantees::check,
    changelog::check,
    circles::check,
    layers::check,
];

/// Prints every finding; whether there was none.
pub(crate) fn run(workspace: &Workspace) -> bool {
    match step(workspace) {
        Outcome::Passed(remark) => {
            println!("tidy: {remark}");
            true
        }
        Outcome::Failed(message) | Outcome::Skipped(message) => {
            println!("{message}");
            false
        }
    }
}

/// All rules as one step of `cargo xtask test`.
pub(crate) fn step(workspace: &Workspace) -> Outcome {
    let tree = match Tree::read(&workspace.root) {
        Ok(tree) => tree,
        Err(error) => return Outcome::Failed(error),
    };
    let mut findings = edges::check(&workspace.metadata, &tree);
    findings.extend(untested::check(&workspace.metadata, &tree));
    findings.extend(RULES.iter().flat_map(|rule| rule(&tree)));
    if findings.is_empty() {
        return Outcome::Passed(format!("{} files", tree.file_count()));
    }
    findings.sort();
    findings.dedup();
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    Outcome::Failed(format!("{}\n{} findings", lines.join("\n"), lines.len()))
}
