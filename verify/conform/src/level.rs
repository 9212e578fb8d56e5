//! The words of all levels: what is tried, how, and what comes of it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::Sender;

use punctual_kern::Policy;
use serde::{Deserialize, Serialize};

use crate::claims::Claims;
use crate::coverage::Coverage;
use crate::dice::Dice;
use crate::reference::Reference;
use crate::symptom::Violation;

/// One history of a tree for so many of each other level.
pub(crate) const TREE_SHARE: u64 = 10;

/// How much is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Options {
    /// Histories of calls, as many of events, and a tenth of that of a tree.
    pub histories: u64,
    /// Steps of each history before what does nothing is left out.
    pub steps: usize,
    /// Threads at any one time, 1 to 26.
    pub threads: usize,
    /// Seed of the first history; the next one has the next seed.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            histories: 1_000,
            steps: 80,
            threads: 5,
            seed: 1,
        }
    }
}

/// Through what a history reaches the policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Level {
    /// Calls of the policy's methods, in any order that its contract allows.
    Seam,
    /// Events of a [`punctual_kern::Shard`] with jobs, budgets, wake-ups and sections.
    Core,
    /// A [`punctual_kern::Tree`] in which the policy orders threads and a child scheduler that
    /// decides on its own supply, and answers nonsense.
    Tree,
    /// Loads of a [`punctual_kern::Server`].
    Server,
}

impl Level {
    /// Its name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Seam => "seam",
            Level::Core => "core",
            Level::Tree => "tree",
            Level::Server => "server",
        }
    }
}

/// Builds the policy for so many entities. Everything behind it is compiled once, for any policy.
pub(crate) type Make<'a> = &'a dyn Fn(usize) -> Box<dyn Policy>;

/// How a history is run.
#[derive(Clone, Copy)]
pub(crate) struct Setup<'a> {
    pub(crate) claims: &'a Claims,
    pub(crate) make: Make<'a>,
    pub(crate) threads: usize,
    /// Ask every question twice.
    pub(crate) ask_again: bool,
    /// Pick after every call, so that no two calls come between the same picks.
    pub(crate) pick_always: bool,
    /// Keep the words.
    pub(crate) record: bool,
    /// Tell each line at once: for histories that may not come to an end.
    pub(crate) live: Option<&'a Sender<String>>,
}

/// What came of a history.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) violation: Option<Violation>,
    pub(crate) lines: Vec<String>,
    /// Which steps did something.
    pub(crate) executed: Vec<bool>,
    pub(crate) coverage: Coverage,
}

/// The steps of one level.
pub(crate) trait Steps {
    const LEVEL: Level;
    type Step: Clone;

    /// Entities that a policy has to order when there may be so many threads.
    fn places(threads: usize) -> usize {
        threads
    }

    /// A random history.
    fn draw(dice: &mut Dice, options: &Options) -> Vec<Self::Step>;

    /// Executes the steps whose conditions hold. Sets in `executed` which those were.
    fn execute(
        steps: &[Self::Step],
        setup: Setup<'_>,
        reference: &Rc<RefCell<Reference>>,
        executed: &mut [bool],
    );

    /// Steps that do the same with smaller numbers.
    fn simpler(step: &Self::Step) -> Vec<Self::Step>;

    /// Histories that differ in all steps at once, and read more easily.
    fn tidied(steps: &[Self::Step]) -> Vec<Vec<Self::Step>>;

    /// Whether a policy might queue a thread once more at this step.
    fn requeues(step: &Self::Step) -> bool;
}

impl Coverage {
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        let one = &outcome.coverage;
        let executed = outcome.executed.iter().filter(|done| **done).count();
        self.steps += u64::try_from(executed).unwrap_or(u64::MAX);
        self.picks += one.picks;
        self.contested += one.contested;
        self.idle += one.idle;
        self.preemptions += one.preemptions;
        self.turns += one.turns;
        self.exhausted += one.exhausted;
    }
}
