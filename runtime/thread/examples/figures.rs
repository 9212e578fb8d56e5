//! Rough figures of the thread library on this machine, in ticks of its clock.
#![allow(clippy::unwrap_used, reason = "an example may panic")]

use std::sync::Arc;

use punctual_linux::clock_rate;
use punctual_model::{Machine, Ns, PolicyKind};
use punctual_thread::sync::{Mutex, Semaphore, SpinMutex};
use punctual_thread::{Constraint, Runtime, thread};

fn ticks() -> u64 {
    thread::now().map_or(0, |now| now.as_ns())
}

/// The median of batch means, in ticks of the time-stamp counter.
fn median(rounds: usize, batch: u64, mut each: impl FnMut()) -> f64 {
    let hertz = clock_rate().frequency;
    let mut all: Vec<u64> = (0..rounds)
        .map(|_| {
            let from = ticks();
            for _ in 0..batch {
                each();
            }
            hertz.ticks_up(ticks() - from)
        })
        .collect();
    all.sort_unstable();
    all[all.len() / 2] as f64 / batch as f64
}

fn main() {
    let policy = PolicyKind::FixedPriority { preemptive: true };
    let runtime = Runtime::on(1, policy)
        .terms(Machine::default())
        .threads(4_200);
    let finished = runtime.main(Constraint::aperiodic(5)).start(|| {
        let high = Constraint::aperiodic(9);
        let create = median(2_000, 20, || {
            let child = thread::spawn("child", high, || ()).unwrap();
            child.join().unwrap();
        });
        let low = Constraint::aperiodic(1);
        let mut made = Vec::with_capacity(4_096);
        let only = median(128, 32, || {
            made.push(thread::spawn("child", low, || ()).unwrap());
        });
        drop(made);
        let lock = Mutex::new(0_u64);
        let uncontended = median(2_000, 100, || {
            *lock.lock().unwrap() += 1;
        });
        let turns = SpinMutex::new(0_u64);
        let turn = median(2_000, 100, || {
            turns.with(|count| *count += 1).unwrap();
        });
        let lock = Arc::new(Mutex::new(0_u64));
        let host = std::sync::Mutex::new(0_u64);
        let theirs = median(2_000, 100, || {
            *host.lock().unwrap() += 1;
        });
        let yields = median(2_000, 100, thread::yield_now);
        let other = Arc::clone(&lock);
        let contends = thread::spawn("contends", high, move || {
            loop {
                thread::block();
                *other.lock().unwrap() += 1;
            }
        });
        let contends = contends.unwrap();
        // It wakes, finds the lock held, waits; gets it when it is unlocked; blocks again.
        let contended = median(2_000, 20, || {
            let held = lock.lock().unwrap();
            contends.wake();
            drop(held);
        });
        [create, only, uncontended, turn, theirs, yields, contended]
    });
    let finished = finished.unwrap();
    let names = [
        "create + join",
        "create",
        "mutex uncontended",
        "spin mutex uncontended",
        "std mutex uncontended",
        "yield without another",
        "mutex contended",
    ];
    println!("{:?}", finished.outcome.mode);
    for (name, ticks) in names.iter().zip(finished.result) {
        println!("{name:24} {ticks:9.1} ticks p50 of batch means");
    }
    ten_thousand(policy);
}

/// Ten thousand threads on one CPU, all of which wait for the same thing.
fn ten_thousand(policy: PolicyKind<Ns>) {
    const MANY: usize = 10_000;
    let runtime = Runtime::on(1, policy)
        .terms(Machine::default())
        .threads(MANY)
        .stack_bytes(16 * 1024);
    let finished = runtime.main(Constraint::aperiodic(5)).start(|| {
        let permits = Arc::new(Semaphore::new(0));
        let mut all = Vec::with_capacity(MANY);
        let begins = median(MANY / 100, 100, || {
            let permits = Arc::clone(&permits);
            let waits = move || permits.acquire().is_ok();
            all.push(thread::spawn("waits", Constraint::aperiodic(9), waits).unwrap());
        });
        let yields = median(500, 100, thread::yield_now);
        let from = ticks();
        for _ in 0..MANY {
            permits.release().unwrap();
        }
        let ended = all.into_iter().filter_map(|thread| thread.join().ok());
        let ended = ended.filter(|&took| took).count();
        (begins, yields, (ticks() - from) / MANY as u64, ended)
    });
    let (begins, yields, ends, ended) = finished.unwrap().result;
    println!("{MANY} threads wait: {begins:.1} ticks p50 to create one and let it wait,");
    println!("  {yields:.1} ticks p50 to yield beside them, {ends} ns each to wake, end and join");
    assert_eq!(ended, MANY);
}
