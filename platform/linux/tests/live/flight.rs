//! Light threads on a real CPU: released, preempted, put to sleep, and accounted for.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{Log, alone, background, for_ms, input, periodic, until_stopped};
use punctual_kern::TraceEvent;
use punctual_linux::{Ending, GiveBack, RunOptions, job, run};

#[test]
fn every_release_of_the_duration_becomes_one_job() {
    let _alone = alone();
    let count = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&count);
    let fast = periodic("fast", 2, 2_000, 1_000, move |info| {
        assert_eq!(info.index, seen.fetch_add(1, Ordering::Relaxed));
        assert_eq!((info.arrival_ns + 500_000) / 2_000_000, info.index);
    });
    // It ends when the jobs have: a loaded machine has as long for them as it takes.
    let options = RunOptions {
        grace_ns: 60_000_000_000,
        ..for_ms(100)
    };
    let input = input(vec![fast], 10_000, Log::with_room(10_000));
    let outcome = run(vec![input], &options).expect("a run");
    assert_eq!(outcome.panics, []);
    assert_eq!(outcome.ending, Ending::Complete);
    assert!(count.load(Ordering::Relaxed) >= 50, "{count:?}");
    assert_eq!(outcome.cpus[0].abandoned, 0);
}

#[test]
fn a_loop_without_calls_is_preempted() {
    let _alone = alone();
    let options = until_stopped();
    let stop = Arc::clone(&options.stop);
    let rounds = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&rounds);
    // A loop that went on between two jobs was interrupted for the second.
    let (mut before, mut interruptions) = (0, 0);
    let urgent = periodic("urgent", 2, 1_000, 500, move |_| {
        let now = seen.load(Ordering::Relaxed);
        interruptions += u64::from(now != before);
        before = now;
        stop.fetch_or(interruptions >= 10, Ordering::Relaxed);
    });
    let endless = background("endless", 0, move |_| {
        loop {
            rounds.fetch_add(1, Ordering::Relaxed);
        }
    });
    let input = input(vec![urgent, endless], 10_000, Log::default());
    let outcome = run(vec![input], &options).expect("a run");
    assert_eq!(outcome.ending, Ending::Stopped);
    let counters = outcome.cpus[0].counters;
    assert!(counters.preemptions >= 10, "{counters:?}");
}

#[test]
fn a_timer_that_is_set_early_lets_nobody_begin_early() {
    let _alone = alone();
    let options = RunOptions {
        early_ns: 500_000,
        ..until_stopped()
    };
    let stop = Arc::clone(&options.stop);
    let early = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&early);
    let urgent = periodic("urgent", 2, 1_000, 500, move |info| {
        let now = job::now_ns().expect("of a light thread");
        seen.fetch_add(u64::from(now < info.arrival_ns), Ordering::Relaxed);
        // The margin grows by 0.5 us with each timer that is late: it is beyond most by then.
        stop.fetch_or(info.index >= 1_000, Ordering::Relaxed);
    });
    let endless = background("endless", 0, |_| {
        loop {
            std::hint::spin_loop();
        }
    });
    let input = input(vec![urgent, endless], 10_000, Log::default());
    let outcome = run(vec![input], &options).expect("a run");
    assert_eq!(outcome.ending, Ending::Stopped);
    assert_eq!(early.load(Ordering::Relaxed), 0);
    let counters = outcome.cpus[0].counters;
    assert!(counters.early_timers > 0, "{counters:?}");
}

/// Runs until a loop of `step` has been interrupted ten times more at its checkpoints than
/// elsewhere, or the other way round.
fn interrupted(promise_ns: u64, at_checkpoints: bool, step: impl Fn() + Send + 'static) {
    let options = until_stopped();
    let stop = Arc::clone(&options.stop);
    let is_there = Arc::new(AtomicBool::new(false));
    let (rounds, asks) = (Arc::new(AtomicU64::new(0)), Arc::clone(&is_there));
    let seen = Arc::clone(&rounds);
    let (mut before, mut more) = (0, 0_i64);
    let urgent = periodic("urgent", 2, 1_000, 500, move |_| {
        let now = seen.load(Ordering::Relaxed);
        if now != before {
            let there = is_there.load(Ordering::Relaxed) == at_checkpoints;
            more += if there { 1 } else { -1 };
        }
        before = now;
        stop.fetch_or(more >= 10, Ordering::Relaxed);
    });
    let endless = background("endless", 0, move |_| {
        job::promise_checkpoints(promise_ns);
        loop {
            rounds.fetch_add(1, Ordering::Relaxed);
            step();
            asks.store(true, Ordering::Relaxed);
            job::checkpoint();
            asks.store(false, Ordering::Relaxed);
        }
    });
    let input = input(vec![urgent, endless], 10_000, Log::default());
    let outcome = run(vec![input], &options).expect("a run");
    assert_eq!(outcome.ending, Ending::Stopped);
}

/// Reads the clock so often; nothing of it is a checkpoint.
fn look(times: u32) {
    (0..times).for_each(|_| {
        std::hint::black_box(std::time::Instant::now());
    });
}

#[test]
fn who_promises_checkpoints_is_preempted_there() {
    let _alone = alone();
    // The loop is hardly ever at its checkpoint: a signal would find it elsewhere.
    interrupted(10_000_000, true, || look(200));
}

#[test]
fn who_breaks_the_promise_is_preempted_all_the_same() {
    let _alone = alone();
    interrupted(1_000_000, false, || look(200_000));
}

#[test]
fn who_promises_checkpoints_and_has_nothing_to_wait_for_learns_that_the_run_is_over() {
    let _alone = alone();
    let options = RunOptions {
        give_back: GiveBack::Nothing,
        ..until_stopped()
    };
    let stop = Arc::clone(&options.stop);
    let rounds = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&rounds);
    let endless = background("endless", 0, move |_| {
        job::promise_checkpoints(10_000_000);
        loop {
            rounds.fetch_add(1, Ordering::Relaxed);
            // Entries at which nothing is due, which set the timer again.
            job::yield_now();
            job::checkpoint();
        }
    });
    let other = std::thread::spawn(move || {
        // It ends in any case: then the run ends by its watchdog.
        let begun = std::time::Instant::now();
        while seen.load(Ordering::Relaxed) < 1_000 && begun.elapsed().as_secs() < 60 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let input = input(vec![endless], 10_000, Log::default());
    let outcome = run(vec![input], &options).expect("a run");
    other.join().expect("it does not panic");
    assert_eq!(outcome.ending, Ending::Stopped);
}

#[test]
fn burning_executes_the_time_that_was_asked_for() {
    let _alone = alone();
    let options = until_stopped();
    let stop = Arc::clone(&options.stop);
    // The work of each burn, without the way from the release to the body, which may be cold.
    let burns = Arc::new([Mutex::new(Vec::new()), Mutex::new(Vec::new())]);
    let seen = Arc::clone(&burns);
    let burn = move |of: usize, ns| {
        let work = || job::executed().expect("in a run").1;
        let before = work();
        job::burn_ns(ns);
        let burned = work().ticks() - before.ticks();
        let mut all = seen[of].lock().expect("no burn panics");
        all.push(burned);
        all.len()
    };
    let jobs = Arc::new(AtomicUsize::new(0));
    let ended = Arc::clone(&jobs);
    let burn_low = burn.clone();
    // So little that it is not too much for the part of a loaded processor that this one gets.
    let high = periodic("high", 2, 40_000, 5_000, move |_| {
        ended.store(burn(0, 1_000_000), Ordering::Relaxed);
    });
    let low = periodic("low", 1, 80_000, 15_000, move |_| {
        let enough = burn_low(1, 3_000_000) > 6 && jobs.load(Ordering::Relaxed) > 12;
        stop.fetch_or(enough, Ordering::Relaxed);
    });
    let input = input(vec![high, low], 10_000, Log::with_room(100_000));
    let outcome = run(vec![input], &options).expect("a run");
    assert_eq!(outcome.ending, Ending::Stopped);
    let rate = outcome.frequency;
    let asked = [1_000_000, 3_000_000];
    for (_, event) in &outcome.cpus[0].sink.traces {
        if let TraceEvent::Completed {
            thread, received, ..
        } = event
        {
            let received = rate.ns_up(received.ticks());
            assert!(received >= asked[thread.index()], "{event:?}");
        }
    }
    for (burned, asked) in burns.iter().zip(asked) {
        let burned = burned.lock().expect("no burn panics");
        let burned: Vec<u64> = burned.iter().map(|&ticks| rate.ns_up(ticks)).collect();
        let shortest = *burned.iter().min().expect("each has burned");
        // The two entries around a burn belong to it, and a hole that falls together with one. An
        // ordinary user's thread is taken away so often that only the shortest tells. (It may even
        // be shorter than was asked: a hole just before a burn is seen when that has begun.)
        assert!(shortest < asked + 500_000, "{burned:?}");
    }
}

#[test]
fn a_panic_ends_its_own_task_and_no_other() {
    /// Is dropped with its body.
    struct Ends(Arc<AtomicBool>);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let _alone = alone();
    let options = until_stopped();
    let stop = Arc::clone(&options.stop);
    let ended = Arc::new(AtomicBool::new(false));
    let ends = Ends(Arc::clone(&ended));
    let mut after = 0;
    let good = periodic("good", 1, 1_000, 500, move |_| {
        after += u64::from(ended.load(Ordering::Relaxed));
        stop.fetch_or(after == 10, Ordering::Relaxed);
    });
    let bad = periodic("bad", 2, 1_000, 900, move |info| {
        let _ = &ends;
        assert!(info.index < 3, "the fourth job fails");
    });
    let input = input(vec![good, bad], 10_000, Log::default());
    let outcome = run(vec![input], &options).expect("a run");
    assert_eq!(outcome.ending, Ending::Stopped);
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
    let outcome = run(
        vec![input(vec![sleeper, worker], 10_000, sink)],
        &for_ms(50),
    );
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
