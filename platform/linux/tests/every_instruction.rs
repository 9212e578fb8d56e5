//! A live run preempted at every instruction of what its threads do to each other.
//!
//! Light threads yield, block, wake and time out through the core, under every policy. A driving
//! thread steps one round of it after the other
//! (trap flag): the preemption signal of the run comes at each instruction that has not been
//! interrupted yet, on whichever thread that is, until a round meets no new one. After each round
//! every thread must have done its part exactly once. Release builds cover every instruction of
//! the round, the core's and the policy's included; debug builds, whose rounds are twenty times
//! longer, those of a few rounds. At every stop, interrupted or not, INV-1 to INV-6 are looked at
//! in the records of all threads.
//!
//! A second preemption, inside the handler of the first, is drawn by seed: which instruction of the
//! round, and how far into the handler.

mod common;
#[path = "common/stepped.rs"]
mod stepped;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use common::{Log, alone, for_ms, input_of, one_cpu};
use punctual_linux::job::{sleep_ns, yield_now};
use punctual_linux::{Body, Ending, GiveBack, JobInfo, Monitor, RunOptions, Step, run};
use punctual_model::{Class, CpuId, Ns, PolicyKind, Span, Task};
use stepped::{Covered, Ends, Place, SAMPLED, drawn, everywhere};

/// A number that threads wait for.
#[derive(Default)]
struct Tokens(Monitor<u64, 1>);

impl Tokens {
    fn give(&self) {
        let visit = self.0.critical_section(None, |tokens, waiters| {
            match waiters.most_urgent(0) {
                Some((who, _)) => waiters.answer(who, 1),
                None => *tokens += 1,
            }
            Step::Done(())
        });
        // An error says that the run is over, and so is who waits.
        let _ = visit;
    }

    fn take(&self) {
        let visit = self.0.critical_section(None, |tokens, _| match *tokens {
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
fn driven(policy: PolicyKind<Ns>, drive: impl Fn(&Pair) -> Covered + Send + 'static) -> Covered {
    let _alone = alone();
    let options = RunOptions {
        duration_ns: Some(120_000_000_000),
        give_back: GiveBack::Nothing,
        ..for_ms(1)
    };
    let pair = Arc::new(Pair::default());
    let (driving, serving) = (Arc::clone(&pair), pair);
    let stop = Arc::clone(&options.stop);
    let found = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&found);
    let drives: Body = Box::new(move |_: &JobInfo| {
        let _ends = Ends(Arc::clone(&stop));
        *kept.lock().expect("one writer") = Some(drive(&driving));
        driving.over.store(true, Relaxed);
        driving.asked.give();
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
    let input = input_of(&system, vec![drives, serves], Vec::new(), Log::default());
    let outcome = run(vec![input], &options).expect("a run");
    assert_eq!(outcome.panics, []);
    assert_eq!(outcome.ending, Ending::Stopped);
    let covered = found.lock().expect("one writer").take();
    covered.expect("it came to its end")
}

/// One round of the driving thread: what light threads do to each other through the core.
fn light_round(pair: &Pair, round: u64, place: Place) {
    place.begin();
    pair.asked.give();
    pair.answered.take();
    yield_now();
    if place.is_everywhere() {
        // The idle carrier looks at the clock all the time, a thousand times for one look of ours.
        sleep_ns(1_000);
    }
    place.end();
    let served = pair.served.load(Relaxed);
    assert_eq!(served, round + 1, "served once in each round");
}

fn policies() -> [PolicyKind<Ns>; 5] {
    [
        PolicyKind::FixedPriority { preemptive: true },
        PolicyKind::FixedPriority { preemptive: false },
        PolicyKind::EarliestDeadlineFirst,
        PolicyKind::Fifo,
        PolicyKind::RoundRobin {
            timeslice: Span::from_ns(200_000_000),
        },
    ]
}

#[test]
fn light_threads_survive_a_preemption_at_every_instruction_under_every_policy() {
    for policy in policies() {
        let covered = driven(policy, |pair| {
            everywhere(30, |round, place| light_round(pair, round, place))
        });
        println!("{policy:?}: {covered}");
        assert!(covered.interrupted > 300, "{covered}");
    }
}

#[test]
fn light_threads_survive_a_second_preemption_inside_the_handler_of_the_first() {
    for (shard, policy) in (0..).zip(policies()) {
        let covered = driven(policy, move |pair| {
            drawn(shard, SAMPLED, |round, place| {
                light_round(pair, round, place);
            })
        });
        println!("{policy:?}: {covered}");
        assert!(covered.seconds > 0, "{covered}");
    }
}
