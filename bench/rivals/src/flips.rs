//! Threads of the kernel that get another class, one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::Samples;
use crate::call::{check, futex};
use crate::thread::{Place, finish, on, stand_out, start};

/// Changes of all threads; each is a sample.
const ROUNDS: u32 = 40;
/// Rounds that are not counted.
const WARM_UP: u32 = 4;

/// `sched_setscheduler` for each of `threads` that are ready below the caller on its CPU: from
/// SCHED_FIFO to SCHED_RR and back, in nanoseconds for all of them. Without real time they go from
/// SCHED_OTHER to SCHED_BATCH and back.
///
/// # Errors
/// When the kernel refuses a thread or a class.
pub fn flips(place: Place, threads: u32) -> Samples {
    let word = Arc::new(AtomicU32::new(0));
    let (tell, hear) = channel();
    let mut all = Vec::new();
    let mut started = Ok(());
    for _ in 0..threads {
        match sleeper(place, &word, &tell) {
            Ok(thread) => all.push(thread),
            Err(error) => started = Err(error),
        }
        if started.is_err() {
            break;
        }
    }
    let ids: Vec<i32> = hear.iter().take(all.len()).collect();
    let theirs = Arc::clone(&word);
    let samples = started.and_then(|()| on(place, move || flip_all(place, &theirs, &ids)));
    // Odd: they end.
    let _odd = word.fetch_or(1, Ordering::Release);
    wake(&word);
    for thread in all {
        finish(thread)?;
    }
    samples
}

/// A thread that sleeps until it is woken, and again.
fn sleeper(
    place: Place,
    word: &Arc<AtomicU32>,
    tell: &Sender<i32>,
) -> Result<JoinHandle<()>, String> {
    let (word, tell) = (Arc::clone(word), tell.clone());
    start(place, place.cpu, move || {
        // SAFETY: it only asks for a number.
        let id = unsafe { libc::gettid() };
        let _nobody_hears = tell.send(id);
        loop {
            let seen = word.load(Ordering::Acquire);
            if seen & 1 == 1 {
                return;
            }
            let _ = futex(&word, libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, seen);
        }
    })
}

fn wake(word: &AtomicU32) {
    let everybody = i32::MAX.unsigned_abs();
    let _woken = futex(word, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, everybody);
}

fn flip_all(place: Place, word: &AtomicU32, ids: &[i32]) -> Samples {
    let is_urgent = stand_out(place, 1).is_ok();
    let classes = match is_urgent {
        true => [(libc::SCHED_RR, 50), (libc::SCHED_FIFO, 50)],
        false => [(libc::SCHED_BATCH, 0), (libc::SCHED_OTHER, 0)],
    };
    let mut samples = Vec::new();
    for round in 0..WARM_UP + ROUNDS {
        // Below this thread they become ready, and wait for it.
        let _even = word.fetch_add(2, Ordering::Release);
        wake(word);
        let (class, priority) = classes[(round % 2) as usize];
        let parameter = libc::sched_param {
            sched_priority: priority,
        };
        let begun = Instant::now();
        for &id in ids {
            // SAFETY: the parameter lives during the call; the thread is one of this process.
            let changed = unsafe { libc::sched_setscheduler(id, class, &raw const parameter) };
            check("sched_setscheduler", changed)?;
        }
        if round >= WARM_UP {
            samples.push(begun.elapsed().as_nanos() as f64);
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    Ok(samples)
}
