//! A run on two CPUs, or on one, with a watchdog.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use punctual_model::{Machine, PolicyKind};
use punctual_thread::sync::Semaphore;
use punctual_thread::{Constraint, Finished, Runtime};

use std::sync::Arc;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub(crate) const FIXED: PolicyKind<punctual_model::Ns> =
    PolicyKind::FixedPriority { preemptive: true };

/// The last two host CPUs that this program may use, the last one first.
pub(crate) fn cpus() -> Vec<u32> {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let bounds = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse().ok()?)
    };
    let mut cpus: Vec<u32> = list
        .expect("known")
        .split(',')
        .filter_map(bounds)
        .flatten()
        .collect();
    cpus.reverse();
    cpus.truncate(2);
    cpus
}

/// Waits for its turn. A test that hangs ends the program: nothing waits for ever here.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static WATCHDOG: Once = Once::new();
    static TURNS: AtomicU64 = AtomicU64::new(0);
    WATCHDOG.call_once(|| {
        std::thread::spawn(|| {
            let mut last = 0;
            loop {
                std::thread::sleep(std::time::Duration::from_secs(120));
                let turns = TURNS.load(Ordering::Relaxed);
                if turns == last {
                    eprintln!("an operation of a gang did not end");
                    std::process::abort();
                }
                last = turns;
            }
        });
    });
    let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    TURNS.fetch_add(1, Ordering::Relaxed);
    turn
}

pub(crate) fn background() -> Constraint {
    Constraint::aperiodic(50)
}

/// Runs `body` on the first thread of both CPUs, with 0 and 1; `None`: there is one CPU only.
pub(crate) fn on_two_cpus<T: Send + 'static>(
    policy: PolicyKind<punctual_model::Ns>,
    body: impl Fn(usize) -> T + Clone + Send + 'static,
) -> Option<(T, T, Finished<()>)> {
    let [here, there] = cpus()[..] else {
        println!("skipped: needs two CPUs");
        return None;
    };
    let _alone = alone();
    let done = Arc::new(Semaphore::cross_cpu(0));
    let signs = Arc::clone(&done);
    let found = Arc::new(Mutex::new(None));
    let (ends, same) = (Arc::clone(&found), body.clone());
    let runtime = Runtime::on(here, policy)
        .terms(Machine::default())
        .main(background());
    let runtime = runtime.and(there, policy, move || {
        let end = same(1);
        *ends.lock().expect("nobody panicked") = Some(end);
        signs.release().expect("in the run");
    });
    let finished = runtime.start(move || {
        let end = body(0);
        done.acquire().expect("the other one ends");
        end
    });
    let (own, finished) = finished.expect("a run").split();
    let other = found.lock().expect("nobody panicked").take();
    Some((own, other.expect("it ended"), finished))
}
