//! Histories: made from a seed, run, and shrunk when they break something.

use std::sync::mpsc::Sender;

use punctual_kern::Policy;

use crate::claims::Claims;
use crate::core_level::CoreLevel;
use crate::coverage::Coverage;
use crate::dice::Dice;
use crate::level::{Level, Options, Setup, Steps, TREE_SHARE};
use crate::naming;
use crate::report::{Broken, Report};
use crate::run::run;
use crate::seam_level::SeamLevel;
use crate::shrink::shrink;
use crate::symptom::Violation;
use crate::tree_level::TreeLevel;

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
