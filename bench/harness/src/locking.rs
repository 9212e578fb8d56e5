//! The lock of a scheduler: what its threads pay to be alone with its queues.
//!
//! Ours for direct schedulers is the helping lock. Its rivals are the ways in which the
//! word could be taken at all, and the locks of the C library and of the kernel.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_direct::{self as direct, DirectReport, HelpingLock, Scheduler};
use punctual_linux::bench::{Taking, take_and_give_back};
use punctual_linux::{Body, JobInfo};
use punctual_rivals::{Samples, contended as taken, locks, on};

use super::counting::units;
use super::figure::{Bench, Measured, of_cycles, time};
use super::live::{Live, Notebook, place};
use super::switching::rival;

/// Pairs of one sample.
const PAIRS: u32 = 500;
/// Contended sections of one sample.
const ROUNDS: u32 = 50;
const SAMPLES: usize = if cfg!(debug_assertions) { 10 } else { 1_000 };
const STACK: usize = 64 * 1024;

pub(super) fn benches() -> Vec<Bench> {
    vec![
        Bench::in_cycles("lock.scheduler", uncontended)
            .against("compare-and-exchange", word(Taking::CompareExchange))
            .against(
                "compare-and-exchange, not locked",
                word(Taking::OnOneProcessor),
            )
            .against("restartable sequence", word(Taking::Restartable))
            .against("rseq", word(Taking::KernelRestartable))
            .against("pthread mutex", rival(locks::pthread_mutex))
            .against("pthread mutex, inheriting", rival(locks::inheriting_mutex))
            .against("futex wake, nobody waits", rival(locks::futex_wake_nobody))
            .against(
                "futex lock and unlock, inheriting",
                rival(locks::futex_lock_pi),
            ),
        Bench::in_cycles("lock.scheduler.contended", contended)
            .against("pthread mutex", rival(taken::pthread_mutex))
            .against("pthread mutex, inheriting", rival(taken::inheriting_mutex)),
    ]
}

/// A word taken and given back in one way, on a kernel thread of its own.
fn word(taking: Taking) -> impl Fn() -> Samples + 'static {
    move || {
        let cycles = on(place()?, move || Ok(take_and_give_back(SAMPLES, taking)))?;
        if cycles.is_empty() {
            return Err("this C library has no area for restartable sequences".into());
        }
        Ok(of_cycles(cycles)?.samples)
    }
}

/// A light thread with a scheduler of its own, whose threads `spawn` makes.
fn scheduler(
    notebook: &Notebook,
    spawn: impl Fn(&mut Scheduler, &Notebook) -> Result<(), String> + Send + 'static,
    judge: impl Fn(&DirectReport) -> Result<(), String> + Send + 'static,
) -> Result<Measured, String> {
    let kept = notebook.clone();
    let measuring: Body = Box::new(move |_: &JobInfo| {
        let done = Scheduler::try_new(2, STACK)
            .map_err(|error| error.to_string())
            .and_then(|mut scheduler| {
                spawn(&mut scheduler, &kept)?;
                judge(&scheduler.run())
            });
        match done {
            Ok(()) => kept.end(),
            Err(why) => kept.fail(why),
        }
    });
    Live::measuring(1, measuring).run(notebook)
}

/// A helping lock, locked and unlocked by the only thread that wants it.
fn uncontended() -> Result<Measured, String> {
    let notebook = Notebook::default();
    let spawn = |scheduler: &mut Scheduler, kept: &Notebook| {
        let kept = kept.clone();
        let body = move || {
            let lock = HelpingLock::new(0_u32);
            kept.take(SAMPLES, || {
                let count = units(PAIRS);
                let pairs = || {
                    for _ in 0..count {
                        if let Ok(mut count) = lock.lock() {
                            *count = count.wrapping_add(1);
                        }
                    }
                };
                Ok(time(count, pairs))
            });
            let all = PAIRS.wrapping_mul(u32::try_from(SAMPLES).unwrap_or(0) + 1);
            if lock.into_inner() != all {
                kept.fail("the lock refused to be locked");
            }
        };
        let spawned = scheduler.spawn(body);
        spawned.map(drop).map_err(|error| error.to_string())
    };
    scheduler(&notebook, spawn, |report| {
        complete(report.panics.is_empty(), report)
    })
}

/// A thread locks and lets another one run, which finds the lock taken, helps, is gone back to,
/// gives it back, and lets the first one run: once round is one unit.
fn contended() -> Result<Measured, String> {
    let notebook = Notebook::default();
    let spawn = |scheduler: &mut Scheduler, kept: &Notebook| {
        let lock = Arc::new(HelpingLock::new(0_u32));
        let over = Arc::new(AtomicBool::new(false));
        let (wanted, seen) = (Arc::clone(&lock), Arc::clone(&over));
        let kept = kept.clone();
        let holder = move || {
            kept.take(SAMPLES, || {
                let count = units(ROUNDS);
                let rounds = || {
                    for _ in 0..count {
                        let held = lock.lock();
                        direct::yield_now();
                        drop(held);
                    }
                };
                Ok(time(count, rounds))
            });
            over.store(true, Ordering::Relaxed);
        };
        let contender = move || {
            while !seen.load(Ordering::Relaxed) {
                if let Ok(mut count) = wanted.lock() {
                    *count = count.wrapping_add(1);
                }
                direct::yield_now();
            }
        };
        let spawned = scheduler.spawn(holder).map_err(|error| error.to_string())?;
        let _ = spawned;
        let spawned = scheduler.spawn(contender);
        spawned.map(drop).map_err(|error| error.to_string())
    };
    // A preemption takes a turn from somebody now and then.
    let enough = u64::from(ROUNDS) * SAMPLES as u64 * 9 / 10;
    scheduler(&notebook, spawn, move |report| {
        complete(report.helped >= enough, report)
    })
}

fn complete(good: bool, report: &DirectReport) -> Result<(), String> {
    match good && report.blocked == 0 {
        true => Ok(()),
        false => Err(format!("its threads did not do their parts: {report:?}")),
    }
}
