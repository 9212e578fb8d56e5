//! Four light threads storm what is not reentrant, under a timer that preempts every 100 us.
//!
//! Allocation, standard output's kind of lock, thread-locals with destructors, panics, and live
//! floating-point state: all of it is ordinary safe code, so none of it may notice.

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{Log, alone, background, for_ms, input};
use punctual_linux::{Ending, JobInfo, RunOptions, run};

const THREADS: u64 = 4;
/// Rounds per thread: bounded work, not bounded time. Enough for many turns of 100 us.
const ROUNDS: u64 = 3_000;
/// The same for rounds that are much shorter.
const SHORT_ROUNDS: u64 = 200_000;

static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Counts its destructor, which allocates.
struct Witness(Vec<u64>);

impl Drop for Witness {
    fn drop(&mut self) {
        let copy = self.0.clone();
        assert!(copy.iter().all(|&v| v == copy[0]));
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

thread_local! {
    static PLAIN: Cell<u64> = const { Cell::new(0) };
    static OWNED: RefCell<Option<Witness>> = const { RefCell::new(None) };
}

fn options() -> RunOptions {
    RunOptions {
        duration_ns: Some(60_000_000_000),
        patience_ns: 1_000_000_000,
        ..for_ms(1)
    }
}

/// Runs `round(thread, n)` on four light threads in turns of 100 us until all are done.
fn storm(
    rounds: u64,
    round: impl Fn(u64, u64) + Send + Sync + 'static,
) -> punctual_linux::Outcome<Log> {
    let _alone = alone();
    let options = options();
    let (round, done) = (Arc::new(round), Arc::new(AtomicU64::new(0)));
    let specs = (0..THREADS)
        .map(|thread| {
            let (round, done) = (Arc::clone(&round), Arc::clone(&done));
            let stop = Arc::clone(&options.stop);
            background(&format!("storm-{thread}"), 0, move |_: &JobInfo| {
                (0..rounds).for_each(|n| round(thread, n));
                if done.fetch_add(1, Ordering::Relaxed) + 1 == THREADS {
                    stop.store(true, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let outcome = run(vec![input(specs, 100, Log::default())], &options).expect("a run");
    assert_eq!(outcome.panics, []);
    assert_eq!(
        outcome.ending,
        Ending::Stopped,
        "every thread has done its rounds"
    );
    let counters = outcome.cpus[0].counters;
    assert!(counters.preemptions > 0, "{counters:?}");
    outcome
}

#[test]
fn allocations_of_preempted_threads_stay_intact() {
    let outcome = storm(ROUNDS, |thread, n| {
        let mut blocks: Vec<Vec<u64>> = Vec::new();
        for size in 0..32_usize {
            blocks.push(vec![thread << 32 | n; 1 + size * 37 % 400]);
            if size % 3 == 0 {
                blocks.swap_remove(size / 2);
            }
        }
        let text: String = (0..20).map(|k| format!("{thread}-{n}-{k};")).collect();
        assert_eq!(text.matches(';').count(), 20);
        assert!(blocks.iter().flatten().all(|&v| v == thread << 32 | n));
        assert_eq!(*Box::new(n), n);
    });
    let counters = outcome.cpus[0].counters;
    assert!(
        counters.deferrals > 0,
        "some preemptions hit the allocator: {counters:?}"
    );
    assert!(counters.deferred_max_ns > 0);
}

#[test]
fn locks_of_the_standard_library_stop_the_waiter_and_not_the_cpu() {
    let null = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/null")
        .expect("a null device");
    let shared = Mutex::new((std::io::BufWriter::with_capacity(64, null), 0_u64));
    let total = Arc::new(AtomicU64::new(0));
    let sum = Arc::clone(&total);
    storm(ROUNDS, move |thread, n| {
        let mut shared = shared.lock().expect("nobody panics with the lock");
        writeln!(shared.0, "thread {thread} writes line {n}").expect("the null device takes all");
        // Long enough to be preempted with the lock held.
        for _ in 0..200 {
            shared.1 = std::hint::black_box(shared.1);
        }
        shared.1 += 1;
        sum.store(shared.1, Ordering::Relaxed);
    });
    assert_eq!(total.load(Ordering::Relaxed), THREADS * ROUNDS);
}

#[test]
fn thread_locals_belong_to_their_light_thread_and_are_destroyed_with_it() {
    let before = DROPPED.load(Ordering::Relaxed);
    storm(SHORT_ROUNDS, |thread, n| {
        PLAIN.with(|p| {
            assert_eq!(
                p.get(),
                n,
                "somebody else counted in thread {thread}'s cell"
            );
            p.set(n + 1);
        });
        OWNED.with_borrow_mut(|owned| match owned {
            Some(witness) => {
                assert!(witness.0.iter().all(|&v| v == thread));
                if n % 4_096 == 0 {
                    witness.0 = vec![thread; 100];
                }
            }
            None => *owned = Some(Witness(vec![thread; 10])),
        });
    });
    assert_eq!(DROPPED.load(Ordering::Relaxed) - before, THREADS);
    assert_eq!(PLAIN.get(), 0, "this thread's own cell is untouched");
}

#[test]
fn panics_unwind_on_the_stack_they_happen_on() {
    // Raised without the hook, which would print thousands of messages; one in a hundred with it.
    storm(ROUNDS, |thread, n| {
        let guard = vec![thread; 50];
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let kept = guard.clone();
            if n % 1_000 == 999 {
                panic!("thread {thread} at {n}");
            }
            if kept.len() == 50 {
                std::panic::resume_unwind(Box::new((thread, n)));
            }
        }));
        let payload = caught.expect_err("it was raised above");
        if let Some(&(t, m)) = payload.downcast_ref::<(u64, u64)>() {
            assert_eq!((t, m), (thread, n));
        } else {
            let text = payload.downcast_ref::<String>().expect("a formatted panic");
            assert_eq!(*text, format!("thread {thread} at {n}"));
        }
        assert!(!std::thread::panicking());
        assert!(guard.iter().all(|&v| v == thread));
    });
}

#[test]
fn printing_from_preempted_threads_neither_tears_nor_deadlocks() {
    storm(ROUNDS, |thread, n| {
        // Captured or not, this takes the lock of standard output and formats under it.
        if n % 50 == 0 {
            println!("storm {thread} line {n}");
        }
        let line = format!("{thread}:{n}");
        assert_eq!(line.split(':').next(), Some(thread.to_string().as_str()));
    });
}

#[test]
fn floating_point_and_vector_state_survives_preemption() {
    storm(ROUNDS, |thread, n| {
        // Kept in vector registers across many preemptions by the optimiser. Small whole numbers
        // are exact in floating point, so integers must agree to the last bit.
        let seed = u32::try_from(thread * 7_919 + n).expect("small");
        let mut lanes = [seed, seed + 1, seed + 2, seed + 3].map(f64::from);
        let mut whole = [seed, seed + 1, seed + 2, seed + 3];
        for step in 0..500_u32 {
            for (lane, whole) in lanes.iter_mut().zip(&mut whole) {
                *lane += f64::from(step % 17);
                *whole += step % 17;
            }
        }
        assert_eq!(lanes, whole.map(f64::from));
    });
}
