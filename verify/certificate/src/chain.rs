//! From end to end: the sum of the distances of arrivals along a chain, and the last response
//!
//! A job of the next task that arrives `ready` after the arrival of one before it must see the
//! result of that one. `ready` is the release jitter, when precedence waits for it or the next task
//! cannot overtake it; else it is the response (Davare et al. 2007; Dürr et al. 2019).

use crate::Why;
use crate::supply::in_range;
use crate::system::{Policy, System, Task};

/// Most arrivals of the first task that are followed one by one.
const MAX_ARRIVALS: u128 = 1 << 14;

struct Step<'a> {
    from: &'a Task,
    to: &'a Task,
    period: u128,
    /// A job that arrives so much later, or more, has seen it.
    ready: u128,
}

/// The longest latency of the chain; `bounds` holds the response of every task in it.
pub(crate) fn bound(
    system: &System,
    tasks: &[usize],
    bounds: impl Fn(usize) -> Result<u64, Why>,
) -> Result<u64, Why> {
    let mut steps = Vec::new();
    for pair in tasks.windows(2) {
        steps.push(step(system, pair[0], pair[1], &bounds)?);
    }
    let last = *tasks.last().ok_or(Why::new("an empty chain"))?;
    let response = u128::from(bounds(last)?);
    let distance = match walk(&steps) {
        Some(distance) => distance,
        None => steps.iter().map(longest).sum(),
    };
    in_range(distance + response).map(crate::window::narrow)
}

fn step<'a>(
    system: &'a System,
    from: usize,
    to: usize,
    bounds: &impl Fn(usize) -> Result<u64, Why>,
) -> Result<Step<'a>, Why> {
    let task = |id: usize| {
        system
            .tasks
            .get(id)
            .ok_or(Why::new("a task that does not exist"))
    };
    let (a, b) = (task(from)?, task(to)?);
    let period = match b.separation {
        Some(period) if by_clock(b) => u128::from(period),
        _ => return Err(Why::new(format!("the arrivals of {}", b.name))),
    };
    // An arrival is dropped only when a job is later than all its places.
    let later = u128::from(bounds(to)?);
    if later > period.saturating_mul(b.places.into()) {
        return Err(Why::new(format!("the dropped arrivals of {}", b.name)));
    }
    let released = u128::from(a.jitter);
    let ready = if b.after.contains(&from) || is_ordered(system, a, b) {
        released
    } else if b.follows.contains(&from) {
        released + 1
    } else {
        u128::from(bounds(from)?)
    };
    Ok(Step {
        from: a,
        to: b,
        period,
        ready,
    })
}

fn by_clock(task: &Task) -> bool {
    matches!(task.class.as_str(), "periodic" | "reservation")
}

/// In one node, `b` is less urgent, and `a` never lets go of the processor.
fn is_ordered(system: &System, a: &Task, b: &Task) -> bool {
    let together = a.cpu == b.cpu && a.scheduler == b.scheduler;
    let policy = match a.scheduler {
        Some(id) => system.schedulers[id].policy,
        None => system.cpus[a.cpu].policy,
    };
    let first = match policy {
        Policy::FixedPriority { .. } => a.priority > b.priority,
        Policy::Edf => a.deadline < b.deadline,
        _ => false,
    };
    together && first && a.suspension == 0 && a.uses.is_empty() && a.deadline.is_some()
}

/// The greatest distance over all arrivals of the first task until all repeats; none where one of
/// them has no clock.
fn walk(steps: &[Step<'_>]) -> Option<u128> {
    let first = steps.first()?.from;
    if !steps.iter().all(|s| by_clock(s.from)) {
        return None;
    }
    let period = u128::from(first.separation?);
    let periods = steps.iter().map(|s| s.period);
    let round = periods.into_iter().try_fold(period, |lcm, t| {
        (lcm / gcd(lcm, t)).checked_mul(t).filter(|&l| l < 1 << 64)
    })?;
    let phases = steps.iter().map(|s| u128::from(s.to.phase));
    let latest = phases.max()?.saturating_sub(first.phase.into());
    let jobs = latest.div_ceil(period) + round / period;
    if jobs > MAX_ARRIVALS {
        return None;
    }
    let distance = |job: u128| {
        let start = u128::from(first.phase) + job * period;
        let end = steps.iter().fold(start, |at, step| {
            let phase = u128::from(step.to.phase);
            let since = (at + step.ready).saturating_sub(phase);
            phase + since.div_ceil(step.period) * step.period
        });
        end - start
    };
    (0..jobs).map(distance).max()
}

/// The greatest distance of one step by itself.
fn longest(step: &Step<'_>) -> u128 {
    let phase = u128::from(step.to.phase);
    let Some(other) = step.from.separation.filter(|_| by_clock(step.from)) else {
        return (step.ready + step.period).max(phase);
    };
    let before = u128::from(step.from.phase);
    let common = gcd(step.period, other.into());
    // By the clock only every `common`-th distance occurs.
    let after = (before + step.ready) % common;
    let rest = (phase % common + common - after) % common;
    (step.ready + step.period - common + rest).max(phase.saturating_sub(before))
}

pub(crate) fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
