//! The units of a sweep: which sets belong to one, and what it finds.

use punctual_generate::{Random, one_cpu};
use punctual_lab::Study;
use serde::{Deserialize, Serialize};

use super::study::{Sets, Source};
use punctual_terminal::ending::Failure;

/// Sets per unit: a line of results. Small, so that a killed run loses little.
const SETS_PER_UNIT: u64 = 50;

/// One piece of a study.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unit {
    point: (Source, usize, u32),
    first: u64,
    sets: u64,
}

/// The result of a unit.
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

impl Study for Sets {
    const NAME: &'static str = "a sweep";
    type Unit = Unit;
    type Line = Line;

    fn check(&self) -> Result<(), Failure> {
        self.judge()
    }

    fn unit_count(&self) -> usize {
        let each = usize::try_from(self.sets().div_ceil(SETS_PER_UNIT));
        self.point_count()
            .saturating_mul(each.unwrap_or(usize::MAX))
    }

    fn units(&self) -> Vec<Unit> {
        let mut units = Vec::new();
        for point in self.points() {
            let mut first = 0;
            while first < self.sets() {
                let sets = SETS_PER_UNIT.min(self.sets() - first);
                units.push(Unit { point, first, sets });
                first += sets;
            }
        }
        units
    }

    fn evaluate(&self, number: usize, unit: &Unit) -> Result<Line, Failure> {
        evaluate(self, number, unit)
    }

    fn unit_of(line: &Line) -> usize {
        line.unit
    }

    fn fits(&self, line: &Line, number: usize, unit: &Unit) -> bool {
        line.unit == number
            && (line.generator, line.tasks, line.utilization_ppm) == unit.point
            && (line.first, line.sets) == (unit.first, unit.sets)
            && line.admitted.len() == self.policies().len()
            && line.admitted.iter().all(|n| *n <= line.sets)
    }
}

/// Draws the sets of a unit and lets every policy judge each.
fn evaluate(study: &Sets, number: usize, unit: &Unit) -> Result<Line, Failure> {
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
        unit: number,
        generator,
        tasks,
        utilization_ppm,
        first: unit.first,
        sets: unit.sets,
        admitted,
    })
}
