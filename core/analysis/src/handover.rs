//! Along a chain: when the next job must have seen what was handed on
//!
//! # Assumptions
//! 1. Those of [`crate::chain`], which explains the three kinds of hand-over.
//!
//! Sources: Davare et al., DAC 2007; Dürr et al., TECS 2019; Becker et al., JSA 2017.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use punctual_model::{PolicyKind, System, Task, TaskId};

use crate::error::{Checked, in_range};
use crate::lookup::{node_of, policy_of};
use crate::solve::Solution;
use crate::units::{Span, TICK, signed};
use crate::utilization::{gcd, hyperperiod};
use crate::verdict::{How, Test};

const WHAT: &str = "chain";
/// Most arrivals of the first task that are walked through.
const MAX_ARRIVALS: u64 = 1 << 14;

const BY_CLOCK: Test = Test {
    name: "chain of arrivals by the clock",
    source: "Becker et al. 2017; Dürr et al. 2019",
};
pub(crate) const BY_PERIODS: Test = Test {
    name: "chain of periods and responses",
    source: "Davare et al. 2007; Dürr et al. 2019",
};

/// One hand-over before its length is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) from: TaskId,
    pub(crate) to: TaskId,
    pub(crate) how: How,
    /// A job of `to` that arrives so long after the arrival of `from`'s must see it.
    ready: Span,
    /// Later than that, not at that instant.
    strictly: bool,
    /// Phase and period of `from`; `None`: it arrives when it likes.
    pub(crate) source: Option<(Span, Span)>,
    /// Phase and period of `to`.
    pub(crate) target: (Span, Span),
    /// Most arrivals of `to` in a row of which all but one can be dropped.
    dropped: u64,
}

impl Step {
    /// The earliest arrival of `to`, since that of `from`'s job, that must see it.
    fn ready_at(&self) -> Checked<Span> {
        let tick = if self.strictly { TICK } else { Span::ZERO };
        in_range(self.ready.checked_add(tick), WHAT)
    }
}

/// Latency of a chain, with the lengths of its hand-overs in that case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Latency {
    pub(crate) total: Span,
    pub(crate) lengths: Vec<Span>,
    /// The same for every job of the first task.
    pub(crate) constant: bool,
    pub(crate) test: Test,
}

pub(crate) fn step(
    system: &System,
    solution: &Solution,
    from: TaskId,
    to: TaskId,
) -> Checked<Result<Step, String>> {
    let (Some(a), Some(b)) = (system.tasks.get(from.index()), system.tasks.get(to.index())) else {
        return Ok(Err("a task of it does not exist".into()));
    };
    let (Some(earlier), Some(later)) = (solution.response(from), solution.response(to)) else {
        return Ok(Err(format!("nothing bounds {} or {}", a.name, b.name)));
    };
    let Some(target) = clock(b) else {
        let why = format!("{} arrives when it likes, perhaps never again", b.name);
        return Ok(Err(why));
    };
    let waits = |list: &[TaskId]| list.contains(&from);
    let released = a.jitter;
    let (how, ready, strictly) = if waits(&b.after) {
        (How::Triggered, released, false)
    } else if waits(&b.follows) {
        (How::Triggered, released, true)
    } else if is_ordered(system, a, b) {
        let waiting = solution.waiting.get(from.index()).copied().flatten();
        let ready = waiting.and_then(|w| w.checked_add(released));
        (How::Ordered, in_range(ready, WHAT)?.min(earlier), false)
    } else {
        (How::Sampled, earlier, false)
    };
    // The same reasoning as for arrivals without a clock covers those that are dropped.
    let dropped = droppings(b, later, target.1);
    Ok(Ok(Step {
        from,
        to,
        how,
        ready,
        strictly,
        source: clock(a),
        target,
        dropped,
    }))
}

/// Whether a job of `b` that arrives when one of `a` is ready cannot start before that one has
/// completed. Both are on one CPU, in one node, and `a` never lets go of the processor in between.
fn is_ordered(system: &System, a: &Task, b: &Task) -> bool {
    let together = node_of(a) == node_of(b);
    let holds_on = a.max_suspension.is_zero() && a.uses.is_empty() && a.class.is_real_time();
    let first = match policy_of(system, node_of(a)) {
        Ok(PolicyKind::FixedPriority { .. }) => a.priority.is_higher_than(b.priority),
        Ok(PolicyKind::EarliestDeadlineFirst) => {
            let deadline = |task: &Task| task.class.relative_deadline();
            deadline(a).zip(deadline(b)).is_some_and(|(a, b)| a < b)
        }
        Ok(
            PolicyKind::Fifo
            | PolicyKind::RoundRobin { .. }
            | PolicyKind::Tdm { .. }
            | PolicyKind::Planned,
        )
        | Err(_) => false,
    };
    together && holds_on && first
}

/// Phase and period of a task that arrives by the clock.
fn clock(task: &Task) -> Option<(Span, Span)> {
    let period = task.class.min_separation().filter(|t| !t.is_zero())?;
    let by_clock = task.class.arrives_by_clock();
    by_clock.then_some((task.phase, period))
}

/// An arrival is dropped while earlier jobs keep all places, which one of them leaves at the latest
/// `response` after its own arrival. How many periods later the next one is surely taken.
fn droppings(task: &Task, response: Span, period: Span) -> u64 {
    let overtaken = response.saturating_sub(TICK) / period;
    if overtaken >= task.late.places() {
        overtaken + 1
    } else {
        1
    }
}

/// Follows every arrival of the first task until the arrivals of all repeat; `None` where a task
/// has no clock, arrivals can be dropped, or it would be long.
pub(crate) fn walk(steps: &[Step]) -> Checked<Option<Latency>> {
    let Some(first) = steps.first().and_then(|s| s.source) else {
        return Ok(None);
    };
    let clocks = steps.iter().map(|s| s.target).chain([first]);
    let all = steps.iter().all(|s| s.source.is_some() && s.dropped == 1);
    let Some(repeats) = hyperperiod(clocks.clone().map(|(_, period)| period)).filter(|_| all)
    else {
        return Ok(None);
    };
    let latest = clocks.map(|(phase, _)| phase).max().unwrap_or_default();
    // Arrivals before the last first arrival, and one round of all periods after it.
    let jobs = latest.saturating_sub(first.0).div_ceil(first.1) + repeats / first.1;
    if jobs > MAX_ARRIVALS {
        return Ok(None);
    }
    let mut worst: Option<Latency> = None;
    let mut constant = true;
    for job in 0..jobs {
        let start = first.1.checked_mul(job);
        let start = in_range(start.and_then(|t| t.checked_add(first.0)), WHAT)?;
        let mut at = start;
        let mut lengths = Vec::with_capacity(steps.len());
        for step in steps {
            let next = next_arrival(step, at)?;
            lengths.push(next.saturating_sub(at));
            at = next;
        }
        let total = at.saturating_sub(start);
        constant &= worst.as_ref().is_none_or(|w| w.total == total);
        if worst.as_ref().is_none_or(|w| total > w.total) {
            worst = Some(Latency {
                total,
                lengths,
                constant: true,
                test: BY_CLOCK,
            });
        }
    }
    Ok(worst.map(|w| Latency { constant, ..w }))
}

/// The first arrival of the step's target that must see what arrived at `at`.
fn next_arrival(step: &Step, at: Span) -> Checked<Span> {
    let (phase, period) = step.target;
    let from = in_range(at.checked_add(step.ready_at()?), WHAT)?;
    let since = period.checked_mul(from.saturating_sub(phase).div_ceil(period));
    in_range(since.and_then(|t| t.checked_add(phase)), WHAT)
}

/// The sum of the longest hand-overs, each by itself.
pub(crate) fn by_periods(steps: &[Step]) -> Checked<Latency> {
    let mut lengths = Vec::with_capacity(steps.len());
    let mut total = Span::ZERO;
    for step in steps {
        let length = longest_handover(step)?;
        total = in_range(total.checked_add(length), WHAT)?;
        lengths.push(length);
    }
    Ok(Latency {
        total,
        lengths,
        constant: false,
        test: BY_PERIODS,
    })
}

/// The longest distance to the next arrival that must see it: a whole period after it is ready; by
/// the clock only those distances occur that differ by multiples of the common divisor.
fn longest_handover(step: &Step) -> Checked<Span> {
    let (phase, period) = step.target;
    let ready = step.ready_at()?;
    let periods = in_range(period.checked_mul(step.dropped), WHAT)?;
    let (Some((before, other)), 1) = (step.source, step.dropped) else {
        // Before the first arrival of the target there is none to see anything.
        let later = in_range(ready.checked_add(periods), WHAT)?;
        return Ok(later.max(phase));
    };
    let common = gcd(period, other);
    let apart = signed(phase) - signed(before) - signed(ready);
    let rest = u64::try_from(apart.rem_euclid(signed(common))).map_or(Span::ZERO, Span::from_ns);
    let longest = ready
        .checked_add(period.saturating_sub(common))
        .and_then(|t| t.checked_add(rest));
    Ok(in_range(longest, WHAT)?.max(phase.saturating_sub(before)))
}
