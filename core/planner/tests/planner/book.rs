//! The cutoff line: frozen places stay, a refusal changes nothing, requests wait in order

use punctual_generate::Dice;
use punctual_model::{Instant, Mode, Span};
use punctual_planner::{Book, Capacities, Placement, Search, Segment, Segments, Use, Why};

use crate::common::{at, segment, verify};

const CAPACITIES: Capacities = Capacities::new(60, 2, 3);

/// One to five segments, by and by dearer.
fn group(dice: &mut Dice, group: u32, now: u64) -> Segments {
    let mut segments = Segments::new(CAPACITIES);
    for number in 0..1 + dice.index(5) {
        let release = now + dice.below(40);
        let wcet = 1 + dice.below(12);
        let own = Segment {
            group,
            ..segment(release, wcet, release + wcet + dice.below(120))
        };
        let modes = [None, None, Some(Mode::Shared), Some(Mode::Exclusive)];
        let used = modes[dice.index(4)].map(|mode| Use {
            resource: dice.index(3),
            mode,
        });
        assert_eq!(segments.push(own, used.as_slice()), Ok(number));
        if number > 0 && dice.one_in(2) {
            assert_eq!(segments.precede(dice.index(number), number), Ok(()));
        }
    }
    segments
}

type Row = (Segment, Vec<Use>, Placement);

fn rows(book: &Book) -> Vec<Row> {
    let segments = book.segments();
    let row = |(number, place): (usize, &Placement)| {
        let segment = segments.get(number).copied();
        let segment = segment.unwrap_or_else(|| panic!("segment {number} has a place only"));
        (segment, segments.uses(number).to_vec(), *place)
    };
    book.placements().iter().enumerate().map(row).collect()
}

#[test]
fn a_request_changes_the_plan_behind_its_cutoff_or_nothing() {
    let (mut accepted, mut refused, mut moved, mut frozen) = (0, 0, 0, 0);
    for seed in 0..300 {
        let mut dice = Dice::new(seed);
        let mut book: Book = Book::new(CAPACITIES);
        let mut now = 0;
        for number in 0..30 {
            now += dice.below(12);
            let bound = 1 + dice.below(8);
            let begin = at(now).max(book.cutoff());
            let cutoff = begin.saturating_add(Span::from_ticks(bound));
            let group = group(&mut dice, number, now);
            let (before, plan) = (rows(&book), book.clone());
            let answer = book.request(at(now), Span::from_ticks(bound), &group, &Search::default());
            assert_eq!(book.cutoff(), cutoff);
            let Ok(answer) = answer else {
                assert_eq!(book.segments(), plan.segments(), "seed {seed}");
                assert_eq!(book.placements(), plan.placements(), "seed {seed}");
                assert_eq!(book.order(), plan.order(), "seed {seed}");
                // The next request finds the same times free, too.
                let next = self::group(&mut Dice::new(seed + 1_000), 99, cutoff.ticks());
                let [asked, unasked] = [book.clone(), plan].map(|mut book| {
                    let bound = Span::from_ticks(1);
                    let answer = book.request(cutoff, bound, &next, &Search::default());
                    (answer, rows(&book))
                });
                assert_eq!(asked, unasked, "seed {seed}");
                refused += 1;
                continue;
            };
            accepted += 1;
            assert_eq!(answer.cutoff, cutoff);
            let after = rows(&book);
            assert_eq!(
                verify(book.segments(), book.placements(), CAPACITIES),
                Ok(())
            );
            assert_eq!(after.len(), answer.first + group.len());
            let (old, new) = after.split_at(answer.first);
            assert!(new.iter().all(|(_, _, place)| place.start >= cutoff));
            let live = before.iter().filter(|(_, _, place)| place.end > begin);
            assert_eq!(live.clone().count(), old.len(), "a guarantee is lost");
            for (was, is) in live.zip(old) {
                assert_eq!((&was.0, &was.1), (&is.0, &is.1));
                let is_frozen = was.2.start < cutoff;
                assert!(was.2 == is.2 || !is_frozen, "seed {seed}: {was:?} {is:?}");
                assert!(
                    is_frozen || is.2.start >= cutoff,
                    "seed {seed}: {was:?} {is:?}"
                );
                moved += u32::from(was.2 != is.2);
                frozen += u32::from(is_frozen);
            }
        }
    }
    let all = [accepted, refused, moved, frozen];
    assert!(all.iter().all(|&count| count > 500), "{all:?}");
}

#[test]
fn orders_and_resources_hold_across_plans() {
    let mut book: Book = Book::new(CAPACITIES);
    let resource = |mode| Use { resource: 0, mode };
    // 0 to 10 and 10 to 20: the second comes after the first and uses a resource alone.
    let mut first = Segments::new(CAPACITIES);
    assert_eq!(first.push(segment(0, 10, 100), &[]), Ok(0));
    let alone = [resource(Mode::Exclusive)];
    assert_eq!(first.push(segment(0, 10, 100), &alone), Ok(1));
    assert_eq!(first.precede(0, 1), Ok(()));
    let request = |book: &mut Book, now: u64, group: &Segments| {
        book.request(at(now), Span::from_ticks(2), group, &Search::default())
    };
    assert!(request(&mut book, 0, &first).is_ok());
    assert_eq!(starts(&book), [2, 12]);
    // At 5 the first one is frozen. A reader with an early deadline goes before the second one.
    let mut reader = Segments::new(CAPACITIES);
    let shared = [resource(Mode::Shared)];
    assert_eq!(reader.push(segment(0, 10, 18), &shared), Ok(0));
    assert_eq!(request(&mut book, 5, &reader).map(|done| done.first), Ok(2));
    assert_eq!(starts(&book), [2, 17, 7]);
    // At 12 the first one has ended and is forgotten; the reader still has its resource.
    let mut writer = Segments::new(CAPACITIES);
    assert_eq!(writer.push(segment(0, 5, 22), &alone), Ok(0));
    assert_eq!(
        request(&mut book, 12, &writer).map(|done| done.first),
        Ok(2)
    );
    assert_eq!(starts(&book), [22, 7, 17]);
}

fn starts(book: &Book) -> Vec<u64> {
    let places = book.placements().iter();
    places.map(|place| Instant::ticks(place.start)).collect()
}

#[test]
fn a_request_during_planning_waits_and_one_without_room_is_refused() {
    let mut book: Book = Book::new(Capacities::new(2, 1, 0));
    let mut one = Segments::new(Capacities::new(2, 1, 0));
    assert_eq!(one.push(segment(0, 10, 1_000), &[]), Ok(0));
    let mut request =
        |now: u64| book.request(at(now), Span::from_ticks(4), &one, &Search::default());
    let cutoffs = [request(100), request(101)].map(|done| done.map(|done| done.cutoff.ticks()));
    assert_eq!(cutoffs, [Ok(104), Ok(108)]);
    // They are from 104 to 114 and from there on. The third is planned from 108 to 112.
    let full = request(102).map_err(|refusal| refusal.why);
    assert_eq!(full, Err(Why::TooLarge));
    // The first has ended by 116.
    let [fourth, fifth] = [request(102), request(103)].map(|done| done.map(|done| done.first));
    assert_eq!(fourth.map_err(|refusal| refusal.why), Err(Why::TooLarge));
    assert_eq!(fifth, Ok(1));
}
