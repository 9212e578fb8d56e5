//! Shares of success beside those of the prototype (400 sets each)

use punctual_generate::{Random, SegmentMix};
use punctual_model::Instant;
use punctual_planner::{Available, Capacities, Heuristic, Planner, Search};

use crate::common::{segments, verify};

const SETS: u64 = 400;

/// Successes in per cent of each search, over the same sets.
fn shares(use_per_mille: u32, laxity_per_mille: u64, searches: &[Search]) -> Vec<f64> {
    let capacities = Capacities {
        uses: 400,
        ..Capacities::new(80, 3, 5)
    };
    let mut planner = Planner::new(capacities);
    let available = Available::from(Instant::ZERO, capacities);
    let mut successes = vec![0_u32; searches.len()];
    let mix = SegmentMix::tight(use_per_mille, laxity_per_mille);
    for set in 0..SETS {
        let drawn = mix.draw(&mut Random::at(1, &[set]));
        let set = segments(&drawn, capacities);
        for (search, count) in searches.iter().zip(&mut successes) {
            if let Ok(plan) = planner.plan(&set, &available, search) {
                *count += 1;
                assert_eq!(verify(&set, plan, capacities), Ok(()));
            }
        }
    }
    let percent = |count: &u32| f64::from(*count) * 100.0 / SETS as f64;
    successes.iter().map(percent).collect()
}

/// How often a resource is used and how late deadlines are, both in thousandths.
const SETTINGS: [(u32, u64); 6] = [
    (100, 50),
    (300, 50),
    (300, 100),
    (500, 100),
    (500, 200),
    (700, 400),
];

fn with(heuristic: Heuristic, window: usize, backtracks: u64) -> Search {
    Search {
        heuristic,
        window,
        backtracks,
        ..Search::default()
    }
}

/// The prototype's shares of d + W s for those: all, k = 7, and that with 2, 10 and 100 backtracks.
const PROTOTYPE: [[f64; 5]; 6] = [
    [93.0, 93.0, 96.0, 97.0, 98.0],
    [66.0, 66.0, 69.0, 73.0, 77.0],
    [91.0, 90.0, 91.0, 92.0, 94.0],
    [63.0, 57.0, 59.0, 62.0, 66.0],
    [96.0, 94.0, 94.0, 94.0, 95.0],
    [100.0, 99.0, 99.0, 99.0, 99.0],
];

#[test]
fn success_is_that_of_the_prototype_and_a_window_of_seven_loses_little() {
    let best = Heuristic::DeadlineAndStart { factor: 4 };
    let bounds = [(usize::MAX, 0), (7, 0), (7, 2), (7, 10), (7, 100)];
    let searches = bounds.map(|(window, backtracks)| with(best, window, backtracks));
    for ((used, laxity), prototype) in SETTINGS.into_iter().zip(PROTOTYPE) {
        let ours = shares(used, laxity, &searches);
        // 400 sets give each share a standard error of up to 2.5 points, on both sides.
        let near = |(ours, prototype): (&f64, f64)| (ours - prototype).abs() <= 4.0;
        assert!(ours.iter().zip(prototype).all(near), "{used}: {ours:?}");
        assert!(ours[1] >= ours[0] - 6.0, "{used}: {ours:?}");
        assert!(ours[1..].is_sorted(), "{used}: {ours:?}");
    }
}

#[test]
fn rules_that_see_no_resources_collapse_where_these_are_scarce() {
    let all = |heuristic| with(heuristic, usize::MAX, 0);
    let blind = [
        Heuristic::FirstCome,
        Heuristic::Shortest,
        Heuristic::Deadline,
        Heuristic::Laxity,
        Heuristic::DeadlineAndWork { factor: 1 },
    ];
    let sighted = [
        Heuristic::Start,
        Heuristic::DeadlineAndStart { factor: 1 },
        Heuristic::DeadlineAndStart { factor: 16 },
    ];
    let blind = shares(500, 100, &blind.map(all));
    let sighted = shares(500, 100, &sighted.map(all));
    assert!(blind.iter().all(|&share| share <= 6.0), "{blind:?}");
    assert!(sighted.iter().all(|&share| share >= 55.0), "{sighted:?}");
}
