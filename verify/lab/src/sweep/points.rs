//! The sums of a sweep, point by point.

use serde::Serialize;

use super::study::{Sets, Source};
use super::units::Line;

/// The results of a sweep.
#[derive(Clone, Debug)]
pub(super) struct Results {
    study: Sets,
    lines: Vec<Line>,
}

/// One point of the study.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Point {
    pub(super) generator: Source,
    pub(super) tasks: usize,
    pub(super) utilization_ppm: u32,
    pub(super) sets: u64,
    /// In the order of the study's policies.
    pub(super) admitted: Vec<u64>,
}

impl Results {
    pub(super) fn new(study: Sets, lines: Vec<Line>) -> Results {
        Results { study, lines }
    }

    pub(super) fn study(&self) -> &Sets {
        &self.study
    }

    /// The points of which something is known, in the order of the study. O(lines).
    pub(super) fn points(&self) -> Vec<Point> {
        let mut points: Vec<Point> = Vec::new();
        for line in &self.lines {
            let place = (line.generator, line.tasks, line.utilization_ppm);
            let last = points
                .last_mut()
                .filter(|p| (p.generator, p.tasks, p.utilization_ppm) == place);
            match last {
                Some(point) => {
                    point.sets += line.sets;
                    for (sum, n) in point.admitted.iter_mut().zip(&line.admitted) {
                        *sum += n;
                    }
                }
                None => points.push(Point {
                    generator: line.generator,
                    tasks: line.tasks,
                    utilization_ppm: line.utilization_ppm,
                    sets: line.sets,
                    admitted: line.admitted.clone(),
                }),
            }
        }
        points
    }
}
