//! What the kernel offers for the same: `sched_yield` and a futex, between two threads of one CPU.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Builder, Thread};
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::figure::time;

/// Round trips of one sample.
const ROUNDS: u32 = 100;
const SAMPLES: u32 = if cfg!(debug_assertions) { 20 } else { 500 };

/// The last CPU that this process may use: the first ones have more of everybody's work.
pub(crate) fn quiet_cpu() -> Result<u32, String> {
    let allowed = sched_getaffinity(None).map_err(|error| error.to_string())?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|&cpu| allowed.is_set(cpu));
    last.and_then(|cpu| u32::try_from(cpu).ok())
        .ok_or_else(|| "no CPU may be used".into())
}

/// Nanoseconds per `sched_yield` while both threads do nothing else.
pub(super) fn sched_yield() -> Result<Vec<f64>, String> {
    let done = Arc::new(AtomicBool::new(false));
    let yields = Arc::new(AtomicU64::new(0));
    let (finished, counted) = (Arc::clone(&done), Arc::clone(&yields));
    let other = pinned(move || {
        while !finished.load(Ordering::Relaxed) {
            thread::yield_now();
            counted.fetch_add(1, Ordering::Relaxed);
        }
    })?;
    let ours = pinned(move || {
        let sample = |_| {
            let before = yields.load(Ordering::Relaxed);
            let all = time(1, || (0..ROUNDS).for_each(|_| thread::yield_now()));
            let others = yields.load(Ordering::Relaxed) - before;
            all / f64::from(ROUNDS.saturating_add(u32::try_from(others).unwrap_or(u32::MAX)))
        };
        let samples = (0..SAMPLES).map(sample).collect();
        done.store(true, Ordering::Relaxed);
        samples
    })?;
    let samples = ours.join().map_err(|_| "the measuring thread ended early");
    other.join().map_err(|_| "the other thread ended early")?;
    Ok(samples?)
}

/// Nanoseconds from waking the other thread to its running: one way of a futex ping-pong.
pub(super) fn futex() -> Result<Vec<f64>, String> {
    let ball = Arc::new(Ball::default());
    let theirs = Arc::clone(&ball);
    let other = pinned(move || {
        while theirs.await_side(true) {
            theirs.pass(false, None);
        }
    })?;
    let partner = other.thread().clone();
    let ours = pinned(move || {
        ball.first.get_or_init(thread::current);
        let round = |_| {
            ball.pass(true, Some(&partner));
            ball.await_side(false);
        };
        let sample = |_| time(2 * ROUNDS, || (0..ROUNDS).for_each(round));
        let samples = (0..SAMPLES).map(sample).collect();
        ball.over.store(true, Ordering::Release);
        partner.unpark();
        samples
    })?;
    let samples = ours.join().map_err(|_| "the measuring thread ended early");
    other.join().map_err(|_| "the other thread ended early")?;
    Ok(samples?)
}

/// Nanoseconds that a kernel thread sleeps too long, while another one computes on its CPU.
pub(super) fn nanosleep() -> Result<Vec<f64>, String> {
    let done = Arc::new(AtomicBool::new(false));
    let finished = Arc::clone(&done);
    let busy = pinned(move || {
        while !finished.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    })?;
    let sleeper = pinned(move || {
        let asleep = Duration::from_millis(1);
        let late = |_| time(1, || thread::sleep(asleep)) - asleep.as_secs_f64() * 1e9;
        let samples = (0..SAMPLES).map(late).collect();
        done.store(true, Ordering::Relaxed);
        samples
    })?;
    let samples = sleeper
        .join()
        .map_err(|_| "the measuring thread ended early");
    busy.join().map_err(|_| "the other thread ended early")?;
    Ok(samples?)
}

/// What two threads hand to each other. `park` and `unpark` are a futex.
#[derive(Default)]
struct Ball {
    with_second: AtomicBool,
    over: AtomicBool,
    first: std::sync::OnceLock<Thread>,
}

impl Ball {
    fn pass(&self, to_second: bool, second: Option<&Thread>) {
        self.with_second.store(to_second, Ordering::Release);
        if let Some(thread) = second.or(self.first.get()) {
            thread.unpark();
        }
    }

    /// Waits for the ball; `false` when the game is over.
    fn await_side(&self, second: bool) -> bool {
        while self.with_second.load(Ordering::Acquire) != second {
            if self.over.load(Ordering::Acquire) {
                return false;
            }
            thread::park();
        }
        true
    }
}

/// A thread on the quiet CPU.
fn pinned<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<thread::JoinHandle<T>, String> {
    let cpu = quiet_cpu()?;
    let pin = move || {
        let mut set = CpuSet::new();
        set.set(cpu as usize);
        // Unpinned, the two threads would run side by side, which makes the rival faster: no harm.
        let _ = sched_setaffinity(None, &set);
        work()
    };
    Builder::new()
        .name("punctual/rival".into())
        .spawn(pin)
        .map_err(|error| error.to_string())
}
