//! Why a CPU, a scheduler or a task is refused, with a witness that simulation can confirm
//!
//! # Assumptions
//! 1. A demand witness assumes that all tasks of the CPU arrive so that their releases, as late as
//!    their jitter allows, fall together at 0, and then as densely as they may.
//! 2. A response witness assumes the same of the tasks that may delay the one named; its own jobs
//!    arrive at the offset that the situation names.
//! 3. Each job needs its wcet and all its overheads.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use punctual_model::{PolicyKind, SchedulerId, System, TaskId};

use crate::blocking::budget_end;
use crate::bounds::{self, Basis, Bound, STEPS};
use crate::busy_window::{self, Query, Worst};
use crate::edf::{self, Excess};
use crate::entity::Who;
use crate::error::{AnalysisError, Checked};
use crate::fixed_point::StepBudget;
use crate::lookup::is_background_slice;
use crate::node::Node;
use crate::supply::Supply;
use crate::tree::Solved;
use crate::units::{Span, Work};
use crate::verdict::{Refusal, Subject, Witness};
use crate::{decide, explain, fixed_priority, spuri};

/// Most late tasks that the refusal of a node names.
const MOST_NAMES: usize = 32;

/// All refusals of all nodes: of each first the node, then its tasks and servers in the order of
/// the file.
pub(crate) fn refusals(system: &System, nodes: &[Solved]) -> Checked<Vec<Refusal>> {
    let mut refusals = Vec::new();
    let step_budget = bounds::query();
    for solved in nodes {
        let background = |id| is_background_slice(system, id);
        if solved.node.scheduler.is_some_and(background) {
            continue;
        }
        if solved.node.supply == Supply::Nothing {
            refusals.extend(without_supply(system, nodes, &solved.node));
        } else {
            of_node(system, solved, &step_budget, &mut refusals)?;
        }
    }
    Ok(refusals)
}

/// Why a node has no supply, unless a server above is told of.
fn without_supply(system: &System, nodes: &[Solved], node: &Node) -> Option<Refusal> {
    if !node.is_whole {
        let parent = nodes
            .iter()
            .find(|s| s.node.scheduler == node.scheduler && s.node.is_whole);
        if parent.is_some_and(|s| s.node.supply == Supply::Nothing) {
            return None;
        }
        let task = node.entities.first()?.who.task()?;
        let name = &system.tasks[task.index()].name;
        let reason = format!("{name} has no slot of which its overheads leave anything");
        return Some(Refusal::new(Subject::Task(task), name, reason));
    }
    let id = node.scheduler?;
    let scheduler = &system.schedulers[id.index()];
    let parent = nodes.iter().find(|s| {
        s.node.scheduler == scheduler.parent && s.node.cpu == node.cpu && s.node.is_whole
    })?;
    if parent.node.supply == Supply::Nothing {
        return None;
    }
    let name = &scheduler.name;
    let reason = match scheduler.supply {
        punctual_model::Supply::Shared => return None,
        punctual_model::Supply::Slots(_) => {
            format!("{name} has no slot of which its overheads leave anything")
        }
        punctual_model::Supply::Server(server) => {
            let mut own = parent.node.entities.iter().zip(&parent.bounds);
            let (_, bound) = own.find(|(c, _)| c.who == Who::Server(id))?;
            // A budget that comes late is told of at the parent.
            let late = bound.is_none_or(|b| b.response > server.period);
            if late {
                return None;
            }
            match budget_end::lost(system, id, server.kind).ok()? < server.budget {
                true => format!("the overheads leave nothing of the budget of {name}"),
                false => format!(
                    "nothing of a budget of {name} is left beside what others overrun of it while \
                     a section waits for a whole one"
                ),
            }
        }
    };
    Some(Refusal::new(Subject::Scheduler(id), name, reason))
}

fn of_node(
    system: &System,
    solved: &Solved,
    step_budget: &StepBudget,
    refusals: &mut Vec<Refusal>,
) -> Checked<()> {
    let Solved { node, bounds } = solved;
    let overloaded = node.is_cpu() && decide::overloaded(node);
    let whole = node_refusal(system, solved, overloaded, step_budget)?;
    let covers_deadlines = whole
        .as_ref()
        .is_some_and(|refusal| refusal.witness.is_some());
    let by_deadline = node.policy == PolicyKind::EarliestDeadlineFirst;
    refusals.extend(whole);
    let mut is_open = false;
    for (place, entity) in node.entities.iter().enumerate() {
        let bound = bounds.get(place).copied().flatten();
        let allowed = decide::allowed_of(system, entity);
        let may_be_late = matches!(entity.who, Who::Server(id) if is_background_slice(system, id));
        if bound.is_some_and(|b| b.response <= allowed) || may_be_late {
            continue;
        }
        // The bound is too large, but no response is known: neither an admission nor a refusal.
        if bound.is_some_and(|b| b.basis == Basis::Closed) {
            is_open = true;
            continue;
        }
        // What the node's demand already says: overload without a bound, or an EDF deadline.
        let told =
            covers_deadlines && (bound.is_none() || (by_deadline && allowed == entity.deadline));
        if told {
            continue;
        }
        refusals.push(match entity.who {
            Who::Task(task) => {
                let witness = missing_job(node, place, bound, allowed, step_budget)?;
                task_refusal(system, node, (place, task), bound, allowed, witness)
            }
            Who::Server(id) => server_refusal(system, node, place, id, bound)?,
        });
    }
    if is_open && refusals.is_empty() {
        return Err(AnalysisError::TooLong {
            what: busy_window::WHAT,
        });
    }
    Ok(())
}

fn server_refusal(
    system: &System,
    node: &Node,
    place: usize,
    id: SchedulerId,
    bound: Option<Bound>,
) -> Checked<Refusal> {
    let period = node.entities[place].deadline;
    let name = &system.schedulers[id.index()].name;
    let reason = match bound {
        Some(bound) => format!(
            "the budget of {name} may take {} to come, over its period of {}",
            bound.response.readable(),
            period.readable()
        ),
        None => format!("nothing bounds how long the budget of {name} takes to come"),
    };
    let mut refusal = Refusal::new(Subject::Scheduler(id), name, reason);
    let sure = node
        .all_entities()
        .all(|c| c.waiting.is_zero() && !c.cost.is_padded());
    let ranked = matches!(node.policy, PolicyKind::FixedPriority { .. });
    if sure
        && ranked
        && let Some((demand, supply)) = missing_budget(node, place)?
    {
        refusal.witness = Some(Witness::Demand {
            at: period,
            demand,
            supply,
        });
        refusal.situation =
            "its budget comes together with all that is more urgent beside it, and it has work for \
             all of it"
                .to_string();
    }
    Ok(refusal)
}

/// The demand before the end of its first budget within its period, and the supply in it, if that
/// is less.
fn missing_budget(node: &Node, place: usize) -> Checked<Option<(Work, Work)>> {
    let query = fixed_priority::query(node, place, None);
    let period = query.own.deadline;
    let demand = query.first_demand(period)?;
    let mut least = Work::MAX;
    for phase in 0..node.supply.phases() {
        least = least.min(node.supply.provided_in(phase, period)?);
    }
    Ok((demand > least).then_some((demand, least)))
}

/// How a node is called in a refusal.
fn title(system: &System, node: &Node) -> (Subject, String, String) {
    match node.scheduler {
        None => {
            let name = &system.cpus[node.cpu.index()].name;
            (Subject::Cpu(node.cpu), name.clone(), format!("CPU {name}"))
        }
        Some(id) => {
            let name = &system.schedulers[id.index()].name;
            let title = format!("scheduler {name}");
            (Subject::Scheduler(id), name.clone(), title)
        }
    }
}

fn node_refusal(
    system: &System,
    solved: &Solved,
    overloaded: bool,
    step_budget: &StepBudget,
) -> Checked<Option<Refusal>> {
    let Solved { node, bounds } = solved;
    let (subject, name, title) = title(system, node);
    let utilization = crate::utilization::parts_per_million(node.ratios());
    let mut search_steps = step_budget.search_steps(STEPS);
    if overloaded {
        let reason = format!(
            "{title} is overloaded: its utilization is {}",
            explain::percent(utilization)
        );
        let excess = match edf::find_overload(node, &mut search_steps) {
            Ok(excess) => Some(excess),
            Err(AnalysisError::TooLong { .. } | AnalysisError::Overflow { .. }) => None,
            Err(other) => return Err(other),
        };
        let refusal = Refusal::new(subject, &name, reason);
        return Ok(Some(with_excess(refusal, node, excess)));
    }
    if edf::decides(node)
        && let Some(excess) = edf::find_excess(node, &mut search_steps)?
    {
        let late = late_tasks(system, node, bounds);
        let reason = format!(
            "{title} cannot do in {} what is due by then: {}; {late} can miss",
            excess.at.readable(),
            excess.demand.readable()
        );
        let refusal = Refusal::new(subject, &name, reason);
        return Ok(Some(with_excess(refusal, node, Some(excess))));
    }
    if decide::exceeds_limit(system, node) {
        let limit = u64::from(system.machine.limits.utilization.ppm());
        let reason = format!(
            "{title} is used to {}, the limit is {}",
            explain::percent(utilization),
            explain::percent(limit)
        );
        return Ok(Some(Refusal::new(subject, &name, reason)));
    }
    Ok(None)
}

fn late_tasks(system: &System, node: &Node, bounds: &[Option<Bound>]) -> String {
    let late = node
        .entities
        .iter()
        .zip(bounds)
        .filter(|(c, bound)| bound.is_none_or(|bound| bound.response > c.deadline));
    let mut names: Vec<&str> = late.map(|(c, _)| c.who.name(system)).collect();
    let more = names.split_off(names.len().min(MOST_NAMES)).len();
    match (names.is_empty(), more) {
        (true, _) => "some task".to_string(),
        (false, 0) => names.join(", "),
        (false, more) => format!("{} and {more} more", names.join(", ")),
    }
}

fn with_excess(mut refusal: Refusal, node: &Node, excess: Option<Excess>) -> Refusal {
    let Some(excess) = excess else { return refusal };
    // Counting suspension or waiting as demand is safe, but no simulation would show the miss.
    if node.all_entities().any(|c| c.cost.is_padded()) {
        return refusal;
    }
    refusal.witness = Some(Witness::Demand {
        at: excess.at,
        demand: excess.demand,
        supply: excess.supply,
    });
    refusal.situation = "all releases fall together at 0".to_string();
    if node.entities.iter().any(|c| !c.requests.jitter.is_zero()) {
        refusal.situation += ", as late as their jitter allows";
    }
    if edf::blocking(node, excess.at) > Work::ZERO {
        refusal.situation += "; a section with a later deadline began one tick before";
    }
    refusal
}

fn task_refusal(
    system: &System,
    node: &Node,
    (place, task): (usize, TaskId),
    bound: Option<Bound>,
    allowed: Span,
    witness: Option<(Query<'_>, Worst)>,
) -> Refusal {
    let entity = &node.entities[place];
    let name = &system.tasks[task.index()].name;
    let what = if allowed < entity.deadline {
        "required response"
    } else {
        "deadline"
    };
    let over = allowed.readable();
    let reason = match bound {
        Some(bound) => {
            format!(
                "{name} may take {}, over its {what} of {over}",
                bound.response.readable()
            )
        }
        None => format!("nothing bounds the response of {name}; its {what} is {over}"),
    };
    let mut refusal = Refusal::new(Subject::Task(task), name, reason);
    if let Some((query, worst)) = witness {
        refusal.witness = Some(Witness::Response {
            task,
            job: worst.job,
            offset: worst.offset,
            response: worst.response,
            deadline: allowed,
        });
        refusal.situation = situation(system, node, &query, &worst);
    }
    refusal
}

/// The first job of the busy window that is late, where the test has a job to show.
fn missing_job<'a>(
    node: &'a Node,
    place: usize,
    bound: Option<Bound>,
    allowed: Span,
    step_budget: &StepBudget,
) -> Checked<Option<(Query<'a>, Worst)>> {
    let hidden = node
        .entities
        .iter()
        .any(|c| !c.waiting.is_zero() || c.cost.is_padded());
    let by_window = matches!(
        bound,
        Some(Bound {
            basis: Basis::Window(_) | Basis::Feasible | Basis::Closed,
            ..
        })
    );
    if hidden || by_window {
        return Ok(None);
    }
    let query = match (node.policy, bound.map(|b| b.basis)) {
        (PolicyKind::RoundRobin { .. }, _) | (PolicyKind::EarliestDeadlineFirst, None) => {
            return Ok(None);
        }
        (PolicyKind::EarliestDeadlineFirst, Some(Basis::Job(worst))) => {
            return Ok(Some((spuri::query(node, place, Span::ZERO), worst)));
        }
        // The first job of all is late: no earlier one is.
        (_, Some(Basis::Job(worst)))
            if worst.offset.is_zero() && worst.phase == 0 && worst.response > allowed =>
        {
            return Ok(Some((fixed_priority::query(node, place, None), worst)));
        }
        _ => fixed_priority::query(node, place, Some(allowed)),
    };
    if !fixed_priority::fits(&query) {
        return Ok(None);
    }
    match query.worst(&mut step_budget.search_steps(STEPS)) {
        Ok(worst) => Ok(worst
            .filter(|w| w.response > allowed)
            .map(|worst| (query, worst))),
        Err(AnalysisError::TooLong { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

fn situation(system: &System, node: &Node, query: &Query<'_>, worst: &Worst) -> String {
    let name = |who: Who| who.name(system);
    let own = query.own;
    let together = own
        .requests
        .separation
        .map_or(worst.offset.is_zero(), |t| (worst.offset % t).is_zero());
    let mut words = if query.interfering.is_empty() && node.reserved.is_empty() {
        format!("{} alone", name(own.who))
    } else if together {
        "all that may delay it is released together with it at 0".to_string()
    } else {
        format!(
            "all that may delay it is released at 0; its own job {} at {}, earlier ones one period \
             apart before that",
            worst.job,
            worst.offset.readable()
        )
    };
    if let Some(blocker) = query.blocker(worst.offset) {
        let whose = blocker.who.map_or("background work", name);
        words += &format!("; a section of {whose} began one tick before");
    }
    if node.policy == PolicyKind::EarliestDeadlineFirst {
        words += "; equal deadlines go before it";
    }
    words += &match &node.supply {
        Supply::Slots(table) => format!(
            "; that is {} after the start of a frame, where a slot ends",
            table.begins(worst.phase).readable()
        ),
        Supply::Budget(_) => "; a budget has just been used up, and the next ones come as late as \
                              they may"
            .to_string(),
        Supply::Dedicated | Supply::Nothing => String::new(),
    };
    if node.entities.iter().any(|c| !c.requests.jitter.is_zero()) {
        words += "; first releases are as late as their jitter allows";
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::{self, Options};
    use alloc::vec;
    use punctual_model::{Class, Cpu, CpuId, Ns, Priority, Requirement, Task};

    /// Two tasks under fixed priority, the less urgent of which is to respond within 5 ms.
    fn with_a_required_response() -> System {
        let task = |name: &str, priority| {
            let period = punctual_model::Span::<Ns>::from_ms(10);
            let class = Class::Periodic {
                period,
                wcet: punctual_model::Work::from_ms(2),
                relative_deadline: period,
            };
            let mut task = Task::new(name, CpuId(0), class);
            task.priority = Priority::new(priority);
            task
        };
        System {
            cpus: vec![Cpu {
                name: "0".to_string(),
                host: None,
                policy: PolicyKind::FixedPriority { preemptive: true },
            }],
            tasks: vec![task("first", 2), task("second", 1)],
            requirements: vec![Requirement::Response {
                task: TaskId(1),
                within: punctual_model::Span::from_ms(5),
            }],
            ..System::default()
        }
    }

    #[test]
    fn a_closed_bound_beyond_a_required_response_refuses_nothing() {
        let system = with_a_required_response();
        let solution = solve::solve(&system, &[], &Options::all(&bounds::query()));
        let mut nodes = solution.expect("it can be solved").nodes;
        assert_eq!(refusals(&system, &nodes), Ok(Vec::new()));
        nodes[0].bounds[1] = Some(Bound::closed(Span::from_ms(6)));
        let what = busy_window::WHAT;
        let answer = refusals(&system, &nodes);
        assert_eq!(answer, Err(AnalysisError::TooLong { what }));
        // Beside a refusal that is certain it is one more thing that is not known.
        nodes[0].bounds[0] = Some(Bound::of_window(Span::from_ms(11), Span::ZERO).expect("short"));
        let refused = refusals(&system, &nodes).expect("a refusal");
        assert_eq!(refused.len(), 1);
    }
}
