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
//! When the window of a level is over before anything of the level arrives again, each of its tasks
//! has one job in it. Alone on its level, its response is w. Among equal priorities a job that
//! arrives one tick after all others waits for all of them (w − 1), one that no other can be behind
//! has w. Whatever this does not answer is left to the search, so both together are as exact as it.
//!
//! # Assumptions
//! 1. Those of the response-time analysis (`fixed_priority`), on a dedicated processor.
//!
//! Sources: Joseph and Pandya 1986; Lehoczky 1990 (level-i busy periods); the walk is ours.

use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::{Ordering, Reverse};

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

/// A stream of jobs, counted up to the end of the window.
struct Stream {
    requests: RequestBound,
    jobs: u64,
}

/// The releases of all that is more urgent, walked through in the order of their instants.
struct Walk {
    streams: Vec<Stream>,
    /// Up to which window the count of each stream is right.
    next: BinaryHeap<Reverse<(Span, usize)>>,
    /// The work of all jobs counted.
    work: Work,
    window: Span,
}

impl Walk {
    fn new() -> Walk {
        Walk {
            streams: Vec::new(),
            next: BinaryHeap::new(),
            work: Work::ZERO,
            window: TICK,
        }
    }

    /// Back to the shortest window, with the same streams. O(streams · log streams).
    fn rewind(&mut self) -> Checked<()> {
        let streams = core::mem::take(&mut self.streams);
        *self = Walk::new();
        streams.into_iter().try_for_each(|s| self.add(s.requests))
    }

    /// One more stream. O(log streams).
    fn add(&mut self, requests: RequestBound) -> Checked<()> {
        let jobs = requests.releases(self.window)?;
        let work = requests.work_of(jobs)?;
        self.work = in_range(self.work.checked_add(work), WHAT)?;
        let stream = Stream { requests, jobs };
        if let Some(until) = stream.until()? {
            self.next.push(Reverse((until, self.streams.len())));
        }
        self.streams.push(stream);
        Ok(())
    }

    /// The least window, from the present one on, that `first` and all that arrives in it fill.
    /// O(releases passed · log streams).
    fn extend(&mut self, first: Work, search_steps: &mut SearchSteps<'_>) -> Checked<Span> {
        loop {
            let filled = in_range(first.checked_add(self.work), WHAT)?.as_span();
            let mut passed = false;
            while let Some(mut top) = self.next.peek_mut() {
                let Reverse((until, place)) = *top;
                if until >= filled {
                    break;
                }
                search_steps.spend(1, WHAT)?;
                let stream = &mut self.streams[place];
                let jobs = stream.requests.releases(filled)?;
                let more = stream.requests.cost_of(jobs - stream.jobs)?;
                self.work = in_range(self.work.checked_add(more), WHAT)?;
                stream.jobs = jobs;
                // A stream of more than one job always has another.
                *top = Reverse((stream.until()?.unwrap_or(Span::MAX), place));
                passed = true;
            }
            if !passed {
                self.window = self.window.max(filled);
                return Ok(filled);
            }
        }
    }
}

impl Stream {
    /// The longest window with no more jobs; `None`: it has one alone.
    fn until(&self) -> Checked<Option<Span>> {
        let Some(separation) = self.requests.separation else {
            return Ok(None);
        };
        let until = in_range(separation.checked_mul(self.jobs), WHAT)?;
        Ok(Some(until.saturating_sub(self.requests.jitter)))
    }
}

/// By place: the worst response of each entity, where a walk through all levels tells it; a level
/// takes at most so many steps.
/// O((n + releases in the longest window) · log n).
pub(crate) fn responses(node: &Node, step_budget: &StepBudget, steps: u64) -> Vec<Known> {
    let mut known = vec![Known::Nothing; node.entities.len()];
    if upper_bound::applies(node) {
        // An overflow, or too many releases: from there on the search tells.
        let _ = walk(node, &mut known, step_budget, steps);
    }
    known
}

fn walk(node: &Node, known: &mut [Known], step_budget: &StepBudget, steps: u64) -> Checked<()> {
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
        let window = walk.extend(first, &mut step_budget.search_steps(steps))?;
        one_job_each(node, level, window, known);
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

/// The worst jobs of a level, where each of its entities has one job in the window. O(level).
fn one_job_each(node: &Node, level: &[usize], window: Span, known: &mut [Known]) {
    // Jitter of its own brings a task no second job: it arrives as late as it may.
    let again = |c: &Entity, jitter| {
        let again = c.requests.separation.map(|t| t.saturating_sub(jitter));
        again.unwrap_or(Span::MAX)
    };
    let entities = || level.iter().map(|&place| &node.entities[place]);
    let one_each = match level {
        [only] => window <= again(&node.entities[*only], Span::ZERO),
        _ => entities().all(|c| window <= again(c, c.requests.jitter) && c.requests.once.is_zero()),
    };
    if !one_each {
        if let [only] = level
            && is_plain(&node.entities[*only])
            && window > node.entities[*only].deadline
        {
            known[*only] = Known::Late;
        }
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

    #[test]
    fn one_walk_through_all_levels_tells_what_the_searches_tell() {
        let (mut told, mut late, mut all) = (0, 0, 0);
        for seed in 0..20_000 {
            let system = draw(seed);
            let edges = precedence::edges(&system);
            let query = bounds::query();
            let Ok(solution) = solve::solve(&system, &edges, &Options::all(&query)) else {
                continue;
            };
            for solved in &solution.nodes {
                for (place, known) in responses(&solved.node, &query, STEPS)
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
                        fixed_priority::bound_response_time(&solved.node, place, None, &mut steps);
                    let said = || format!("seed {seed}, place {place}: {system:?}");
                    if let Known::Response(worst) = known {
                        assert_eq!(Ok(worst), searched, "{}", said());
                        continue;
                    }
                    late += 1;
                    let deadline = solved.node.entities[place].deadline;
                    let is_late = searched.map(|w| w.is_none_or(|w| w.response > deadline));
                    assert_eq!(is_late, Ok(true), "{}", said());
                }
            }
        }
        assert!(
            told * 2 > all && late > 100,
            "{told}, {late} late, of {all}"
        );
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
