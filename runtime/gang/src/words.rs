//! A constraint as the words that the elected member attaches to its gang.

use punctual_model::{Class, Late, OnOverrun, Span, Work};
use punctual_thread::Constraint;

const OVERRUNS: [OnOverrun; 4] = [
    OnOverrun::Throttle,
    OnOverrun::Demote,
    OnOverrun::Stop,
    OnOverrun::Signal,
];
/// In place of a backlog: late releases are dropped.
const SKIPS: u64 = u64::MAX;

/// The words; [`read`] understands them.
pub(crate) fn write(constraint: &Constraint) -> [u64; 8] {
    let task = constraint.task("words");
    let (kind, separation, budget, deadline) = match task.class {
        Class::Periodic {
            period,
            wcet,
            relative_deadline,
        } => (0, period, wcet, relative_deadline),
        Class::Sporadic {
            min_separation,
            wcet,
            relative_deadline,
        } => (1, min_separation, wcet, relative_deadline),
        Class::Reservation { period, slice } => (2, period, slice, period),
        Class::Once {
            size,
            relative_deadline,
        } => (3, Span::ZERO, size, relative_deadline),
        Class::Aperiodic => (4, Span::ZERO, Work::ZERO, Span::ZERO),
    };
    let overrun = OVERRUNS.iter().position(|rule| *rule == task.on_overrun);
    let rules = kind | (overrun.unwrap_or(0) as u64) << 8;
    [
        rules | u64::from(task.priority.number()) << 32,
        separation.as_ns(),
        budget.as_ns(),
        deadline.as_ns(),
        task.phase.as_ns(),
        match task.late {
            Late::Queue { backlog } => u64::from(backlog),
            Late::Skip => SKIPS,
        },
        task.max_suspension.as_ns(),
        u64::from(task.suspensions),
    ]
}

/// The constraint that [`write`] wrote.
pub(crate) fn read(words: &[u64; 8]) -> Constraint {
    let [
        rules,
        separation,
        budget,
        deadline,
        phase,
        backlog,
        suspension,
        times,
    ] = *words;
    let (separation, deadline) = (Span::from_ns(separation), Span::from_ns(deadline));
    let budget = Work::from_ns(budget);
    let low = |word: u64| u32::try_from(word & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    let constraint = match rules & 0xff {
        0 => Constraint::periodic(separation, budget).deadline(deadline),
        1 => Constraint::sporadic(separation, budget).deadline(deadline),
        2 => Constraint::reservation(separation, budget),
        3 => Constraint::once(budget, deadline),
        _ => Constraint::aperiodic(0),
    };
    let late = match backlog {
        SKIPS => Late::Skip,
        backlog => Late::Queue {
            backlog: low(backlog),
        },
    };
    let overrun = usize::try_from(rules >> 8 & 0xff).unwrap_or(0);
    constraint
        .priority(low(rules >> 32))
        .phase(Span::from_ns(phase))
        .late(late)
        .on_overrun(OVERRUNS[overrun % OVERRUNS.len()])
        .suspension(Span::from_ns(suspension), low(times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constraint_of_any_kind_comes_out_of_its_words() {
        let (ten, two) = (Span::from_ms(10), Work::from_us(2_001));
        let kinds = [
            Constraint::periodic(ten, two).deadline(Span::from_ms(7)),
            Constraint::sporadic(ten, two).deadline(Span::from_ms(70)),
            Constraint::reservation(ten, two),
            Constraint::once(two, ten),
            Constraint::aperiodic(3),
        ];
        for kind in kinds {
            for on_overrun in OVERRUNS {
                for late in [Late::Skip, Late::Queue { backlog: 7 }] {
                    let all = kind.priority(u32::MAX).phase(Span::from_ns(9)).late(late);
                    let all = all.on_overrun(on_overrun).suspension(Span::from_ns(5), 3);
                    assert_eq!(read(&write(&all)), all);
                }
            }
        }
    }
}
