//! The pieces of a study: which sets belong to one, who does it, and what it finds.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use punctual_generate::{Random, one_cpu};
use serde::{Deserialize, Serialize};

use super::study::{Source, Study};
use punctual_terminal::ending::Failure;
use punctual_terminal::interrupt::Interrupt;

/// Sets per unit: a line of results. Small, so that a killed run loses little.
const SETS_PER_UNIT: u64 = 50;

/// One piece of a study.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unit {
    /// Its number in the whole study.
    number: usize,
    point: (Source, usize, u32),
    first: u64,
    sets: u64,
}

/// What a unit has found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    pub(super) unit: usize,
    pub(super) generator: Source,
    pub(super) tasks: usize,
    pub(super) utilization_ppm: u32,
    /// The first of its sets at this point.
    first: u64,
    pub(super) sets: u64,
    /// Admitted ones, in the order of the policies.
    pub(super) admitted: Vec<u64>,
}

impl Line {
    /// Whether this can be what `unit` has found for so many policies.
    pub(super) fn fits(&self, unit: &Unit, policies: usize) -> bool {
        self.unit == unit.number
            && (self.generator, self.tasks, self.utilization_ppm) == unit.point
            && (self.first, self.sets) == (unit.first, unit.sets)
            && self.admitted.len() == policies
            && self.admitted.iter().all(|n| *n <= self.sets)
    }
}

/// Part `index` (from 1) of `count`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shard {
    index: usize,
    count: usize,
}

impl Shard {
    pub(super) const WHOLE: Shard = Shard { index: 1, count: 1 };

    /// The part of the same division that a unit belongs to.
    pub(super) fn sibling_of(self, unit: usize) -> Shard {
        Shard {
            index: unit % self.count + 1,
            count: self.count,
        }
    }

    /// The units of this part: every `count`-th, so that parts take about equally long.
    pub(super) fn units(self, study: &Study) -> Vec<Unit> {
        let all = all_units(study).into_iter();
        all.filter(|unit| unit.number % self.count == self.index - 1)
            .collect()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let wrong = || format!("`{text}` is not a part such as 3/8");
        let (index, count) = text.split_once('/').ok_or_else(wrong)?;
        let index = index.parse().map_err(|_| wrong())?;
        let count = count.parse().map_err(|_| wrong())?;
        if index == 0 || index > count {
            return Err(format!(
                "part {index} of {count}: parts are numbered 1 to {count}"
            ));
        }
        Ok(Shard { index, count })
    }
}

/// All units of a study, in order.
pub(super) fn all_units(study: &Study) -> Vec<Unit> {
    let mut units = Vec::new();
    for point in study.points() {
        let mut first = 0;
        while first < study.sets() {
            let sets = SETS_PER_UNIT.min(study.sets() - first);
            units.push(Unit {
                number: units.len(),
                point,
                first,
                sets,
            });
            first += sets;
        }
    }
    units
}

/// Draws the sets of a unit and lets every policy judge each.
fn evaluate(study: &Study, unit: &Unit) -> Result<Line, Failure> {
    let (generator, tasks, utilization_ppm) = unit.point;
    let parameters = study.parameters(generator, tasks, utilization_ppm);
    let mut admitted = vec![0; study.policies().len()];
    for set in unit.first..unit.first + unit.sets {
        // A set is what it is in every study that has it.
        let place = [
            generator.number(),
            tasks as u64,
            u64::from(utilization_ppm),
            set,
        ];
        let mut random = Random::at(study.seed(), &place);
        let rows = parameters
            .draw(&mut random)
            .map_err(|error| Failure::input(error.to_string()))?;
        for (count, policy) in admitted.iter_mut().zip(study.policies()) {
            let answer = punctual_analysis::is_admitted(&one_cpu(&rows, policy.kind()));
            let answer = answer.map_err(|error| Failure::input(format!("no verdict: {error}")))?;
            *count += u64::from(answer);
        }
    }
    Ok(Line {
        unit: unit.number,
        generator,
        tasks,
        utilization_ppm,
        first: unit.first,
        sets: unit.sets,
        admitted,
    })
}

/// Does `units` on so many threads, and tells `each` what they found in their order. Ends early
/// when the user wants so.
pub(super) fn work(
    study: &Study,
    units: &[Unit],
    threads: usize,
    interrupt: &Interrupt,
    mut each: impl FnMut(Line) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while !interrupt.is_wanted() {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(unit) = units.get(at) else { return };
                    // Nobody listens any more after a failure.
                    if sender.send((at, evaluate(study, unit))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut wanted = 0;
        for (at, line) in receiver {
            let _ = waiting.insert(at, line?);
            while let Some(line) = waiting.remove(&wanted) {
                each(line)?;
                wanted += 1;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::super::study::Flags;
    use super::*;

    #[test]
    fn every_unit_belongs_to_exactly_one_shard() {
        let study = Study::of(None, &Flags::default()).expect("the defaults are a study");
        let all = all_units(&study);
        assert_eq!(all.iter().map(|u| u.sets).sum::<u64>(), 11_000);
        for count in [1, 2, 3, 7, 1_000] {
            let mut found: Vec<usize> = (1..=count)
                .flat_map(|index| Shard { index, count }.units(&study))
                .map(|unit| unit.number)
                .collect();
            found.sort_unstable();
            assert_eq!(found, (0..all.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn parts_beyond_the_last_are_refused() {
        assert_eq!("3/8".parse(), Ok(Shard { index: 3, count: 8 }));
        for wrong in ["", "3", "0/4", "5/4", "-1/4", "1/0", "a/b"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
