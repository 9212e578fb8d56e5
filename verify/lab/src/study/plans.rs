//! Studies of the planner of groups: no clock and no price, the seed alone decides.
//!
//! `plan-success`, `plan-switches`, `plan-homes`, `plan-times` (note 0087).

mod groups;
mod homes;
mod shown;
mod success;
mod switches;
mod times;

use punctual_planner::Mistake;

pub(crate) use homes::{LOADS, MULTIPLIERS, unit as homes};
pub(crate) use shown::{charts, table};
pub(crate) use success::{SETTINGS, unit as success};
pub(crate) use switches::{PROBABILITIES, unit as switches};
pub(crate) use times::{ALLOWED_US, Pacing, SIZES, unit as times};

/// A segment or an order that found no room: a mistake of the study.
fn mistaken(mistake: Mistake) -> String {
    mistake.to_string()
}

/// The mean of some runs, and half the width of its 95 % interval.
///
/// Student's t, from 5 runs on within 2 % of the tables.
fn interval(values: &[f64]) -> (f64, f64) {
    let count = f64::from(u32::try_from(values.len()).unwrap_or(u32::MAX));
    let mean = values.iter().sum::<f64>() / count.max(1.0);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let free = (count - 1.0).max(1.0);
    let t = 1.96 + 2.37 / free + 2.8 / (free * free);
    (mean, t * (squares / free / count.max(1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_that_of_student() {
        // Tables: t of 4 degrees is 2.776, of 49 it is 2.010.
        let few = [1.0, 2.0, 3.0, 4.0, 5.0];
        let (mean, half) = interval(&few);
        assert!((mean - 3.0).abs() < 1e-9);
        assert!(
            (half / (0.5_f64).sqrt() / 2.776 - 1.0).abs() < 0.02,
            "{half}"
        );
        let many: Vec<f64> = (0..50).map(f64::from).collect();
        let (_, half) = interval(&many);
        let error = (49.0 * 51.0 * 50.0 / 12.0 / 49.0 / 50.0_f64).sqrt();
        assert!((half / error / 2.010 - 1.0).abs() < 0.02, "{half} {error}");
    }
}
