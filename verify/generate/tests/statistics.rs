//! Each generator has the distribution that its paper states: sums, marginals, ranges, shares.
//!
//! Samples are drawn from fixed seeds, so these tests either always hold or never do; tolerances
//! are five standard deviations of the sample means that they judge.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use punctual_generate::{
    Deadlines, GenerateError, Generator, Periods, Random, SetParameters, fixed_sum, one_cpu,
    uunifast, uunifast_discard, waters,
};
use punctual_model::{PolicyKind, Span};

const SAMPLES: u32 = 20_000;

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0.0, 0.0), |(n, s), v| (n + 1.0, s + v));
    sum / count
}

/// The share of samples for which something holds, against its probability.
fn assert_likely(what: &str, holds: impl Iterator<Item = bool>, probability: f64) {
    let share = mean(holds.map(|h| f64::from(u8::from(h))));
    let deviation = (probability * (1.0 - probability) / f64::from(SAMPLES)).sqrt();
    assert!(
        (share - probability).abs() < 5.0 * deviation + 1e-9,
        "{what}: {share} where {probability} is right"
    );
}

fn sets(mut draw: impl FnMut(&mut Random) -> Vec<f64>) -> Vec<Vec<f64>> {
    (0..SAMPLES)
        .map(|seed| draw(&mut Random::at(11, &[u64::from(seed)])))
        .collect()
}

#[test]
fn uunifast_sums_up_and_every_share_has_the_published_marginal() {
    let drawn = sets(|random| uunifast(random, 5, 0.8));
    for set in &drawn {
        assert!((set.iter().sum::<f64>() - 0.8).abs() < 1e-12, "{set:?}");
        assert!(set.iter().all(|share| (0.0..=0.8).contains(share)));
    }
    // Uniform on the simplex: a share exceeds x of the total with probability (1 - x)^(n - 1).
    for place in 0..5 {
        for x in [0.05, 0.2, 0.5] {
            let exceeds = drawn.iter().map(|set| set[place] > 0.8 * x);
            assert_likely("uunifast", exceeds, (1.0 - x).powi(4));
        }
    }
}

#[test]
fn one_share_is_the_whole_and_no_shares_are_none() {
    assert_eq!(uunifast(&mut Random::new(1), 1, 0.7), [0.7]);
    assert!(uunifast(&mut Random::new(1), 0, 0.7).is_empty());
}

#[test]
fn discarding_keeps_every_share_below_the_limit() {
    for set in sets(|random| uunifast_discard(random, 4, 2.0, 1.0).unwrap()) {
        assert!(set.iter().all(|share| (0.0..=1.0).contains(share)));
        assert!((set.iter().sum::<f64>() - 2.0).abs() < 1e-12);
    }
    let hopeless = uunifast_discard(&mut Random::new(1), 20, 19.9, 1.0);
    assert!(matches!(
        hopeless,
        Err(GenerateError::DiscardedTooOften { .. })
    ));
}

/// Two algorithms that share no idea draw from one distribution: uniform over all shares of at most
/// one with this sum.
#[test]
fn fixed_sum_and_discarding_agree_on_every_marginal() {
    for (count, total) in [(2, 1.3), (3, 0.4), (3, 1.5), (5, 2.2), (6, 3.6)] {
        let fixed = sets(|random| fixed_sum(random, count, total, (0.0, 1.0)).unwrap());
        let discarded = sets(|random| uunifast_discard(random, count, total, 1.0).unwrap());
        for set in &fixed {
            assert!((set.iter().sum::<f64>() - total).abs() < 1e-9, "{set:?}");
            let inside = |share: &f64| (-1e-12..=1.0 + 1e-12).contains(share);
            assert!(set.iter().all(inside), "{set:?}");
        }
        for threshold in [0.1, 0.3, 0.5, 0.7, 0.9] {
            let exceeds = |sets: &[Vec<f64>], place: usize| {
                mean(
                    sets.iter()
                        .map(|s| f64::from(u8::from(s[place] > threshold))),
                )
            };
            for place in 0..count {
                let (a, b) = (exceeds(&fixed, place), exceeds(&discarded, place));
                let deviation = (2.0 * 0.25 / f64::from(SAMPLES)).sqrt();
                assert!(
                    (a - b).abs() < 5.0 * deviation,
                    "{count} shares of {total}, place {place} above {threshold}: {a} and {b}"
                );
            }
        }
        // How two shares move together, not only each alone.
        let product = |sets: &[Vec<f64>]| mean(sets.iter().map(|s| s[0] * s[1]));
        let (a, b) = (product(&fixed), product(&discarded));
        assert!(
            (a - b).abs() < 0.015,
            "{count} shares of {total}: {a} and {b}"
        );
    }
}

#[test]
fn fixed_sum_works_for_many_shares_and_other_intervals() {
    for count in [200, 1_000] {
        let total = f64::from(count) * 0.37;
        let count = usize::try_from(count).unwrap();
        let set = fixed_sum(&mut Random::new(3), count, total, (0.1, 0.9)).unwrap();
        assert!((set.iter().sum::<f64>() - total).abs() < 1e-6);
        assert!(set.iter().all(|x| (0.1 - 1e-9..=0.9 + 1e-9).contains(x)));
        // Not all the same: a table of vanished volumes would walk one way only.
        let spread =
            set.iter().copied().fold(0.0, f64::max) - set.iter().copied().fold(1.0, f64::min);
        assert!(spread > 0.3, "{spread}");
    }
    assert!(fixed_sum(&mut Random::new(3), 3, 3.5, (0.0, 1.0)).is_err());
    assert!(fixed_sum(&mut Random::new(3), 3, 1.0, (1.0, 1.0)).is_err());
    assert!(fixed_sum(&mut Random::new(3), 4_097, 1.0, (0.0, 1.0)).is_err());
}

#[test]
fn every_order_of_magnitude_of_a_log_uniform_period_is_equally_likely() {
    let periods = Periods::LogUniform {
        low: Span::from_us(100),
        high: Span::from_ms(1_000),
        step: Span::from_ns(1),
    };
    let mut random = Random::new(5);
    let drawn: Vec<u64> = (0..SAMPLES)
        .map(|_| periods.draw(&mut random).unwrap().as_ns())
        .collect();
    for decade in 0..4 {
        let low = 100_000 * 10_u64.pow(decade);
        let inside = drawn.iter().map(|p| (low..10 * low).contains(p));
        assert_likely("decade", inside, 0.25);
    }
}

#[test]
fn periods_are_multiples_of_their_step_within_their_range() {
    let (low, high, step) = (Span::from_ms(10), Span::from_ms(99), Span::from_ms(7));
    let ranges = [
        Periods::LogUniform { low, high, step },
        Periods::Uniform { low, high, step },
    ];
    let mut random = Random::new(6);
    for _ in 0..5_000 {
        let logarithmic = ranges[0].draw(&mut random).unwrap();
        let uniform = ranges[1].draw(&mut random).unwrap();
        assert!((low..=high).contains(&uniform) && (low..=high).contains(&logarithmic));
        assert_eq!((uniform.as_ns() - low.as_ns()) % step.as_ns(), 0);
    }
    let backwards = Periods::log_uniform_ms(20, 10);
    assert!(backwards.draw(&mut random).is_err());
    assert!(Periods::Among(vec![]).draw(&mut random).is_err());
}

#[test]
fn runnables_have_the_published_shares_means_and_ranges() {
    let mut random = Random::new(8);
    let drawn: Vec<waters::Runnable> = (0..SAMPLES)
        .map(|_| waters::Runnable::draw(&mut random))
        .collect();
    assert_eq!(waters::ROWS.iter().map(|row| row.share).sum::<u32>(), 100);
    for (index, row) in waters::ROWS.iter().enumerate() {
        let probability = f64::from(row.share) / 100.0;
        assert_likely("share", drawn.iter().map(|r| r.row == index), probability);
        let (least, average, most) = row.average_us;
        let of_row: Vec<f64> = drawn
            .iter()
            .filter(|r| r.row == index)
            .map(|r| r.average.as_ns() as f64 / 1_000.0)
            .collect();
        let count = of_row.len() as f64;
        assert!(
            of_row
                .iter()
                .all(|us| (least - 0.001..=most + 0.001).contains(us))
        );
        let found = mean(of_row.iter().copied());
        let spread = mean(of_row.iter().map(|us| (us - found).powi(2)));
        let tolerance = 5.0 * (spread / count).sqrt() + 0.001;
        assert!(
            (found - average).abs() < tolerance,
            "{} ms: mean {found} us where {average} is published",
            row.period.as_ns() / 1_000_000
        );
    }
    for runnable in &drawn {
        let row = waters::ROWS[runnable.row];
        let ratio = |work: punctual_model::Work<punctual_model::Ns>| {
            work.as_ns() as f64 / runnable.average.as_ns() as f64
        };
        // Rounding to nanoseconds shows in runnables of a few hundred of them.
        let within = |x: f64, (low, high): (f64, f64)| (low - 0.02..=high * 1.02).contains(&x);
        assert!(within(ratio(runnable.worst), row.worst_factor));
        assert!(within(ratio(runnable.best), row.best_factor));
    }
}

#[test]
fn an_engine_of_1500_runnables_has_ten_tasks_and_fits_a_few_cores() {
    let tasks = waters::engine_tasks(&mut Random::new(9), 1_500);
    assert_eq!(tasks.len(), 10);
    let utilization: f64 = tasks
        .iter()
        .map(|(row, worst)| worst.as_ns() as f64 / waters::ROWS[*row].period.as_ns() as f64)
        .sum();
    assert!((0.5..30.0).contains(&utilization), "{utilization}");
}

fn parameters(generator: Generator, tasks: usize, utilization_ppm: u32) -> SetParameters {
    SetParameters {
        generator,
        tasks,
        utilization_ppm,
        largest_share_ppm: 1_000_000,
        periods: Periods::log_uniform_ms(10, 1_000),
        deadlines: Deadlines::Implicit,
    }
}

#[test]
fn sets_have_the_wanted_utilization_to_within_the_rounding() {
    for generator in Generator::ALL {
        for tasks in [1, 5, 50] {
            for seed in 0..50 {
                let parameters = parameters(generator, tasks, 700_000);
                let set = parameters.draw(&mut Random::new(seed)).unwrap();
                let total: f64 = set
                    .iter()
                    .map(|row| row.wcet.as_ns() as f64 / row.period.as_ns() as f64)
                    .sum();
                // A wcet below one tick is raised to it.
                let rounding: f64 = set.iter().map(|row| 1.0 / row.period.as_ns() as f64).sum();
                assert!((total - 0.7).abs() <= rounding + 1e-9, "{total}");
            }
        }
    }
}

#[test]
fn a_set_becomes_a_system_that_means_something() {
    for generator in Generator::ALL {
        for deadlines in Deadlines::ALL {
            for seed in 0..100 {
                let mut parameters = parameters(generator, 6, 900_000);
                parameters.deadlines = deadlines;
                let rows = parameters.draw(&mut Random::new(seed)).unwrap();
                let system = one_cpu(&rows, PolicyKind::EarliestDeadlineFirst);
                assert_eq!(system.validate(), Ok(()));
                let urgent = |i: usize, j: usize| {
                    let (a, b) = (&system.tasks[i], &system.tasks[j]);
                    a.priority.is_higher_than(b.priority)
                };
                for (i, a) in rows.iter().enumerate() {
                    for (j, b) in rows.iter().enumerate() {
                        let shorter = a.relative_deadline < b.relative_deadline;
                        assert_eq!(shorter, urgent(i, j));
                    }
                }
            }
        }
    }
}

#[test]
fn what_cannot_be_reached_is_told() {
    let mut impossible = parameters(Generator::FixedSum, 3, 900_000);
    impossible.largest_share_ppm = 250_000;
    let error = impossible.draw(&mut Random::new(1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "3 tasks of at most 25 % each cannot need 90 % together"
    );
}
