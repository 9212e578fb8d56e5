//! Branches of the analysis that every long run of all features takes.
//!
//! A branch that is never taken is not tested, whatever the number of systems: then either the
//! systems that are drawn have become poorer, or the branch cannot be reached any more. Rarer ones
//! are expected of longer runs alone, and the rarest are not listed. All are in the report.

use crate::tally::Tally;

/// Systems from which on the list below is expected to be complete: each branch of it is taken ten
/// times or more in so many.
pub const COMPLETE_FROM: u64 = 10_000;

/// The branches, by the names under which runs count them.
const BRANCHES: &[&str] = &[
    "assumed: background work costs real-time work nothing but its sections",
    "assumed: equal priorities: the earlier arrival first, then the order in the file",
    "assumed: exact means: what is refused can miss a deadline; the response bound is reached by \
     some arrivals when equal deadlines go before the task",
    "assumed: no job exceeds its wcet (budgets see to it) nor arrives before its separation",
    "assumed: the earlier arrival first, then the order in the file",
    "assumed: the processor never idles while a job is ready",
    "change: a task starts",
    "change: a scheduler starts",
    "change: a scheduler stops",
    "change: a slice is delegated",
    "change: a slice is taken back",
    "change: a task moves",
    "change: a task stops",
    "change: another constraint",
    "change: another policy of a CPU",
    "change: another policy of a scheduler",
    "change: another server",
    "change: budget is transferred",
    "fix: budget",
    "fix: deadline",
    "fix: none",
    "fix: period",
    "fix: server budget",
    "fix: slot length",
    "hand-over: ordered",
    "hand-over: sampled",
    "not exact: _ and _ are never released together (their phases differ), the test assumes that \
     they are",
    "not exact: _ has the same priority as the scheduler _ beside it, and is taken to go first",
    "not exact: _ has the same priority as the scheduler above it, and is taken to go first",
    "not exact: _ is never released where the worst window of the slots begins",
    "not exact: _ waits for predecessors that are less urgent or on another CPU; the wait is \
     counted as release jitter",
    "not exact: a response is required below the deadline, and the EDF response bound assumes \
     any offsets and the worst order of equal deadlines",
    "not exact: a section has to begin one tick before the others are released, which the clock \
     of _ may not allow",
    "not exact: a section of _ is taken to begin at the very instant of a release, and to follow \
     another at once",
    "not exact: every job is charged all overheads at their most",
    "not exact: every section that may block it is taken to be held, for its whole length, when \
     it is released",
    "not exact: how long _ waits for its predecessors is not known",
    "not exact: its server's budgets are taken to come as late as they may just when its tasks \
     are released",
    "not exact: late releases of _ are dropped",
    "not exact: the bound is the busy window, not a job in it",
    "not exact: the suspension of _ is counted as computation (Chen et al. _ _",
    "not exact: the whole budget of _ is counted, used or not",
    "not exact: the worst job is released apart from the others, which its clock may not allow",
    "not exact: with jitter, ties of equal priority are counted against the task",
    "refusal: with a demand",
    "refusal: with a response",
    "refusal: without a witness",
    "slice: background",
    "slice: guaranteed",
    "supply: constant-bandwidth with locks",
    "supply: deferrable with locks",
    "supply: periodic-resource with locks",
    "supply: polling with locks",
    "supply: slots with locks",
    "supply: sporadic with locks",
    "term: _",
    "term: blocked by _ in _",
    "term: blocking by a section of _",
    "term: missing-time",
    "term: timer entries of the server of _",
    "term: share of _ in the timer entry of _",
    "term: timer entry of _",
    "term: timer that fires early behind _",
    "term: timer that fires early behind missing-time",
    "test: chain of arrivals by the clock (sufficient)",
    "test: chain of periods and responses (sufficient)",
    "test: first come, first served busy window (exact)",
    "test: first come, first served busy window (sufficient)",
    "test: longest busy window (exact)",
    "test: longest busy window (sufficient)",
    "test: non-preemptive response-time analysis (exact)",
    "test: non-preemptive response-time analysis (sufficient)",
    "test: none (sufficient)",
    "test: processor demand (QPA), response by Spuri's analysis (exact)",
    "test: processor demand (QPA), response by Spuri's analysis (sufficient)",
    "test: response-time analysis (exact)",
    "test: response-time analysis (sufficient)",
    "transfer: refused, less would be admitted",
    "transfer: refused, nothing would be admitted",
    "transition: at-once: a task that leaves completes its jobs, and others only gain",
    "transition: at-once: all are admitted beside the borrower that has more, and those below the \
     lender with that much less, once",
    "transition: at-once: what joins may arrive for the first time at any instant",
    "transition: idle inside one supply: jobs of _ before and after the change may meet in a \
     window where both are not admitted together",
    "transition: idle inside one supply: nobody knows a bound for a busy window that two policies \
     order",
    "transition: idle: jobs of _ before and after the change may meet in a window where both are \
     not admitted together",
    "transition: idle: nobody knows a bound for a busy window that two policies order",
    "transition: idle: what is below a server counts on one supply through its whole busy window",
    "transition: never",
    "transition: zero-lag: a task that moves is admitted in its old and in its new home together",
    "transition: zero-lag: bandwidth decides here, and that of the old constraint is free at zero \
     lag",
    "transition: zero-lag: one constraint covers the other: all jobs together are legal jobs of it",
    "transition: zero-lag: the old and the new constraint are admitted together",
];

/// Systems from which on the rare ones are expected, too.
const RARE_FROM: u64 = 100_000;

/// Branches that are taken once in 10,000 systems or so.
const RARE: &[&str] = &[
    "transition: idle: the system before it may still count beside it",
    "transfer: refused, the lender has nothing left",
    "transition: at-once: bandwidth decides here, and that of what joins is free",
    "transition: idle inside one supply: jobs of the system before and after the change may meet \
     in a window where both are not admitted together",
    "transition: idle: jobs of the system before and after the change may meet in a window where \
     both are not admitted together",
];

/// What of the lists a run has not come by; a run of all features and of at least
/// [`COMPLETE_FROM`] systems has come by all of the first.
pub fn missing(tally: &Tally) -> Vec<&'static str> {
    let seen = |branch: &&&str| tally.branches.contains_key(**branch);
    let rare = match tally.systems >= RARE_FROM {
        true => RARE,
        false => &[],
    };
    let expected = BRANCHES.iter().chain(rare);
    expected.filter(|b| !seen(b)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_that_was_never_taken_is_named() {
        let mut tally = Tally::default();
        for branch in &BRANCHES[1..] {
            tally.branch((*branch).into());
        }
        assert_eq!(missing(&tally), [BRANCHES[0]]);
        tally.systems = RARE_FROM;
        assert_eq!(missing(&tally).len(), 1 + RARE.len());
    }

    #[test]
    fn no_branch_is_listed_twice() {
        let mut sorted = BRANCHES.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), BRANCHES.len());
    }
}
