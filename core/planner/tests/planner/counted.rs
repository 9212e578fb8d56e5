//! Evaluations are counted, bounded, and follow the formula where nothing is cut

use punctual_generate::{Random, SegmentMix};
use punctual_model::{Instant, Span};
use punctual_planner::{
    Available, Capacities, Heuristic, Pace, Planner, Search, Segments, Why, evaluations,
};

use crate::common::{segment, segments};

/// So many segments that are never late.
fn easy(count: usize) -> (Segments, Capacities) {
    let capacities = Capacities::new(count, 3, 0);
    let mut segments = Segments::new(capacities);
    for number in 0..count as u64 {
        assert!(segments.push(segment(0, 10, 1 << 40 | number), &[]).is_ok());
    }
    (segments, capacities)
}

/// Sets for which a plan exists and is hard to find, and room for them.
fn tight() -> (SegmentMix, Capacities) {
    let capacities = Capacities {
        uses: 400,
        ..Capacities::new(80, 3, 5)
    };
    (SegmentMix::tight(500, 100), capacities)
}

#[test]
fn evaluations_follow_the_formula_where_nothing_is_cut() {
    assert_eq!(evaluations(42, usize::MAX), 903);
    assert_eq!(evaluations(1_000, 7), 6_979);
    for (n, window) in [
        (42, usize::MAX),
        (42, 7),
        (1, 7),
        (0, 7),
        (100, 7),
        (7, 7),
        (8, 1),
    ] {
        let (set, capacities) = easy(n);
        let search = Search {
            window,
            ..Search::default()
        };
        let mut planner = Planner::new(capacities);
        let available = Available::from(Instant::ZERO, capacities);
        assert!(planner.plan(&set, &available, &search).is_ok());
        assert_eq!(
            planner.evaluations(),
            evaluations(n, window),
            "{n} {window}"
        );
    }
}

#[test]
fn the_window_is_the_widest_that_the_evaluations_allow() {
    for n in 1..60 {
        for allowed in 0..2_000 {
            let search = Search::within(n, allowed);
            let widest = (1..=n).rev().find(|&k| evaluations(n, k) <= allowed);
            assert_eq!(search.map(|search| search.window), widest, "{n} {allowed}");
        }
    }
    assert_eq!(
        Search::within(42, 903).map(|search| search.window),
        Some(42)
    );
}

#[test]
fn out_of_time_is_another_answer_than_no_plan_found_and_no_bound_is_exceeded() {
    let (mix, capacities) = tight();
    let mut planner = Planner::new(capacities);
    let available = Available::from(Instant::ZERO, capacities);
    let (mut out_of_time, mut not_found, mut accepted) = (0, 0, 0);
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let set = segments(&mix.draw(&mut random), capacities);
        let search = Search {
            evaluations: random.within(200, 2_000),
            backtracks: random.within(0, 100),
            ..Search::default()
        };
        match planner.plan(&set, &available, &search) {
            Ok(_) => accepted += 1,
            Err(refusal) => {
                match refusal.why {
                    Why::OutOfTime => {
                        out_of_time += 1;
                        assert!(refusal.evaluations + 7 > search.evaluations, "{refusal:?}");
                    }
                    Why::NoPlanFound { complete: false } => {
                        not_found += 1;
                        assert_eq!(refusal.backtracks, search.backtracks, "{refusal:?}");
                    }
                    other => panic!("a set that has a plan is refused: {other:?}"),
                }
                assert_eq!(refusal.evaluations, planner.evaluations());
            }
        }
        assert!(planner.evaluations() <= search.evaluations);
        assert!(planner.backtracks() <= search.backtracks);
    }
    let all = [out_of_time, not_found, accepted];
    assert!(all.iter().all(|&count| count > 10), "{all:?}");
}

#[test]
fn a_set_without_room_is_refused_and_a_segment_that_is_late_anyway_is_the_witness() {
    let (set, _) = easy(8);
    let small = Capacities::new(7, 3, 0);
    let available = Available::from(Instant::ZERO, small);
    let mut planner = Planner::new(small);
    let refusal = planner.plan(&set, &available, &Search::default());
    assert_eq!(refusal.map_err(|refusal| refusal.why), Err(Why::TooLarge));

    let capacities = Capacities::new(3, 1, 0);
    let available = Available::from(Instant::from_ticks(4), capacities);
    let mut late = Segments::new(capacities);
    for deadline in [50, 50, 23] {
        assert!(late.push(segment(0, 10, deadline), &[]).is_ok());
    }
    assert_eq!(late.precede(0, 2), Ok(()));
    let search = Search {
        heuristic: Heuristic::Deadline,
        ..Search::default()
    };
    let mut planner = Planner::new(capacities);
    let refusal = planner.plan(&late, &available, &search);
    let refusal = refusal.expect_err("4 + 10 + 10 is more than 23");
    // The first one has to be done by 13, and nothing was placed before.
    let late = refusal.late.expect("one is late");
    assert_eq!((late.segment, late.behind, late.start.ticks()), (0, 0, 4));
    assert_eq!(late.effective_deadline.ticks(), 13);
    assert_eq!(refusal.why, Why::NoPlanFound { complete: true });
    assert_eq!(refusal.to_string(), "there is no plan, after 1 evaluations");
}

#[test]
fn going_back_is_charged_too_so_no_answer_takes_more_than_its_time() {
    let (mix, capacities) = tight();
    let mut planner = Planner::new(capacities);
    let available = Available::from(Instant::ZERO, capacities);
    let whole = Search {
        window: 7,
        backtracks: u64::MAX,
        ..Search::default()
    };
    let (mut back, mut nearly) = (0, 0);
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let set = segments(&mix.draw(&mut random), capacities);
        let pace = Pace {
            evaluation: Span::from_ticks(random.within(1, 30)),
            segment: Span::from_ticks(random.within(0, 300)),
            margin: Span::from_ticks(random.within(0, 100)),
        };
        let allowed = Span::from_ticks(random.within(20_000, 200_000));
        let Some(search) = pace.search(set.len(), allowed, &whole) else {
            continue;
        };
        let answer = planner.plan(&set, &available, &search);
        // The search ends by its own bounds, so those who shed may go on.
        let why = answer.err().map(|refusal| refusal.why);
        assert_ne!(why, Some(Why::OutOfTime), "{seed}");
        let (looks, taken) = (planner.evaluations(), planner.backtracks());
        let spent = pace
            .spent(set.len(), looks, taken)
            .saturating_add(pace.margin);
        assert!(
            spent <= allowed,
            "{seed}: {spent:?} of {allowed:?}, {taken} times back"
        );
        back += u64::from(taken > 0);
        nearly += u64::from(2 * spent.ticks() > allowed.ticks());
    }
    assert!(back > 30 && nearly > 20, "{back} {nearly}");
}
