//! Batches: as many as fit into the time that one rival gets.

use std::time::{Duration, Instant};

/// Batches of one figure.
const BATCHES: usize = if cfg!(debug_assertions) { 20 } else { 1_000 };

/// The longest that one figure takes.
const AT_MOST: Duration = Duration::from_millis(if cfg!(debug_assertions) { 200 } else { 1_000 });

/// Means of batches of `units` each, in nanoseconds, after one that warms up.
pub(crate) fn batches(units: u32, mut batch: impl FnMut()) -> Vec<f64> {
    batch();
    let started = Instant::now();
    let mut samples = Vec::with_capacity(BATCHES);
    while samples.len() < BATCHES && started.elapsed() < AT_MOST {
        let start = Instant::now();
        batch();
        samples.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(units.max(1)));
    }
    samples
}

/// Samples that `sample` gives by itself, in nanoseconds.
pub(crate) fn singles(mut sample: impl FnMut() -> Result<f64, String>) -> Result<Vec<f64>, String> {
    let started = Instant::now();
    let mut samples = Vec::with_capacity(BATCHES);
    while samples.len() < BATCHES && started.elapsed() < AT_MOST {
        samples.push(sample()?);
    }
    Ok(samples)
}
