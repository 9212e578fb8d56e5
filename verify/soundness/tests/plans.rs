//! Groups in virtual time: the guarantees of their plan, logs that break it, and wrong planners

use punctual::replay;
use punctual_analysis::{Verdict, admit};
use punctual_rules::{Rule, check};
use punctual_soundness::{Disturbed, GroupJudge, GroupRun, Tally, rightly, wrong_groups};
use punctual_trace::text;

const JUDGE: GroupJudge = GroupJudge {
    seed: 3,
    misplan: rightly,
};

/// The verdicts and runs of the first systems that are answered.
fn runs(count: u64, disturbed: Disturbed) -> impl Iterator<Item = (Verdict, GroupRun)> {
    (0..count).filter_map(move |index| {
        let system = JUDGE.draw(index);
        let verdict = admit(&system).ok()?;
        let answer = verdict.plan.as_ref()?;
        let run = JUDGE.play((index, &system), &verdict, answer, disturbed);
        let run = run.expect("it runs");
        Some((verdict, run))
    })
}

/// Starts that are earlier and later than planned, in runs without a contradiction.
fn starts(count: u64, disturbed: Disturbed) -> (u64, u64) {
    let (mut early, mut late) = (0, 0);
    for (verdict, run) in runs(count, disturbed) {
        assert_eq!(JUDGE.contradiction(&run, &verdict), Ok(()));
        for outcome in &run.played.outcomes {
            for one in outcome.executions.iter().flatten() {
                early += u64::from(one.start < one.planned);
                late += u64::from(one.start > one.planned);
            }
        }
    }
    (early, late)
}

#[test]
fn no_group_that_is_admitted_misses_and_no_segment_starts_later_than_planned() {
    let mut tally = Tally::default();
    for index in 0..100 {
        let _ = JUDGE.judge(index, &mut tally);
    }
    assert_eq!(tally.violations, []);
    let took = |branch: &str| tally.branches.get(branch).copied().unwrap_or(0);
    let refused = took("run again without the request that was refused");
    assert!(took("group: done") > 100 && refused > 0, "{tally:?}");
    let (early, late) = starts(60, Disturbed::EarlyEnds);
    assert!(early > 10 * late, "{early} early, {late} late");
}

/// Runs in which only what a request that is refused holds back differs: with it a child is asked
/// for when the run is over, or a kill comes before a segment.
#[test]
fn a_run_without_a_refused_request_may_ask_and_kill_earlier() {
    for (seed, index) in [(1, 8_536), (2, 1_804)] {
        let judge = GroupJudge { seed, ..JUDGE };
        let mut tally = Tally::default();
        assert_eq!(judge.judge(index, &mut tally), None);
        assert_eq!(tally.situations, 2);
    }
}

#[test]
fn missing_time_makes_plans_late_and_never_wrong() {
    let (_, late) = starts(60, Disturbed::MissingTime);
    assert!(late > 200, "{late}");
}

#[test]
fn an_overrun_is_stopped_and_hurts_nobody_else() {
    let (early, _) = starts(60, Disturbed::Overruns);
    assert!(early > 100, "{early}");
}

#[test]
fn each_planner_that_is_wrong_is_found() {
    for wrong in wrong_groups::ALL {
        let misplan = wrong.misplan;
        let judge = GroupJudge { misplan, ..JUDGE };
        // Few segments kill somebody.
        let mut kinds = (0..400).filter_map(|index| judge.judge(index, &mut Tally::default()));
        let found = kinds.any(|kind| wrong.own.contains(&kind));
        assert!(found, "{}", wrong.mistake);
    }
}

#[test]
fn the_analysis_answers_each_request_as_virtual_time_does_at_that_instant() {
    let mut compared = 0;
    for disturbed in [Disturbed::Nothing, Disturbed::EarlyEnds] {
        for (verdict, run) in runs(150, disturbed) {
            let answer = verdict.plan.as_ref().expect("it is answered");
            match JUDGE.as_the_analysis(&run, answer) {
                Ok(count) => compared += count,
                Err(differs) => panic!("{differs:?}"),
            }
        }
    }
    assert!(compared > 300, "{compared}");
}

#[test]
fn the_analysis_numbers_the_children_of_a_group_as_virtual_time_does() {
    // Two children of one group, and a tie between them.
    let index = 7_701;
    let system = JUDGE.draw(index);
    let verdict = admit(&system).expect("a verdict");
    let answer = verdict.plan.as_ref().expect("it is answered");
    let run = JUDGE.play((index, &system), &verdict, answer, Disturbed::Nothing);
    let compared = JUDGE.as_the_analysis(&run.expect("it runs"), answer);
    assert!(compared.is_ok_and(|count| count > 10));
}

#[test]
fn a_run_of_groups_is_replayed() {
    for (_, run) in runs(20, Disturbed::EarlyEnds) {
        let replayed = replay(&run.played.log);
        assert!(replayed.is_ok(), "{:?}", replayed.err());
    }
}

/// A log in words, in which nothing disturbs, with each kind of line.
fn written() -> String {
    let kinds = [
        "segment-started",
        "plan-stage",
        "plan-hold",
        "plan-kill",
        "plan-need",
    ];
    let text = |(_, run): (Verdict, GroupRun)| {
        let mut bytes = Vec::new();
        text::write(&run.played.log, &mut bytes).expect("memory takes it");
        let text = String::from_utf8(bytes).expect("text");
        let all = kinds.iter().all(|kind| text.contains(&format!(" {kind} ")));
        (run.promise.on_plan && all).then_some(text)
    };
    let found = runs(100, Disturbed::Nothing).find_map(text);
    found.expect("one of a hundred has all kinds")
}

/// A log breaks this rule when lines of a kind are changed: all that `change` takes, or the first.
fn rejected(rule: Rule, kind: &str, all: bool, change: impl Fn(&mut Vec<String>) -> bool) {
    let mut changed = false;
    let mut lines = Vec::new();
    for line in written().lines() {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let is_it = words.get(1).is_some_and(|word| word == kind);
        if is_it && (all || !changed) {
            changed |= change(&mut words);
        }
        lines.push(words.join(" "));
    }
    assert!(changed, "there is no such {kind}");
    let changed = lines.join("\n") + "\n";
    let log = text::read(&mut changed.as_bytes()).expect("a log that is read");
    let found = check(&log);
    let broken = found.iter().any(|violation| violation.rule == rule);
    assert!(broken, "{rule:?} is kept with another {kind}: {found:?}");
}

fn number(words: &[String], place: usize) -> u64 {
    let word = words.get(place + 2).and_then(|word| word.parse().ok());
    word.unwrap_or(0)
}

fn set(words: &mut [String], place: usize, to: u64) -> bool {
    words[place + 2] = to.to_string();
    true
}

#[test]
fn a_plan_that_is_not_followed_is_rejected() {
    // Another number, or a start that is not told of its plan.
    rejected(Rule::PlanFollowed, "segment-started", false, |words| {
        let next = number(words, 0) + 1;
        set(words, 0, next)
    });
    // A release after the start, a cutoff before it, a kill of somebody else.
    rejected(Rule::PlanFollowed, "plan-stage", true, |words| {
        let later = number(words, 4) + 1;
        set(words, 3, later)
    });
    rejected(Rule::PlanFollowed, "plan-hold", true, |words| {
        words[3] != "-" && set(words, 1, 0)
    });
    rejected(Rule::PlanFollowed, "plan-kill", true, |words| {
        set(words, 1, 59)
    });
}

#[test]
fn a_segment_that_does_not_wait_for_others_is_rejected() {
    rejected(Rule::PlanNeeds, "plan-need", true, |words| {
        set(words, 2, 9_999)
    });
}

#[test]
fn a_start_after_the_planned_one_is_rejected_where_nothing_disturbs() {
    rejected(Rule::PlanInTime, "plan-stage", true, |words| {
        // One that starts as soon as it is in force.
        let now = number(words, 0);
        now > 0 && number(words, 4) == now && set(words, 4, 0)
    });
}
