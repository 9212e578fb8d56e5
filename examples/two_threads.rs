//! Two periodic threads with guarantees, in a plain Rust program.
//!
//! `cargo run --release --example two_threads -p punctual`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual::{Constraint, Error, PolicyKind, Program, Span, Work};

fn main() -> Result<(), Error> {
    let samples = Arc::new(AtomicU64::new(0));
    let mut program = Program::new();
    let cpu = program.cpu(0, PolicyKind::FixedPriority { preemptive: true });

    let sensor = Arc::clone(&samples);
    let every = Constraint::periodic(Span::from_ms(5), Work::from_us(200));
    program.task(cpu, "sensor", every.priority(2), move |_| {
        sensor.fetch_add(1, Ordering::Relaxed);
    });

    let logged = Arc::clone(&samples);
    let every = Constraint::periodic(Span::from_ms(100), Work::from_ms(1));
    program.task(cpu, "logger", every.priority(1), move |job| {
        println!(
            "job {:2}: {} samples",
            job.job,
            logged.load(Ordering::Relaxed)
        );
    });

    println!("{}", program.run_for(Span::from_ms(1_000))?);
    Ok(())
}
