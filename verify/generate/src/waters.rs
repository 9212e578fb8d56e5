//! The statistics of a real engine control unit (WATERS 2015), as a generator.
//!
//! Source: S. Kramer, D. Ziegenbein and A. Hamann, "Real World Automotive Benchmarks For Free",
//! WATERS 2015, tables III to V: of each period the share of the runnables, their average execution
//! times (smallest, mean, largest), and the factors from average to best and worst case. The paper
//! gives those three numbers of each distribution and not its shape: drawn here is
//! `min + (max - min) · u^k` with the k that gives the published mean. Factors are uniform.

use punctual_model::{Ns, Span, Work};

use crate::period::whole;
use crate::random::Random;

/// Revolutions per minute at which the angle-synchronous work is densest in [`ROWS`].
pub const ENGINE_RPM: u32 = 2_000;
/// Cylinders of that engine.
pub const CYLINDERS: u32 = 4;

/// One line of the published tables.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Statistics {
    /// Of the runnables; the angle-synchronous ones have that of [`ENGINE_RPM`].
    pub period: Span<Ns>,
    /// Whether the period follows the angle of the crankshaft, so that jobs arrive sporadically.
    pub by_angle: bool,
    /// Share of the runnables, in percent.
    pub share: u32,
    /// Average execution times in microseconds: smallest, mean, largest.
    pub average_us: (f64, f64, f64),
    /// From the average to the best case: smallest and largest factor.
    pub best_factor: (f64, f64),
    /// From the average to the worst case: smallest and largest factor.
    pub worst_factor: (f64, f64),
}

type Range = (f64, f64);

const fn row(ms: u64, share: u32, us: (f64, f64, f64), best: Range, worst: Range) -> Statistics {
    Statistics {
        period: Span::from_ms(ms),
        by_angle: false,
        share,
        average_us: us,
        best_factor: best,
        worst_factor: worst,
    }
}

/// 120 seconds per revolution and cylinder of a four-stroke engine: 15 ms at 2,000 rpm with 4.
const fn angle_period() -> Span<Ns> {
    Span::from_ns(120_000_000_000 / (ENGINE_RPM as u64 * CYLINDERS as u64))
}

/// The published tables; shares sum up to 100.
pub const ROWS: [Statistics; 10] = [
    row(1, 3, (0.34, 5.00, 30.11), (0.19, 0.92), (1.30, 29.11)),
    row(2, 2, (0.32, 4.20, 40.69), (0.12, 0.89), (1.54, 19.04)),
    row(5, 2, (0.36, 11.04, 83.38), (0.17, 0.94), (1.13, 18.44)),
    row(10, 25, (0.21, 10.09, 309.87), (0.05, 0.99), (1.06, 30.03)),
    row(20, 25, (0.25, 8.74, 291.42), (0.11, 0.98), (1.06, 15.61)),
    row(50, 3, (0.29, 17.56, 92.98), (0.32, 0.95), (1.13, 7.76)),
    row(100, 20, (0.21, 10.53, 420.43), (0.09, 0.99), (1.02, 8.88)),
    row(200, 1, (0.22, 2.56, 21.95), (0.45, 0.98), (1.03, 4.90)),
    row(1_000, 4, (0.37, 0.43, 0.46), (0.68, 0.80), (1.84, 4.75)),
    Statistics {
        period: angle_period(),
        by_angle: true,
        share: 15,
        average_us: (0.45, 6.52, 88.58),
        best_factor: (0.13, 0.92),
        worst_factor: (1.20, 28.17),
    },
];

/// A piece of a task's job, as the tables describe it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Runnable {
    /// Its line in [`ROWS`].
    pub row: usize,
    /// Best case.
    pub best: Work<Ns>,
    /// Average case.
    pub average: Work<Ns>,
    /// Worst case.
    pub worst: Work<Ns>,
}

impl Runnable {
    /// Draws one: its line by the shares, its times by that line.
    pub fn draw(random: &mut Random) -> Runnable {
        let row = row_by_share(random.below(100));
        let Statistics {
            average_us: (least, mean, most),
            best_factor,
            worst_factor,
            ..
        } = ROWS[row];
        // The mean of u^k is 1 / (k + 1).
        let exponent = (most - least) / (mean - least) - 1.0;
        let average = least + (most - least) * libm::pow(random.unit(), exponent);
        let mut factor = |(low, high): Range| low + (high - low) * random.unit();
        let (best, worst) = (factor(best_factor), factor(worst_factor));
        let work = |us: f64| Work::from_ns(whole(libm::round(us * 1_000.0)).max(1));
        Runnable {
            row,
            best: work(average * best),
            average: work(average),
            worst: work(average * worst),
        }
    }

    /// Its period.
    pub fn period(&self) -> Span<Ns> {
        ROWS[self.row].period
    }
}

/// The line in which `percent` of 0 to 99 falls when the shares are laid end to end.
fn row_by_share(percent: u64) -> usize {
    let mut upper = 0;
    let found = ROWS.iter().position(|row| {
        upper += u64::from(row.share);
        percent < upper
    });
    found.unwrap_or(ROWS.len() - 1)
}

/// `count` runnables joined into one task per line of [`ROWS`] that occurs, as engine software is
/// built: (line, sum of worst cases). A real engine has about 1,500 runnables. O(count).
pub fn engine_tasks(random: &mut Random, count: usize) -> Vec<(usize, Work<Ns>)> {
    let mut sums = [Work::ZERO; ROWS.len()];
    for _ in 0..count {
        let runnable = Runnable::draw(random);
        sums[runnable.row] = sums[runnable.row].saturating_add(runnable.worst);
    }
    let tasks = sums.into_iter().enumerate();
    tasks.filter(|(_, worst)| !worst.is_zero()).collect()
}
