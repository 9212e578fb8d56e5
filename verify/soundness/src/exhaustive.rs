//! Small systems from every combination of phases: nothing is left to chance.

use punctual_model::{PolicyKind, Span, System};

use crate::observe::observe;
use crate::phases::groups;
use crate::situation::{Situation, Stage};

/// Most combinations that are tried; beyond it the system is left to the other situations.
const MOST_COMBINATIONS: u64 = 1_500;

/// The least common multiple of everything in a tiny system divides this.
const CYCLE: u64 = 12;

/// Calls `each` with every combination of first arrivals within one cycle, until it says stop.
/// Nothing happens when there are too many. Says how many there were.
///
/// # Errors
/// What the simulation says when it does not start.
pub(crate) fn all_phases(
    stage: &Stage<'_>,
    mut each: impl FnMut(&Situation, &crate::observe::Seen) -> bool,
) -> Result<u64, String> {
    let groups = groups(stage.system);
    let ranges = ranges(stage.system, &groups);
    let combinations = ranges.iter().try_fold(1_u64, |all, r| all.checked_mul(*r));
    let Some(combinations) = combinations.filter(|c| *c <= MOST_COMBINATIONS) else {
        return Ok(0);
    };
    let jitter = stage.system.tasks.iter().any(|t| !t.jitter.is_zero());
    for number in 0..combinations {
        for dense in [false, true] {
            if dense && !jitter {
                continue;
            }
            let mut system = stage.system.clone();
            let mut rest = number;
            for (leader, range) in ranges.iter().enumerate() {
                move_group(&mut system, &groups, leader, rest % range);
                rest /= range;
            }
            let name = format!("combination {number} of all phases");
            let mut situation = stage.situation(name, system, 0);
            situation.look.faults.dense_jitter = dense;
            situation.look.duration = Span::from_ns(5 * CYCLE);
            let seen = observe(&situation.system, &situation.look)?;
            if !each(&situation, &seen) {
                return Ok(number + 1);
            }
        }
    }
    Ok(combinations)
}

/// The first arrival of a group's leader; the others of the group keep their distance.
fn move_group(system: &mut System, groups: &[usize], leader: usize, arrival: u64) {
    let members = || (0..groups.len()).filter(|m| groups[*m] == leader);
    let earliest = members().map(|m| system.tasks[m].phase.as_ns()).min();
    for member in members() {
        let phase = &mut system.tasks[member].phase;
        *phase = Span::from_ns(phase.as_ns() - earliest.unwrap_or(0) + arrival);
    }
}

/// By leader of a group: how many of its first arrivals differ. Without a clock of its own in the
/// system (a server, a frame, missing time), only distances matter, and the first one stays at 0.
fn ranges(system: &System, groups: &[usize]) -> Vec<u64> {
    let machine = &system.machine;
    let has_clock = !system.schedulers.is_empty()
        || machine.missing_time.is_some()
        || !machine.reserves.is_empty()
        || system
            .cpus
            .iter()
            .any(|cpu| matches!(cpu.policy, PolicyKind::Tdm { .. }));
    let mut first = !has_clock;
    let mut range = |leader: usize| {
        let members = groups.iter().filter(|g| **g == leader).count();
        if members == 0 || std::mem::take(&mut first) {
            return 1;
        }
        match system.tasks[leader].class.min_separation() {
            Some(t) if members == 1 => t.as_ns().max(1),
            _ => CYCLE,
        }
    };
    (0..groups.len()).map(&mut range).collect()
}
