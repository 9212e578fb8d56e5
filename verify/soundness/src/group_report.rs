//! A run over drawn groups, in words

use crate::groups::{Broken, GROUP_BRANCHES, GroupJudge, rightly};
use crate::parallel::over_all_cores;
use crate::tally::Tally;
use crate::wrong_groups;

/// Systems from which on every branch must have been taken.
const COMPLETE_FROM: u64 = 1_000;

/// Systems that a wrong planner may take to be found.
const MUTANT_GROUPS: u64 = 4_000;

/// Judges so many systems with groups, and planners that are wrong on purpose if asked: the report,
/// and whether nothing was contradicted and everything wrong was found.
pub fn judge_groups(count: u64, seed: u64, mutants: bool) -> (String, bool) {
    let misplan = rightly;
    let judge = GroupJudge { seed, misplan };
    let tally = over_all_cores(count, |index, tally| {
        let _ = judge.judge(index, tally);
    });
    let mut text = String::new();
    for (branch, times) in &tally.branches {
        text += &format!("  {times:>8}  {branch}\n");
    }
    for (why, times) in &tally.unanswered {
        text += &format!("  {times:>8}  no answer: {why}\n");
    }
    let mut sound = tally.violations.is_empty();
    for violation in tally.violations.iter().take(5) {
        text += &format!(
            "\nsystem {} ({}): {}\n{}\n",
            violation.index, violation.situation, violation.what, violation.system
        );
    }
    if count >= COMPLETE_FROM {
        let taken = |branch: &&str| tally.branches.contains_key(*branch);
        for branch in GROUP_BRANCHES.iter().filter(|branch| !taken(branch)) {
            sound = false;
            text += &format!("NEVER TAKEN: {branch}\n");
        }
    }
    if mutants {
        text += "\nwrong planners:\n";
        for wrong in &wrong_groups::ALL {
            let misplan = wrong.misplan;
            let found = first_violation(&GroupJudge { seed, misplan }, wrong.own);
            sound &= found.is_some();
            let mistake = wrong.mistake;
            text += &match found {
                Some((systems, what)) => {
                    format!("  found after {systems:>4} systems: {mistake} ({what})\n")
                }
                None => format!("  NOT FOUND: {mistake}\n"),
            };
        }
    }
    text += &format!(
        "{} systems with groups, {} admitted, {} situations, {} violations, seed {seed}",
        tally.systems,
        tally.admitted,
        tally.situations,
        tally.violations.len(),
    );
    (text, sound)
}

/// How many systems it took to contradict a planner in one of these ways, and how.
fn first_violation(judge: &GroupJudge, own: &[Broken]) -> Option<(u64, String)> {
    for index in 0..MUTANT_GROUPS {
        let mut tally = Tally::default();
        let broken = judge.judge(index, &mut tally);
        if broken.is_some_and(|broken| own.contains(&broken)) {
            let found = tally.violations.first()?;
            return Some((index + 1, format!("{}: {}", found.situation, found.what)));
        }
    }
    None
}
