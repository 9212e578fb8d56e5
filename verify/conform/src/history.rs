//! Histories: made from a seed, run, and shrunk when they break something.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::Sender;

use punctual_kern::Policy;
use serde::{Deserialize, Serialize};

use crate::claims::Claims;
use crate::core_level::CoreLevel;
use crate::dice::Dice;
use crate::reference::Reference;
use crate::report::{Broken, Coverage, Report};
use crate::seam_level::SeamLevel;
use crate::shrink::shrink;
use crate::symptom::{Symptom, Violation};
use crate::tree_level::TreeLevel;
use crate::{naming, quiet};

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

/// How a history is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup<'a> {
    pub(crate) claims: &'a Claims,
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
    fn execute<P: Policy>(
        steps: &[Self::Step],
        setup: Setup<'_>,
        make: &dyn Fn(usize) -> P,
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

/// Runs one history; a panic is one of its outcomes.
pub(crate) fn run<L: Steps, P: Policy>(
    steps: &[L::Step],
    setup: Setup<'_>,
    make: &dyn Fn(usize) -> P,
) -> Outcome {
    let places = L::places(setup.threads);
    let mut reference = Reference::new(setup.claims, places, setup.record);
    reference.live = setup.live.cloned();
    let reference = Rc::new(RefCell::new(reference));
    let mut executed = vec![false; steps.len()];
    let work = || L::execute(steps, setup, make, &reference, &mut executed);
    let caught = quiet::catch(work);
    let mut reference = reference.borrow_mut();
    if let Err(message) = caught {
        let detail = format!("panics: {message}");
        reference.fail(Violation::new(Symptom::Panic, detail));
        // The step that panicked did not come to its end; it belongs to the history all the same.
        executed.fill(true);
    }
    Outcome {
        violation: reference.violation.take(),
        lines: reference.lines.take().unwrap_or_default(),
        executed,
        coverage: reference.coverage,
    }
}

/// Holds a policy to its contract and to its author's claims, by random histories. `make` builds
/// the policy for threads with an index below its argument; it is called often.
///
/// # Errors
/// The shortest history found that breaks a property, with the property's name.
pub fn check<P: Policy>(
    claims: &Claims,
    make: impl Fn(usize) -> P,
    options: &Options,
) -> Result<Report, Broken> {
    check_observed(claims, make, options, |_, _| {})
}

/// As [`check`]; tells the level and the seed of every history before it begins.
pub(crate) fn check_observed<P: Policy>(
    claims: &Claims,
    make: impl Fn(usize) -> P,
    options: &Options,
    mut begin: impl FnMut(Level, u64),
) -> Result<Report, Broken> {
    let options = Options {
        threads: options.threads.clamp(1, 26),
        ..*options
    };
    let mut report = Report::new(claims, &options);
    check_level::<SeamLevel, P>(claims, &make, &options, &mut begin, &mut report.seam)?;
    check_level::<CoreLevel, P>(claims, &make, &options, &mut begin, &mut report.core)?;
    // They are long, and run twice.
    let fewer = Options {
        histories: options.histories.div_ceil(TREE_SHARE),
        ..options
    };
    check_level::<TreeLevel, P>(claims, &make, &fewer, &mut begin, &mut report.tree)?;
    Ok(report)
}

fn check_level<L: Steps, P: Policy>(
    claims: &Claims,
    make: &dyn Fn(usize) -> P,
    options: &Options,
    begin: &mut dyn FnMut(Level, u64),
    coverage: &mut Coverage,
) -> Result<(), Broken> {
    for number in 0..options.histories {
        let seed = options.seed.wrapping_add(number);
        begin(L::LEVEL, seed);
        let (steps, setup) = draw::<L>(claims, options, seed);
        let outcome = run::<L, P>(&steps, setup, make);
        coverage.add(&outcome);
        if let Some(violation) = outcome.violation {
            let executed = steps.into_iter().zip(outcome.executed);
            let steps: Vec<L::Step> = executed.filter_map(|(s, done)| done.then_some(s)).collect();
            return Err(explain::<L, P>(&steps, setup, make, &violation, seed));
        }
    }
    Ok(())
}

/// The history of a seed.
fn draw<'a, L: Steps>(
    claims: &'a Claims,
    options: &Options,
    seed: u64,
) -> (Vec<L::Step>, Setup<'a>) {
    let mut dice = Dice::new(seed);
    let setup = Setup {
        claims,
        threads: options.threads,
        ask_again: dice.once_in(2),
        pick_always: false,
        record: false,
        live: None,
    };
    (L::draw(&mut dice, options), setup)
}

/// Runs the history of a seed once more, and tells every line of it before it happens. Comes back
/// when the policy does.
pub(crate) fn retell<P: Policy>(
    claims: &Claims,
    make: &dyn Fn(usize) -> P,
    options: &Options,
    (level, seed): (Level, u64),
    lines: &Sender<String>,
) {
    fn again<L: Steps, P: Policy>(
        claims: &Claims,
        make: &dyn Fn(usize) -> P,
        options: &Options,
        seed: u64,
        lines: &Sender<String>,
    ) {
        let (steps, setup) = draw::<L>(claims, options, seed);
        let live = Some(lines);
        let _ = run::<L, P>(&steps, Setup { live, ..setup }, make);
    }
    match level {
        Level::Seam => again::<SeamLevel, P>(claims, make, options, seed, lines),
        Level::Core => again::<CoreLevel, P>(claims, make, options, seed, lines),
        Level::Tree => again::<TreeLevel, P>(claims, make, options, seed, lines),
        // A server has no policy.
        Level::Server => {}
    }
}

/// Shrinks a history that breaks something, and names what.
fn explain<L: Steps, P: Policy>(
    steps: &[L::Step],
    setup: Setup<'_>,
    make: &dyn Fn(usize) -> P,
    seen: &Violation,
    seed: u64,
) -> Broken {
    let breaks = |steps: &[L::Step]| {
        let violation = run::<L, P>(steps, setup, make).violation;
        violation.is_some_and(|violation| violation.symptom == seen.symptom)
    };
    let mut shortest = shrink(steps, L::simpler, breaks);
    for tidied in L::tidied(&shortest) {
        if breaks(&tidied) {
            shortest = shrink(&tidied, L::simpler, breaks);
            break;
        }
    }
    let recorded = run::<L, P>(
        &shortest,
        Setup {
            record: true,
            ..setup
        },
        make,
    );
    // A policy that is not deterministic may have changed its mind.
    let violation = recorded.violation.unwrap_or_else(|| seen.clone());
    Broken {
        property: naming::name::<L, P>(&shortest, setup, make, &violation),
        detail: violation.detail,
        level: L::LEVEL,
        seed,
        found_in: steps.len(),
        shortest: shortest.len(),
        history: recorded.lines,
    }
}
