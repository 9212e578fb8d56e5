//! Gangs: the skew of their members, and the barriers that time replaces
//!
//! A job takes its whole wcet C at most, and completes within R of its arrival. How long it will
//! take changes nothing before it starts, so it starts within R − C. No member starts before its
//! arrival, and all arrive at one instant of clocks that differ by the clock error. So two members
//! start within the greatest R − C and the clock error of each other.
//!
//! All CPUs decide alike where the same reservations go before their members and nothing takes
//! time from one CPU alone (Nautilus, section 4.1). Then only clocks differ.
//!
//! A barrier is needless if the latest end of the superstep before it, and the clock error, are not
//! behind the beginning of the next one.

use crate::Why;
use crate::claims::{BarrierClaim, GangClaim, SkewClaim};
use crate::system::{Gang, Policy, Superstep, System, Task};

/// All members of all gangs, by number.
pub(crate) fn members(system: &System) -> impl Iterator<Item = usize> + '_ {
    let supersteps = system.gangs.iter().flat_map(|gang| &gang.supersteps);
    supersteps.flat_map(|superstep| superstep.members.iter().copied())
}

/// Refuses gangs whose members do not arrive at one instant.
pub(crate) fn check(system: &System) -> Result<(), Why> {
    if members(system).any(|member| member >= system.tasks.len()) {
        return Err(Why::new("a gang with a member that does not exist"));
    }
    for gang in &system.gangs {
        let period = |step: &Superstep| Some(system.tasks[*step.members.first()?].separation);
        let first = gang.supersteps.first().and_then(period);
        for superstep in &gang.supersteps {
            let clock = |member: &usize| {
                let task = &system.tasks[*member];
                (&task.class, task.separation, task.wcet, task.phase)
            };
            let clocks: Vec<_> = superstep.members.iter().map(clock).collect();
            let equal = clocks.windows(2).all(|pair| pair[0] == pair[1]);
            let mut cpus: Vec<_> = superstep
                .members
                .iter()
                .map(|&member| system.tasks[member].cpu)
                .collect();
            cpus.sort_unstable();
            let apart = cpus.windows(2).all(|pair| pair[0] != pair[1]);
            if !equal || !apart || period(superstep) != first || clocks.is_empty() {
                let what = "whose members do not arrive together, each on a CPU of its own";
                return Err(Why::new(format!("{}, {what}", superstep.name)));
            }
        }
    }
    Ok(())
}

/// The claims about all gangs, from the bounds of all tasks.
///
/// # Errors
///
/// [`Why`]: nothing bounds a member.
pub(crate) fn claims(
    system: &System,
    bounds: &[Option<u64>],
    waiting: &[u64],
) -> Result<Vec<GangClaim>, Why> {
    let bound = |member: usize| {
        let bound = bounds.get(member).copied().flatten();
        bound.ok_or_else(|| Why::new(format!("the end of {}", system.tasks[member].name)))
    };
    let of = |gang: &Gang| {
        let skew = |step: &Superstep| skew(system, step, &bound, waiting);
        Ok(GangClaim {
            gang: gang.name.clone(),
            supersteps: gang.supersteps.iter().map(skew).collect::<Result<_, _>>()?,
            barriers: barriers(system, gang, &bound)?,
        })
    };
    system.gangs.iter().map(of).collect()
}

fn skew(
    system: &System,
    superstep: &Superstep,
    bound: &impl Fn(usize) -> Result<u64, Why>,
    waiting: &[u64],
) -> Result<SkewClaim, Why> {
    let latest = |&member: &usize| {
        let own = system.tasks[member].wcet.unwrap_or(0);
        Ok(bound(member)?.saturating_sub(own))
    };
    let latest: Vec<u64> = superstep
        .members
        .iter()
        .map(latest)
        .collect::<Result<_, Why>>()?;
    let several = superstep.members.len() > 1;
    let alike = several && are_alike(system, superstep, bound, waiting)?;
    let apart = match (several, alike) {
        (false, _) => 0,
        (true, true) => system.machine.clock_error,
        (true, false) => {
            let last = latest.iter().copied().max().unwrap_or(0);
            last.saturating_add(system.machine.clock_error)
        }
    };
    Ok(SkewClaim {
        superstep: superstep.name.clone(),
        latest,
        alike,
        skew: apart,
    })
}

/// Whether all CPUs of a superstep decide alike at one instant of their clocks.
fn are_alike(
    system: &System,
    superstep: &Superstep,
    bound: &impl Fn(usize) -> Result<u64, Why>,
    waiting: &[u64],
) -> Result<bool, Why> {
    let machine = &system.machine;
    if machine.has_prices() || !machine.reserves.is_empty() {
        return Ok(false);
    }
    let mut first = None;
    for &member in &superstep.members {
        let task = &system.tasks[member];
        let Some(before) = before(system, member, task, waiting) else {
            return Ok(false);
        };
        let ended = task.separation.is_some_and(|period| {
            let bound = bound(member);
            bound.is_ok_and(|bound| bound <= period)
        });
        if !ended || first.get_or_insert_with(|| before.clone()) != &before {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A reservation as it goes before a member: its period, slice, first arrival and priority. The
/// last is whether it stands before the member in the file: of equal deadlines it goes first.
type Reservation = (Option<u64>, Option<u64>, u64, u32, bool);

/// The reservations that go before a member; none: other work may.
fn before(
    system: &System,
    member: usize,
    task: &Task,
    waiting: &[u64],
) -> Option<Vec<Reservation>> {
    let below = system.schedulers.iter().any(|s| s.cpu == task.cpu);
    let waits = !task.after.is_empty() || !task.follows.is_empty() || waiting[member] > 0;
    if below || waits || task.jitter > 0 {
        return None;
    }
    let others = system.tasks.iter().enumerate();
    let here = others.filter(|(id, other)| *id != member && other.cpu == task.cpu);
    let here: Vec<(usize, &Task)> = here.collect();
    let holds = |task: &Task| task.section > 0 || !task.uses.is_empty();
    if here.iter().any(|(_, other)| holds(other)) {
        return None;
    }
    let is_exact = |task: &Task| {
        let waits = !task.after.is_empty() || !task.follows.is_empty();
        task.class == "reservation" && task.jitter == 0 && !waits
    };
    let with_deadline = here.iter().filter(|(_, other)| other.deadline.is_some());
    let before: Vec<(usize, &Task)> = match system.cpus[task.cpu].policy {
        Policy::FixedPriority { preemptive: true } => with_deadline
            .filter(|(_, other)| other.priority >= task.priority)
            .copied()
            .collect(),
        Policy::Edf if is_exact(task) => with_deadline.copied().collect(),
        _ => return None,
    };
    let is_fit = |other: &Task| is_exact(other) && other.deadline == other.separation;
    let ties = |other: &Task| {
        system.cpus[task.cpu].policy != Policy::Edf && other.priority == task.priority
    };
    let all_fit = before.iter().all(|(_, other)| is_fit(other));
    if !all_fit || before.iter().any(|(_, other)| ties(other)) {
        return None;
    }
    let row = |&(id, other): &(usize, &Task)| {
        let (separation, slice) = (other.separation, other.wcet);
        (separation, slice, other.phase, other.priority, id < member)
    };
    Some(before.iter().map(row).collect())
}

/// The barriers of a gang: behind each superstep, where there are several.
fn barriers(
    system: &System,
    gang: &Gang,
    bound: &impl Fn(usize) -> Result<u64, Why>,
) -> Result<Vec<BarrierClaim>, Why> {
    let count = gang.supersteps.len();
    let phase = |step: &Superstep| system.tasks[step.members[0]].phase;
    let Some(first) = gang.supersteps.first().filter(|_| count > 1) else {
        return Ok(Vec::new());
    };
    let origin = phase(first);
    let clocks = system.machine.clock_error;
    let mut barriers = Vec::new();
    for (index, before) in gang.supersteps.iter().enumerate() {
        let next = &gang.supersteps[(index + 1) % count];
        let turn = match index + 1 == count {
            true => system.tasks[next.members[0]].separation.unwrap_or(0),
            false => 0,
        };
        let mut end = 0;
        for &member in &before.members {
            end = end.max(bound(member)?.saturating_add(phase(before)));
        }
        let end = end.saturating_sub(origin);
        let begins = phase(next).saturating_add(turn).saturating_sub(origin);
        barriers.push(BarrierClaim {
            before: before.name.clone(),
            next: next.name.clone(),
            end,
            clocks,
            begins,
            left_out: end.saturating_add(clocks) <= begins,
        });
    }
    Ok(barriers)
}
