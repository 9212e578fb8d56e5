//! Yes or no, as fast as the tests allow: the answer that slack and fixes need again and again
//!
//! It is the way of all bounds, left at the first one that is late. Where nothing builds on a bound
//! it need not be known either (`bounds`): the allowed response ends the search.
//!
//! # Assumptions
//! 1. Those of the tests. An analysis that does not end within its steps has not admitted.

use alloc::vec::Vec;
use core::cmp::Ordering;

use punctual_model::{PolicyKind, Requirement, System, TaskId};

use crate::blocking::limits;
use crate::bounds::{Basis, Bound, STEPS};
use crate::component::Component;
use crate::entity::{Entity, Who};
use crate::error::{AnalysisError, Checked};
use crate::fixed_point::StepBudget;
use crate::lookup::is_background_slice;
use crate::node::Node;
use crate::precedence::Edge;
use crate::solve::{self, Options};
use crate::supply::Supply;
use crate::tree::Solved;
use crate::units::Span;
use crate::utilization::{Ratio, compare_with_one};
use crate::verdict::{Refusal, Subject};
use crate::{chain, edf};

/// The longest response that deadline and requirements allow.
pub(crate) fn allowed(system: &System, task: TaskId, deadline: Span) -> Span {
    let within = system.requirements.iter().filter_map(|r| match *r {
        Requirement::Response { task: t, within } if t == task => Some(within),
        _ => None,
    });
    within.chain([deadline]).min().unwrap_or(deadline)
}

/// Whether a CPU's utilization is above the limit of the file.
pub(crate) fn exceeds_limit(system: &System, node: &Node) -> bool {
    if !node.is_cpu() {
        return false;
    }
    let whole = punctual_model::Share::WHOLE.ppm();
    let kept = whole - system.machine.limits.utilization.ppm();
    let kept = Ratio {
        numerator: u64::from(kept),
        denominator: u64::from(whole),
    };
    compare_with_one(node.ratios().chain([kept])) == Ordering::Greater
}

/// Whether everything on the CPUs of `component` holds.
pub(crate) fn admits(
    system: &System,
    edges: &[Edge],
    component: &Component,
    step_budget: &StepBudget,
) -> Checked<bool> {
    match try_admits(system, edges, component, step_budget) {
        Err(AnalysisError::TooLong { .. } | AnalysisError::Overflow { .. }) => Ok(false),
        answer => answer,
    }
}

/// Whether the processor demand of a node whose bounds are in time exceeds its supply.
fn has_excess(Solved { node, bounds }: &Solved, step_budget: &StepBudget) -> Checked<bool> {
    // Bounds that the demand has given need no second search.
    let known = |b: &Option<Bound>| b.is_some_and(|b| b.basis == Basis::Feasible);
    if !edf::decides(node) || bounds.iter().any(known) {
        return Ok(false);
    }
    Ok(edf::find_excess(node, &mut step_budget.search_steps(STEPS))?.is_some())
}

/// Whether the bounds of a node refuse it: a limit is passed (an overload passes every limit), a
/// deadline or a required response may be missed, or a server's budget comes late. Larger bounds
/// refuse it as well.
fn is_late(system: &System, Solved { node, bounds }: &Solved) -> bool {
    if node.supply == Supply::Nothing {
        return !node
            .scheduler
            .is_some_and(|id| is_background_slice(system, id));
    }
    let late = |(entity, bound): (&Entity, &Option<Bound>)| {
        let allowed = allowed_of(system, entity);
        let is_late = bound.is_none_or(|b| b.response > allowed);
        is_late && !matches!(entity.who, Who::Server(id) if is_background_slice(system, id))
    };
    node.entities.iter().zip(bounds).any(late) || exceeds_limit(system, node)
}

/// Whether the work of a CPU needs more than it has. A node that divides time only has slots.
pub(crate) fn overloaded(node: &Node) -> bool {
    !matches!(node.policy, PolicyKind::Tdm { .. }) && node.load() == Ordering::Greater
}

/// The longest response that is allowed to an entity: a server's is its period.
pub(crate) fn allowed_of(system: &System, entity: &Entity) -> Span {
    match entity.who {
        Who::Task(task) => allowed(system, task, entity.deadline),
        Who::Server(_) => entity.deadline,
    }
}

fn try_admits(
    system: &System,
    edges: &[Edge],
    component: &Component,
    step_budget: &StepBudget,
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
    let options = Options {
        cpus: &|cpu| component.contains(cpu),
        hopeless: &|solved| is_late(system, solved),
        allowed: &|node| allowed_of_all(system, edges, node),
        step_budget,
    };
    let solution = solve::solve(system, edges, &options)?;
    let mut admitted = !solution.is_hopeless;
    for solved in &solution.nodes {
        admitted = admitted && !has_excess(solved, step_budget)?;
    }
    let mut required = chain::required(system, component).peekable();
    if !admitted || required.peek().is_none() {
        return Ok(admitted);
    }
    // Chains and differences of responses need the bounds themselves: worth it only now.
    let options = Options {
        cpus: &|cpu| component.contains(cpu),
        ..Options::all(step_budget)
    };
    let solution = solve::solve(system, edges, &options)?;
    for requirement in required {
        admitted = admitted && chain::holds(system, &solution, requirement)?;
    }
    Ok(admitted)
}

/// By place: the longest response allowed, where a yes or no will do. `None` where other bounds
/// build on those of this node: of servers, and along precedence.
fn allowed_of_all(system: &System, edges: &[Edge], node: &Node) -> Option<Vec<Span>> {
    let allowed = |entity: &Entity| {
        let task = entity.who.task()?;
        let mut edges = edges.iter().filter(|e| e.can_delay());
        let alone = edges.all(|e| e.from != task && e.to != task);
        alone.then(|| allowed_of(system, entity))
    };
    node.entities.iter().map(allowed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;
    use alloc::vec;
    use punctual_model::{Class, Cpu, CpuId, Machine, Ns, Priority, Reserve, Task, Work};

    const STEPS_LEFT: u64 = 100_000_000;

    /// As many threads as a program may have, at half of the processor, on a machine that takes
    /// some of it.
    fn many(policy: PolicyKind<Ns>, tasks: u64) -> System {
        let others = Reserve {
            name: "others".to_string(),
            budget: Work::from_ms(5),
            period: Span::from_ms(100),
        };
        let mut system = System {
            cpus: vec![Cpu {
                name: "0".to_string(),
                host: None,
                policy,
            }],
            free_phases: true,
            machine: Machine {
                switch: Work::from_ns(300),
                timer: Work::from_ns(500),
                reserves: vec![others],
                ..Machine::default()
            },
            ..System::default()
        };
        for n in 0..tasks {
            // No two have the same period.
            let period = Span::from_us(10_000 + 37_003 * n % 90_000);
            let class = Class::Periodic {
                period,
                wcet: Work::from_ns(period.as_ns() / (2 * tasks)),
                relative_deadline: period,
            };
            let mut task = Task::new(format!("t{n}"), CpuId(0), class);
            let by_rate = u32::try_from(100_000 - period.as_ns() / 1_000);
            task.priority = Priority::new(by_rate.unwrap_or(0));
            system.tasks.push(task);
        }
        system
    }

    /// A thread that joins asks this. A step looks at one task once, which takes some nanoseconds.
    #[test]
    fn a_yes_about_a_thousand_threads_takes_few_steps() {
        let fixed = PolicyKind::FixedPriority { preemptive: true };
        for policy in [PolicyKind::EarliestDeadlineFirst, fixed] {
            for (tasks, most) in [(100, 3_000), (1_000, 42_000)] {
                let system = many(policy, tasks);
                let components = Component::all(&system, &[]);
                let steps = StepBudget::new(STEPS_LEFT);
                let yes = admits(&system, &[], &components[0], &steps);
                assert_eq!(yes, Ok(true), "{policy:?} {tasks}");
                let taken = STEPS_LEFT - steps.left();
                assert!(taken <= most, "{policy:?} {tasks}: {taken} steps");
            }
        }
    }
}
