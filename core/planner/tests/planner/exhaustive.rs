//! Sets of up to seven segments beside every possible plan

use punctual_generate::Dice;
use punctual_model::{Mode, Work};
use punctual_planner::{Available, Capacities, Planner, Search, Segment, Segments, Use, Why};

use crate::common::{at, segment, verify};

/// A small set that may have a plan or none.
fn draw(dice: &mut Dice) -> (Segments, Capacities) {
    let (n, cpus, resources) = (1 + dice.index(7), 1 + dice.index(3), dice.index(3));
    let capacities = Capacities {
        orders: 40,
        uses: 20,
        ..Capacities::new(n, cpus, resources)
    };
    let mut segments = Segments::new(capacities);
    // About the time that all need.
    let whole = 6 * n as u64 / cpus as u64 + 6;
    for number in 0..n {
        let release = [0, dice.below(whole)][dice.index(2)];
        let wcet = 1 + dice.below(10);
        let deadline = release + wcet + dice.below(whole);
        let mut uses = Vec::new();
        for resource in 0..resources {
            match dice.below(4) {
                0 => uses.push((resource, Mode::Shared)),
                1 => uses.push((resource, Mode::Exclusive)),
                _ => {}
            }
        }
        let uses: Vec<Use> = uses
            .into_iter()
            .map(|(resource, mode)| Use { resource, mode })
            .collect();
        assert_eq!(
            segments.push(segment(release, wcet, deadline), &uses),
            Ok(number)
        );
        for before in 0..number {
            if dice.one_in(8) {
                assert_eq!(segments.precede(before, number), Ok(()));
            }
        }
    }
    (segments, capacities)
}

/// Whether any plan exists: each order of starts, each segment as early as that order allows.
fn has_plan(segments: &Segments, cpus: usize) -> bool {
    extend(segments, cpus, &mut Vec::new())
}

/// Starts in order, with the numbers of their segments.
fn extend(segments: &Segments, cpus: usize, placed: &mut Vec<(usize, u64)>) -> bool {
    if placed.len() == segments.len() {
        return true;
    }
    for number in 0..segments.len() {
        if placed.iter().any(|&(one, _)| one == number) {
            continue;
        }
        if let Some(start) = earliest(segments, cpus, placed, number) {
            placed.push((number, start));
            let found = extend(segments, cpus, placed);
            placed.pop();
            if found {
                return true;
            }
        }
    }
    false
}

/// The first instant, not before the starts so far, at which a segment could start; `None` if it
/// would be late or has to wait for one that is not placed.
fn earliest(
    segments: &Segments,
    cpus: usize,
    placed: &[(usize, u64)],
    number: usize,
) -> Option<u64> {
    let of = |number: usize| segments.get(number).copied().unwrap_or(segment(0, 0, 0));
    let work = |segment: Segment| Work::ticks(segment.wcet);
    let end = |&(one, start): &(usize, u64)| start + work(of(one));
    let conflicts = |one: usize| {
        let mine = segments.uses(number).iter();
        mine.clone().any(|a| {
            let mut theirs = segments.uses(one).iter();
            theirs.any(|b| {
                a.resource == b.resource && (a.mode == Mode::Exclusive || b.mode == Mode::Exclusive)
            })
        })
    };
    let mut start = of(number).release.ticks();
    for before in 0..number {
        if segments.successors(before).any(|after| after == number) {
            start = start.max(placed.iter().find(|(one, _)| *one == before).map(end)?);
        }
    }
    start = start.max(placed.last().map_or(0, |&(_, last)| last));
    loop {
        let running = placed.iter().filter(|place| end(place) > start);
        let busy = running.clone().count() >= cpus;
        if !busy && !running.clone().any(|&(one, _)| conflicts(one)) {
            break;
        }
        start = running.map(end).min()?;
    }
    (start + work(of(number)) <= of(number).absolute_deadline.ticks()).then_some(start)
}

#[test]
fn nothing_infeasible_is_accepted_and_a_hundred_backtracks_find_all_but_one_in_a_hundred() {
    let (mut feasible, mut simple, mut hundred) = (0, 0, 0);
    for seed in 0..6_000 {
        let (set, capacities) = draw(&mut Dice::new(seed));
        let exists = has_plan(&set, capacities.cpus);
        let mut planner = Planner::new(capacities);
        let available = Available::from(at(0), capacities);
        let backtracks = |backtracks| Search {
            backtracks,
            ..Search::default()
        };
        let mut accepts = |search: &Search| match planner.plan(&set, &available, search) {
            Ok(plan) => {
                assert_eq!(verify(&set, plan, capacities), Ok(()), "seed {seed}");
                assert!(exists, "seed {seed}: accepted, but there is no plan");
                true
            }
            Err(refusal) => {
                let certain = refusal.why == Why::NoPlanFound { complete: true };
                assert!(!(certain && exists), "seed {seed}: there is a plan");
                let late_anyway = refusal.late.is_some_and(|late| late.behind == 0);
                assert!(!(late_anyway && exists), "seed {seed}: the witness is none");
                assert!(
                    certain || *search != Search::complete(),
                    "seed {seed}: a complete search is certain"
                );
                false
            }
        };
        assert_eq!(accepts(&Search::complete()), exists, "seed {seed}");
        feasible += u32::from(exists);
        simple += u32::from(accepts(&Search::default()));
        // A narrow window leaves orders untried, and must not call its refusals certain.
        accepts(&Search {
            window: 2,
            ..Search::complete()
        });
        hundred += u32::from(accepts(&backtracks(100)));
    }
    assert!((2_000..5_000).contains(&feasible), "{feasible} have a plan");
    assert!(hundred * 100 >= feasible * 99, "{hundred} of {feasible}");
    assert!(simple < hundred, "{simple} without going back");
}
