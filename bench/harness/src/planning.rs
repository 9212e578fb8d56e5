//! How long a plan takes, against the number of segments and the window.

use punctual_count::groups::{Planning, SIZES, row};

use super::counting::is_on;
use super::figure::{Bench, time};

/// Different sets per figure, and how often each is planned for one sample.
const SETS: u64 = if cfg!(debug_assertions) { 2 } else { 200 };
const TIMES: u32 = 20;

pub(super) fn benches() -> Vec<Bench> {
    let bench =
        |(segments, window)| Bench::new(row(segments, window), move || measure(segments, window));
    SIZES.into_iter().map(bench).collect()
}

fn measure(segments: usize, window: usize) -> Result<Vec<f64>, String> {
    let mut samples = Vec::new();
    for seed in 0..SETS {
        let mut set = Planning::new(segments, window, seed)?;
        set.plan()?;
        let mut planned = Ok(0);
        let times = if is_on() { 1 } else { TIMES };
        samples.push(time(times, || {
            for _ in 0..times {
                planned = set.plan();
            }
        }));
        planned?;
    }
    Ok(samples)
}
