//! A few hundred drawn systems, fixed seeds: no promise is broken, what is wrong is found

use punctual_analysis::{admit, funding, is_admitted};
use punctual_generate::Feature;
use punctual_soundness::{History, Judge, Tally, analysis, mutants, transitions};

fn judge(seed: u64) -> Judge {
    Judge {
        seed,
        features: Feature::ALL.to_vec(),
        analysis,
        fund: funding,
    }
}

/// Systems as they were drawn before tasks of servers locked.
fn without_server_locks(seed: u64) -> Judge {
    let features = Feature::ALL.into_iter();
    Judge {
        features: features.filter(|f| *f != Feature::ServerLocks).collect(),
        ..judge(seed)
    }
}

#[test]
fn no_schedule_contradicts_the_analysis() {
    let mut tally = Tally::default();
    for seed in [1, 2] {
        for index in 0..200 {
            judge(seed).judge(index, &mut tally);
        }
    }
    assert_eq!(tally.violations, []);
    assert!(
        tally.admitted > 80 && tally.refused > 80,
        "{} admitted, {} refused",
        tally.admitted,
        tally.refused
    );
}

#[test]
fn the_two_answers_of_the_analysis_agree() {
    let mut answers = 0;
    for index in 0..600 {
        let system = judge(3).draw(index).system;
        let Ok(verdict) = admit(&system) else {
            continue;
        };
        assert_eq!(is_admitted(&system), Ok(verdict.admitted), "{system:#?}");
        answers += 1;
    }
    assert!(answers > 500, "{answers}");
}

/// Its first round of waiting asked for more than the last one, where a budget may be kept.
#[test]
fn a_fast_answer_is_not_given_before_all_rounds_agree() {
    let features = Feature::ALL.into_iter();
    let judge = Judge {
        features: features
            .filter(|f| {
                !matches!(
                    f,
                    Feature::OwnTime | Feature::OverrunRules | Feature::ServerLocks
                )
            })
            .collect(),
        ..judge(1)
    };
    let mut tally = Tally::default();
    judge.judge(12_006, &mut tally);
    assert_eq!((tally.systems, tally.violations), (1, Vec::new()));
}

/// A job that lived on the budget of a later release kept its place before equals.
#[test]
fn an_overrun_keeps_no_place_before_its_equals() {
    let mut tally = Tally::default();
    for index in [43, 580, 1_056, 1_456, 9_068] {
        without_server_locks(1).judge(index, &mut tally);
    }
    assert_eq!(tally.violations, []);
}

/// Under FIFO nothing was released behind a section of background work, which blocks there too.
#[test]
fn a_section_of_background_work_blocks_first_come_first_served() {
    let mut tally = Tally::default();
    without_server_locks(5).judge(82_797, &mut tally);
    assert_eq!((tally.systems, tally.violations), (1, Vec::new()));
}

/// What had become ready went with a change while its scheduler decided, which then had to wait as
/// one that lies.
#[test]
fn a_scheduler_that_a_change_overtakes_looks_again_at_once() {
    let mut tally = Tally::default();
    let history = History {
        seed: 5,
        transitions,
    };
    history.judge(83_108, &mut tally);
    assert_eq!((tally.histories, tally.violations), (1, Vec::new()));
}

#[test]
fn mutants_are_found() {
    let all = mutants::ALL;
    for mutant in all[..4].iter().chain(&all[9..]) {
        let judge = Judge {
            seed: 1,
            features: mutant.features.to_vec(),
            analysis: mutant.analysis,
            fund: mutant.fund,
        };
        let mut tally = Tally::default();
        let found = (0..4_000).any(|index| {
            judge.judge(index, &mut tally);
            !tally.violations.is_empty()
        });
        assert!(found, "not found: {}", mutant.mistake);
    }
}
