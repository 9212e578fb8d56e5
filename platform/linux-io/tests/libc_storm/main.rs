//! Four light threads storm the C library under a timer of 50 us, with and without its protection.
//!
//! Two take turns of 50 us; two more urgent ones wake up between. All of them are in `malloc`,
//! `free`, `printf`, `strtok`, locales and `qsort` nearly all of the time, and check every result.
//! The children of this program make the same storm without deferral, and must not survive it.

#[path = "../../../linux/tests/common/mod.rs"]
mod common;
mod library;

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant as Wall};

use common::{Log, Spec, alone, background, for_ms, input};
use library::{Caller, Shared, mark};
use punctual_linux::{CpuCounters, Ending, JobInfo, RunOptions, job, run};

/// Calls into the C library, all threads together, unless [`OPERATIONS`] says otherwise.
const CALLS: u64 = 1_000_000;
/// How many calls the storm makes.
const OPERATIONS: &str = "PUNCTUAL_STORM_OPERATIONS";
/// Set in a child: the storm goes without deferral.
const WITHOUT: &str = "PUNCTUAL_STORM_WITHOUT_DEFERRAL";
/// The test that a child runs.
const STORM: &str = "four_light_threads_in_the_c_library_damage_nothing_and_do_not_wait_for_good";
/// Pauses of the urgent threads in nanoseconds, the less urgent one first.
const PAUSES_NS: [u64; 2] = [50_000, 70_000];
const THREADS: usize = 4;
/// A child in which nothing is called for so long stands still.
const STILL: Duration = Duration::from_secs(2);

/// Calls made so far, and lines written by each thread.
#[derive(Debug, Default)]
struct Progress {
    calls: AtomicU64,
    lines: [AtomicU64; THREADS],
    done: AtomicU64,
}

fn wanted() -> u64 {
    let text = std::env::var(OPERATIONS).ok();
    text.map_or(CALLS, |text| text.parse().expect("a number of operations"))
}

/// Counts a thread that is done, also when it ends by a panic; the last one ends the run.
struct Done {
    /// Left before that: the end of the run may find a thread before its last instruction.
    shared: Option<Arc<Shared>>,
    progress: Arc<Progress>,
    stop: Arc<AtomicBool>,
}

impl Drop for Done {
    fn drop(&mut self) {
        self.shared = None;
        if self.progress.done.fetch_add(1, Ordering::Relaxed) + 1 == THREADS as u64 {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// One thread: rounds until enough calls were made, with a pause after each round or none.
fn stormer(
    thread: u64,
    pause_ns: Option<u64>,
    options: &RunOptions,
    shared: &Arc<Shared>,
    progress: &Arc<Progress>,
) -> Spec {
    let (mut shared, progress) = (Some(Arc::clone(shared)), Arc::clone(progress));
    let stop = Arc::clone(&options.stop);
    let wanted = wanted();
    // The first two are equals and take turns.
    let priority = u32::try_from(thread.saturating_sub(1)).expect("small");
    background(&format!("storm-{thread}"), priority, move |_: &JobInfo| {
        let done = Done {
            shared: shared.take(),
            progress: Arc::clone(&progress),
            stop: Arc::clone(&stop),
        };
        let shared = done.shared.as_ref().expect("the only job");
        let mut caller = Caller::new(shared, thread);
        let lines = &progress.lines[usize::try_from(thread).expect("small")];
        while progress.calls.load(Ordering::Relaxed) < wanted {
            let calls = caller.round();
            progress.calls.fetch_add(calls, Ordering::Relaxed);
            lines.store(caller.rounds(), Ordering::Relaxed);
            if let Some(ns) = pause_ns {
                job::sleep_ns(ns);
            }
        }
    })
}

/// The storm, with its lines in the file at `path`.
fn storm(path: &Path, progress: &Arc<Progress>) -> CpuCounters {
    let options = RunOptions {
        // Bounded by the calls; a storm that takes so long stands still, and the check below fails.
        duration_ns: Some(120_000_000_000),
        ..for_ms(1)
    };
    let name = CString::new(path.as_os_str().as_bytes()).expect("no zero in a path");
    let shared = Arc::new(Shared::new(&name));
    let pauses = [None, None, Some(PAUSES_NS[0]), Some(PAUSES_NS[1])];
    let specs = (0..).zip(pauses);
    let specs = specs.map(|(thread, pause)| stormer(thread, pause, &options, &shared, progress));
    let input = input(specs.collect(), 50, Log::default());
    let outcome = run(vec![input], &options).expect("a run");
    assert_eq!(outcome.panics, []);
    assert_eq!(outcome.ending, Ending::Stopped, "all have done their calls");
    outcome.cpus[0].counters
}

/// Every line is whole, and each thread's lines are all there and in order.
fn check_lines(path: &Path, progress: &Progress) {
    let text = std::fs::read_to_string(path).expect("the lines");
    let mut seen = [0; THREADS];
    for line in text.lines() {
        let mut words = line.split(' ').map(str::parse::<u64>);
        let words = [words.next(), words.next(), words.next(), words.next()];
        let [Some(Ok(thread)), Some(Ok(n)), Some(Ok(found)), None] = words else {
            panic!("a torn line: {line}");
        };
        let place = usize::try_from(thread).expect("small");
        assert_eq!((n, found), (seen[place], mark(thread, n)), "in {line}");
        seen[place] += 1;
    }
    let written = progress.lines.each_ref();
    assert_eq!(seen, written.map(|lines| lines.load(Ordering::Relaxed)));
}

/// Ends this process when no call is made any more: threads that wait for each other for good
/// cannot be ended otherwise.
fn watch(progress: &Arc<Progress>) {
    let progress = Arc::clone(progress);
    std::thread::spawn(move || {
        let mut before = u64::MAX;
        loop {
            std::thread::sleep(STILL);
            let calls = progress.calls.load(Ordering::Relaxed);
            if calls == before {
                eprintln!("stands still after {calls} calls");
                // Not by `exit`, which would wait for the locks of the C library, too.
                std::process::abort();
            }
            before = calls;
        }
    });
}

/// Where the storm of a process leaves its lines.
fn scratch(process: u32) -> PathBuf {
    std::env::temp_dir().join(format!("punctual-storm-{process}"))
}

#[test]
fn four_light_threads_in_the_c_library_damage_nothing_and_do_not_wait_for_good() {
    let _alone = alone();
    let progress = Arc::new(Progress::default());
    if std::env::var_os(WITHOUT).is_some() {
        // SAFETY: this process was started to be seen failing.
        unsafe { punctual_linux::forgo_deferral() };
        watch(&progress);
    }
    let (path, start) = (scratch(std::process::id()), Wall::now());
    let counters = storm(&path, &progress);
    check_lines(&path, &progress);
    std::fs::remove_file(&path).expect("its own file");
    let calls = progress.calls.load(Ordering::Relaxed);
    assert!(calls >= wanted());
    let defers = std::env::var_os(WITHOUT).is_none();
    assert_eq!(counters.deferrals > 0, defers, "{counters:?}");
    assert!(counters.preemptions > 0, "{counters:?}");
    println!(
        "{calls} calls in {:.1} s, {} preemptions; deferral of {}: p50 {} ns, p99 {} ns, max {} ns",
        start.elapsed().as_secs_f64(),
        counters.preemptions,
        counters.deferrals,
        counters.deferred_p50_ns,
        counters.deferred_p99_ns,
        counters.deferred_max_ns,
    );
}

/// How the same storm ends in a child that goes without deferral.
fn end_without_deferral() -> (ExitStatus, String) {
    let program = std::env::current_exe().expect("this program");
    let child = Command::new(program)
        .args(["--exact", STORM, "--nocapture"])
        .env(WITHOUT, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("this program starts");
    let path = scratch(child.id());
    let output = child.wait_with_output().expect("a child of this process");
    // It is there unless the child ended before its first line.
    let _ = std::fs::remove_file(path);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status, said)
}

#[test]
fn without_deferral_the_same_threads_stand_still_or_crash() {
    let _alone = alone();
    let (status, said) = end_without_deferral();
    println!("{status}: {}", said.lines().last().unwrap_or_default());
    assert!(!status.success(), "{said}");
}
