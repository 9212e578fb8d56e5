//! One round of one rival, and all of its rounds together.

use punctual_trace::{Quantiles, RunVerdict};
use serde::Serialize;

use crate::subject::Subject;

/// The rivals, in the order of the tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(crate) enum Rival {
    /// Light threads.
    #[serde(rename = "Punctual")]
    Punctual,
    /// Threads of the kernel, by priority.
    #[serde(rename = "SCHED_FIFO")]
    Fifo,
    /// Threads of the kernel, by deadline and budget.
    #[serde(rename = "SCHED_DEADLINE")]
    Deadline,
}

impl Rival {
    pub(crate) const ALL: [Rival; 3] = [Rival::Punctual, Rival::Fifo, Rival::Deadline];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Rival::Punctual => "Punctual",
            Rival::Fifo => "SCHED_FIFO",
            Rival::Deadline => "SCHED_DEADLINE",
        }
    }

    /// The rival at place `place` of round `round`: everybody is first in turn.
    pub(crate) fn at(round: usize, place: usize) -> Rival {
        Rival::ALL[(round + place) % Rival::ALL.len()]
    }
}

/// One task in a round.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct TaskRound {
    /// Releases that the round covers.
    pub(crate) jobs: u64,
    /// Late, lost and skipped jobs, and those that never came about.
    pub(crate) misses: u64,
    /// Misses that are there with the missing time, and not without it; `None`: nobody can judge.
    pub(crate) excused: Option<u64>,
    /// The same if late wake-ups that nobody has seen were missing time, too.
    pub(crate) excused_at_most: Option<u64>,
    /// From release to completion, in nanoseconds.
    pub(crate) responses: Vec<u64>,
    /// From release to the first instruction, in nanoseconds.
    pub(crate) starts: Vec<u64>,
}

/// One round of one rival.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Round {
    pub(crate) tasks: Vec<TaskRound>,
    pub(crate) processor_ns: u64,
    /// Time taken from below, as far as it was seen; `None`: nobody looked.
    pub(crate) missing_ns: Option<u64>,
    /// Results that differ from the reference of a workload.
    pub(crate) mismatches: Option<u64>,
    /// Of the judge of runs; a thread of the kernel has none.
    pub(crate) verdict: Option<RunVerdict>,
    pub(crate) remarks: Vec<String>,
}

impl TaskRound {
    fn own(&self) -> Option<u64> {
        Some(self.misses.saturating_sub(self.excused?))
    }

    fn own_at_least(&self) -> Option<u64> {
        Some(self.misses.saturating_sub(self.excused_at_most?))
    }
}

impl Round {
    pub(crate) fn jobs(&self) -> u64 {
        self.tasks.iter().map(|task| task.jobs).sum()
    }

    pub(crate) fn misses(&self) -> u64 {
        self.tasks.iter().map(|task| task.misses).sum()
    }

    /// Misses that missing time does not excuse.
    pub(crate) fn own_misses(&self) -> Option<u64> {
        self.tasks.iter().map(TaskRound::own).sum()
    }

    /// The same if late wake-ups that nobody has seen were missing time, too.
    pub(crate) fn own_at_least(&self) -> Option<u64> {
        self.tasks.iter().map(TaskRound::own_at_least).sum()
    }
}

/// All rounds of one rival, or why there are none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Series {
    pub(crate) rival: Rival,
    pub(crate) rounds: Vec<Round>,
    /// Why the kernel refused it.
    pub(crate) refused: Option<String>,
}

/// Figures of one task over all rounds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct TaskFigures {
    pub(crate) name: String,
    pub(crate) jobs: u64,
    pub(crate) misses: u64,
    pub(crate) own_misses: Option<u64>,
    pub(crate) response_ns: Quantiles,
    pub(crate) start_late_ns: Quantiles,
}

/// One round in short.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct RoundFigures {
    pub(crate) jobs: u64,
    pub(crate) misses: u64,
    pub(crate) own_misses: Option<u64>,
    pub(crate) processor_ns: u64,
    pub(crate) missing_time_ns: Option<u64>,
}

/// Figures of one rival over all rounds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Figures {
    pub(crate) name: Rival,
    /// Why it did not run.
    pub(crate) refused: Option<String>,
    pub(crate) jobs: u64,
    pub(crate) misses: u64,
    /// Without those that missing time excuses.
    pub(crate) own_misses: Option<u64>,
    /// The same if late wake-ups that nobody has seen were missing time, too.
    pub(crate) own_misses_at_least: Option<u64>,
    /// Of the most urgent task.
    pub(crate) response_ns: Quantiles,
    /// Of the most urgent task.
    pub(crate) start_late_ns: Quantiles,
    pub(crate) processor_ns: u64,
    pub(crate) missing_time_ns: Option<u64>,
    /// Steps of workloads whose result differs from the reference.
    pub(crate) mismatches: Option<u64>,
    pub(crate) tasks: Vec<TaskFigures>,
    pub(crate) rounds: Vec<RoundFigures>,
    pub(crate) remarks: Vec<String>,
}

impl Figures {
    pub(crate) fn of(series: &Series, subject: &Subject) -> Figures {
        let rounds = &series.rounds;
        let tasks: Vec<TaskFigures> = subject
            .tasks
            .iter()
            .enumerate()
            .map(|(at, task)| task_figures(&task.name, at, rounds))
            .collect();
        let urgent = tasks.get(subject.urgent);
        let mut remarks: Vec<String> = Vec::new();
        for remark in rounds.iter().flat_map(|round| &round.remarks) {
            if !remarks.contains(remark) {
                remarks.push(remark.clone());
            }
        }
        Figures {
            name: series.rival,
            refused: series.refused.clone(),
            jobs: rounds.iter().map(Round::jobs).sum(),
            misses: rounds.iter().map(Round::misses).sum(),
            own_misses: rounds.iter().map(Round::own_misses).sum(),
            own_misses_at_least: rounds.iter().map(Round::own_at_least).sum(),
            response_ns: urgent.map(|t| t.response_ns).unwrap_or_default(),
            start_late_ns: urgent.map(|t| t.start_late_ns).unwrap_or_default(),
            processor_ns: rounds.iter().map(|round| round.processor_ns).sum(),
            missing_time_ns: rounds.iter().map(|round| round.missing_ns).sum(),
            mismatches: rounds.iter().map(|round| round.mismatches).sum(),
            tasks,
            rounds: rounds.iter().map(round_figures).collect(),
            remarks,
        }
    }
}

fn round_figures(round: &Round) -> RoundFigures {
    RoundFigures {
        jobs: round.jobs(),
        misses: round.misses(),
        own_misses: round.own_misses(),
        processor_ns: round.processor_ns,
        missing_time_ns: round.missing_ns,
    }
}

fn task_figures(name: &str, at: usize, rounds: &[Round]) -> TaskFigures {
    let of = || rounds.iter().filter_map(|round| round.tasks.get(at));
    let pooled = |values: fn(&TaskRound) -> &Vec<u64>| {
        let mut all: Vec<u64> = of().flat_map(values).copied().collect();
        Quantiles::of(&mut all)
    };
    TaskFigures {
        name: name.to_owned(),
        jobs: of().map(|task| task.jobs).sum(),
        misses: of().map(|task| task.misses).sum(),
        own_misses: of().map(TaskRound::own).sum(),
        response_ns: pooled(|task| &task.responses),
        start_late_ns: pooled(|task| &task.starts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_is_first_and_last_in_turn() {
        let order = |round| [0, 1, 2].map(|place| Rival::at(round, place).name());
        assert_eq!(order(0), ["Punctual", "SCHED_FIFO", "SCHED_DEADLINE"]);
        assert_eq!(order(1), ["SCHED_FIFO", "SCHED_DEADLINE", "Punctual"]);
        assert_eq!(order(2), ["SCHED_DEADLINE", "Punctual", "SCHED_FIFO"]);
        assert_eq!(order(3), order(0));
    }

    #[test]
    fn misses_that_nobody_can_judge_are_not_own_misses() {
        let task = |misses, excused| TaskRound {
            jobs: 10,
            misses,
            excused,
            ..TaskRound::default()
        };
        let round = |tasks| Round {
            tasks,
            ..Round::default()
        };
        assert_eq!(
            round(vec![task(3, Some(2)), task(1, Some(0))]).own_misses(),
            Some(2)
        );
        assert_eq!(
            round(vec![task(3, Some(2)), task(1, None)]).own_misses(),
            None
        );
    }
}
