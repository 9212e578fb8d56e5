//! Threads that are created, admitted, woken and joined while the program runs.
//!
//! `cargo run --release --example threads -p punctual -- threads.log`, then `punctual report
//! threads.log` and `punctual replay threads.log`.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;

use punctual::sync::{Mutex, Queue, WaitError};
use punctual::thread::{self, SpawnError};
use punctual::{Constraint, PolicyKind, Runtime, Span, Work, judge, record, trace};

/// A sample every 2 ms, handed on to whoever waits for it.
fn sensor(samples: &Queue<u64>) -> Result<u64, WaitError> {
    for number in 0..100 {
        samples.send(number).map_err(|error| error.why)?;
        // The body of a periodic thread is a loop around this call.
        if thread::wait_next_period().is_err() {
            return Err(WaitError::NoRun);
        }
    }
    Ok(100)
}

/// What the first thread does: the run ends when it returns.
fn first() -> Result<(u64, u64), SpawnError> {
    let samples = Arc::new(Queue::new(8));
    let sum = Arc::new(Mutex::new(0));

    // Guaranteed: 200 us in every 2 ms. The analysis is asked before the thread exists.
    let every = Constraint::periodic(Span::from_ms(2), Work::from_us(200));
    let outbox = Arc::clone(&samples);
    let sensor = thread::spawn("sensor", every, move || sensor(&outbox))?;

    // What is left of the processor, for the rest. It blocks until there is a sample.
    let (inbox, total) = (Arc::clone(&samples), Arc::clone(&sum));
    let adder = thread::spawn("adder", Constraint::aperiodic(1), move || {
        while let Ok(sample) = inbox.receive() {
            *total.lock()? += sample;
        }
        Ok::<(), WaitError>(())
    })?;

    // Nothing is left of this processor for a thread that wants all of it.
    let all = Constraint::reservation(Span::from_ms(10), Work::from_ms(10));
    if let Err(error) = thread::spawn("greedy", all, || ()) {
        println!("{error}");
    }

    let sent = sensor.join().ok().and_then(Result::ok).unwrap_or(0);
    // It has nothing more to wait for; it unwinds and gives back what it holds.
    adder.cancel();
    let _ = adder.join();
    let total = sum.lock().map(|sum| *sum).map_err(SpawnError::Busy)?;
    Ok((sent, total))
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::on(0, PolicyKind::EarliestDeadlineFirst).threads(16);
    // `runtime.start(first)` does the same without a record.
    let recorded = record(runtime, 16 << 20, first)?;
    let (sent, total) = recorded.result.ok_or("the first thread has not ended")??;
    println!("{sent} samples, their sum is {total}");
    println!("{}", judge(&recorded.log));
    if let Some(path) = std::env::args_os().nth(1) {
        trace::text::write(&recorded.log, &mut BufWriter::new(File::create(path)?))?;
    }
    if total != 100 * 99 / 2 {
        return Err("a sample was lost".into());
    }
    Ok(())
}
