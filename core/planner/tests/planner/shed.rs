//! Overload: groups that are removed for others, and answers that are never late

use punctual_generate::Dice;
use punctual_model::{Importance, Span};
use punctual_planner::{
    Accepted, Ask, Book, Capacities, Heuristic, Overload, Pace, Refusal, Search, Segment, Segments,
    Why,
};

use crate::common::{at, segment, verify};

const CAPACITIES: Capacities = Capacities::new(60, 2, 0);

/// A group of one importance, with a deadline so much later than others.
fn group(dice: &mut Dice, number: u32, now: u64, later: u64) -> Segments {
    let mut segments = Segments::new(CAPACITIES);
    let importance = Importance(u32::try_from(dice.below(4)).unwrap_or(0));
    for own in 0..1 + dice.index(4) {
        let wcet = 1 + dice.below(12);
        let pushed = Segment {
            group: number,
            ..segment(now, wcet, now + later + wcet + 10 + dice.below(60))
        };
        assert_eq!(segments.push(pushed, &[]), Ok(own));
        segments.set_importance(own, importance);
        assert!(own == 0 || segments.precede(own - 1, own).is_ok());
    }
    segments
}

type Groups = std::collections::BTreeMap<u32, (Importance, u64)>;

/// The groups of a plan that have not ended: importance and first start.
fn groups(book: &Book, since: u64) -> Groups {
    let mut groups = Groups::new();
    for (number, segment) in book.segments().iter().enumerate() {
        let place = book.placements()[number];
        if place.end.ticks() > since {
            let importance = book.segments().importance(number);
            let row = groups
                .entry(segment.group)
                .or_insert((importance, u64::MAX));
            row.1 = row.1.min(place.start.ticks());
        }
    }
    groups
}

fn ask(now: u64, overload: Overload) -> Ask {
    Ask {
        overload,
        ..Ask::new(at(now), Span::from_ticks(3), Search::default())
    }
}

#[test]
fn only_less_important_groups_that_have_not_begun_give_way_and_only_if_it_fits_then() {
    let (mut kept, mut shed, mut several, mut refused) = (0, 0, 0, 0);
    for seed in 0..300 {
        let mut dice = Dice::new(seed);
        let mut book: Book = Book::new(CAPACITIES);
        let (mut now, mut begun) = (0, Vec::new());
        for number in 0..30 {
            now += dice.below(12);
            let new = group(&mut dice, number, now, 0);
            let begin = at(now).max(book.cutoff()).ticks();
            let before = groups(&book, begin);
            for (segment, place) in book.segments().iter().zip(book.placements()) {
                if place.start.ticks() < begin + 3 {
                    begun.push(segment.group);
                }
            }
            let plain = book.clone().ask(&ask(now, Overload::Keep), &new, |_| false);
            let old = book.clone();
            let answer = book.ask(&ask(now, Overload::Shed), &new, |_| false);
            let removed = book.removed().to_vec();
            if answer.is_err() {
                refused += 1;
                assert_eq!(
                    (book.segments(), book.placements()),
                    (old.segments(), old.placements())
                );
                assert!(removed.is_empty());
                continue;
            }
            assert_eq!(
                verify(book.segments(), book.placements(), CAPACITIES),
                Ok(())
            );
            if plain.is_ok() {
                kept += 1;
                assert!(removed.is_empty(), "it fits beside all");
                continue;
            }
            shed += 1;
            several += u32::from(removed.len() > 1);
            let after = groups(&book, begin);
            let importance = new.importance(0);
            for group in &removed {
                assert!(before[group].0 < importance, "seed {seed}: {group}");
                assert!(!begun.contains(group), "seed {seed}: {group} has begun");
                assert!(!after.contains_key(group));
            }
            let ranks = removed.iter().map(|group| before[group].0);
            assert!(ranks.clone().is_sorted(), "seed {seed}");
            let most = ranks.max();
            for (group, row) in &before {
                if removed.contains(group) {
                    continue;
                }
                assert!(after.contains_key(group), "seed {seed}: {group} is lost");
                let may = !begun.contains(group) && Some(row.0) < most;
                assert!(!may, "seed {seed}: {group} is less important and stays");
            }
            // With the last of them it does not fit.
            let mut spared = old.clone();
            let gone = &removed[..removed.len() - 1];
            let answer = spared.ask(&ask(now, Overload::Keep), &new, |one| gone.contains(&one));
            assert!(answer.is_err(), "seed {seed}: one was removed in vain");
        }
    }
    let all = [kept, shed, several, refused];
    assert!(all.iter().all(|&count| count > 20), "{all:?}");
}

/// The most that a request takes by its pace, with how it ended: there were `old` segments, and
/// `new` are its own.
fn time(
    pace: &Pace,
    book: &Book,
    answer: &Result<Accepted, Refusal>,
    (old, new): (usize, usize),
) -> Span {
    let (evaluations, backtracks) = match answer {
        Ok(accepted) => (accepted.evaluations, accepted.backtracks),
        Err(refusal) => (refusal.evaluations, refusal.backtracks),
    };
    // Those that keep their places are taken over too, and those that are over are looked at.
    let (segments, over) = match answer {
        Ok(_) => (book.placements().len(), old + new - book.placements().len()),
        // It is told at once that there is no time.
        Err(refusal) if refusal.evaluations == 0 => return Span::ZERO,
        Err(_) => (new, 0),
    };
    pace.margin
        .saturating_add(pace.spent(segments, evaluations + over as u64, backtracks))
}

#[test]
fn the_window_follows_the_time_allowed_and_no_answer_is_late() {
    let (mut out_of_time, mut not_found, mut accepted, mut narrow) = (0, 0, 0, 0);
    for seed in 0..200 {
        let mut dice = Dice::new(seed);
        let mut book: Book = Book::new(CAPACITIES);
        let mut now = 0;
        for number in 0..30 {
            now += dice.below(12);
            let new = group(&mut dice, number, now, 150);
            let bound = Span::from_ticks(dice.below(150));
            let pace = Pace {
                evaluation: Span::from_ticks(1),
                segment: Span::from_ticks(2),
                margin: Span::from_ticks(3),
            };
            let ask = Ask {
                pace: Some(pace),
                overload: [Overload::Keep, Overload::Shed][dice.index(2)],
                bound,
                ..ask(now, Overload::Keep)
            };
            let segments = (book.placements().len(), new.len());
            let answer = book.ask(&ask, &new, |_| false);
            assert!(time(&pace, &book, &answer, segments) <= bound, "{answer:?}");
            match answer {
                Ok(_) => accepted += 1,
                Err(refusal) if refusal.why == Why::OutOfTime => out_of_time += 1,
                Err(_) => not_found += 1,
            }
        }
        let pace = Pace {
            evaluation: Span::from_ticks(2),
            segment: Span::from_ticks(3),
            margin: Span::from_ticks(50),
        };
        // 42 segments: 903 evaluations are all of them.
        let search = |allowed| pace.search(42, Span::from_ticks(allowed), &Search::complete());
        let exact = 50 + 42 * 3 + 903 * 2;
        assert_eq!(search(exact).map(|search| search.window), Some(42));
        assert!(search(exact - 1).is_some_and(|search| search.window < 42));
        assert_eq!(search(50 + 42 * 5 - 1), None);
        narrow += u32::from(search(50 + 42 * 5).is_some_and(|search| search.window == 1));
    }
    let all = [out_of_time, not_found, accepted, narrow];
    assert!(all.iter().all(|&count| count > 100), "{all:?}");
}

#[test]
fn an_accepted_answer_counts_how_often_it_went_back_within_its_time() {
    let pace = Pace {
        evaluation: Span::from_ticks(1),
        segment: Span::from_ticks(2),
        margin: Span::from_ticks(3),
    };
    let mut answers = Vec::new();
    for bound in 0..40 {
        let mut new = Segments::new(CAPACITIES);
        // The first one starts earlier, and the second one is then late.
        let begin = bound + 100;
        assert_eq!(new.push(segment(begin, 10, begin + 100), &[]), Ok(0));
        assert_eq!(new.push(segment(begin + 5, 5, begin + 10), &[]), Ok(1));
        let mut book: Book = Book::new(Capacities::new(60, 1, 0));
        let ask = Ask {
            pace: Some(pace),
            search: Search {
                heuristic: Heuristic::Start,
                ..Search::complete()
            },
            bound: Span::from_ticks(bound),
            ..ask(0, Overload::Keep)
        };
        let answer = book.ask(&ask, &new, |_| false);
        assert!(time(&pace, &book, &answer, (0, 2)).ticks() <= bound);
        let answer = answer.map(|accepted| (accepted.backtracks, accepted.evaluations));
        let answer = answer.map_err(|refusal| refusal.why);
        answers.push((bound, answer));
    }
    answers.dedup_by_key(|(_, answer)| *answer);
    let no_plan = Why::NoPlanFound { complete: false };
    let expected = [
        (0, Err(Why::OutOfTime)),
        // A window of one has the earlier deadline first.
        (9, Ok((0, 2))),
        (10, Err(no_plan)),
        // A step back is a segment and two windows.
        (17, Ok((1, 6))),
    ];
    assert_eq!(answers, expected);
}

#[test]
fn a_request_behind_others_is_out_of_time_when_their_cutoffs_are_too_far_away() {
    let mut book: Book = Book::new(CAPACITIES);
    let mut new = Segments::new(CAPACITIES);
    assert_eq!(new.push(segment(0, 10, 1_000), &[]), Ok(0));
    let mut wait = |now, most| {
        let ask = Ask {
            max_wait: Some(Span::from_ticks(most)),
            ..ask(now, Overload::Keep)
        };
        let answer = book.ask(&ask, &new, |_| false);
        (
            answer
                .map(|accepted| accepted.cutoff.ticks())
                .map_err(|no| no.why),
            book.cutoff().ticks(),
        )
    };
    assert_eq!(wait(0, 3), (Ok(3), 3));
    assert_eq!(wait(1, 4), (Err(Why::OutOfTime), 3));
    assert_eq!(wait(1, 5), (Ok(6), 6));
}
