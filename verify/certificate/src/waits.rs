//! Precedence: a predecessor goes first anyway, is done by then, or is waited for
//!
//! A job of b starts when the jobs of a that arrived before it are completed. Within a node this
//! costs nothing where each of them goes before it in any case, and is ready when it arrives.
//! Elsewhere b may wait R(a) − δ after its arrival. This δ is the least distance from the arrival
//! of a job of a to that of a job of b that waits for it. From one CPU to another a may arrive
//! later by the clock error. A job that waits is one that is released late, so waiting is jitter.
//! Bounds and waiting are the least solution of their equations (Tindell and Clark 1994). Where no
//! R is above its δ, nobody waits.

use crate::Why;
use crate::chain::gcd;
use crate::claims::WaitClaim;
use crate::system::{Policy, System, Task};

/// A task that waits for another one, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Wait {
    from: usize,
    to: usize,
    /// It goes first, once it is ready.
    is_free: bool,
    distance: u64,
    clocks: u64,
}

/// All precedence of a system.
pub(crate) struct Waits<'a> {
    system: &'a System,
    all: Vec<Wait>,
}

impl<'a> Waits<'a> {
    /// The waits of all tasks with deadlines. O(edges).
    ///
    /// # Errors
    ///
    /// [`Why`]: the wait for background work.
    pub(crate) fn of(system: &'a System) -> Result<Waits<'a>, Why> {
        let mut all = Vec::new();
        let tasks = 0..system.tasks.len();
        for to in tasks.filter(|&id| system.tasks[id].deadline.is_some()) {
            for (from, strictly) in predecessors(system, to) {
                let (a, b) = (&system.tasks[from], &system.tasks[to]);
                if a.deadline.is_none() {
                    return Err(told(a, b));
                }
                all.push(Wait {
                    from,
                    to,
                    is_free: is_free(system, (from, a), (to, b), strictly),
                    distance: distance(a, b, strictly),
                    clocks: match a.cpu == b.cpu {
                        true => 0,
                        false => system.machine.clock_error,
                    },
                });
            }
        }
        Ok(Waits { system, all })
    }

    /// The tasks whose responses others wait for.
    pub(crate) fn predecessors(&self) -> impl Iterator<Item = usize> + '_ {
        let waits = self.all.iter().filter(|wait| !wait.is_free);
        waits.map(|wait| wait.from)
    }

    /// How long each task waits when those before it have these bounds, and waited so long.
    ///
    /// # Errors
    ///
    /// [`Why`]: it waits for what nothing bounds.
    pub(crate) fn waiting(&self, bounds: &[Option<u64>], before: &[u64]) -> Result<Vec<u64>, Why> {
        let mut next = before.to_vec();
        for wait in &self.all {
            let until = match wait.is_free {
                true => before[wait.from],
                false => self.bound(*wait, bounds)?,
            };
            let waits = until
                .saturating_add(wait.clocks)
                .saturating_sub(wait.distance);
            next[wait.to] = next[wait.to].max(waits);
        }
        Ok(next)
    }

    fn bound(&self, wait: Wait, bounds: &[Option<u64>]) -> Result<u64, Why> {
        let tasks = &self.system.tasks;
        let bound = bounds.get(wait.from).copied().flatten();
        bound.ok_or_else(|| told(&tasks[wait.from], &tasks[wait.to]))
    }

    /// Every predecessor that need not go first, from the bounds of all tasks.
    ///
    /// # Errors
    ///
    /// [`Why`]: nothing bounds one.
    pub(crate) fn claims(&self, bounds: &[Option<u64>]) -> Result<Vec<WaitClaim>, Why> {
        let tasks = &self.system.tasks;
        let waits = self.all.iter().filter(|wait| !wait.is_free);
        let claim = |wait: &Wait| {
            Ok(WaitClaim {
                task: tasks[wait.to].name.clone(),
                predecessor: tasks[wait.from].name.clone(),
                bound: self.bound(*wait, bounds)?,
                clocks: wait.clocks,
                distance: wait.distance,
            })
        };
        waits.map(claim).collect()
    }
}

/// Refuses waiting where something has a price that depends on who waits.
pub(crate) fn check_price(system: &System) -> Result<(), Why> {
    let machine = &system.machine;
    if machine.has_prices() {
        return Err(Why::new("jobs that may wait, where switching has a price"));
    }
    if system.tasks.iter().any(|task| !task.uses.is_empty()) {
        return Err(Why::new("jobs that may wait, beside locks"));
    }
    Ok(())
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
