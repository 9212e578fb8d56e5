//! Two periodic threads with guarantees, in a plain Rust program.
//!
//! `cargo run --release --example two_threads -p punctual`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual::{Error, Periodic, PolicyKind, Program, Span};

fn main() -> Result<(), Error> {
    let samples = Arc::new(AtomicU64::new(0));
    let mut program = Program::new();
    let cpu = program.cpu(0, PolicyKind::FixedPriority { preemptive: true });

    let sensor = Arc::clone(&samples);
    let timing = Periodic::every(Span::from_ms(5)).wcet_us(200).priority(2);
    program.periodic(cpu, "sensor", timing, move |_| {
        sensor.fetch_add(1, Ordering::Relaxed);
    });

    let logged = Arc::clone(&samples);
    let timing = Periodic::every(Span::from_ms(100))
        .wcet_us(1_000)
        .priority(1);
    program.periodic(cpu, "logger", timing, move |job| {
        println!(
            "job {:2}: {} samples",
            job.job,
            logged.load(Ordering::Relaxed)
        );
    });

    println!("{}", program.run_for(Span::from_ms(1_000))?);
    Ok(())
}
