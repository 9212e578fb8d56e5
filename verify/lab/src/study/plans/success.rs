//! `plan-success`: how many sets are planned, of those for which a plan exists.
//!
//! The sets fill three CPUs without a gap. A prototype's shares stand beside ours.

use punctual_generate::{DrawnSegment, Random, SegmentMix};
use punctual_model::{Instant, Work};
use punctual_planner::{Available, Capacities, Heuristic, Planner, Search, Segment, Segments, Use};

use super::mistaken;
use crate::answers::Row;

/// How often a resource is used and how far deadlines reach, both in thousandths.
pub(crate) const SETTINGS: [(u64, u64); 6] = [
    (100, 50),
    (300, 50),
    (300, 100),
    (500, 100),
    (500, 200),
    (700, 400),
];

/// A search, and the prototype's share of it in each setting, in percent of 400 sets.
pub(super) struct Column {
    pub(super) name: &'static str,
    search: Search,
    pub(super) prototype: Option<[u32; 6]>,
}

const ALL: usize = usize::MAX;

const fn column(
    name: &'static str,
    heuristic: Heuristic,
    (window, backtracks): (usize, u64),
    prototype: Option<[u32; 6]>,
) -> Column {
    let search = Search {
        heuristic,
        window,
        backtracks,
        evaluations: u64::MAX,
        locality: punctual_planner::Locality::Earliest,
        within_process: false,
    };
    Column {
        name,
        search,
        prototype,
    }
}

const fn best(factor: u32) -> Heuristic {
    Heuristic::DeadlineAndStart { factor }
}

/// The rules over a window of all, then d + 4 s over other windows and backtracks.
pub(super) fn columns() -> [Column; 16] {
    let work = Heuristic::DeadlineAndWork { factor: 1 };
    [
        column("fcfs", Heuristic::FirstCome, (ALL, 0), None),
        column(
            "sjf",
            Heuristic::Shortest,
            (ALL, 0),
            Some([51, 8, 21, 0, 3, 7]),
        ),
        column(
            "edf",
            Heuristic::Deadline,
            (ALL, 0),
            Some([91, 20, 45, 1, 13, 35]),
        ),
        column(
            "est",
            Heuristic::Start,
            (ALL, 0),
            Some([93, 66, 91, 59, 96, 99]),
        ),
        column(
            "laxity",
            Heuristic::Laxity,
            (ALL, 0),
            Some([20, 0, 0, 0, 0, 0]),
        ),
        column("d + c", work, (ALL, 0), Some([82, 16, 44, 0, 11, 32])),
        column("d + s", best(1), (ALL, 0), Some([93, 65, 89, 64, 95, 99])),
        column(
            "d + 4 s",
            best(4),
            (ALL, 0),
            Some([93, 66, 91, 63, 96, 100]),
        ),
        column("d + 16 s", best(16), (ALL, 0), None),
        column("k = 3", best(4), (3, 0), Some([93, 52, 84, 23, 74, 92])),
        column("k = 5", best(4), (5, 0), Some([93, 63, 89, 48, 90, 99])),
        column("k = 7", best(4), (7, 0), Some([93, 66, 90, 57, 94, 99])),
        column("k = 10", best(4), (10, 0), Some([93, 66, 91, 62, 96, 99])),
        column(
            "k = 7, 2 back",
            best(4),
            (7, 2),
            Some([96, 69, 91, 59, 94, 99]),
        ),
        column(
            "k = 7, 10 back",
            best(4),
            (7, 10),
            Some([97, 73, 92, 62, 94, 99]),
        ),
        column(
            "k = 7, 100 back",
            best(4),
            (7, 100),
            Some([98, 77, 94, 66, 95, 99]),
        ),
    ]
}

/// Drawn segments for a planner.
pub(super) fn segments(drawn: &[DrawnSegment], capacities: Capacities) -> Result<Segments, String> {
    let mut segments = Segments::new(capacities);
    for one in drawn {
        let used = |&(resource, mode): &_| Use { resource, mode };
        let uses: Vec<Use> = one.uses.iter().map(used).collect();
        let segment = Segment {
            group: 0,
            release: Instant::ZERO,
            wcet: Work::from_ticks(one.wcet),
            absolute_deadline: Instant::from_ticks(one.deadline),
        };
        let _ = segments.push(segment, &uses).map_err(mistaken)?;
    }
    Ok(segments)
}

/// A row for each search: how many of the sets are planned, of how many, with how many evaluations.
pub(crate) fn unit((used, laxity): (u64, u64), sets: u64, seed: u64) -> Result<Vec<Row>, String> {
    let capacities = Capacities {
        uses: 5 * 100,
        ..Capacities::new(100, 3, 5)
    };
    let mix = SegmentMix::tight(u32::try_from(used).unwrap_or(1_000), laxity);
    let mut planner = Planner::new(capacities);
    let available = Available::from(Instant::ZERO, capacities);
    let columns = columns();
    let mut found = [(0_u64, 0_u64); 16];
    for number in 0..sets {
        let drawn = mix.draw(&mut Random::at(seed, &[number]));
        let set = segments(&drawn, capacities)?;
        for (column, (planned, evaluations)) in columns.iter().zip(&mut found) {
            *planned += u64::from(planner.plan(&set, &available, &column.search).is_ok());
            *evaluations += planner.evaluations();
        }
    }
    let row = |(column, (planned, evaluations)): (&Column, (u64, u64))| {
        Row::new(
            column.name,
            &[used, laxity],
            vec![planned, sets, evaluations],
        )
    };
    Ok(columns.iter().zip(found).map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d_plus_w_s_succeeds_as_in_the_prototype_and_a_window_of_seven_loses_at_most_six_points() {
        for (number, setting) in SETTINGS.into_iter().enumerate() {
            let rows = unit(setting, 1_000, 1).expect("sets");
            let share = |name: &str| {
                let row = rows.iter().find(|row| row.name == name).expect("a row");
                f64::from(u32::try_from(100 * row.values[0]).expect("few")) / 1_000.0
            };
            for Column {
                name, prototype, ..
            } in columns()
            {
                let sees_starts = name == "est" || name.contains(" s") || name.contains("k =");
                let Some(shares) = prototype.filter(|_| sees_starts) else {
                    continue;
                };
                // The prototype's are of 400 sets: 2 points, and the standard error of those.
                let (ours, theirs) = (share(name), f64::from(shares[number]));
                let error = (theirs * (100.0 - theirs) / 400.0).sqrt();
                let far = (ours - theirs).abs();
                assert!(far <= 2.0 + error, "{name}, {setting:?}: {ours} {theirs}");
            }
            assert!(share("k = 7") >= share("d + 4 s") - 6.0, "{setting:?}");
        }
    }
}
