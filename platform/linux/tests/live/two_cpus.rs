//! Precedence between CPUs: news travels through rings, to CPUs that run and CPUs that sleep.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common::{Log, alone, background, for_ms, input, periodic, until_stopped};
use punctual_kern::{Edge, Source};
use punctual_linux::{CpuInput, Ending, RunOptions, clock_rate, job, run};
use punctual_model::{Class, CpuId, Instant, Ns, Span, ThreadId};
use punctual_policy::FixedPriority;

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
    connect(&mut inputs, 5_000);
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

/// The first thread of CPU 1 waits for that of CPU 0, job by job; both come once in `period_us`.
fn connect(inputs: &mut [CpuInput<FixedPriority, Log>], period_us: u64) {
    let first = ThreadId::new(0, 0);
    let period = Span::from_ticks(clock_rate().frequency.ticks_up(period_us * 1_000));
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
}

#[test]
fn a_sleeping_cpu_hears_that_a_predecessor_is_done() {
    relay(false);
}

#[test]
fn a_busy_cpu_hears_that_a_predecessor_is_done() {
    relay(true);
}

/// Two ways of a CPU whose job waits for a predecessor of another CPU, by its kernel thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Waiting {
    /// It uses processor time.
    Looks,
    /// It gives its processor up of its own will, again and again.
    Sleeps,
}

/// The state of a kernel thread of this process: its processor time in ticks of the kernel, and how
/// often it gave its processor up.
fn of_thread(thread: u64) -> (u64, u64) {
    let read = |file: &str| {
        let path = format!("/proc/self/task/{thread}/{file}");
        std::fs::read_to_string(path).expect("a thread of this process")
    };
    let stat = read("stat");
    // The name before it may have spaces.
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks = ticks.map(|ticks| ticks.parse::<u64>().expect("a number"));
    let status = read("status");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    let switches = line.expect("known since 2.6").trim().parse();
    (ticks.sum(), switches.expect("a number"))
}

/// Watches the kernel thread of this number, once it is told, until it is clear what it does; then
/// says that this is over.
fn watch(told: &AtomicU64, is_over: &AtomicBool) -> Waiting {
    /// One may be a page that is fetched.
    const SWITCHES: u64 = 3;
    const TICKS: u64 = 3;
    let thread = loop {
        match told.load(Ordering::SeqCst) {
            0 => std::thread::yield_now(),
            thread => break thread,
        }
    };
    let (ticks, switches) = of_thread(thread);
    let waiting = loop {
        std::thread::sleep(std::time::Duration::from_millis(1));
        let (later, more) = of_thread(thread);
        if more - switches >= SWITCHES {
            break Waiting::Sleeps;
        }
        if later - ticks >= TICKS {
            break Waiting::Looks;
        }
    };
    is_over.store(true, Ordering::SeqCst);
    waiting
}

/// Watches a CPU whose only job waits for a predecessor, until it is clear what it does meanwhile.
/// Its deadline is `deadline` behind its release. Returns also how often it slept by its own count,
/// up to the end of the job. How often it was called is not told: the end of a run calls it, too.
fn awaiting(looks: bool, deadline: Span<Ns>) -> Option<(Waiting, u64)> {
    let _alone = alone();
    if crate::common::test_cpu() == 0 {
        println!("skipped: needs two CPUs");
        return None;
    }
    let hour = 3_600_000_000;
    let (carrier, is_over) = (
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let over = Arc::clone(&is_over);
    let producer = periodic("producer", 1, hour, hour, move |_| {
        while !over.load(Ordering::SeqCst) {
            std::hint::spin_loop();
        }
    });
    let told = Arc::clone(&carrier);
    let teller = periodic("teller", 2, hour, 1_000_000, move |_| {
        let path = std::fs::read_link("/proc/thread-self").expect("known since 3.17");
        let number = path
            .file_name()
            .and_then(|name| name.to_str()?.parse().ok());
        told.store(number.expect("a number"), Ordering::SeqCst);
    });
    let options = RunOptions {
        // Without SCHED_FIFO: a test must not take both CPUs from the rest of the machine.
        real_time: false,
        look_for_predecessors: looks,
        ..until_stopped()
    };
    let stop = Arc::clone(&options.stop);
    let mut consumer = periodic("consumer", 1, hour, 1_000_000, move |_| {
        stop.store(true, Ordering::SeqCst);
    });
    if let Class::Periodic {
        relative_deadline, ..
    } = &mut consumer.task.class
    {
        *relative_deadline = deadline;
    }
    let mut inputs = vec![
        input(vec![producer], 10_000, Log::default()),
        input(vec![consumer, teller], 10_000, Log::default()),
    ];
    (inputs[0].host, inputs[1].name) = (0, "1".to_owned());
    connect(&mut inputs, hour);
    let watcher = std::thread::spawn(move || watch(&carrier, &is_over));
    let outcome = run(inputs, &options).expect("a run");
    assert_eq!(outcome.panics, []);
    assert_eq!(outcome.ending, Ending::Stopped);
    let counters = outcome.cpus[1].counters;
    let waiting = watcher.join().expect("it sees either");
    Some((waiting, counters.sleeps))
}

#[test]
fn a_cpu_that_looks_for_a_predecessor_hears_of_it_without_a_sleep() {
    if let Some(seen) = awaiting(true, Span::from_ms(3_600_000)) {
        assert_eq!(seen, (Waiting::Looks, 0));
    }
}

#[test]
fn a_cpu_that_need_not_look_sleeps_while_it_awaits_a_predecessor() {
    if let Some((waiting, sleeps)) = awaiting(false, Span::from_ms(3_600_000)) {
        assert_eq!(waiting, Waiting::Sleeps);
        assert!(sleeps > 0);
    }
}

#[test]
fn a_cpu_that_looks_for_a_predecessor_sleeps_from_the_deadline_of_its_job_on() {
    if let Some((waiting, sleeps)) = awaiting(true, Span::from_ms(2)) {
        assert_eq!(waiting, Waiting::Sleeps);
        assert!(sleeps > 0);
    }
}
