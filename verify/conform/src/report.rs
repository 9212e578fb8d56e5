//! What a check found, for people and as JSON.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::claims::Claims;
use crate::coverage::Coverage;
use crate::level::{Level, Options, TREE_SHARE};
use crate::property::Property;

/// A policy that no history broke, and how much it went through.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// What it was held to beyond its contract.
    pub claims: String,
    /// How much was tried.
    pub options: Options,
    /// Histories of calls.
    pub seam: Coverage,
    /// Histories of events.
    pub core: Coverage,
    /// Histories of a tree.
    pub tree: Coverage,
}

impl Report {
    pub(crate) fn new(claims: &Claims, options: &Options) -> Report {
        Report {
            claims: claims.to_string(),
            options: *options,
            seam: Coverage::default(),
            core: Coverage::default(),
            tree: Coverage::default(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options {
            histories, seed, ..
        } = self.options;
        writeln!(
            f,
            "conforms: nothing broke it in {histories} histories of calls, as many of events, \
             and {} of a tree, seed {seed}",
            histories.div_ceil(TREE_SHARE)
        )?;
        write!(f, "  claims  {}", self.claims)?;
        let levels = [
            (Level::Seam, &self.seam),
            (Level::Core, &self.core),
            (Level::Tree, &self.tree),
        ];
        for (level, coverage) in levels {
            write!(f, "\n  {}    {coverage}", level.name())?;
        }
        Ok(())
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} steps, {} picks ({} among several, {} of nobody), {} preemptions, {} turns ended, \
             {} budgets exhausted",
            self.steps,
            self.picks,
            self.contested,
            self.idle,
            self.preemptions,
            self.turns,
            self.exhausted
        )
    }
}

/// A policy that is wrong, and the shortest history found that shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Broken {
    /// What it breaks.
    pub property: Property,
    /// What is wrong in the last step.
    pub detail: String,
    /// Through what the history reached the policy.
    pub level: Level,
    /// The history's seed: [`crate::Options`] with this seed and one history find it again.
    pub seed: u64,
    /// Steps of the history in which it was found.
    pub found_in: usize,
    /// Steps of the shortest that still shows it.
    pub shortest: usize,
    /// The calls and events of that one, in words, one per line.
    pub history: Vec<String>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "broken: {}: {}", self.property, self.property.promise())?;
        for line in &self.history {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "  !! {}", self.detail)?;
        write!(
            f,
            "{} steps are left of {}; to see it again: seed {}, one history ({} level)",
            self.shortest,
            self.found_in,
            self.seed,
            self.level.name()
        )
    }
}

impl std::error::Error for Broken {}
