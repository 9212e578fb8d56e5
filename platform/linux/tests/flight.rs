//! Light threads on a real CPU: released, preempted, put to sleep, and accounted for.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Log, alone, background, for_ms, periodic, plan};
use punctual_kern::TraceEvent;
use punctual_linux::{Ending, job, run};

#[test]
fn every_release_of_the_duration_becomes_one_job() {
    let _alone = alone();
    let count = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&count);
    let fast = periodic("fast", 2, 2_000, 1_000, move |info| {
        assert_eq!(info.index, seen.fetch_add(1, Ordering::Relaxed));
        assert_eq!((info.arrival_ns + 500_000) / 2_000_000, info.index);
    });
    let outcome = run(
        vec![plan(vec![fast], 10_000, Log::with_room(10_000))],
        &for_ms(100),
    );
    let outcome = outcome.expect("a run");
    assert_eq!(outcome.panics, []);
    assert_eq!(outcome.ending, Ending::Complete);
    assert!(count.load(Ordering::Relaxed) >= 50, "{count:?}");
    assert_eq!(outcome.cpus[0].abandoned, 0);
}

#[test]
fn a_loop_without_calls_is_preempted() {
    let _alone = alone();
    let count = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&count);
    let urgent = periodic("urgent", 2, 1_000, 500, move |_| {
        seen.fetch_add(1, Ordering::Relaxed);
    });
    let stop = Arc::clone(&count);
    let endless = background("endless", 0, move |_| {
        while stop.load(Ordering::Relaxed) < u64::MAX {
            std::hint::spin_loop();
        }
    });
    let outcome = run(
        vec![plan(vec![urgent, endless], 10_000, Log::default())],
        &for_ms(100),
    );
    let outcome = outcome.expect("a run");
    // On a loaded machine without SCHED_FIFO many releases come together, but not all.
    assert!(count.load(Ordering::Relaxed) >= 10);
    let counters = outcome.cpus[0].counters;
    assert!(counters.preemptions >= 10, "{counters:?}");
}

#[test]
fn burning_executes_the_time_that_was_asked_for() {
    let _alone = alone();
    let low = periodic("low", 1, 20_000, 15_000, |_| job::burn_ns(3_000_000));
    let high = periodic("high", 2, 10_000, 5_000, |_| job::burn_ns(1_000_000));
    let sink = Log::with_room(10_000);
    let outcome = run(vec![plan(vec![high, low], 10_000, sink)], &for_ms(200)).expect("a run");
    let rate = outcome.frequency;
    let (mut jobs, mut exceeded) = ([0, 0], 0);
    for (_, event) in &outcome.cpus[0].sink.traces {
        if let TraceEvent::Completed {
            thread, received, ..
        } = event
        {
            jobs[thread.index()] += 1;
            let asked = [1_000_000, 3_000_000][thread.index()];
            let ns = rate.ns_up(received.ticks());
            assert!(ns >= asked, "{thread:?} received {ns}");
            // The entry after the burn belongs to the job, and a hole that falls together with it.
            exceeded += u64::from(ns >= asked + 200_000);
        }
    }
    assert!(jobs[0] >= 20 && jobs[1] >= 10, "{jobs:?}");
    assert!(
        exceeded <= 6,
        "{exceeded} of {jobs:?} jobs were charged 200 us more"
    );
}

#[test]
fn a_panic_ends_its_own_task_and_no_other() {
    let _alone = alone();
    let count = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&count);
    let good = periodic("good", 1, 1_000, 500, move |_| {
        seen.fetch_add(1, Ordering::Relaxed);
    });
    let bad = periodic("bad", 2, 1_000, 900, |info| {
        assert!(info.index < 3, "the fourth job fails");
    });
    let outcome = run(
        vec![plan(vec![good, bad], 10_000, Log::default())],
        &for_ms(50),
    );
    let outcome = outcome.expect("a run");
    assert!(count.load(Ordering::Relaxed) >= 10);
    assert_eq!(outcome.panics.len(), 1);
    assert_eq!(outcome.panics[0].name, "bad");
    assert!(outcome.panics[0].message.contains("the fourth job fails"));
}

#[test]
fn a_sleeping_thread_leaves_the_processor_to_the_others() {
    let _alone = alone();
    let count = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&count);
    let sleeper = periodic("sleeper", 2, 10_000, 1_000, |_| job::sleep_ns(5_000_000));
    let worker = background("worker", 0, move |_| {
        loop {
            seen.fetch_add(1, Ordering::Relaxed);
            job::yield_now();
        }
    });
    let sink = Log::with_room(1_000);
    let outcome = run(vec![plan(vec![sleeper, worker], 10_000, sink)], &for_ms(50));
    let outcome = outcome.expect("a run");
    assert!(count.load(Ordering::Relaxed) > 0);
    let log = &outcome.cpus[0].sink;
    let blocked = log
        .traces
        .iter()
        .filter(|(_, e)| matches!(e, TraceEvent::Blocked { .. }));
    assert!(blocked.count() >= 5);
    // A thread in a call of `job` ends by unwinding; one that was just preempted cannot.
    assert!(outcome.cpus[0].abandoned <= 1);
}
