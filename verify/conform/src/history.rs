//! Histories: made from a seed, run, and shrunk when they break something.

use std::sync::mpsc::Sender;

use punctual_kern::Policy;

use crate::claims::Claims;
use crate::core_level::CoreLevel;
use crate::coverage::Coverage;
use crate::dice::Dice;
use crate::level::{Level, Make, Options, Setup, Steps, TREE_SHARE};
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
pub fn check<P: Policy + 'static>(
    claims: &Claims,
    make: impl Fn(usize) -> P,
    options: &Options,
) -> Result<Report, Broken> {
    check_observed(claims, make, options, |_, _| {})
}

/// As [`check`]; tells the level and the seed of every history before it begins.
pub(crate) fn check_observed<P: Policy + 'static>(
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
    let make = |entities| Box::new(make(entities)) as Box<dyn Policy>;
    check_level::<SeamLevel>(claims, &make, &options, &mut begin, &mut report.seam)?;
    check_level::<CoreLevel>(claims, &make, &options, &mut begin, &mut report.core)?;
    // They are long, and run twice.
    let fewer = Options {
        histories: options.histories.div_ceil(TREE_SHARE),
        ..options
    };
    check_level::<TreeLevel>(claims, &make, &fewer, &mut begin, &mut report.tree)?;
    Ok(report)
}

fn check_level<L: Steps>(
    claims: &Claims,
    make: Make<'_>,
    options: &Options,
    begin: &mut dyn FnMut(Level, u64),
    coverage: &mut Coverage,
) -> Result<(), Broken> {
    for number in 0..options.histories {
        let seed = options.seed.wrapping_add(number);
        begin(L::LEVEL, seed);
        let (steps, setup) = draw::<L>(claims, make, options, seed);
        let outcome = run::<L>(&steps, setup);
        coverage.add(&outcome);
        if let Some(violation) = outcome.violation {
            let executed = steps.into_iter().zip(outcome.executed);
            let steps: Vec<L::Step> = executed.filter_map(|(s, done)| done.then_some(s)).collect();
            return Err(explain::<L>(&steps, setup, &violation, seed));
        }
    }
    Ok(())
}

/// The history of a seed.
fn draw<'a, L: Steps>(
    claims: &'a Claims,
    make: Make<'a>,
    options: &Options,
    seed: u64,
) -> (Vec<L::Step>, Setup<'a>) {
    let mut dice = Dice::new(seed);
    let setup = Setup {
        claims,
        make,
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
pub(crate) fn retell(
    claims: &Claims,
    make: Make<'_>,
    options: &Options,
    (level, seed): (Level, u64),
    lines: &Sender<String>,
) {
    fn again<L: Steps>(
        claims: &Claims,
        make: Make<'_>,
        options: &Options,
        seed: u64,
        lines: &Sender<String>,
    ) {
        let (steps, setup) = draw::<L>(claims, make, options, seed);
        let live = Some(lines);
        let _ = run::<L>(&steps, Setup { live, ..setup });
    }
    match level {
        Level::Seam => again::<SeamLevel>(claims, make, options, seed, lines),
        Level::Core => again::<CoreLevel>(claims, make, options, seed, lines),
        Level::Tree => again::<TreeLevel>(claims, make, options, seed, lines),
        // A server has no policy.
        Level::Server => {}
    }
}

/// Shrinks a history that breaks something, and names what.
fn explain<L: Steps>(steps: &[L::Step], setup: Setup<'_>, seen: &Violation, seed: u64) -> Broken {
    let breaks = |steps: &[L::Step]| {
        let violation = run::<L>(steps, setup).violation;
        violation.is_some_and(|violation| violation.symptom == seen.symptom)
    };
    let mut shortest = shrink(steps, L::simpler, breaks);
    for tidied in L::tidied(&shortest) {
        if breaks(&tidied) {
            shortest = shrink(&tidied, L::simpler, breaks);
            break;
        }
    }
    let recorded = run::<L>(
        &shortest,
        Setup {
            record: true,
            ..setup
        },
    );
    // A policy that is not deterministic may have changed its mind.
    let violation = recorded.violation.unwrap_or_else(|| seen.clone());
    Broken {
        property: naming::name::<L>(&shortest, setup, &violation),
        detail: violation.detail,
        level: L::LEVEL,
        seed,
        found_in: steps.len(),
        shortest: shortest.len(),
        history: recorded.lines,
    }
}
