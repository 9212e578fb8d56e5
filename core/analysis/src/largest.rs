//! The largest summands of many bounds at once, for the words of a verdict
//!
//! A bound of thousands of summands lists the largest, and the sum of the rest. From the most
//! urgent task downwards windows grow, and so does each summand. So one walk through all releases
//! keeps the largest up to date. Looking at each summand of each bound would take the square.
//!
//! # Assumptions
//! 1. Those of `levels`; tasks that share their priority are left to the summands one by one.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::bounds::{Basis, Bound};
use crate::entity::Entity;
use crate::error::Checked;
use crate::node::Node;
use crate::units::{Span, Work};
use crate::upper_bound;
use crate::walk::Walk;

/// Most terms of a bound that a verdict lists one by one, unless it is asked for all of them. Of
/// more than twice as many it lists the largest, and adds up the rest.
pub(crate) const MOST_TERMS: usize = 32;

/// The work before one job: all of it, of how many tasks, and those with most of it.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    pub(crate) work: Work,
    pub(crate) tasks: usize,
    /// Places of entities and their jobs, in the order of places.
    pub(crate) largest: Vec<(usize, u64)>,
}

/// The largest summands so far: a summand only grows, so one that fell out and did not change is
/// no larger than any of these.
struct Largest {
    /// Work, place (the first of equals counts more) and jobs.
    all: Vec<(Work, Reverse<usize>, u64)>,
    /// The place in `all` of the least.
    least: usize,
    /// By place of the entity: whether it is one of them.
    is_in: Vec<bool>,
}

impl Largest {
    fn new(entities: usize) -> Largest {
        Largest {
            all: Vec::with_capacity(MOST_TERMS),
            least: 0,
            is_in: vec![false; entities],
        }
    }

    /// A summand that is new or has grown. O(1), or O([`MOST_TERMS`]) for one of the largest.
    fn see(&mut self, place: usize, jobs: u64, each: Work) {
        let summand = (each.saturating_mul(jobs), Reverse(place), jobs);
        if self.is_in[place] {
            if let Some(own) = self.all.iter_mut().find(|s| s.1.0 == place) {
                *own = summand;
            }
        } else if self.all.len() < MOST_TERMS {
            self.is_in[place] = true;
            self.all.push(summand);
        } else if self.all[self.least] < summand {
            self.is_in[self.all[self.least].1.0] = false;
            self.is_in[place] = true;
            self.all[self.least] = summand;
        } else {
            return;
        }
        let least = self.all.iter().enumerate().min_by_key(|(_, s)| **s);
        self.least = least.map_or(0, |(index, _)| index);
    }
}

/// By place: all that goes before its worst job, where the sum is long enough to be folded. `None`
/// where a walk does not tell. O((n + releases in the longest window) · log n).
pub(crate) fn before(node: &Node, bounds: &[Option<Bound>]) -> Vec<Option<Before>> {
    let mut found = vec![None; node.entities.len()];
    let once = |e: &Entity| !e.requests.once.is_zero();
    if node.entities.len() > 2 * MOST_TERMS
        && upper_bound::applies(node)
        && !node.entities.iter().any(once)
    {
        // An overflow: from there on each is summed by itself.
        let _ = walk(node, bounds, &mut found);
    }
    found
}

fn walk(node: &Node, bounds: &[Option<Bound>], found: &mut [Option<Before>]) -> Checked<()> {
    let places = upper_bound::by_urgency(node);
    let each = |stream: usize| node.entities[places[stream]].requests.cost;
    let mut walk = Walk::new();
    let mut largest = Largest::new(node.entities.len());
    let mut tasks = 0;
    for level in places.chunk_by(upper_bound::same_level(node)) {
        if let [only] = level
            && let Some(reach) = reach_of(node, bounds, *only)
            && tasks >= 2 * MOST_TERMS
        {
            if reach < walk.window {
                walk.rewind()?;
                largest = Largest::new(node.entities.len());
                for (place, stream) in places.iter().zip(&walk.streams) {
                    largest.see(*place, stream.jobs, stream.requests.cost);
                }
            }
            walk.pass(reach, |stream, jobs| {
                largest.see(places[stream], jobs, each(stream));
                Ok(())
            })?;
            let mut all: Vec<(usize, u64)> = largest.all.iter().map(|s| (s.1.0, s.2)).collect();
            all.sort_unstable();
            found[*only] = Some(Before {
                work: walk.work,
                tasks,
                largest: all,
            });
        }
        for &place in level {
            let requests = node.entities[place].requests;
            walk.add(requests)?;
            tasks += usize::from(!requests.cost.is_zero());
            let jobs = requests.releases(walk.window)?;
            largest.see(place, jobs, requests.cost);
        }
    }
    Ok(())
}

/// Up to where others delay the worst job of the entity at `place`, where that is known.
fn reach_of(node: &Node, bounds: &[Option<Bound>], place: usize) -> Option<Span> {
    let bound = bounds.get(place).copied().flatten()?;
    match bound.basis {
        Basis::Job(worst) if !node.entities[place].whole => Some(worst.reach),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use punctual_generate::Random;
    use punctual_model::{Class, Cpu, CpuId, PolicyKind, Priority, System, Task};

    use super::*;
    use crate::solve::{self, Options};
    use crate::{bounds, explain, precedence};

    /// A CPU of 150 tasks, with jitter, sections and a few equal priorities.
    fn draw(seed: u64) -> System {
        let mut random = Random::new(seed);
        let mut below = |most: u64| random.below(most);
        let mut system = System::default();
        system.cpus.push(Cpu {
            name: "0".into(),
            host: None,
            policy: PolicyKind::FixedPriority { preemptive: true },
        });
        for index in 0..150 {
            let period = Span::from_ns(2_000 + below(200_000));
            let wcet = Work::from_ns(1 + below(period.as_ns() / 80));
            let class = Class::Periodic {
                period,
                wcet,
                relative_deadline: period,
            };
            let mut task = Task::new(format!("t{index}"), CpuId(0), class);
            task.priority = Priority::new(u32::try_from(below(2_000)).unwrap_or(0));
            if below(8) == 0 {
                task.jitter = Span::from_ns(below(3_000));
            }
            if below(40) == 0 {
                task.non_preemptive = Work::from_ns(1 + below(wcet.as_ns()));
            }
            system.tasks.push(task);
        }
        system
    }

    #[test]
    fn the_walk_folds_a_sum_as_looking_at_each_summand_does() {
        let mut compared = 0;
        for seed in 0..200 {
            let system = draw(seed);
            let edges = precedence::edges(&system);
            let query = bounds::query();
            let Ok(solution) = solve::solve(&system, &edges, &Options::all(&query)) else {
                continue;
            };
            for solved in &solution.nodes {
                let before = before(&solved.node, &solved.bounds);
                for (place, before) in before.iter().enumerate() {
                    let (Some(before), Some(bound)) = (before, solved.bounds[place]) else {
                        continue;
                    };
                    let Basis::Job(worst) = bound.basis else {
                        panic!("only jobs have summands");
                    };
                    let terms = |before| {
                        let of = (place, &worst);
                        explain::terms(&system, &solved.node, of, true, before)
                    };
                    assert_eq!(terms(Some(before)), terms(None), "seed {seed}, {place}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 5_000, "{compared}");
    }
}
