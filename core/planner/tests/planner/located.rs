//! Homes, processes and the cost of switches between them

use punctual_generate::Dice;
use punctual_model::{Mode, Span, Work};
use punctual_planner::{
    Available, Book, Capacities, Locality, Location, Placement, Planner, Search, Segments, Use, Why,
};

use crate::common::{at, segment, verify};

const CPUS: usize = 3;
const CAPACITIES: Capacities = Capacities::new(30, CPUS, 2);

fn draw(dice: &mut Dice) -> Segments {
    let mut segments = Segments::new(CAPACITIES);
    for number in 0..2 + dice.index(20) {
        let wcet = 2 + dice.below(10);
        let release = dice.below(60);
        let modes = [None, None, Some(Mode::Shared), Some(Mode::Exclusive)];
        let used = modes[dice.index(4)].map(|mode| Use {
            resource: dice.index(2),
            mode,
        });
        let own = segment(release, wcet, release + 40 + dice.below(120));
        assert_eq!(segments.push(own, used.as_slice()), Ok(number));
        let process = u32::try_from(dice.below(4)).unwrap_or(0);
        segments.set_location(
            number,
            Location {
                process,
                home: [None, Some(process as usize % CPUS)][dice.index(2)],
                away: Work::from_ticks(wcet + dice.below(6)),
                switch: Work::from_ticks(2),
            },
        );
        if number > 0 && dice.one_in(3) {
            assert_eq!(segments.precede(dice.index(number), number), Ok(()));
        }
    }
    segments
}

/// The segments with the lengths that they have in a plan, for the independent checker; each length
/// is computed here from what is before it on its CPU.
fn with_lengths(segments: &Segments, plan: &[Placement]) -> Segments {
    let mut same = Segments::new(CAPACITIES);
    for (number, own) in segments.iter().enumerate() {
        let (place, location) = (plan[number], segments.location(number));
        let location = location.expect("each has one");
        let before = (0..plan.len())
            .filter(|&other| plan[other].cpu == place.cpu && plan[other].start < place.start)
            .max_by_key(|&other| plan[other].start);
        let process = before.and_then(|other| Some(segments.location(other)?.process));
        let work = match location.home {
            Some(home) if home != place.cpu => location.away,
            _ => own.wcet,
        };
        let switch = match process == Some(location.process) {
            true => 0,
            false => 2,
        };
        let wcet = work.saturating_add(Work::from_ticks(switch));
        let length = place.end.since(place.start).as_work();
        assert_eq!(length, wcet, "segment {number} of {plan:?}");
        let own = punctual_planner::Segment { wcet, ..*own };
        assert_eq!(same.push(own, segments.uses(number)), Ok(number));
        for one in (0..number).filter(|&one| segments.successors(one).any(|to| to == number)) {
            assert_eq!(same.precede(one, number), Ok(()));
        }
    }
    same
}

#[test]
fn lengths_follow_homes_and_switches_and_only_local_never_leaves_home() {
    let (mut accepted, mut away, mut fast) = ([0; 2], 0, [0; 2]);
    for seed in 0..2_000 {
        let segments = draw(&mut Dice::new(seed));
        let mut planner = Planner::new(CAPACITIES);
        let available = Available::from(at(0), CAPACITIES);
        for (which, locality) in [Locality::Earliest, Locality::OnlyLocal]
            .into_iter()
            .enumerate()
        {
            for (within, fast) in fast.iter_mut().enumerate() {
                let search = Search {
                    locality,
                    within_process: within == 1,
                    backtracks: 5,
                    ..Search::default()
                };
                let Ok(plan) = planner.plan(&segments, &available, &search) else {
                    continue;
                };
                accepted[which] += 1;
                let same = with_lengths(&segments, plan);
                assert_eq!(verify(&same, plan, CAPACITIES), Ok(()), "seed {seed}");
                for (number, place) in plan.iter().enumerate() {
                    let location = segments.location(number).expect("each has one");
                    let home = location.home.is_none_or(|home| home == place.cpu);
                    assert!(home || locality == Locality::Earliest, "seed {seed}");
                    away += u32::from(!home);
                    let work = if home {
                        segments.get(number).map(|one| one.wcet)
                    } else {
                        Some(location.away)
                    };
                    *fast += u32::from(work == Some(place.end.since(place.start).as_work()));
                }
            }
        }
    }
    assert!(away > 1_000 && accepted[1] > 1_000, "{away} {accepted:?}");
    assert!(accepted[0] > accepted[1], "{accepted:?}");
    assert!(fast[1] > fast[0] + 1_000, "{fast:?}");
}

#[test]
fn a_refusal_of_segments_with_homes_is_certain_of_nothing() {
    let capacities = Capacities::new(1, 2, 0);
    let mut segments = Segments::new(capacities);
    // It starts first on CPU 0, which is free at once, and would end in time on CPU 1 alone.
    assert_eq!(segments.push(segment(0, 10, 13), &[]), Ok(0));
    segments.set_location(
        0,
        Location {
            process: 0,
            home: Some(1),
            away: Work::from_ticks(20),
            switch: Work::ZERO,
        },
    );
    let mut available = Available::from(at(0), capacities);
    available.cpus[1] = at(3);
    let mut planner = Planner::new(capacities);
    let refusal = planner.plan(&segments, &available, &Search::complete());
    let why = refusal.map(|_| ()).map_err(|refusal| refusal.why);
    assert_eq!(why, Err(Why::NoPlanFound { complete: false }));
    let local = Search {
        locality: Locality::OnlyLocal,
        ..Search::complete()
    };
    assert!(planner.plan(&segments, &available, &local).is_ok());
}

#[test]
fn a_request_that_fits_only_across_processes_is_planned_across_them() {
    let capacities = Capacities::new(3, 1, 0);
    let mut segments = Segments::new(capacities);
    // The second one of the first process would keep the other one waiting for too long.
    for (number, process, deadline) in [(0, 1, 10), (1, 1, 100), (2, 2, 20)] {
        assert_eq!(segments.push(segment(0, 10, deadline), &[]), Ok(number));
        segments.set_location(
            number,
            Location {
                process,
                home: None,
                away: Work::from_ticks(10),
                switch: Work::ZERO,
            },
        );
    }
    let within = Search {
        within_process: true,
        ..Search::default()
    };
    let mut planner = Planner::new(capacities);
    let available = Available::from(at(0), capacities);
    let alone = planner.plan(&segments, &available, &within).map(|_| ());
    let alone = alone.expect_err("the preference goes first");
    let mut book = Book::new(capacities);
    let answer = book.request(at(0), Span::ZERO, &segments, &within);
    let answer = answer.expect("there is a plan");
    let starts = book.placements().iter().map(|place| place.start);
    assert_eq!(starts.collect::<Vec<_>>(), [at(0), at(20), at(10)]);
    // Both searches count.
    let plain = planner.plan(&segments, &available, &Search::default());
    assert!(plain.is_ok());
    assert_eq!(
        answer.evaluations,
        alone.evaluations + planner.evaluations()
    );
    // No time is left for another search.
    let short = Search {
        evaluations: alone.evaluations,
        ..within
    };
    let answer = Book::new(capacities).request(at(0), Span::ZERO, &segments, &short);
    assert_eq!(answer.map_err(|refusal| refusal.why), Err(Why::OutOfTime));
}
