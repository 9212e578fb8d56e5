//! What must hold when things go wrong: stops, overruns, endless jobs, full stacks, odd locks.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::common::{Log, alone, background, for_ms, input, periodic, until_stopped};
use punctual_kern::{Outcome, TraceEvent};
use punctual_linux::{Ending, Mode, RunOptions, job, run};
use punctual_model::OnOverrun;

/// Fields of /proc/self/status that a run must leave as they were.
fn process_state() -> Vec<String> {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let kept = ["VmLck:", "SigBlk:", "SigIgn:", "SigCgt:", "Cpus_allowed:"];
    let keep = |line: &&str| kept.iter().any(|name| line.starts_with(name));
    status.lines().filter(keep).map(str::to_owned).collect()
}

/// Names of the kernel threads of this process.
fn kernel_threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
    };
    tasks
        .filter_map(name)
        .map(|name| name.trim().to_owned())
        .collect()
}

#[test]
fn a_run_leaves_the_process_as_it_was() {
    let _alone = alone();
    let count = || periodic("count", 1, 1_000, 500, |_| {});
    // The first run loads what is loaded once.
    run(
        vec![input(vec![count()], 10_000, Log::default())],
        &for_ms(5),
    )
    .expect("a run");
    let before = process_state();
    run(
        vec![input(vec![count()], 10_000, Log::default())],
        &for_ms(20),
    )
    .expect("a run");
    assert_eq!(process_state(), before);
}

#[test]
fn one_kernel_thread_carries_all_threads_of_a_cpu() {
    let _alone = alone();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let found = Arc::clone(&seen);
    let options = until_stopped();
    let stop = Arc::clone(&options.stop);
    let mut specs: Vec<_> = (0..30)
        .map(|n| periodic(&format!("task-{n}"), n, 50_000, 500, |_| {}))
        .collect();
    specs.push(background("look", 0, move |_| {
        // A helper names itself when it first runs.
        let mut names = kernel_threads();
        let helpers = ["punctual/onlook", "punctual/watch"];
        while !helpers
            .iter()
            .all(|&helper| names.iter().any(|name| name == helper))
        {
            job::sleep_ns(1_000_000);
            names = kernel_threads();
        }
        *found.lock().expect("nobody else holds it") = names;
        stop.store(true, Ordering::Relaxed);
    }));
    let outcome = run(vec![input(specs, 10_000, Log::default())], &options).expect("a run");
    assert_eq!(outcome.ending, Ending::Stopped);
    let mut names = seen.lock().expect("the run is over").clone();
    names.retain(|name| name.starts_with("punctual/"));
    names.sort();
    assert_eq!(names, ["punctual/0", "punctual/onlook", "punctual/watch"]);
}

#[test]
fn a_job_that_overruns_is_stopped_at_its_next_checkpoint_and_cleans_up() {
    /// Jobs that cleaned up, and those of them that were unwound.
    struct Count(Arc<[AtomicU64; 2]>);
    impl Drop for Count {
        fn drop(&mut self) {
            self.0[0].fetch_add(1, Ordering::Relaxed);
            self.0[1].fetch_add(u64::from(std::thread::panicking()), Ordering::Relaxed);
        }
    }
    let _alone = alone();
    let cleaned = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let cleans = Arc::clone(&cleaned);
    // Ten jobs, however long a loaded machine takes for them.
    let options = for_ms(10_000);
    let stop = Arc::clone(&options.stop);
    let mut greedy = periodic("greedy", 1, 5_000, 1_000, move |_| {
        let count = Count(Arc::clone(&cleans));
        // No job ends by itself, also none whose allotment lapsed behind a late one.
        loop {
            if count.0[1].load(Ordering::Relaxed) == 10 {
                stop.store(true, Ordering::Relaxed);
            }
            job::checkpoint();
        }
    });
    greedy.task.on_overrun = OnOverrun::Stop;
    let input = input(vec![greedy], 10_000, Log::with_room(10_000));
    let outcome = run(vec![input], &options).expect("a run");
    assert_eq!(outcome.panics, []);
    let stopped = |event: &TraceEvent| {
        matches!(
            event,
            TraceEvent::Completed {
                outcome: Outcome::Stopped,
                ..
            }
        )
    };
    let log = &outcome.cpus[0].sink;
    let count = log
        .traces
        .iter()
        .filter(|(_, event)| stopped(event))
        .count() as u64;
    assert!(count >= 10, "{count} jobs stopped");
    assert!(cleaned[0].load(Ordering::Relaxed) >= count);
    assert_eq!(cleaned[1].load(Ordering::Relaxed), 10, "jobs unwound");
}

#[test]
fn the_stop_flag_ends_a_run_without_end() {
    let _alone = alone();
    let options = RunOptions {
        duration_ns: None,
        ..for_ms(1)
    };
    let stop = Arc::clone(&options.stop);
    let begun = Arc::new(AtomicBool::new(false));
    let begins = Arc::clone(&begun);
    let counter = periodic("counter", 1, 1_000, 500, move |info| {
        let enough = info.index >= 20 && begun.load(Ordering::Relaxed);
        stop.fetch_or(enough, Ordering::Relaxed);
    });
    let endless = background("endless", 0, move |_| {
        begins.store(true, Ordering::Relaxed);
        loop {
            std::hint::spin_loop();
        }
    });
    let input = input(vec![counter, endless], 10_000, Log::default());
    let outcome = run(vec![input], &options).expect("a run");
    assert_eq!(outcome.ending, Ending::Stopped);
    assert_eq!(
        outcome.cpus[0].abandoned, 1,
        "the endless loop cannot be unwound"
    );
}

// The C library's own names: a lock that waits inside the library, and the signal mask.
unsafe extern "C" {
    fn pthread_mutex_lock(mutex: *mut [u64; 5]) -> i32;
    fn pthread_mutex_unlock(mutex: *mut [u64; 5]) -> i32;
    fn pthread_sigmask(how: i32, set: *const [u64; 16], old: *mut [u64; 16]) -> i32;
}

#[test]
fn the_watchdog_ends_a_run_that_does_not_let_itself_be_interrupted() {
    let _alone = alone();
    // It has to be deaf when the time of the run is over, and not much longer. A CPU that is away
    // for a second may have neither in a short run: the next ones are longer.
    let mut runs = [500, 2_000, 2_000, 2_000].into_iter();
    assert!(runs.any(|ms| deaf_for(ms) == Ending::Watchdog));
}

/// The end of a run of so many milliseconds with a thread that is deaf at first.
fn deaf_for(run_ms: u64) -> Ending {
    let deaf = Duration::from_millis(run_ms + 900);
    let thread = background("deaf", 0, move |_| {
        let (all, mut before) = ([u64::MAX; 16], [0; 16]);
        // SAFETY: both sets have the size of glibc's `sigset_t`; 2 is SIG_SETMASK.
        unsafe { pthread_sigmask(2, &all, &mut before) };
        let start = std::time::Instant::now();
        while start.elapsed() < deaf {
            std::hint::spin_loop();
        }
        // SAFETY: as above.
        unsafe { pthread_sigmask(2, &before, core::ptr::null_mut()) };
        loop {
            std::hint::spin_loop();
        }
    });
    let options = RunOptions {
        grace_ns: 10_000_000,
        patience_ns: 200_000_000,
        ..for_ms(run_ms)
    };
    let outcome = run(vec![input(vec![thread], 10_000, Log::default())], &options);
    outcome.expect("a run").ending
}

#[test]
fn a_lock_of_the_c_library_blocks_its_waiter_only() {
    struct Shared(std::cell::UnsafeCell<[u64; 5]>, AtomicBool);
    // SAFETY: the cell is a mutex of the C library and only used as one.
    unsafe impl Sync for Shared {}
    let _alone = alone();
    let shared = Arc::new(Shared(
        std::cell::UnsafeCell::new([0; 5]),
        AtomicBool::new(false),
    ));
    let (low_lock, high_lock) = (Arc::clone(&shared), Arc::clone(&shared));
    let low = periodic("low", 1, 100_000, 50_000, move |info| {
        if info.index == 0 {
            // SAFETY: an all-zero mutex is an unlocked one.
            unsafe { pthread_mutex_lock(low_lock.0.get()) };
            job::burn_ns(5_000_000);
            low_lock.1.store(true, Ordering::Relaxed);
            // SAFETY: locked above.
            unsafe { pthread_mutex_unlock(low_lock.0.get()) };
        }
    });
    let order = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&order);
    let mut high = periodic("high", 2, 100_000, 40_000, move |info| {
        if info.index == 0 {
            // SAFETY: as above.
            unsafe { pthread_mutex_lock(high_lock.0.get()) };
            seen.store(
                1 + u64::from(high_lock.1.load(Ordering::Relaxed)),
                Ordering::Relaxed,
            );
            // SAFETY: locked above.
            unsafe { pthread_mutex_unlock(high_lock.0.get()) };
        }
    });
    high.task.phase = punctual_model::Span::from_ms(2);
    let input = input(vec![high, low], 10_000, Log::default());
    let outcome = run(vec![input], &for_ms(100)).expect("a run");
    assert_eq!(outcome.ending, Ending::Complete);
    // 2: the lock was held when it was asked for; 1: the machine stood still until `high` was due.
    assert_ne!(
        order.load(Ordering::Relaxed),
        0,
        "the waiter got the lock in the end"
    );
}

/// Takes a lock of the program in its destructor, and says so.
struct Locks(Arc<std::sync::Mutex<()>>, Arc<AtomicBool>);

impl Drop for Locks {
    fn drop(&mut self) {
        let _held = self.0.lock();
        self.1.store(true, Ordering::Relaxed);
    }
}

/// Runs a thread that locks in its destructor while the run ends, beside one that has the lock then
/// and that looks whether the run is over, or not. Whether it got the lock, and how many threads
/// were abandoned.
fn lock_at_the_end(holder_looks: bool) -> (bool, usize) {
    let _alone = alone();
    let options = until_stopped();
    let stop = Arc::clone(&options.stop);
    let (lock, got) = (Arc::default(), Arc::new(AtomicBool::new(false)));
    let held = Arc::new(AtomicBool::new(false));
    let (locks, is_held) = (
        Locks(Arc::clone(&lock), Arc::clone(&got)),
        Arc::clone(&held),
    );
    let late = background("late", 2, move |_| {
        let _ = &locks;
        while !is_held.load(Ordering::Relaxed) {
            job::sleep_ns(1_000_000);
        }
        stop.store(true, Ordering::Relaxed);
        job::sleep_ns(60_000_000_000);
    });
    let holder = background("holder", 1, move |_| {
        let _held = lock.lock().expect("nobody panics with it");
        held.store(true, Ordering::Relaxed);
        loop {
            match holder_looks {
                true => job::sleep_ns(1_000_000),
                false => std::hint::spin_loop(),
            }
        }
    });
    let input = input(vec![late, holder], 1_000, Log::default());
    let outcome = run(vec![input], &options).expect("a run");
    assert_eq!(outcome.ending, Ending::Stopped);
    (got.load(Ordering::Relaxed), outcome.cpus[0].abandoned)
}

#[test]
fn a_destructor_at_the_end_gets_the_lock_of_a_thread_that_ends_after_it() {
    assert_eq!(lock_at_the_end(true), (true, 0));
}

#[test]
fn a_destructor_at_the_end_does_not_wait_for_good_for_a_lock_that_nobody_gives_back() {
    assert_eq!(lock_at_the_end(false), (false, 2));
}

/// Runs one ignored test of this program in a process of its own.
fn in_a_child(test: &str) -> std::process::Output {
    let program = std::env::current_exe().expect("a test program");
    let arguments = ["--exact", test, "--ignored", "--nocapture"];
    Command::new(program)
        .args(arguments)
        .output()
        .expect("a child")
}

#[test]
fn a_full_stack_names_its_thread_before_the_process_dies() {
    let _alone = alone();
    let output = in_a_child("robust::overflow_a_stack");
    assert_eq!(output.status.signal(), Some(11), "SIGSEGV");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("thread 'deep' has overflowed its stack"),
        "{said}"
    );
}

#[test]
#[ignore = "dies; run in a child by the test above"]
fn overflow_a_stack() {
    #[inline(never)]
    fn deeper(n: u64) -> u64 {
        let here = std::hint::black_box([n; 64]);
        if n == u64::MAX {
            0
        } else {
            deeper(n + 1) + here[7]
        }
    }
    let deep = background("deep", 0, |_| {
        std::hint::black_box(deeper(0));
    });
    let _ = run(
        vec![input(vec![deep], 10_000, Log::default())],
        &until_stopped(),
    );
}

#[test]
fn a_stopped_process_goes_on_where_it_was() {
    let _alone = alone();
    let options = until_stopped();
    let (jobs, stop) = (Arc::new(AtomicU64::new(0)), Arc::clone(&options.stop));
    let seen = Arc::clone(&jobs);
    // Releases become jobs in order, none twice, also those that come while nothing runs. (Of more
    // than 64 that wait some are lost, on a machine that has no time for 1.3 s.)
    let mut next = 0;
    let count = periodic("count", 1, 20_000, 2_500, move |info| {
        assert!(info.index >= next, "{} is not before {next}", info.index);
        next = info.index + 1;
        seen.fetch_add(1, Ordering::Relaxed);
        job::burn_ns(100_000);
    });
    let pid = std::process::id();
    let other = std::thread::spawn(move || {
        let wait_for = |more: u64| {
            let enough = jobs.load(Ordering::Relaxed) + more;
            while jobs.load(Ordering::Relaxed) < enough && !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        wait_for(10);
        let script = format!("kill -STOP {pid}; sleep 0.2; kill -CONT {pid}");
        let shell = Command::new("/bin/sh").args(["-c", &script]).status();
        wait_for(10);
        stop.store(true, Ordering::Relaxed);
        shell
    });
    let outcome = run(
        vec![input(vec![count], 10_000, Log::with_room(10_000))],
        &options,
    );
    // Whoever waits for jobs waits no longer, also when there was no run.
    options.stop.store(true, Ordering::Relaxed);
    let shell = other.join().expect("it does not panic");
    assert!(shell.expect("a shell").success());
    let outcome = outcome.expect("a run");
    assert_eq!(outcome.ending, Ending::Stopped);
    assert_eq!(outcome.panics, []);
    let counters = outcome.cpus[0].counters;
    let longest = counters.missing_max_ns;
    assert!(
        longest >= 100_000_000,
        "the stop is missing time: {counters:?}"
    );
}

#[test]
fn a_refusal_of_real_time_is_said_and_not_hidden() {
    let _alone = alone();
    let count = periodic("count", 1, 1_000, 500, |_| {});
    let options = RunOptions {
        real_time: false,
        ..for_ms(20)
    };
    let outcome = run(vec![input(vec![count], 10_000, Log::default())], &options).expect("a run");
    assert_eq!(outcome.mode, Mode::BestEffort);
    let count = periodic("count", 1, 1_000, 500, |_| {});
    let outcome = run(
        vec![input(vec![count], 10_000, Log::default())],
        &for_ms(20),
    );
    let outcome = outcome.expect("a run");
    let refused = outcome.lost.iter().any(|loss| loss.what == "SCHED_FIFO");
    assert_eq!(outcome.mode == Mode::BestEffort, refused);
}
