//! A mutex that a more urgent thread of the same CPU wants while it is held: a hand-over.
//!
//! The less urgent thread locks, wakes the other one, which preempts it at once and finds the mutex
//! taken, and unlocks. The other one gets it, gives it back, and waits for its next turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;

use crate::Samples;
use crate::batch::batches;
use crate::call::futex;
use crate::locks::Pthread;
use crate::thread::{Place, finish, on, stand_out, start};

/// Hand-overs of one batch.
const ROUNDS: u32 = 50;

/// Hand-overs of a `pthread_mutex`.
///
/// # Errors
/// Without permission for SCHED_FIFO, and when the threads do not take turns.
pub fn pthread_mutex(place: Place) -> Samples {
    hand_overs(place, libc::PTHREAD_PRIO_NONE)
}

/// The same of a mutex with priority inheritance.
///
/// # Errors
/// As above.
pub fn inheriting_mutex(place: Place) -> Samples {
    hand_overs(place, libc::PTHREAD_PRIO_INHERIT)
}

/// What the two threads share.
struct Shared {
    mutex: Pthread,
    /// Turns that have been asked for; odd: no more will be.
    asked: AtomicU32,
    /// Turns that have been had.
    had: AtomicU32,
}

impl Shared {
    fn ask(&self, by: u32) {
        self.asked.fetch_add(by, Ordering::Release);
        let _woken = futex(&self.asked, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
    }
}

fn hand_overs(place: Place, protocol: i32) -> Samples {
    let shared = Arc::new(Shared {
        mutex: Pthread::new(protocol)?,
        asked: AtomicU32::new(0),
        had: AtomicU32::new(0),
    });
    let (ready, is_ready) = channel();
    let theirs = Arc::clone(&shared);
    let urgent = start(place, place.cpu, move || {
        let standing = stand_out(place, 1);
        let permitted = standing.is_ok();
        let _nobody_waits = ready.send(standing);
        if permitted {
            take_turns(&theirs);
        }
    })?;
    let standing = is_ready.recv().map_err(|error| error.to_string());
    standing.and_then(|standing| standing)?;
    let ours = Arc::clone(&shared);
    let samples = on(place, move || {
        let shared = ours;
        let mut asked = 0;
        let samples = batches(ROUNDS, || {
            for _ in 0..ROUNDS {
                shared.mutex.lock();
                shared.ask(2);
                shared.mutex.unlock();
            }
            asked += ROUNDS;
        });
        match shared.had.load(Ordering::Acquire) {
            // The last turn may have been interrupted before it was counted.
            had if had + 1 >= asked => Ok(samples),
            had => Err(format!("{had} hand-overs, not {asked}")),
        }
    });
    shared.ask(1);
    finish(urgent)?;
    samples
}

fn take_turns(shared: &Shared) {
    let mut seen = 0;
    loop {
        let asked = shared.asked.load(Ordering::Acquire);
        if asked % 2 == 1 {
            return;
        }
        if asked == seen {
            let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
            let _woken = futex(&shared.asked, wait, asked);
            continue;
        }
        seen = asked;
        shared.mutex.lock();
        shared.had.fetch_add(1, Ordering::Release);
        shared.mutex.unlock();
    }
}
