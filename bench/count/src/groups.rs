//! Segments to plan, to count or to time a plan: none is ever late, so nothing is cut

use punctual_generate::{Random, SegmentMix};
use punctual_model::{Instant, Work};
use punctual_planner::{Available, Capacities, Planner, Search, Segment, Segments, Use};

/// Sizes and windows: those of the measurements that the figures are compared with.
pub const SIZES: [(usize, usize); 5] = [(42, 5), (42, usize::MAX), (100, 7), (500, 7), (1_000, 7)];

/// The name of a row.
pub fn row(segments: usize, window: usize) -> String {
    match window {
        usize::MAX => format!("plan.{segments}.all"),
        window => format!("plan.{segments}.{window}"),
    }
}

/// A set, its planner, and how it is searched.
#[derive(Debug)]
pub struct Planning {
    segments: Segments,
    available: Available,
    planner: Planner,
    search: Search,
}

impl Planning {
    /// So many segments on 3 CPUs, with 5 resources of which each segment uses 3 in 10.
    ///
    /// # Errors
    /// Segments that find no room.
    pub fn new(segments: usize, window: usize, seed: u64) -> Result<Planning, String> {
        let capacities = Capacities {
            uses: 5 * segments,
            ..Capacities::new(segments, 3, 5)
        };
        let mix = SegmentMix {
            length: 40 * segments as u64,
            ..SegmentMix::tight(300, 10_000)
        };
        let mut set = Segments::new(capacities);
        let drawn = mix.draw(&mut Random::at(seed, &[segments as u64]));
        for one in drawn.iter().take(segments) {
            let used = |&(resource, mode): &_| Use { resource, mode };
            let uses: Vec<Use> = one.uses.iter().map(used).collect();
            let segment = Segment {
                group: 0,
                release: Instant::ZERO,
                wcet: Work::from_ticks(one.wcet),
                absolute_deadline: Instant::from_ticks(one.deadline),
            };
            set.push(segment, &uses)
                .map_err(|error| error.to_string())?;
        }
        Ok(Planning {
            segments: set,
            available: Available::from(Instant::ZERO, capacities),
            planner: Planner::new(capacities),
            search: Search {
                window,
                ..Search::default()
            },
        })
    }

    /// Plans it, and gives the evaluations.
    ///
    /// # Errors
    /// A refusal.
    pub fn plan(&mut self) -> Result<u64, String> {
        let plan = self
            .planner
            .plan(&self.segments, &self.available, &self.search);
        plan.map_err(|refusal| refusal.to_string())?;
        Ok(self.planner.evaluations())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_planner::evaluations;

    #[test]
    fn nothing_is_cut_so_the_evaluations_are_those_of_the_formula() {
        for (segments, window) in SIZES {
            for seed in 0..20 {
                let done = Planning::new(segments, window, seed).and_then(|mut set| set.plan());
                assert_eq!(done, Ok(evaluations(segments, window)), "{segments} {seed}");
            }
        }
    }
}
