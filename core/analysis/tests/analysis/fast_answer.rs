//! A yes or no comes faster than a verdict, and it is the same
#![allow(clippy::expect_used, reason = "a test may panic")]

use crate::common::random::{Deadlines, Random, set};
use crate::common::{FP, periodic, span, work};
use punctual_analysis::{Verdict, admit, admit_without_slack, bounds_only, is_admitted};
use punctual_model::{Priority, Reserve, System};

/// Fixed priorities with everything that the closed bound counts: equal priorities, jitter,
/// sections, reserves; close to where the answer turns.
fn draw(seed: u64) -> System {
    let mut random = Random::new(seed * 31 + 5);
    let tasks = usize::try_from(random.within(1, 7)).expect("small");
    let load = 0.35 + 0.7 * random.unit();
    let rows = set(&mut random, tasks, load, (5.0, 200.0), Deadlines::Arbitrary);
    let mut system = periodic(FP, &rows);
    for task in &mut system.tasks {
        if random.within(0, 3) == 0 {
            task.priority = Priority::new(3);
        }
        if random.within(0, 3) == 0 {
            task.jitter = span(random.within(1, 30));
        }
        if random.within(0, 3) == 0 {
            let wcet = task.class.budget().map_or(1, |w| w.as_ns());
            task.non_preemptive = work(random.within(1, wcet));
        }
    }
    if random.within(0, 2) == 0 {
        system.machine.reserves.push(Reserve {
            name: "r".into(),
            budget: work(1),
            period: span(random.within(8, 60)),
        });
    }
    system
}

#[test]
fn the_fast_answer_is_that_of_the_bounds() {
    let mut admitted = 0;
    for seed in 0..4_000 {
        let system = draw(seed);
        let verdict = admit(&system).expect("small numbers");
        assert_eq!(
            is_admitted(&system),
            Ok(verdict.admitted),
            "seed {seed}: {system:?}"
        );
        admitted += u32::from(verdict.admitted);
    }
    assert!(
        (1_000..3_000).contains(&admitted),
        "{admitted} of 4000 admitted"
    );
}

/// A verdict as one that tries no other parameters gives it.
fn without_trials(mut verdict: Verdict, fixes: bool) -> Verdict {
    for row in &mut verdict.tasks {
        row.slack = None;
    }
    for refusal in verdict.refusals.iter_mut().filter(|_| fixes) {
        refusal.fix = None;
        refusal.advice.clear();
    }
    verdict
}

#[test]
fn a_verdict_without_trials_is_the_same_but_for_slack_and_fixes() {
    let (mut slack, mut fixes) = (0, 0);
    for seed in 0..300 {
        let system = draw(seed);
        let verdict = admit(&system).expect("small numbers");
        let told = bounds_only(&system).expect("small numbers");
        slack += verdict.tasks.iter().filter(|t| t.slack.is_some()).count();
        fixes += verdict.refusals.iter().filter(|r| r.fix.is_some()).count();
        assert_eq!(told, without_trials(verdict.clone(), true), "seed {seed}");
        let told = admit_without_slack(&system).expect("small numbers");
        assert_eq!(told, without_trials(verdict, false), "seed {seed}");
    }
    assert!(slack > 100 && fixes > 100, "{slack} {fixes}");
}
