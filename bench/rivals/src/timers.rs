//! How late a thread of the kernel wakes that asked for an instant, as cyclictest measures it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::Samples;
use crate::batch::singles;
use crate::call::{now, sleep_until};
use crate::thread::{Place, deadline_class, finish, on, stand_out, start};

/// The period of the wake-ups.
const PERIOD_NS: i64 = 1_000_000;

/// No figure takes so long.
const LONGEST: Duration = Duration::from_secs(3);

/// The same beside a thread of the same CPU that computes without a call, and is less urgent.
///
/// # Errors
/// Without permission for SCHED_FIFO, and when the kernel refuses.
pub fn nanosleep_busy(place: Place) -> Samples {
    let over = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&over);
    let (ready, is_ready) = channel();
    let busy = start(place, place.cpu, move || {
        let standing = stand_out(place, -1);
        let permitted = standing.is_ok();
        let _nobody_waits = ready.send(standing);
        // Whoever sets the flag may have no other CPU than this one.
        let started = Instant::now();
        while permitted && !seen.load(Ordering::Relaxed) && started.elapsed() < LONGEST {
            std::hint::spin_loop();
        }
    })?;
    let standing = is_ready.recv().map_err(|error| error.to_string());
    let samples = standing
        .and_then(|standing| standing)
        .and_then(|()| nanosleep(place));
    over.store(true, Ordering::Relaxed);
    finish(busy)?;
    samples
}

/// `clock_nanosleep` to absolute instants, each a millisecond after the one before.
///
/// # Errors
/// When the kernel refuses.
pub fn nanosleep(place: Place) -> Samples {
    on(place, || {
        let mut next = now()? + PERIOD_NS;
        singles(|| {
            sleep_until(next)?;
            let at = now()?;
            let late = at - next;
            // A thread that woke too late for its next instants takes the first that is left.
            next += PERIOD_NS * (late.max(0) / PERIOD_NS + 1);
            Ok(late as f64)
        })
    })
}

/// A thread under SCHED_DEADLINE that gives up the rest of its budget in each millisecond: by how
/// much the distance of two wake-ups differs from the period, since the kernel does not tell when
/// the period began.
///
/// # Errors
/// When the kernel refuses: to ordinary users, or to threads that are pinned.
pub fn deadline(place: Place) -> Samples {
    // The kernel refuses threads that may not run everywhere.
    if !place.real_time {
        return Err("not asked for".into());
    }
    let anywhere = std::thread::spawn(|| {
        let period = PERIOD_NS.unsigned_abs();
        deadline_class(200_000, period, period)?;
        std::thread::yield_now();
        let mut last = now()?;
        singles(|| {
            std::thread::yield_now();
            let at = now()?;
            let off = (at - last - PERIOD_NS).abs();
            last = at;
            Ok(off as f64)
        })
    });
    finish(anywhere)?
}
