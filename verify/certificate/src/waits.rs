//! Precedence that costs nothing: a predecessor goes first anyway, or is done by then
//!
//! A job of b starts when the jobs of a that arrived before it are completed. Within a node this
//! costs nothing where each of them goes before it in any case, and is ready when it arrives. It
//! costs nothing either where they are surely done by then: R(a) <= δ. This δ is the least distance
//! from the arrival of a job of a to that of a job of b that waits for it. The bounds are derived
//! as if nobody waited. If no R is above its δ, nobody does: up to the first job that waits all of
//! them hold, so there is none (Tindell and Clark 1994, whose equations are then solved by 0).

use crate::Why;
use crate::chain::gcd;
use crate::claims::WaitClaim;
use crate::system::{Policy, System, Task};

/// Predecessors that must be done before a task arrives, by number: (from, to, δ). O(edges).
///
/// # Errors
///
/// [`Why`]: the wait for background work, or for another CPU.
pub(crate) fn of(system: &System) -> Result<Vec<(usize, usize, u64)>, Why> {
    let mut waits = Vec::new();
    let tasks = 0..system.tasks.len();
    for id in tasks.filter(|&id| system.tasks[id].deadline.is_some()) {
        for (from, strictly) in predecessors(system, id) {
            let (a, b) = (&system.tasks[from], &system.tasks[id]);
            if is_free(system, (from, a), (id, b), strictly) {
                continue;
            }
            if a.cpu != b.cpu || a.deadline.is_none() {
                return Err(told(a, b));
            }
            waits.push((from, id, distance(a, b, strictly)));
        }
    }
    Ok(waits)
}

/// The claims that nobody waits, from the bounds of all tasks.
///
/// # Errors
///
/// [`Why`]: somebody may.
pub(crate) fn claims(system: &System, bounds: &[Option<u64>]) -> Result<Vec<WaitClaim>, Why> {
    let mut claims = Vec::new();
    for (from, to, distance) in of(system)? {
        let (a, b) = (&system.tasks[from], &system.tasks[to]);
        let bound = bounds.get(from).copied().flatten();
        let Some(bound) = bound.filter(|&bound| bound <= distance) else {
            return Err(told(a, b));
        };
        claims.push(WaitClaim {
            task: b.name.clone(),
            predecessor: a.name.clone(),
            bound,
            distance,
        });
    }
    Ok(claims)
}

/// Refuses a task that could wait, where no bounds show that it does not.
pub(crate) fn refuse(system: &System, id: usize) -> Result<(), Why> {
    for (from, strictly) in predecessors(system, id) {
        let (a, b) = (&system.tasks[from], &system.tasks[id]);
        if !is_free(system, (from, a), (id, b), strictly) {
            return Err(told(a, b));
        }
    }
    Ok(())
}

fn told(from: &Task, to: &Task) -> Why {
    Why::new(format!("the wait of {} for {}", to.name, from.name))
}

fn predecessors(system: &System, id: usize) -> impl Iterator<Item = (usize, bool)> + '_ {
    let task = &system.tasks[id];
    let after = task.after.iter().map(|&from| (from, false));
    after.chain(task.follows.iter().map(|&from| (from, true)))
}

/// Whether the predecessor goes first anyway, and is ready when it arrives.
fn is_free(system: &System, a: (usize, &Task), b: (usize, &Task), strictly: bool) -> bool {
    let ((index, from), (id, to)) = (a, b);
    let first = strictly || index < id;
    let policy = match to.scheduler {
        Some(scheduler) => system.schedulers[scheduler].policy,
        None => system.cpus[to.cpu].policy,
    };
    let ordered = match policy {
        Policy::Fifo => first,
        Policy::FixedPriority { .. } => {
            from.priority > to.priority || (from.priority == to.priority && first)
        }
        Policy::Edf => match (from.deadline, to.deadline) {
            (Some(a), Some(b)) => u128::from(a) + u128::from(to.jitter) <= u128::from(b),
            _ => false,
        },
        Policy::RoundRobin { .. } => true,
        Policy::Tdm { .. } | Policy::Planned => false,
    };
    let together = from.cpu == to.cpu && from.scheduler == to.scheduler;
    ordered && together && from.jitter == 0 && from.deadline.is_some()
}

/// The least distance from an arrival of `a` to that of a job of `b` that waits for it. By the
/// clock it repeats with their periods, else both may arrive at once.
fn distance(a: &Task, b: &Task, strictly: bool) -> u64 {
    let by_clock = |task: &Task| task.class == "periodic" && task.jitter == 0;
    let at_once = u64::from(strictly);
    let (Some(first), Some(second)) = (a.separation, b.separation) else {
        return at_once;
    };
    let common = gcd(first.into(), second.into());
    if !(by_clock(a) && by_clock(b)) || common == 0 {
        return at_once;
    }
    let (before, behind) = (u128::from(a.phase) % common, u128::from(b.phase) % common);
    let rest = (behind + common - before) % common;
    let distance = if strictly && rest == 0 { common } else { rest };
    u64::try_from(distance).unwrap_or(u64::MAX)
}
