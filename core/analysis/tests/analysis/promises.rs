//! Fixes and slack stand at a border: applied admitted, one step further refused

use crate::common::draw::{POLICIES, draw, wcet};
use crate::common::random::Random;
use crate::common::{require_response, span, work};
use punctual_analysis::{Slack, Verdict, admit, is_admitted};
use punctual_model::{Class, Span, System, Work};

fn judge(system: &System) -> Verdict {
    admit(system).expect("small numbers")
}

/// The quick answer; that it is the answer of `admit` is asserted where both are asked.
fn admitted(system: &System) -> bool {
    is_admitted(system).expect("valid")
}

fn set_wcet(system: &mut System, task: usize, value: u64) {
    if let Class::Periodic { wcet, .. } | Class::Sporadic { wcet, .. } =
        &mut system.tasks[task].class
    {
        *wcet = work(value);
    }
}

#[test]
fn every_fix_admits_and_one_step_short_of_it_refuses() {
    let (mut fixes, mut refused) = (0, 0);
    for seed in 0..1_500_u64 {
        let mut random = Random::new(seed);
        let policy = POLICIES[usize::try_from(seed % 5).expect("small")];
        let mut system = draw(&mut random, policy, (20.0, 400.0));
        if random.within(0, 2) == 0 {
            let deadline = system.tasks[0]
                .class
                .relative_deadline()
                .map_or(1, Span::as_ns);
            require_response(&mut system, 0, random.within(deadline / 2, deadline).max(1));
        }
        let verdict = judge(&system);
        assert_eq!(verdict.admitted, admitted(&system), "seed {seed}");
        refused += u64::from(!verdict.admitted);
        for refusal in &verdict.refusals {
            let Some(fix) = &refusal.fix else { continue };
            fixes += 1;
            let mut fixed = system.clone();
            fix.apply(&mut fixed);
            assert!(
                admitted(&fixed),
                "seed {seed}: {fix} does not mend {system:?}"
            );
            let mut short = fix.clone();
            let step = if fix.to > fix.from {
                fix.to.as_ns() - 1
            } else {
                fix.to.as_ns() + 1
            };
            short.to = span(step);
            let mut unmended = system.clone();
            short.apply(&mut unmended);
            assert!(
                !admitted(&unmended),
                "seed {seed}: {short} is enough for {system:?}"
            );
        }
    }
    assert!(
        (450..=1_050).contains(&refused),
        "{refused} of 1500 are refused"
    );
    assert!(
        fixes * 10 >= refused * 9,
        "{fixes} fixes of {refused} refused systems"
    );
}

#[test]
fn slack_is_admitted_and_one_step_beyond_is_refused() {
    let mut tried = 0;
    for seed in 0..500_u64 {
        let mut random = Random::new(seed);
        let policy = POLICIES[usize::try_from(seed % 5).expect("small")];
        // Long periods, so that a tenth of a percent is several ticks.
        let system = draw(&mut random, policy, (10_000.0, 200_000.0));
        // So near to a utilization of 1 that the analysis says it cannot tell.
        let Ok(verdict) = admit(&system) else {
            continue;
        };
        for (index, row) in verdict.tasks.iter().enumerate() {
            assert_eq!(row.slack.is_some(), verdict.admitted);
            let Some(slack) = row.slack else { continue };
            tried += 1;
            let before = wcet(&system, index);
            let grown = |tenths: u64| (before * (1_000 + tenths)).div_ceil(1_000);
            let mut changed = system.clone();
            set_wcet(&mut changed, index, grown(slack.tenths_of_a_percent()));
            assert_eq!(
                Slack::grown(slack, work(before)).map(Work::as_ns),
                Some(wcet(&changed, index))
            );
            assert!(
                admitted(&changed),
                "seed {seed}, task {index}: {slack} of {system:?}"
            );
            set_wcet(&mut changed, index, grown(slack.tenths_of_a_percent() + 1));
            assert!(
                !admitted(&changed),
                "seed {seed}, task {index}: beyond {slack}"
            );
        }
    }
    assert!(tried >= 500, "only {tried} slacks");
}
