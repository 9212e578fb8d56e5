//! `plan-homes`: groups accepted only at home, and wherever it is early (Spring, Fig. 14 and 15).

use punctual_generate::Random;
use punctual_planner::{Locality, Search};

use super::groups::{Arrivals, CPUS, GROUPS, Group, Thread, run};
use crate::answers::Row;

/// Mean distances of arrivals in tenths of the work: a moderate load, and a heavy one.
pub(crate) const LOADS: [u64; 2] = [50, 25];

/// Relative deadlines in hundredths of the work.
pub(crate) const MULTIPLIERS: [u64; 13] = [
    100, 125, 150, 175, 200, 225, 250, 275, 300, 350, 400, 450, 500,
];

/// The rows.
pub(super) const NAMES: [&str; 2] = ["only local", "earliest"];

/// The next thread of a group is of the same process, in thousandths.
const SAME: u32 = 700;
/// Microseconds of a segment.
const WCET: (u64, u64) = (50_000, 500_000);

/// Processes with threads, and five groups of these threads.
fn draw(random: &mut Random) -> Vec<Group> {
    let mut processes: Vec<Vec<Thread>> = Vec::new();
    for process in (0..).take(random.index(10) + 1) {
        let home = Some(random.index(CPUS));
        let thread = |random: &mut Random| {
            let count = random.within(1, 8);
            let segments = (0..count).map(|_| random.within(WCET.0, WCET.1));
            Thread {
                process,
                home,
                segments: segments.collect(),
            }
        };
        let count = random.within(1, 10);
        let threads = (0..count).map(|_| thread(random)).collect();
        processes.push(threads);
    }
    let mut group = || {
        let mut process = random.index(processes.len());
        let mut group = Vec::new();
        for number in 0..random.within(1, 5) {
            if number > 0 && processes.len() > 1 && !random.happens(SAME) {
                // Each of the others equally likely.
                process = (process + 1 + random.index(processes.len() - 1)) % processes.len();
            }
            group.extend(random.pick(&processes[process]).cloned());
        }
        group
    };
    (0..GROUPS).map(|_| group()).collect()
}

/// A row for each heuristic: of each run accepted groups, all groups, segments at home, all
/// segments.
pub(crate) fn unit(
    (load_tenths, multiplier_percent): (u64, u64),
    (runs, seconds): (u64, u64),
    seed: u64,
) -> Result<Vec<Row>, String> {
    let how = Arrivals {
        load_tenths,
        multiplier_percent,
        seconds,
    };
    let mut rows = Vec::new();
    for (locality, name) in [Locality::OnlyLocal, Locality::Earliest]
        .into_iter()
        .zip(NAMES)
    {
        let search = Search {
            locality,
            ..Search::default()
        };
        let mut values = Vec::new();
        for number in 0..runs {
            // The same groups and arrivals at every multiplier.
            let mut random = Random::at(seed, &[load_tenths, number]);
            let groups = draw(&mut random);
            let found = run(&groups, how, &search, &mut random)?;
            values.extend([
                found.accepted,
                found.requests,
                found.at_home,
                found.segments,
            ]);
        }
        rows.push(Row::new(name, &[load_tenths, multiplier_percent], values));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::interval;
    use crate::plans::shown::shares;

    #[test]
    fn earliest_accepts_no_less_than_only_local_at_any_multiplier_or_load() {
        for load in LOADS {
            for multiplier in [100, 150, 200, 300, 500] {
                let rows = unit((load, multiplier), (8, 100), 1).expect("runs");
                let [local, early] = [0, 1].map(|at: usize| shares(&rows[at], (0, 1)));
                let gains: Vec<f64> = early.iter().zip(&local).map(|(e, l)| e - l).collect();
                let (gain, half) = interval(&gains);
                assert!(gain >= 0.0, "{load} {multiplier}: {gain} {half}");
                let homes = shares(&rows[0], (2, 3));
                assert!(homes.iter().all(|share| *share >= 100.0), "{homes:?}");
                // Where there is some room, and not enough for both, it is clearly better.
                if (150..=200).contains(&multiplier) {
                    assert!(gain > half, "{load} {multiplier}: {gain} {half}");
                }
            }
        }
    }
}
