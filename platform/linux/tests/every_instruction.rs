//! A live run preempted at every instruction of what its threads do to each other.
//!
//! Light threads yield, block, wake and time out through the core, under every policy; direct
//! threads do the same among themselves. A driving thread steps one round of it after the other
//! (trap flag): the preemption signal of the run comes at each instruction that has not been
//! interrupted yet, on whichever thread that is, until a round meets no new one. After each round
//! every thread must have done its part exactly once. Release builds cover every instruction of
//! the round, the core's and the policy's included; debug builds, whose rounds are twenty times
//! longer, those of a few rounds.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use common::{Log, alone, for_ms, one_cpu, plan_of};
use punctual_linux::direct::{self, Scheduler};
use punctual_linux::job::{sleep_ns, yield_now};
use punctual_linux::{Body, Ending, JobInfo, Monitor, RunOptions, Step, run};
use punctual_model::{Class, CpuId, PolicyKind, Span, Task};
use punctual_switch::{protocol_instructions, stepping};

const STACK: usize = 256 * 1024;
/// Rounds of one storm at most: each must interrupt something new, so that this is never reached.
const MOST_ROUNDS: u64 = 20_000;

/// The real-time signal that the run has taken: the one with a handler.
fn signal_of_the_run() -> i32 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status
        .lines()
        .find(|l| l.starts_with("SigCgt:"))
        .expect("known since 2.6");
    let mask = line.split_whitespace().nth(1).expect("a mask");
    let mask = u64::from_str_radix(mask, 16).expect("hexadecimal");
    // The C library keeps 32 and 33 for itself.
    (34..=64)
        .find(|signal| mask >> (signal - 1) & 1 == 1)
        .expect("a run is going on")
}

/// What a storm covered.
#[derive(Debug, Default)]
struct Covered {
    interrupted: usize,
    rounds: u64,
    /// Rounds that were not stepped to their end.
    cut: u64,
}

/// Steps `round` until it meets no instruction that has not been interrupted.
fn storm(mut round: impl FnMut(u64)) -> Covered {
    // SAFETY: nobody else uses SIGTRAP, and one storm goes on at a time.
    assert!(unsafe { stepping::prepare(signal_of_the_run()) });
    let (mut rounds, mut cut) = (0, 0);
    loop {
        let (before, _) = stepping::sent();
        round(rounds);
        rounds += 1;
        cut += u64::from(stepping::steps() >= stepping::MOST_STEPS);
        let (after, _) = stepping::sent();
        let sampled = cfg!(debug_assertions) && rounds == 30;
        if after == before || sampled {
            break;
        }
        assert!(rounds < MOST_ROUNDS, "every round meets something new");
    }
    Covered {
        rounds,
        cut,
        interrupted: stepping::covered(),
    }
}

/// A number that threads wait for.
#[derive(Default)]
struct Tokens(Monitor<u64, 1>);

impl Tokens {
    fn give(&self) {
        let visit = self.0.visit(None, |tokens, desk| {
            match desk.most_urgent(0) {
                Some((who, _)) => desk.answer(who, 1),
                None => *tokens += 1,
            }
            Step::Done(())
        });
        // An error says that the run is over, and so is who waits.
        let _ = visit;
    }

    fn take(&self) {
        let visit = self.0.visit(None, |tokens, _| match *tokens {
            0 => Step::wait(0, 0),
            _ => {
                *tokens -= 1;
                Step::Done(())
            }
        });
        // An error says that the run is over, and so is who waits.
        let _ = visit;
    }
}

/// What the driving thread and the one that serves it share.
#[derive(Default)]
struct Pair {
    over: AtomicBool,
    asked: Tokens,
    answered: Tokens,
    served: AtomicU64,
}

/// Runs `drive` on a light thread beside one that answers. The jobs never end and their budgets
/// never run out: stepped code is some thousand times slower, an entry takes milliseconds, and what
/// is due sooner than that would be due again before anybody has run.
fn driven(policy: PolicyKind, drive: impl Fn(&Pair) -> Covered + Send + 'static) -> Covered {
    let _alone = alone();
    let options = RunOptions {
        duration_ns: Some(120_000_000_000),
        give_back: false,
        ..for_ms(1)
    };
    let pair = Arc::new(Pair::default());
    let (driving, serving) = (Arc::clone(&pair), pair);
    let stop = Arc::clone(&options.stop);
    let found = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&found);
    let drives: Body = Box::new(move |_: &JobInfo| {
        *kept.lock().expect("one writer") = Some(drive(&driving));
        driving.over.store(true, Relaxed);
        driving.asked.give();
        stop.store(true, Relaxed);
    });
    let serves: Body = Box::new(move |_: &JobInfo| {
        while !serving.over.load(Relaxed) {
            serving.asked.take();
            serving.served.fetch_add(1, Relaxed);
            serving.answered.give();
        }
    });
    let endless = Span::from_ms(3_600_000);
    let class = Class::Periodic {
        period: endless,
        wcet: endless.as_work(),
        relative_deadline: endless,
    };
    let mut system = one_cpu(
        ["drives", "serves"]
            .map(|name| Task::new(name, CpuId(0), class))
            .into(),
    );
    system.cpus[0].policy = policy;
    let plan = plan_of(&system, vec![drives, serves], Vec::new(), Log::default());
    let outcome = run(vec![plan], &options).expect("a run");
    assert_eq!(outcome.panics, []);
    assert_eq!(outcome.ending, Ending::Stopped);
    let covered = found.lock().expect("one writer").take();
    covered.expect("it came to its end")
}

#[test]
fn light_threads_survive_a_preemption_at_every_instruction_under_every_policy() {
    let policies = [
        PolicyKind::FixedPriority { preemptive: true },
        PolicyKind::FixedPriority { preemptive: false },
        PolicyKind::EarliestDeadlineFirst,
        PolicyKind::Fifo,
        PolicyKind::RoundRobin {
            timeslice: Span::from_ms(200),
        },
    ];
    for policy in policies {
        let covered = driven(policy, |pair| {
            storm(|round| {
                // SAFETY: `storm` has prepared.
                unsafe { stepping::begin(0, 0) };
                pair.asked.give();
                pair.answered.take();
                yield_now();
                sleep_ns(1_000);
                stepping::end();
                assert_eq!(
                    pair.served.load(Relaxed),
                    round + 1,
                    "served once in each round"
                );
            })
        });
        println!(
            "{policy:?}: {} instructions interrupted in {} rounds, {} of them cut",
            covered.interrupted, covered.rounds, covered.cut
        );
        assert!(covered.interrupted > 300, "{covered:?}");
    }
}

#[test]
fn direct_threads_survive_a_preemption_at_every_instruction_of_what_they_do() {
    let covered = driven(PolicyKind::FixedPriority { preemptive: true }, |_| {
        storm(|_| direct_round())
    });
    let copies = protocol_instructions();
    let met = copies
        .filter(|&address| stepping::is_covered(address))
        .count();
    println!("direct threads: {covered:?}, {met} of them in copies of the dispatch");
    // A debug build's entry takes longer than what it arms: its rounds are cut.
    let enough = if cfg!(debug_assertions) { 0 } else { 30 };
    assert!(
        covered.interrupted > 300 && met >= enough,
        "{covered:?}, {met}"
    );
}

/// Three direct threads: one serves another twice, and one waits in vain.
fn direct_round() {
    let mut scheduler = Scheduler::try_new(3, STACK).expect("a light thread");
    let served = Arc::new(AtomicU64::new(0));
    let (counted, seen) = (Arc::clone(&served), Arc::clone(&served));
    let server = scheduler
        .spawn(move || {
            for _ in 0..2 {
                direct::block();
                counted.fetch_add(1, Relaxed);
            }
        })
        .expect("room");
    let client = move || {
        for round in 0..2 {
            direct::wake(server);
            direct::yield_to(server);
            while seen.load(Relaxed) <= round {
                direct::yield_now();
            }
        }
    };
    scheduler.spawn(client).expect("room");
    let waits = || assert!(!direct::block_within(5_000), "nobody wakes it");
    scheduler.spawn(waits).expect("room");
    // SAFETY: `storm` has prepared.
    unsafe { stepping::begin(0, 0) };
    let report = scheduler.run();
    stepping::end();
    let ends = (report.ended, report.blocked, report.refused);
    assert_eq!(ends, (3, 0, 0), "{report:?}");
    assert_eq!(report.panics, []);
    assert_eq!(served.load(Relaxed), 2, "each wake-up once");
}
