//! The watchdog: a helper thread, more urgent than the carriers, that ends a run that does not end.

use core::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::record::input::{RunError, RunOptions};
use crate::record::outcome::{Loss, Mode};
use crate::record::per_cpu::Shared;
use crate::sys::{self, HostClass};

/// After the watchdog has told the CPUs to end, they have this long before they are demoted.
const NOTICE: Duration = Duration::from_secs(1);

/// The CPUs that may be used and are not in `used`.
pub(crate) fn free_of(used: &[u32]) -> Vec<u32> {
    let allowed = sys::allowed_cpus().unwrap_or_default();
    let free = allowed.into_iter().filter(|cpu| !used.contains(cpu));
    free.collect()
}

/// Has the calling thread execute on CPUs other than those of a run, if it may use any. For
/// ordinary threads that should go on while a run does.
pub fn stand_aside(used: &[u32]) {
    let free = free_of(used);
    if !free.is_empty() {
        // Without it the thread waits until those of the run leave it a CPU.
        let _ = sys::pin(None, &free);
    }
}

#[derive(Debug, Default)]
struct Finished {
    flag: Mutex<bool>,
    changed: Condvar,
}

impl Finished {
    /// Waits until finished or `until`; whether it is finished.
    fn wait_until(&self, until: Instant) -> bool {
        let mut flag = self.flag.lock().unwrap_or_else(PoisonError::into_inner);
        while !*flag {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.changed.wait_timeout(flag, left);
            flag = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// A watchdog that is awake. A run without a duration has none: it ends by its stop flag.
#[derive(Debug)]
pub(crate) struct Watchdog {
    bound: Option<Duration>,
    finished: Arc<Finished>,
    handle: Option<JoinHandle<bool>>,
}

impl Watchdog {
    /// Starts watching, on a CPU that the run does not use if there is one.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        options: &RunOptions,
        mode: Mode,
        used: &[u32],
        lost: &mut Vec<Loss>,
    ) -> Result<Watchdog, RunError> {
        let bound = options.duration_ns.map(|duration| {
            let ns = duration
                .saturating_add(options.grace_ns)
                .saturating_add(options.patience_ns);
            Duration::from_nanos(ns)
        });
        let finished = Arc::new(Finished::default());
        let free = free_of(used);
        if free.is_empty() && mode == Mode::RealTime {
            lost.push(Loss {
                what: "a free CPU",
                detail: "every CPU is used under SCHED_FIFO: the rest of the system runs only \
                         while these are idle and in slices given back"
                    .to_owned(),
            });
        }
        let class = (mode == Mode::RealTime).then(|| HostClass::fifo(options.priority + 1));
        let (watched, done, carriers) = (Arc::clone(shared), Arc::clone(&finished), used.len());
        let handle = std::thread::Builder::new()
            .name("punctual/watch".to_owned())
            .spawn(move || {
                if !free.is_empty() {
                    // Without it the watchdog is less sure to run, and still urgent.
                    let _ = sys::pin(None, &free);
                }
                if let Some(class) = class {
                    let _ = sys::set_host_class(None, class);
                }
                bound.is_some_and(|bound| watch(&watched, &done, carriers, bound))
            })
            .map_err(|error| RunError::System {
                what: "start the watchdog",
                error,
            })?;
        Ok(Watchdog {
            bound,
            finished,
            handle: Some(handle),
        })
    }

    /// After this, a CPU that has not come back is stuck.
    pub(crate) fn bound(&self) -> Option<Duration> {
        self.bound.map(|bound| bound.saturating_add(2 * NOTICE))
    }

    /// The run is over; whether the watchdog had to end it.
    pub(crate) fn finish(mut self) -> bool {
        *self
            .finished
            .flag
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.finished.changed.notify_all();
        self.handle
            .take()
            .and_then(|handle| handle.join().ok())
            .unwrap_or(false)
    }
}

/// Returns whether the run had to be ended.
fn watch(shared: &Shared, finished: &Finished, carriers: usize, bound: Duration) -> bool {
    if finished.wait_until(Instant::now() + bound) {
        return false;
    }
    shared.abort.store(true, Ordering::SeqCst);
    for cpu in 0..carriers {
        shared.post.kick(cpu);
    }
    if !finished.wait_until(Instant::now() + NOTICE) {
        // They do not listen: at least let the rest of the system run beside them.
        for carrier in (0..carriers).filter_map(|cpu| shared.post.carrier(cpu)) {
            let _ = sys::set_host_class(Some(carrier), HostClass::ORDINARY);
        }
    }
    true
}
