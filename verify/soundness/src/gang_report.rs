//! A run over drawn gangs, in words

use crate::gangs::{GANG_BRANCHES, GangJudge, gang_analysis};
use crate::parallel::over_all_cores;
use crate::tally::Tally;
use crate::wrong_gangs;

/// Systems from which on every branch must have been taken.
const COMPLETE_FROM: u64 = 300;

/// Systems that a wrong analysis may take to be found.
const MUTANT_GANGS: u64 = 4_000;

/// Judges so many gangs, and wrong analyses of gangs too if asked: the report, and whether nothing
/// was contradicted and everything wrong was found.
pub fn judge_gangs(count: u64, seed: u64, mutants: bool) -> (String, bool) {
    let analysis = gang_analysis;
    let judge = GangJudge { seed, analysis };
    let tally = over_all_cores(count, |index, tally| judge.judge(index, tally));
    let mut text = String::new();
    for (branch, times) in &tally.branches {
        text += &format!("  {times:>8}  {branch}\n");
    }
    let mut sound = tally.violations.is_empty();
    for violation in tally.violations.iter().take(5) {
        text += &format!(
            "\ngang {} ({}): {}\n{}\n",
            violation.index, violation.situation, violation.what, violation.system
        );
    }
    if count >= COMPLETE_FROM {
        let taken = |branch: &&str| tally.branches.contains_key(*branch);
        for branch in GANG_BRANCHES.iter().filter(|branch| !taken(branch)) {
            sound = false;
            text += &format!("NEVER TAKEN: {branch}\n");
        }
    }
    if mutants {
        text += "\nwrong analyses:\n";
        for wrong in &wrong_gangs::ALL {
            let analysis = wrong.analysis;
            let found = first_violation(&GangJudge { seed, analysis });
            sound &= found.is_some();
            let mistake = wrong.mistake;
            text += &match found {
                Some((gangs, what)) => {
                    format!("  found after {gangs:>4} gangs: {mistake} ({what})\n")
                }
                None => format!("  NOT FOUND: {mistake}\n"),
            };
        }
    }
    text += &format!(
        "{} gangs, {} admitted, {} situations, {} violations, seed {seed}",
        tally.systems,
        tally.admitted,
        tally.situations,
        tally.violations.len(),
    );
    (text, sound)
}

/// How many gangs it took to contradict an analysis, and how.
fn first_violation(judge: &GangJudge) -> Option<(u64, String)> {
    let mut tally = Tally::default();
    for index in 0..MUTANT_GANGS {
        judge.judge(index, &mut tally);
        if let Some(found) = tally.violations.first() {
            return Some((index + 1, format!("{}: {}", found.situation, found.what)));
        }
    }
    None
}
