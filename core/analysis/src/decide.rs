//! Yes or no, as fast as the tests allow: the question that slack and fixes ask again and again
//!
//! # Assumptions
//! 1. Those of the tests. An analysis that does not end within its steps has not admitted.

use alloc::vec::Vec;
use core::cmp::Ordering;

use punctual_model::{CpuId, PolicyKind, Requirement, Scheduler, System, TaskId};

use crate::blocking::limits;
use crate::bounds::{Bound, STEPS};
use crate::case::{Case, Contender, Who};
use crate::error::{AnalysisError, Checked};
use crate::fixed_point::Effort;
use crate::precedence::{self, Ask, Edge};
use crate::supply::Supply;
use crate::tree::{self, Solved};
use crate::utilization::{Ratio, compare_with_one};
use crate::verdict::{Refusal, Subject};
use crate::{chain, edf, fixed_priority, round_robin, spuri, upper_bound};

/// CPUs whose tasks wait for each other or stand in one chain, directly or through others. What
/// happens outside of a component cannot change what happens in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Component(Vec<bool>);

impl Component {
    /// The CPUs connected with `cpu`. O(cpus · edges).
    pub(crate) fn of(system: &System, edges: &[Edge], cpu: CpuId) -> Component {
        let mut member: Vec<bool> = (0..system.cpus.len()).map(|i| i == cpu.index()).collect();
        let place = |task: TaskId| system.tasks.get(task.index()).map(|t| t.cpu.index());
        loop {
            let mut grown = false;
            let waits = edges.iter().map(|e| (e.from, e.to));
            for (from, to) in waits.chain(chain::links(system)) {
                let (Some(a), Some(b)) = (place(from), place(to)) else {
                    continue;
                };
                if a < member.len() && b < member.len() && member[a] != member[b] {
                    (member[a], member[b]) = (true, true);
                    grown = true;
                }
            }
            if !grown {
                return Component(member);
            }
        }
    }

    /// All components, in the order of their first CPU. O(components · cpus · edges).
    pub(crate) fn all(system: &System, edges: &[Edge]) -> Vec<Component> {
        let mut components: Vec<Component> = Vec::new();
        for (index, _) in (0_u16..).zip(&system.cpus) {
            let cpu = CpuId(index);
            if !components.iter().any(|c| c.contains(cpu)) {
                components.push(Component::of(system, edges, cpu));
            }
        }
        components
    }

    /// Whether the CPU belongs to it.
    pub(crate) fn contains(&self, cpu: CpuId) -> bool {
        self.0.get(cpu.index()).copied().unwrap_or(false)
    }

    /// Its CPUs.
    pub(crate) fn cpus(&self) -> impl Iterator<Item = CpuId> + '_ {
        (0_u16..)
            .zip(&self.0)
            .filter(|&(_, &member)| member)
            .map(|(index, _)| CpuId(index))
    }
}

/// The longest response that deadline and requirements allow.
pub(crate) fn allowed(system: &System, task: TaskId, deadline: u64) -> u64 {
    let within = system.requirements.iter().filter_map(|r| match *r {
        Requirement::Response { task: t, within } if t == task => Some(within.as_ns()),
        _ => None,
    });
    within.chain([deadline]).min().unwrap_or(deadline)
}

/// Whether a CPU's utilization is above the limit of the file.
pub(crate) fn exceeds_limit(system: &System, case: &Case) -> bool {
    if !case.is_cpu() {
        return false;
    }
    let whole = punctual_model::Share::WHOLE.ppm();
    let kept = whole - system.machine.limits.utilization.ppm();
    let mut ratios = case.ratios();
    ratios.push(Ratio {
        demand: u64::from(kept),
        separation: u64::from(whole),
    });
    compare_with_one(&ratios) == Ordering::Greater
}

/// Whether everything on the CPUs of `component` holds.
pub(crate) fn admits(
    system: &System,
    edges: &[Edge],
    component: &Component,
    effort: &Effort,
) -> Checked<bool> {
    let answer = match try_admits(system, edges, component, effort) {
        Ok(true) => chain::hold(system, edges, component, effort),
        answer => answer,
    };
    match answer {
        Err(AnalysisError::TooLong { .. } | AnalysisError::Overflow { .. }) => Ok(false),
        answer => answer,
    }
}

/// Whether a node refuses: a limit is passed, a deadline or a required response cannot be kept, or
/// a server's budget comes late.
fn refuses(system: &System, solved: &Solved, effort: &Effort) -> Checked<bool> {
    let case = &solved.case;
    let by_demand = || edf::find_excess(case, &mut effort.meter(STEPS));
    Ok(is_late(system, solved) || (edf::decides(case) && by_demand()?.is_some()))
}

/// The same, as far as bounds tell: of larger ones it holds as well.
fn is_late(system: &System, Solved { case, bounds }: &Solved) -> bool {
    if case.supply == Supply::Nothing {
        return true;
    }
    let late = |(contender, bound): (&Contender, &Option<Bound>)| {
        let allowed = allowed_of(system, contender);
        bound.is_none_or(|b| b.response > allowed)
    };
    exceeds_limit(system, case)
        || case.contenders.iter().zip(bounds).any(late)
        || (case.is_cpu() && overloaded(case))
}

/// Whether more is asked of the whole CPU than it has. A node that divides time only has slots.
pub(crate) fn overloaded(case: &Case) -> bool {
    !matches!(case.policy, PolicyKind::Tdm { .. }) && case.load() == Ordering::Greater
}

/// The longest response that is allowed to a contender: a server's is its period.
pub(crate) fn allowed_of(system: &System, contender: &Contender) -> u64 {
    match contender.who {
        Who::Task(task) => allowed(system, task, contender.deadline),
        Who::Server(_) => contender.deadline,
    }
}

fn try_admits(
    system: &System,
    edges: &[Edge],
    component: &Component,
    effort: &Effort,
) -> Checked<bool> {
    let here = |task: TaskId| {
        system
            .tasks
            .get(task.index())
            .is_some_and(|task| component.contains(task.cpu))
    };
    let unbounded = limits::refusals(system);
    let concerns = |refusal: &Refusal| matches!(refusal.subject, Subject::Task(t) if here(t));
    if unbounded.iter().any(concerns) {
        return Ok(false);
    }
    if edges.iter().any(|e| e.can_delay() && here(e.to)) {
        return admits_by_bounds(system, edges, component, effort);
    }
    let tree = |s: &Scheduler| component.contains(s.cpu);
    let divided = |cpu: CpuId| matches!(system.cpus[cpu.index()].policy, PolicyKind::Tdm { .. });
    if system.schedulers.iter().any(tree) || component.cpus().any(divided) {
        return admits_by_bounds(system, edges, component, effort);
    }
    for cpu in component.cpus() {
        let case = tree::single(system, cpu)?;
        if exceeds_limit(system, &case) || !cpu_admits(system, &case, effort)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// By the bounds of all tasks, as `admit` finds them: where bounds feed into each other.
fn admits_by_bounds(
    system: &System,
    edges: &[Edge],
    component: &Component,
    effort: &Effort,
) -> Checked<bool> {
    let ask = Ask {
        cpus: &|cpu| component.contains(cpu),
        hopeless: &|solved| is_late(system, solved),
        in_time: &|case| demand_is_enough(system, edges, case),
        effort,
    };
    let solution = precedence::solve(system, edges, &ask)?;
    for solved in &solution.nodes {
        if refuses(system, solved, effort)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether nobody asks for more of this node than that deadlines are kept, and the demand tells.
fn demand_is_enough(system: &System, edges: &[Edge], case: &Case) -> bool {
    let only_deadline = |c: &Contender| {
        let Some(task) = c.who.task() else {
            return false;
        };
        let waited_for = edges.iter().any(|e| e.from == task || e.to == task);
        !waited_for && allowed_of(system, c) == c.deadline
    };
    edf::decides(case) && case.contenders.iter().all(only_deadline)
}

/// By place: who needs no fixed point. Locks have blocking of their own.
fn shown_in_time(system: &System, case: &Case) -> Vec<bool> {
    if system.resources.is_empty() {
        upper_bound::in_time(case, |contender| allowed_of(system, contender))
    } else {
        alloc::vec![false; case.contenders.len()]
    }
}

fn cpu_admits(system: &System, case: &Case, effort: &Effort) -> Checked<bool> {
    let allowed = |place: usize| allowed_of(system, &case.contenders[place]);
    let mut meter = effort.meter(STEPS);
    match case.policy {
        PolicyKind::Fifo | PolicyKind::FixedPriority { .. } => {
            let shown = shown_in_time(system, case);
            for place in (0..case.contenders.len()).filter(|&place| !shown[place]) {
                let allowed = allowed(place);
                let enough = Some(allowed);
                let mut meter = effort.meter(STEPS);
                let worst = fixed_priority::bound_response_time(case, place, enough, &mut meter)?;
                if worst.is_none_or(|w| w.response > allowed) {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        PolicyKind::EarliestDeadlineFirst => {
            if edf::find_excess(case, &mut meter)?.is_some() {
                return Ok(false);
            }
            let strict = |&place: &usize| allowed(place) < case.contenders[place].deadline;
            for place in (0..case.contenders.len()).filter(strict) {
                let Some(window) = spuri::window(case, &mut meter)? else {
                    return Ok(false);
                };
                let worst = spuri::bound_response_time(case, place, window, &mut meter)?;
                if worst.is_none_or(|w| w.response > allowed(place)) {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        PolicyKind::RoundRobin { .. } | PolicyKind::Tdm { .. } => {
            let window = round_robin::bound_everybody(case, &mut meter)?;
            let holds = |place: usize| {
                let jitter = case.contenders[place].flow.jitter;
                window
                    .and_then(|w| w.checked_add(jitter))
                    .is_some_and(|r| r <= allowed(place))
            };
            Ok((0..case.contenders.len()).all(holds))
        }
    }
}
