//! Measures each step: the figures behind the wcets of `examples/rosace.toml`.
//!
//! ```text
//! cargo run --release -p punctual-rosace --example measure
//! ```
//!
//! Every figure contains one reading of the clock. *Warm* repeats the whole controller without a
//! pause; *cold* walks through a buffer larger than the second-level cache before each round, as a
//! machine does that works on something else between two releases. The largest values contain
//! whatever the machine did meanwhile (interrupts, a hypervisor): they are not the steps' own.

use std::hint::black_box;
use std::time::Instant;

use punctual_rosace::RosaceWorkload;
use punctual_thread::{JobContext, Step, Workload};

const WARM_ROUNDS: u64 = 200_000;
const COLD_ROUNDS: u64 = 2_000;
const EVICTED_BYTES: usize = 16 << 20;

/// Durations of one step, in nanoseconds.
struct Series(Vec<u64>);

impl Series {
    fn line(&mut self) -> String {
        self.0.sort_unstable();
        let at = |per_mille: usize| {
            let index = (self.0.len() * per_mille / 1000).min(self.0.len().saturating_sub(1));
            self.0.get(index).copied().unwrap_or(0)
        };
        format!(
            "{:>8} {:>8} {:>8} {:>10}",
            at(500),
            at(990),
            at(999),
            at(1000)
        )
    }
}

/// Times each step in `rounds` rounds; `before` is called before each round, untimed.
fn measure(steps: &mut [Step], rounds: u64, mut before: impl FnMut()) -> Vec<Series> {
    let mut series: Vec<Series> = steps.iter().map(|_| Series(Vec::new())).collect();
    for job in 0..rounds {
        before();
        for (step, series) in steps.iter_mut().zip(&mut series) {
            let start = Instant::now();
            step(JobContext { job, arrival_ns: 0 });
            let ns = start.elapsed().as_nanos();
            series.0.push(u64::try_from(ns).unwrap_or(u64::MAX));
        }
    }
    series
}

fn main() {
    let mut rosace = RosaceWorkload::new();
    let names = rosace.steps();
    let mut steps: Vec<Step> = names.iter().filter_map(|name| rosace.step(name)).collect();
    let mut warm = measure(&mut steps, WARM_ROUNDS, || {});
    let mut buffer = vec![0_u8; EVICTED_BYTES];
    let mut cold = measure(&mut steps, COLD_ROUNDS, || {
        for line in buffer.iter_mut().step_by(64) {
            *line = line.wrapping_add(1);
        }
        black_box(&mut buffer);
    });
    println!("nanoseconds        warm, N = {WARM_ROUNDS:<22} cold, N = {COLD_ROUNDS}");
    println!(
        "step               p50      p99    p99.9        max       p50      p99    p99.9        max"
    );
    for ((name, warm), cold) in names.iter().zip(&mut warm).zip(&mut cold) {
        println!("{name:<13} {}  {}", warm.line(), cold.line());
    }
}
