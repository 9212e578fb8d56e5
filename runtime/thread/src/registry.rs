//! The registry: from the name of a function in a file to the body that a task runs.

use std::collections::HashMap;
use std::fmt;

use crate::workload::{Oracle, Step, Workload};

/// Workloads and single functions by name. The command registers the shipped workloads here; a
/// program registers its own in the same way.
///
/// One registry serves one run: each name is handed out with its state, and
/// [`Workloads::check`] compares the results afterwards.
#[derive(Default)]
pub struct Workloads {
    workloads: Vec<(Box<dyn Workload>, bool)>,
    functions: HashMap<String, Option<Step>>,
}

/// A file names a function that nobody registered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownFunction {
    /// The name in the file.
    pub name: String,
    /// The mistake in it.
    pub reason: String,
    /// Registered names, for a suggestion.
    pub known: Vec<String>,
}

impl fmt::Display for UnknownFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "function `{}` {}", self.name, self.reason)?;
        if self.known.is_empty() {
            write!(f, "; nothing is registered in this program")
        } else {
            write!(f, "; registered: {}", self.known.join(", "))
        }
    }
}

impl std::error::Error for UnknownFunction {}

impl fmt::Debug for Workloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl Workloads {
    /// An empty registry.
    pub fn new() -> Workloads {
        Workloads::default()
    }

    /// Adds a workload: its steps are found as `workload::step`.
    #[must_use]
    pub fn with(mut self, workload: impl Workload + 'static) -> Workloads {
        self.workloads.push((Box::new(workload), false));
        self
    }

    /// Adds a single function under `name`; the last one of a name counts. At most one task can
    /// run it.
    #[must_use]
    pub fn with_function(mut self, name: impl Into<String>, step: Step) -> Workloads {
        let _ = self.functions.insert(name.into(), Some(step));
        self
    }

    /// All names that a file can use, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.functions.keys().cloned().collect();
        for (workload, _) in &self.workloads {
            names.extend(
                workload
                    .steps()
                    .iter()
                    .map(|s| format!("{}::{s}", workload.name())),
            );
        }
        names.sort();
        names
    }

    /// The body for one task.
    ///
    /// # Errors
    /// When nobody registered the name, or another task has taken the function already.
    pub fn resolve(&mut self, name: &str) -> Result<Step, UnknownFunction> {
        if let Some(function) = self.functions.get_mut(name) {
            return match function.take() {
                Some(step) => Ok(step),
                None => Err(self.unknown(name, "is already run by another task")),
            };
        }
        if let Some((prefix, step)) = name.split_once("::") {
            for (workload, used) in &mut self.workloads {
                if workload.name() == prefix
                    && let Some(body) = workload.step(step)
                {
                    *used = true;
                    return Ok(body);
                }
            }
        }
        Err(self.unknown(name, "is not registered"))
    }

    /// Compares the results of every workload that was used with its reference; `None` when none
    /// has one.
    pub fn check(&mut self) -> Option<Oracle> {
        let used = self.workloads.iter_mut().filter(|(_, used)| *used);
        let oracles = used.filter_map(|(workload, _)| workload.check());
        oracles.reduce(|a, b| Oracle {
            steps: a.steps + b.steps,
            mismatches: a.mismatches + b.mismatches,
        })
    }

    fn unknown(&self, name: &str, reason: &str) -> UnknownFunction {
        UnknownFunction {
            name: name.into(),
            reason: reason.into(),
            known: self.names(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::JobContext;

    struct Counting;

    impl Workload for Counting {
        fn name(&self) -> &str {
            "counting"
        }
        fn steps(&self) -> Vec<&'static str> {
            vec!["one"]
        }
        fn step(&mut self, name: &str) -> Option<Step> {
            (name == "one").then(|| Box::new(|_: JobContext| ()) as Step)
        }
        fn check(&mut self) -> Option<Oracle> {
            Some(Oracle {
                steps: 3,
                mismatches: 1,
            })
        }
    }

    #[test]
    fn names_lead_to_bodies_and_wrong_names_to_a_list() {
        let mut w = Workloads::new()
            .with(Counting)
            .with_function("f", Box::new(|_| ()));
        assert_eq!(w.names(), ["counting::one", "f"]);
        assert_eq!(w.check(), None, "nothing was used yet");
        assert!(w.resolve("counting::one").is_ok());
        assert_eq!(
            w.check(),
            Some(Oracle {
                steps: 3,
                mismatches: 1
            })
        );
        assert!(w.resolve("f").is_ok());
        let again = w
            .resolve("f")
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default();
        assert!(again.contains("already run by another task"), "{again}");
        let wrong = w
            .resolve("counting::two")
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default();
        assert!(wrong.ends_with("registered: counting::one, f"), "{wrong}");
    }
}
