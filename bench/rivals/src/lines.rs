//! A cache line between two CPUs: the least that two of them can say to each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Samples;
use crate::batch::batches;
use crate::thread::{Place, finish, on, start};

/// Round trips of one batch.
const ROUNDS: u32 = 200;
/// Says that no more will come.
const OVER: u64 = u64::MAX;

/// A message there and its answer back, through two lines that both sides spin on. One unit is once
/// there and back.
///
/// # Errors
/// Without a second CPU.
pub fn there_and_back(place: Place) -> Samples {
    let other = place.other.ok_or("it takes two CPUs")?;
    let lines = Arc::new([Line(AtomicU64::new(0)), Line(AtomicU64::new(0))]);
    let theirs = Arc::clone(&lines);
    let answering = start(place, other, move || {
        let mut last = 0;
        loop {
            match theirs[0].0.load(Ordering::Acquire) {
                OVER => return,
                asked if asked != last => {
                    last = asked;
                    theirs[1].0.store(asked, Ordering::Release);
                }
                _ => std::hint::spin_loop(),
            }
        }
    })?;
    let ours = Arc::clone(&lines);
    let samples = on(place, move || {
        let mut number = 0;
        Ok(batches(ROUNDS, || {
            for _ in 0..ROUNDS {
                number += 1;
                ours[0].0.store(number, Ordering::Release);
                while ours[1].0.load(Ordering::Acquire) != number {
                    std::hint::spin_loop();
                }
            }
        }))
    });
    lines[0].0.store(OVER, Ordering::Release);
    finish(answering)?;
    samples
}

/// A word on a line of its own, and on none that is fetched with it.
#[repr(align(128))]
struct Line(AtomicU64);
