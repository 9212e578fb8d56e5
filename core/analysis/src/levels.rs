//! Worst responses level by level: many tasks under fixed priorities need no search each
//!
//! From the most urgent level downwards the window grows, so each release in that of
//! the level above is one in this. So the releases of all tasks are walked through once, in
//! the order of their instants, and each level adds its own tasks:
//!
//! ```text
//! w = B + Σ C of the level + Σ over all that is more urgent: C·⌈(w + J)/T⌉
//! ```
//!
//! A task that is alone on its level has as many jobs in the window as it arrives in; each extends
//! it by its own cost, and the response of the k-th is w − k·T.
//!
//! When the window of a level of several is over before anything of the level arrives again, each
//! of its tasks has one job in it. A job that arrives one tick after all others waits for all of
//! them (w − 1), one that no other can be behind has w. Whatever this does not answer is left to
//! the search, so both together are as exact as it.
//!
//! # Assumptions
//! 1. Those of the response-time analysis (`fixed_priority`), on a dedicated processor.
//!
//! Sources: Joseph and Pandya 1986; Lehoczky 1990 (level-i busy periods); the walk is ours.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

use punctual_model::PolicyKind;

use crate::busy_window::Worst;
use crate::demand::RequestBound;
use crate::entity::Entity;
use crate::error::{Checked, in_range};
use crate::fixed_point::{SearchSteps, StepBudget};
use crate::node::Node;
use crate::units::{Span, TICK, UNIT, Work};
use crate::upper_bound;
use crate::utilization::{Sum, compare_with_one};
use crate::walk::Walk;

const WHAT: &str = "busy window";

/// The knowledge of one entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Known {
    /// Its worst job; `None`: nothing bounds its response.
    Response(Option<Worst>),
    /// Its first job is late where all arrives together. By how much the worst is, search tells.
    Late,
    /// Nothing yet: search.
    Nothing,
}

/// By place: the worst response of each entity, where a walk through all levels tells it; a level
/// takes at most so many steps. With `allowed` it ends at the first that is longer than its own.
/// O((n + releases in the longest window) · log n).
pub(crate) fn responses(
    node: &Node,
    allowed: Option<&[Span]>,
    step_budget: &StepBudget,
    steps: u64,
) -> Vec<Known> {
    let mut known = vec![Known::Nothing; node.entities.len()];
    if upper_bound::applies(node) {
        // An overflow, or too many releases: from there on the search tells.
        let _ = walk(node, allowed, &mut known, step_budget, steps);
    }
    known
}

/// Whether the response is known to be longer than is allowed.
pub(crate) fn is_late(known: Known, allowed: Span, deadline: Span) -> bool {
    match known {
        Known::Response(worst) => worst.is_none_or(|w| w.response > allowed),
        Known::Late => allowed <= deadline,
        Known::Nothing => false,
    }
}

fn walk(
    node: &Node,
    allowed: Option<&[Span]>,
    known: &mut [Known],
    step_budget: &StepBudget,
    steps: u64,
) -> Checked<()> {
    let places = upper_bound::by_urgency(node);
    let mut blocking = upper_bound::blocking_below(node, &places);
    let mut walk = Walk::new();
    let mut load = Sum::default();
    for reserved in &node.reserved {
        walk.add(reserved.requests)?;
        load = reserved.requests.ratio().map_or(load, |r| load.plus(r));
    }
    // The blocking with which the window was reached.
    let mut reached = Work::ZERO;
    let mut end = 0;
    for level in places.chunk_by(upper_bound::same_level(node)) {
        let below = blocking.pop().unwrap_or_default();
        let ratios = level.iter().map(|&p| node.entities[p].requests.ratio());
        load = ratios.flatten().fold(load, Sum::plus);
        end += level.len();
        let all = || places[..end].iter().map(|&p| &node.entities[p].requests);
        let exactly = || {
            let requests = all().chain(node.reserved.iter().map(|t| &t.requests));
            compare_with_one(requests.filter_map(RequestBound::ratio))
        };
        match load.compare_with_one().unwrap_or_else(exactly) {
            Ordering::Greater => {
                for &place in &places[end - level.len()..] {
                    known[place] = Known::Response(None);
                }
                return Ok(());
            }
            // Whether it ends is for the search to tell.
            Ordering::Equal => return Ok(()),
            Ordering::Less => {}
        }
        let costs = level
            .iter()
            .map(|&place| node.entities[place].requests.cost);
        let first = costs.fold(below, Work::saturating_add);
        if first < reached {
            walk.rewind()?;
        }
        reached = below;
        let search_steps = &mut step_budget.search_steps(steps);
        let window = walk.extend(first, search_steps)?;
        match level {
            [only] => {
                let own = &node.entities[*only];
                if is_plain(own) {
                    if window > own.deadline {
                        known[*only] = Known::Late;
                    }
                    let worst = jobs_in_turn(own, below, window, &mut walk, search_steps)?;
                    known[*only] = Known::Response(Some(worst));
                }
            }
            _ => one_job_each(node, level, window, known),
        }
        let is_late =
            |&p: &usize, all: &[Span]| is_late(known[p], all[p], node.entities[p].deadline);
        if allowed.is_some_and(|all| level.iter().any(|place| is_late(place, all))) {
            return Ok(());
        }
        for &place in level {
            walk.add(node.entities[place].requests)?;
        }
    }
    Ok(())
}

/// Whether an entity has one job at a time that others may preempt.
fn is_plain(entity: &Entity) -> bool {
    !entity.whole && !entity.requests.cost.is_zero()
}

/// The worst job of an entity that is alone on its level; its first one ends with `window`.
/// O(jobs of the busy window + releases passed · log streams).
fn jobs_in_turn(
    own: &Entity,
    below: Work,
    window: Span,
    walk: &mut Walk,
    search_steps: &mut SearchSteps<'_>,
) -> Checked<Worst> {
    let at = |job, offset: Span, completion: Span| {
        let response = completion
            .saturating_sub(offset)
            .checked_add(own.own_jitter());
        in_range(response, WHAT).map(|response| Worst {
            response,
            job,
            offset,
            reach: completion,
            completion,
            phase: 0,
        })
    };
    let mut worst = at(0, Span::ZERO, window)?;
    let mut completion = window;
    let Some(separation) = own.requests.separation else {
        return Ok(worst);
    };
    for job in 1.. {
        let offset = in_range(separation.checked_mul(job), WHAT)?;
        if completion <= offset {
            break;
        }
        search_steps.spend(1, WHAT)?;
        let all = own.requests.cost_of(job + 1)?;
        completion = walk.extend(in_range(below.checked_add(all), WHAT)?, search_steps)?;
        let found = at(job, offset, completion)?;
        if found.response > worst.response {
            worst = found;
        }
    }
    Ok(worst)
}

/// The worst jobs of a level of several, where each has one job in the window. O(level).
fn one_job_each(node: &Node, level: &[usize], window: Span, known: &mut [Known]) {
    let is_last = |c: &Entity| {
        let again = c.requests.separation;
        let again = again.map(|t| t.saturating_sub(c.requests.jitter));
        window <= again.unwrap_or(Span::MAX) && c.requests.once.is_zero()
    };
    if !level.iter().all(|&place| is_last(&node.entities[place])) {
        return;
    }
    // Those later in the file that arrive when they are released, which go behind equals.
    let (mut later, mut behind) = (0_usize, Work::ZERO);
    for &place in level.iter().rev() {
        let own = &node.entities[place];
        let is_steady = own.requests.jitter.is_zero();
        let offset = match later {
            _ if !is_steady => Some(Span::ZERO),
            0 => Some(Span::ZERO),
            // They go before it when it arrives one tick later.
            _ => Some(TICK).filter(|_| behind > UNIT),
        };
        if is_steady {
            later += 1;
            behind = behind.saturating_add(own.requests.cost);
        }
        let Some(offset) = offset.filter(|_| is_plain(own)) else {
            continue;
        };
        let response = window.saturating_sub(offset).checked_add(own.own_jitter());
        if let Some(response) = response {
            known[place] = Known::Response(Some(Worst {
                response,
                job: 0,
                offset,
                reach: window,
                completion: window,
                phase: 0,
            }));
        }
    }
}

/// By place: the share of the processor that an entity needs with all that goes before it; `None`
/// where work of children goes before some. O(n log n).
pub(crate) fn loads(node: &Node) -> Option<Vec<Sum>> {
    let by_rank = matches!(
        node.policy,
        PolicyKind::Fifo | PolicyKind::FixedPriority { .. }
    );
    if !by_rank || !node.unserved.is_empty() {
        return None;
    }
    let mut loads = vec![Sum::default(); node.entities.len()];
    let reserved = node.reserved.iter().filter_map(|t| t.requests.ratio());
    let mut load = reserved
        .chain(node.supply.missing())
        .fold(Sum::default(), Sum::plus);
    let places = upper_bound::by_urgency(node);
    for level in places.chunk_by(upper_bound::same_level(node)) {
        let ratios = level.iter().map(|&p| node.entities[p].requests.ratio());
        load = ratios.flatten().fold(load, Sum::plus);
        for &place in level {
            loads[place] = load;
        }
    }
    Some(loads)
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use punctual_generate::Random;
    use punctual_model::{Class, Cpu, CpuId, Priority, Reserve, System, Task};

    use super::*;
    use crate::bounds::{self, STEPS};
    use crate::fixed_priority;
    use crate::precedence;
    use crate::solve::{self, Options};

    /// Equal priorities, jitter, sections, single jobs, overheads and reserves, up to an overload.
    fn draw(seed: u64) -> System {
        let mut random = Random::new(seed);
        let mut below = |most: u64| random.below(most);
        let mut system = System::default();
        system.cpus.push(Cpu {
            name: "0".into(),
            host: None,
            policy: PolicyKind::FixedPriority { preemptive: true },
        });
        for index in 0..=below(7) {
            let period = Span::from_ns(20 + below(200));
            let wcet = Work::from_ns(1 + below(1 + period.as_ns() / 5));
            let relative_deadline = Span::from_ns(period.as_ns() + below(100));
            let class = match below(8) {
                0 => Class::Once {
                    size: wcet,
                    relative_deadline,
                },
                1 => Class::Sporadic {
                    min_separation: period,
                    wcet,
                    relative_deadline,
                },
                _ => Class::Periodic {
                    period,
                    wcet,
                    relative_deadline,
                },
            };
            let mut task = Task::new(format!("t{index}"), CpuId(0), class);
            task.priority = Priority::new(1 + u32::try_from(below(4)).unwrap_or(0));
            if below(4) == 0 {
                task.jitter = Span::from_ns(below(30));
            }
            if below(4) == 0 {
                task.non_preemptive = Work::from_ns(1 + below(wcet.as_ns()));
            }
            system.tasks.push(task);
        }
        if below(3) == 0 {
            system.machine.switch = Work::from_ns(below(2));
            system.machine.timer = Work::from_ns(below(2));
        }
        if below(3) == 0 {
            system.machine.reserves.push(Reserve {
                name: "r".into(),
                budget: Work::from_ns(1 + below(3)),
                period: Span::from_ns(10 + below(40)),
            });
        }
        system
    }

    /// All nodes of a drawn system that can be solved.
    fn nodes(system: &System) -> Vec<Node> {
        let edges = precedence::edges(system);
        let solution = solve::solve(system, &edges, &Options::all(&bounds::query()));
        let nodes = solution.map(|s| s.nodes.into_iter().map(|solved| solved.node).collect());
        nodes.unwrap_or_default()
    }

    #[test]
    fn one_walk_through_all_levels_tells_what_the_searches_tell() {
        let (mut told, mut again, mut late, mut all) = (0, 0, 0, 0);
        for seed in 0..20_000 {
            let system = draw(seed);
            let query = bounds::query();
            // A walk that ends early has told nothing wrong until then.
            let steps = if seed % 4 == 0 { 50 } else { STEPS };
            for node in nodes(&system) {
                for (place, known) in responses(&node, None, &query, steps)
                    .into_iter()
                    .enumerate()
                {
                    all += 1;
                    if known == Known::Nothing {
                        continue;
                    }
                    told += 1;
                    let mut steps = query.search_steps(STEPS);
                    let searched =
                        fixed_priority::bound_response_time(&node, place, None, &mut steps);
                    let said = || format!("seed {seed}, place {place}: {system:?}");
                    if let Known::Response(worst) = known {
                        again += u32::from(worst.is_some_and(|w| w.job > 0));
                        assert_eq!(Ok(worst), searched, "{}", said());
                        continue;
                    }
                    late += 1;
                    let deadline = node.entities[place].deadline;
                    let is_late = searched.map(|w| w.is_none_or(|w| w.response > deadline));
                    assert_eq!(is_late, Ok(true), "{}", said());
                }
            }
        }
        assert!(
            told * 2 > all && again > 100 && late > 10,
            "{told}, {again} of later jobs, {late} late, of {all}"
        );
    }

    #[test]
    fn nothing_is_left_to_search_where_each_task_has_its_own_priority() {
        let mut later_jobs = 0;
        for seed in 0..5_000 {
            let mut system = draw(seed);
            for (index, task) in (1..).zip(&mut system.tasks) {
                task.priority = Priority::new(index);
                task.non_preemptive = Work::ZERO;
            }
            for node in nodes(&system) {
                if node.load() != Ordering::Less {
                    continue;
                }
                for known in responses(&node, None, &bounds::query(), STEPS) {
                    let Known::Response(Some(worst)) = known else {
                        panic!("seed {seed}: {known:?} in {system:?}");
                    };
                    later_jobs += u32::from(worst.job > 0);
                }
            }
        }
        assert!(later_jobs > 50, "{later_jobs}");
    }

    #[test]
    fn a_closed_bound_stands_in_where_the_steps_are_spent() {
        let (mut closed, mut gave_up) = (0, 0);
        for seed in 0..5_000 {
            for node in nodes(&draw(seed)) {
                let exact = bounds::of_node(&node, None, &bounds::query());
                let Ok(found) = bounds::of_node(&node, None, &StepBudget::new(0)) else {
                    gave_up += 1;
                    continue;
                };
                for (place, bound) in found.into_iter().enumerate() {
                    let known = exact.as_ref().ok().and_then(|all| all[place]);
                    let (Some(bound), Some(known)) = (bound, known) else {
                        continue;
                    };
                    if bound.basis == bounds::Basis::Closed {
                        closed += 1;
                        assert!(known.response <= bound.response, "seed {seed}, {place}");
                        assert!(bound.response <= node.entities[place].deadline);
                    } else {
                        assert_eq!(bound, known, "seed {seed}, {place}");
                    }
                }
            }
        }
        assert!(closed > 1_000 && gave_up > 100, "{closed}, {gave_up}");
    }

    #[test]
    fn loads_are_the_shares_of_the_queries() {
        for seed in 0..2_000 {
            let system = draw(seed);
            let edges = precedence::edges(&system);
            let query = bounds::query();
            let Ok(solution) = solve::solve(&system, &edges, &Options::all(&query)) else {
                continue;
            };
            for solved in &solution.nodes {
                let node = &solved.node;
                for (place, load) in loads(node).into_iter().flatten().enumerate() {
                    let ratios = || fixed_priority::query(node, place, None);
                    let exact = compare_with_one(ratios().ratios());
                    assert_eq!(load.compare_with_one().unwrap_or(exact), exact);
                    let ppm = crate::utilization::parts_per_million(ratios().ratios());
                    assert_eq!(load.parts_per_million(), ppm);
                }
            }
        }
    }
}
