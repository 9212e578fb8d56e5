//! Runs for live tests: one CPU, no measured overheads, one run at a time.

#![allow(dead_code, unreachable_pub)] // Each test program includes this file and uses a part of it.

use std::sync::{Mutex, PoisonError};

use punctual_model::{Machine, Ns, PolicyKind, Span, Work};
use punctual_thread::{Constraint, Finished, Runtime};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The host CPUs that tests may use.
pub fn allowed_cpus() -> Vec<u32> {
    let list = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = list.lines().find(|l| l.starts_with("Cpus_allowed_list:"));
    let ranges = line
        .expect("known since 2.6")
        .split(['\t', ' ', ','])
        .skip(1);
    let bounds = |range: &str| -> Option<(u32, u32)> {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    let ranges = ranges.filter_map(bounds);
    ranges.flat_map(|(first, last)| first..=last).collect()
}

/// The host CPU that tests use: the last one, so that CPU 0 stays free where there are two.
pub fn test_cpu() -> u32 {
    *allowed_cpus().last().expect("one at least")
}

pub const FIXED: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };

pub fn runtime(policy: PolicyKind<Ns>) -> Runtime {
    let runtime = Runtime::on(test_cpu(), policy).terms(Machine::default());
    runtime.main(Constraint::aperiodic(50))
}

/// Waits for its turn, also after a test that failed.
pub fn alone() -> std::sync::MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs alone.
pub fn fly<T: Send + 'static>(
    runtime: Runtime,
    first: impl FnOnce() -> T + Send + 'static,
) -> Finished<T> {
    let _alone = alone();
    let finished = runtime.start(first).expect("a run");
    assert_eq!(finished.outcome.cpus[0].abandoned, 0);
    finished
}

/// Runs alone under fixed priorities, and returns what `first` did.
pub fn done<T: Send + 'static>(first: impl FnOnce() -> T + Send + 'static) -> T {
    fly(runtime(FIXED), first).result
}

/// On a light thread: lets others execute until `is_so`. Of the machine it asks nothing but that it
/// comes to that in half a minute.
pub fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..30_000 {
        if is_so() {
            return;
        }
        punctual_thread::thread::sleep(ms(1));
    }
    panic!("it does not come, whatever the machine does beside");
}

pub fn ms(n: u64) -> Span<Ns> {
    Span::from_ms(n)
}

pub fn us(n: u64) -> Work<Ns> {
    Work::from_us(n)
}

pub fn free(priority: u32) -> Constraint {
    Constraint::aperiodic(priority)
}
