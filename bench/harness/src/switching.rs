//! What a switch costs through the core, beside those who decide nothing and beside the kernel.
//!
//! Ours has everything that a run has: clock, accounting, decision, record. `switch` is a yield
//! among equals, `wake` one half of a wake-up and the wait for the next, `switch.core` what of a
//! yield is not the platform's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use punctual_linux::{Body, block, spawn};
use punctual_model::{Ns, PolicyKind};
use punctual_rivals::{Samples, contexts, kernel, locks};
use punctual_thread::sync::Mutex;

use super::counting::{Counted, units};
use super::figure::{Bench, Measured, time};
use super::live::{Live, Notebook, constraint, endless, place};
use super::yielding::{BYTES_PER_ENTRY, core_yields, count_core_yields, yields, yields_below};

/// Round trips of one sample.
const ROUNDS: u32 = 100;
const SAMPLES: usize = if cfg!(debug_assertions) { 10 } else { 1_000 };
/// Threads on the CPU; a debug build checks all of them in every entry.
const THREADS: &[u32] = if cfg!(debug_assertions) {
    &[2, 32]
} else {
    &[2, 32, 1_000]
};

const MANY: &str = "a yield of each of a thousand threads is too much to step through; that of 32 \
                    is counted, and takes as many";

/// Measures so many threads under a policy.
type Switches = fn(PolicyKind<Ns>, u32) -> Result<Measured, String>;

pub(super) fn benches() -> Vec<Bench> {
    let policies = [
        (
            "fixed_priority",
            PolicyKind::FixedPriority { preemptive: true },
        ),
        ("edf", PolicyKind::EarliestDeadlineFirst),
    ];
    let pairs = policies
        .into_iter()
        .flat_map(|policy| THREADS.iter().map(move |&n| (policy, n)));
    let mut all = Vec::new();
    for ((name, policy), n) in pairs {
        let ours: [(&str, Switches); 3] = [
            ("switch", yields),
            ("wake", wakes),
            ("switch.core", core_yields),
        ];
        all.extend(ours.map(|(what, measure)| {
            let name = format!("{what}.{name}.{n}");
            let counted = match (what, name.as_str()) {
                ("switch", "switch.fixed_priority.1000") => Counted::Rows(&["live.yield.1000"]),
                ("switch" | "switch.core", _) if n > 32 => Counted::Not(MANY),
                ("switch.core", _) => Counted::by(move || count_core_yields(policy, n)),
                _ => Counted::Measured,
            };
            Bench::in_cycles(name, move || measure(policy, n))
                .counted(counted)
                .against("boost.context", rival(contexts::boost))
                .against("corosensei", rival(contexts::corosensei))
                .against("swapcontext", rival(contexts::swapcontext))
                .against("sched_yield", rival(kernel::sched_yield))
                .against("futex", rival(kernel::futex_same_cpu))
                .against("pipe", rival(kernel::pipe_same_cpu))
                .against("POSIX message queue", rival(kernel::message_queue))
        }));
    }
    let fixed = PolicyKind::FixedPriority { preemptive: true };
    all.extend([1, 2, 4, 8].map(|levels| {
        let flat = move || yields(fixed, 2).map(|measured| measured.samples);
        Bench::in_cycles(format!("tree.switch.{levels}"), move || {
            yields_below(levels, fixed, 2)
        })
        .against("without a tree", flat)
        .against("sched_yield", rival(kernel::sched_yield))
    }));
    all.push(
        Bench::in_cycles("thread.create_join", create_join)
            .against("pthread", rival(kernel::create_join)),
    );
    all.push(
        Bench::in_cycles("mutex.uncontended", uncontended)
            .against("pthread mutex", rival(locks::pthread_mutex))
            .against("pthread mutex, inheriting", rival(locks::inheriting_mutex)),
    );
    all
}

/// A rival where the light threads run.
pub(super) fn rival(
    measure: fn(punctual_rivals::Place) -> Samples,
) -> impl Fn() -> Samples + 'static {
    move || measure(place()?)
}

/// One way of this: a thread wakes a more urgent one, which runs at once and blocks again. Of
/// `threads` on the CPU all but these two are ready and less urgent, so that each wake-up goes past
/// all of them to the head of the queue, and each wait takes the head away.
fn wakes(policy: PolicyKind<Ns>, threads: u32) -> Result<Measured, String> {
    let notebook = Notebook::default();
    let kept = notebook.clone();
    let measuring: Body = Box::new(move |_| {
        let turns = Arc::new(AtomicU32::new(0));
        let (theirs, over) = (Arc::clone(&turns), kept.clone());
        let urgent = constraint(&endless("urgent", u32::MAX, 2));
        let urgent = spawn("urgent", urgent, move || {
            while !over.is_over() {
                let _woken = block(None);
                let _ = theirs.fetch_add(1, Ordering::Relaxed);
            }
        });
        let Ok(urgent) = urgent else {
            return kept.fail("the urgent thread was not created");
        };
        kept.take_all(SAMPLES, || {
            let before = turns.load(Ordering::Relaxed);
            let rounds = units(ROUNDS);
            let ns = time(2 * rounds, || {
                for _ in 0..rounds {
                    let _awake = urgent.wake();
                }
            });
            let switched = turns.load(Ordering::Relaxed).wrapping_sub(before);
            match switched == rounds {
                true => Ok(ns),
                false => Err(format!("{switched} of {rounds} wake-ups switched at once")),
            }
        });
    });
    let mut tasks = vec![(endless("measuring", u32::MAX - 1, 1), measuring)];
    for index in 2..threads {
        let ready = endless(&format!("ready{index}"), index, 0);
        let body: Body = Box::new(|_| {});
        tasks.push((ready, body));
    }
    let live = Live {
        pool: 1,
        record_bytes: (SAMPLES + 1) * 2 * ROUNDS as usize * BYTES_PER_ENTRY + (1 << 20),
        ..Live::of(policy, tasks)
    };
    live.run(&notebook)
}

/// A more urgent thread made, run to its end, and joined for its result.
fn create_join() -> Result<Measured, String> {
    const THREADS: u32 = 20;
    let notebook = Notebook::default();
    let kept = notebook.clone();
    let measuring: Body = Box::new(move |_| {
        let urgent = constraint(&endless("urgent", 2, 2));
        kept.take_all(SAMPLES, || {
            let mut joined = 0;
            let threads = units(THREADS);
            let ns = time(threads, || {
                for _ in 0..threads {
                    let child = spawn("short", urgent, || 1_u32);
                    joined += child.map_or(0, |child| child.join(None).unwrap_or(0));
                }
            });
            match joined == threads {
                true => Ok(ns),
                false => Err(format!("{joined} of {threads} threads gave a result")),
            }
        });
    });
    let live = Live {
        pool: 4,
        record_bytes: (SAMPLES + 1) * THREADS as usize * 8 * BYTES_PER_ENTRY + (1 << 20),
        ..Live::measuring(1, measuring)
    };
    live.run(&notebook)
}

/// A mutex by which a holder inherits, locked and unlocked by the only thread that wants it.
fn uncontended() -> Result<Measured, String> {
    const PAIRS: u32 = 500;
    let notebook = Notebook::default();
    let kept = notebook.clone();
    let measuring: Body = Box::new(move |_| {
        let mutex = Mutex::new(0_u32);
        kept.take_all(SAMPLES, || {
            let mut refused = 0;
            let pairs = units(PAIRS);
            let ns = time(pairs, || {
                for _ in 0..pairs {
                    match mutex.lock() {
                        Ok(mut count) => *count = count.wrapping_add(1),
                        Err(_) => refused += 1,
                    }
                }
            });
            match refused {
                0 => Ok(ns),
                _ => Err("the mutex refused to be locked".into()),
            }
        });
    });
    Live::measuring(1, measuring).run(&notebook)
}
