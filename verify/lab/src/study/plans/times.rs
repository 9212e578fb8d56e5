//! `plan-times`: evaluations and time of an answer (Spring, Fig. 11 and 12).
//!
//! Time is what the pace charges for the evaluations that were counted.

use punctual_generate::{Random, SegmentMix};
use punctual_model::{Instant, Ns, Span};
use punctual_planner::{Available, Capacities, Pace, Planner, Search, Why};
use serde::{Deserialize, Serialize};

use super::success::segments;
use crate::answers::Row;

/// Microseconds that are allowed when nobody says otherwise.
pub(crate) const ALLOWED_US: [u64; 7] = [10, 30, 100, 300, 1_000, 3_000, 10_000];

/// Segments to plan.
pub(crate) const SIZES: [u64; 15] = [
    5, 10, 20, 42, 60, 80, 100, 150, 200, 300, 400, 500, 600, 800, 1_000,
];

/// The costs of planning in nanoseconds, and the part of the allowed time that is not used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Pacing {
    pub(crate) evaluation_ns: u64,
    pub(crate) segment_ns: u64,
    pub(crate) margin_percent: u64,
}

impl Pacing {
    fn pace(&self, allowed: Span<Ns>) -> Pace<Ns> {
        Pace {
            evaluation: Span::from_ns(self.evaluation_ns),
            segment: Span::from_ns(self.segment_ns),
            margin: Span::from_ns(allowed.as_ns() * self.margin_percent / 100),
        }
    }
}

/// Of each set: 0 for a plan, 1 for none found, 2 for out of time; the window, the evaluations, the
/// nanoseconds.
pub(crate) fn unit(
    (allowed_us, size): (u64, u64),
    (sets, pacing): (u64, Pacing),
    seed: u64,
) -> Result<Vec<Row>, String> {
    let count = usize::try_from(size).unwrap_or(usize::MAX);
    let capacities = Capacities {
        uses: 5 * count,
        ..Capacities::new(count, 3, 5)
    };
    // As many as asked for, of sets that fill the CPUs.
    let mix = SegmentMix {
        length: 40 * size,
        ..SegmentMix::tight(300, 100)
    };
    let allowed = Span::from_ns(1_000 * allowed_us);
    let pace = pacing.pace(allowed);
    let whole = Search {
        window: usize::MAX,
        backtracks: u64::MAX,
        ..Search::default()
    };
    let mut planner = Planner::new(capacities);
    let available = Available::from(Instant::ZERO, capacities);
    let mut values = Vec::new();
    for number in 0..sets {
        let drawn = mix.draw(&mut Random::at(seed, &[size, number]));
        let drawn = drawn.get(..count).ok_or("too few segments were drawn")?;
        let set = segments(drawn, capacities)?;
        let Some(search) = pace.search(count, allowed, &whole) else {
            values.extend([2, 0, 0, 0]);
            continue;
        };
        let answer = planner.plan(&set, &available, &search).map(|_| ());
        let kind = match answer.map_err(|refusal| refusal.why) {
            Ok(()) => 0,
            Err(Why::OutOfTime) => 2,
            Err(_) => 1,
        };
        let evaluations = planner.evaluations();
        let taken = pace.spent(count, evaluations, planner.backtracks()).as_ns();
        values.extend([kind, search.window.min(count) as u64, evaluations, taken]);
    }
    Ok(vec![Row::new("answers", &[allowed_us, size], values)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_answer_is_charged_more_than_its_time_and_more_time_has_a_wider_window() {
        let pacing = Pacing {
            evaluation_ns: 25,
            segment_ns: 150,
            margin_percent: 10,
        };
        let (mut windows, mut kinds) = (Vec::new(), [0; 3]);
        for allowed in ALLOWED_US {
            for size in [10, 42, 200] {
                let rows = unit((allowed, size), (3, pacing), 1).expect("answers");
                let (answers, _) = rows[0].values.as_chunks::<4>();
                assert_eq!(answers.len(), 3);
                for [kind, window, evaluations, ns] in answers {
                    assert!(*ns <= 900 * allowed, "{allowed} {size} {ns}");
                    assert_eq!(*window == 0, *evaluations == 0);
                    kinds[usize::try_from(*kind).expect("one of three")] += 1;
                }
                windows.extend(answers.iter().map(|answer| (size, allowed, answer[1])));
            }
        }
        windows.sort_unstable();
        let of = |size| windows.iter().filter(move |of| of.0 == size).map(|of| of.2);
        for size in [10, 42, 200] {
            assert!(of(size).is_sorted() && of(size).max() == Some(size));
        }
        assert!(kinds[0] > 0 && kinds[2] > 0, "{kinds:?}");
    }
}
