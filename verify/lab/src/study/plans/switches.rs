//! `plan-switches`: how many switches stay within a process (Spring, Fig. 13).

use punctual_generate::Random;
use punctual_planner::Search;

use super::groups::{Arrivals, GROUPS, Group, Thread, run};
use crate::answers::Row;

/// That a thread is in the process of the one before, in thousandths.
pub(crate) const PROBABILITIES: [u64; 11] = [0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000];

/// The rows: without the heuristic, and with it.
pub(super) const NAMES: [&str; 2] = ["without", "within process"];

/// Threads of a group, and segments of a thread.
const THREADS: u64 = 3;
const SEGMENTS: u64 = 3;
/// Microseconds of a segment.
const WCET: (u64, u64) = (50_000, 1_000_000);

/// A preference for a process may leave too little time for others; then it goes back so often.
const BACKTRACKS: u64 = 100;

/// Five groups. All threads are one sequence, so with 0 each has a process and with 1 all have one.
fn draw(per_mille: u32, random: &mut Random) -> Vec<Group> {
    let mut process = 0;
    let mut thread = |first: bool| {
        process += u32::from(!(first || random.happens(per_mille)));
        Thread {
            process,
            home: None,
            segments: (0..SEGMENTS)
                .map(|_| random.within(WCET.0, WCET.1))
                .collect(),
        }
    };
    let group = |number| (0..THREADS).map(|of| thread(number + of == 0)).collect();
    (0..GROUPS).map(group).collect()
}

/// A row without the heuristic and one with it: of each run fast switches, all switches, accepted
/// groups, all groups.
pub(crate) fn unit(
    probability: u64,
    (runs, seconds): (u64, u64),
    seed: u64,
) -> Result<Vec<Row>, String> {
    let per_mille = u32::try_from(probability).unwrap_or(1_000);
    let how = Arrivals {
        load_tenths: 25,
        multiplier_percent: 300,
        seconds,
    };
    let mut rows = Vec::new();
    for (within_process, name) in [false, true].into_iter().zip(NAMES) {
        let search = Search {
            within_process,
            backtracks: BACKTRACKS,
            ..Search::default()
        };
        let mut values = Vec::new();
        for number in 0..runs {
            let mut random = Random::at(seed, &[probability, number]);
            let groups = draw(per_mille, &mut random);
            let found = run(&groups, how, &search, &mut random)?;
            values.extend([found.fast, found.switches, found.accepted, found.requests]);
        }
        rows.push(Row::new(name, &[probability], values));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::interval;
    use crate::plans::shown::shares;

    #[test]
    fn processes_are_those_of_the_probability() {
        let processes = |per_mille| {
            let groups = draw(per_mille, &mut Random::new(5));
            let last = groups.last().and_then(|group| group.last());
            last.map(|thread| thread.process)
        };
        assert_eq!((processes(0), processes(1_000)), (Some(14), Some(0)));
    }

    #[test]
    fn the_heuristic_makes_more_switches_fast_below_one_and_refuses_next_to_nobody() {
        let (mut refused, mut all) = (0, 0);
        for probability in PROBABILITIES {
            let rows = unit(probability, (8, 200), 1).expect("runs");
            for run in rows.iter().flat_map(|row| row.values.as_chunks::<4>().0) {
                assert!(run[3] > 30, "{run:?}");
                (refused, all) = (refused + run[3] - run[2], all + run[3]);
            }
            let [without, with] = [0, 1].map(|at: usize| shares(&rows[at], (0, 1)));
            let gains: Vec<f64> = with.iter().zip(&without).map(|(w, wo)| w - wo).collect();
            let (gain, half) = interval(&gains);
            if probability < 1_000 {
                assert!(gain > half, "{probability}: {gain} {half}");
            } else {
                assert!(with.iter().chain(&without).all(|share| *share >= 100.0));
            }
        }
        // Poisson arrivals fall together now and then; the paper tells of no refusal.
        assert!(1_000 * refused <= 5 * all, "{refused} of {all}");
    }
}
