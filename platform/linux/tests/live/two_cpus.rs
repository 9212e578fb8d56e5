//! Precedence between CPUs: news travels through rings, to CPUs that run and CPUs that sleep.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{Log, alone, background, for_ms, input, periodic};
use punctual_kern::{Edge, Source};
use punctual_linux::{Ending, RunOptions, clock_rate, job, run};
use punctual_model::{CpuId, Instant, Span, ThreadId};

/// The producer of CPU 0 and the consumer of CPU 1 with its precedence; `spin` keeps the
/// consumer's CPU busy, so that news has to interrupt it.
fn relay(spin: bool) {
    let _alone = alone();
    let host = crate::common::test_cpu();
    if host == 0 {
        println!("skipped: needs two CPUs");
        return;
    }
    let done = Arc::new(AtomicU64::new(0));
    let (made, taken) = (Arc::clone(&done), Arc::new(AtomicU64::new(0)));
    let eaten = Arc::clone(&taken);
    let producer = periodic("producer", 1, 5_000, 2_000, move |info| {
        job::burn_ns(200_000);
        made.store(info.index + 1, Ordering::SeqCst);
    });
    let consumer = periodic("consumer", 1, 5_000, 2_000, move |info| {
        assert!(
            done.load(Ordering::SeqCst) > info.index,
            "job {} came too early",
            info.index
        );
        eaten.fetch_add(1, Ordering::SeqCst);
    });
    let mut second = vec![consumer];
    if spin {
        second.push(background("spinner", 0, |_| {
            loop {
                std::hint::spin_loop();
            }
        }));
    }
    let mut inputs = vec![
        input(vec![producer], 10_000, Log::default()),
        input(second, 10_000, Log::default()),
    ];
    inputs[0].host = 0;
    inputs[1].name = "1".to_owned();
    let first = ThreadId::new(0, 0);
    let period = Span::from_ticks(clock_rate().frequency.ticks_up(5_000_000));
    let slot = inputs[1].shard.add_remote(Instant::ZERO, Some(period));
    let edge = Edge {
        from: Source::Remote { slot },
        strict: false,
    };
    inputs[1]
        .shard
        .add_precedence(first, edge)
        .expect("both are there");
    inputs[0]
        .shard
        .add_notification(first, CpuId(1), slot)
        .expect("it is there");
    // Without SCHED_FIFO: a test must not take both CPUs from the rest of the machine.
    let options = RunOptions {
        real_time: false,
        ..for_ms(200)
    };
    let outcome = run(inputs, &options).expect("a run");
    assert_eq!(outcome.panics, []);
    assert_eq!(outcome.ending, Ending::Complete);
    assert!(taken.load(Ordering::SeqCst) >= 40, "{taken:?}");
}

#[test]
fn a_sleeping_cpu_hears_that_a_predecessor_is_done() {
    relay(false);
}

#[test]
fn a_busy_cpu_hears_that_a_predecessor_is_done() {
    relay(true);
}
