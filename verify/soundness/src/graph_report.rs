//! A run over drawn graphs, in words

use crate::graphs::{GRAPH_BRANCHES, GraphJudge, graph_analysis};
use crate::parallel::over_all_cores;
use crate::tally::Tally;
use crate::wrong_graphs;

/// Graphs from which on every branch must have been taken.
const COMPLETE_FROM: u64 = 2_000;

/// Graphs that a wrong analysis may take to be found.
const MUTANT_GRAPHS: u64 = 4_000;

/// Judges so many graphs, and wrong analyses of graphs too if asked: the report, and whether
/// nothing was contradicted and everything wrong was found.
pub fn judge_graphs(count: u64, seed: u64, mutants: bool) -> (String, bool) {
    let analysis = graph_analysis;
    let judge = GraphJudge { seed, analysis };
    let tally = over_all_cores(count, |index, tally| judge.judge(index, tally));
    let mut text = String::new();
    for (branch, times) in &tally.branches {
        text += &format!("  {times:>8}  {branch}\n");
    }
    let mut sound = tally.violations.is_empty();
    for violation in tally.violations.iter().take(5) {
        text += &format!(
            "\ngraph {} ({}): {}\n{}\n",
            violation.index, violation.situation, violation.what, violation.system
        );
    }
    if count >= COMPLETE_FROM {
        let taken = |branch: &&str| tally.branches.contains_key(*branch);
        for branch in GRAPH_BRANCHES.iter().filter(|branch| !taken(branch)) {
            sound = false;
            text += &format!("NEVER TAKEN: {branch}\n");
        }
    }
    if mutants {
        text += "\nwrong analyses:\n";
        for wrong in &wrong_graphs::ALL {
            let analysis = wrong.analysis;
            let found = first_violation(&GraphJudge { seed, analysis });
            sound &= found.is_some();
            text += &match found {
                Some((graphs, what)) => {
                    format!(
                        "  found after {graphs:>4} graphs: {} ({what})\n",
                        wrong.mistake
                    )
                }
                None => format!("  NOT FOUND: {}\n", wrong.mistake),
            };
        }
    }
    text += &format!(
        "{} graphs, {} go on, {} situations, {} from all offsets, {} violations, seed {seed}",
        tally.systems,
        tally.admitted,
        tally.situations,
        tally.exhausted,
        tally.violations.len(),
    );
    (text, sound)
}

/// How many graphs it took to contradict an analysis, and how.
fn first_violation(judge: &GraphJudge) -> Option<(u64, String)> {
    let mut tally = Tally::default();
    for index in 0..MUTANT_GRAPHS {
        judge.judge(index, &mut tally);
        if let Some(found) = tally.violations.first() {
            return Some((index + 1, format!("{}: {}", found.situation, found.what)));
        }
    }
    None
}
