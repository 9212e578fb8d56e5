//! Many tasks: verdicts come, and are no longer than what is printed
#![allow(clippy::expect_used, reason = "a test may panic")]

use crate::common::{EDF, FP, periodic};
use punctual_analysis::{Term, admit, explained, is_admitted};
use punctual_generate::Random;
use punctual_model::{Ns, PolicyKind, System, TaskId, Work};

/// So many tasks with different periods of 10 to 1,000 ms, of 70 % together, rate-monotonic.
fn many(policy: PolicyKind<Ns>, tasks: u64) -> System {
    let mut random = Random::new(7);
    let mut periods: Vec<u64> = (0..tasks)
        .map(|_| 10_000_000 + random.below(990_000_000))
        .collect();
    periods.sort_unstable();
    let rows = periods.iter().map(|&t| (t * 7 / (10 * tasks), t, t));
    periodic(policy, &rows.collect::<Vec<_>>())
}

fn sum(terms: &[Term]) -> Work<Ns> {
    let works = terms.iter().map(|t| t.each.saturating_mul(t.count));
    works.fold(Work::ZERO, Work::saturating_add)
}

#[test]
fn twenty_thousand_tasks_have_a_verdict_under_either_policy() {
    for policy in [FP, EDF] {
        let system = many(policy, 20_000);
        let verdict = admit(&system).expect("the steps suffice");
        assert!(verdict.admitted);
        assert_eq!(is_admitted(&system), Ok(true));
        let listed: usize = verdict.tasks.iter().map(|row| row.terms.len()).sum();
        assert!(listed <= 20_000 * 64, "{listed} terms");
    }
}

#[test]
fn a_long_sum_is_folded_and_told_whole_on_request() {
    let system = many(FP, 300);
    let verdict = admit(&system).expect("the steps suffice");
    let last = TaskId(299);
    let row = verdict.task(last).expect("there are 300");
    assert_eq!(row.terms.len(), 33);
    assert_eq!(row.terms[32].what, "268 more");
    assert!(
        row.explanation.ends_with(" (268 more)"),
        "{}",
        row.explanation
    );
    let bound = row.response_bound.expect("it is admitted");
    assert_eq!(sum(&row.terms), bound.as_work());
    let whole = explained(&system, last)
        .expect("as before")
        .expect("a task");
    assert_eq!(
        (whole.terms.len(), sum(&whole.terms)),
        (300, bound.as_work())
    );
    // The largest are listed, in their order.
    let least = row.terms[1..32]
        .iter()
        .map(|t| t.each.saturating_mul(t.count))
        .min();
    let listed = |term: &&Term| Some(term.each.saturating_mul(term.count)) >= least;
    let larger: Vec<&Term> = whole.terms[1..].iter().filter(listed).collect();
    assert_eq!(larger.len(), 31);
    assert!(larger.into_iter().eq(&row.terms[1..32]));
    assert_eq!(explained(&system, TaskId(300)), Ok(None));
}

#[test]
fn an_overload_of_many_tasks_is_told_in_few_words() {
    let mut system = many(EDF, 300);
    for task in &mut system.tasks {
        if let Some(wcet) = task.class.budget_mut() {
            *wcet = wcet.saturating_mul(2);
        }
    }
    let verdict = admit(&system).expect("the steps suffice");
    assert!(!verdict.admitted);
    let longest = verdict.tasks.iter().map(|row| row.assumptions.len()).max();
    assert!(longest.is_some_and(|longest| longest <= 40), "{longest:?}");
}

#[test]
fn a_fix_that_is_known_is_told_of_every_refusal_also_when_no_trials_are_left() {
    let mut system = many(FP, 3_000);
    // The most urgent task takes half of the time: most others are late, and it alone mends them.
    let first = &mut system.tasks[0];
    let period = first.class.relative_deadline().expect("it is periodic");
    *first.class.budget_mut().expect("it is periodic") = Work::from_ns(period.as_ns() / 2);
    let verdict = admit(&system).expect("the steps suffice");
    assert!(verdict.refusals.len() > 100, "{}", verdict.refusals.len());
    let fixes = verdict.refusals.iter().map(|refusal| refusal.fix.as_ref());
    let first = fixes.clone().next().flatten().expect("a fix");
    assert_eq!(first.parameter, "task.t0.wcet");
    assert_eq!(
        fixes.filter(|fix| *fix == Some(first)).count(),
        verdict.refusals.len()
    );
}
