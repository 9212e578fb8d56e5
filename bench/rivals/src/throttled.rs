//! Threads that the kernel holds to a slice of each period
//!
//! The kernel looks at the budgets of such threads when its tick comes, so they execute for longer
//! than their slice and are away for longer, too. Only their share of the time is kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::call::check;
use crate::groups::Group;
use crate::thread::{deadline_class, fifo_if, ordinary_class, pin};

/// How a thread is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Throttle {
    /// Not at all. Each thread is pinned to its CPU, and above ordinary ones where that is
    /// permitted: its rate is that of all the time.
    Free,
    /// The quota of a control group of its own: `cpu.max`, or `cpu.cfs_quota_us` of version 1. Each
    /// thread is pinned to its CPU, and of an ordinary class.
    Quota,
    /// SCHED_DEADLINE, whose threads the kernel refuses when they are pinned.
    Deadline,
}

/// All threads go, or give up, as soon as this says so.
const WAIT: u8 = 0;
const GO: u8 = 1;
const GIVE_UP: u8 = 2;

/// A thread that has not got its class after so long gets none.
const READY: Duration = Duration::from_secs(5);

/// Groups of this process so far: each has a name of its own.
static GROUPS: AtomicU64 = AtomicU64::new(0);

/// Runs `work` on a thread for each of the CPUs, with its place among them. Each may execute for
/// `slice` of each `period`, in nanoseconds. `work` ends by itself; then all groups are gone.
///
/// # Errors
/// When the kernel refuses: without permission, a slice that it cannot hold, or no control groups.
pub fn held<T: Send + 'static>(
    way: Throttle,
    cpus: &[usize],
    (period, slice): (u64, u64),
    work: impl Fn(usize) -> T + Send + Sync + 'static,
) -> Result<Vec<T>, String> {
    let (work, go) = (Arc::new(work), Arc::new(AtomicU8::new(WAIT)));
    let (ready, is_ready) = channel();
    let mut threads = Vec::new();
    let mut held = Ok(());
    for (place, cpu) in cpus.iter().enumerate() {
        let (work, go, ready) = (Arc::clone(&work), Arc::clone(&go), ready.clone());
        let (cpu, constraint) = (*cpu, (period, slice));
        let body = move || thread(way, (place, cpu), constraint, (&ready, &go), &*work);
        match Builder::new().name("punctual/rival".into()).spawn(body) {
            Ok(thread) => threads.push(thread),
            Err(error) => held = Err(error.to_string()),
        }
    }
    let mut groups = Vec::new();
    for _ in &threads {
        let told = is_ready.recv_timeout(READY);
        let told = told
            .map_err(|error| error.to_string())
            .and_then(|told| told);
        let taken = told.and_then(|number| {
            if way == Throttle::Quota {
                let number_of_all = GROUPS.fetch_add(1, Ordering::Relaxed);
                let mut group = Group::with_quota(&format!("held-{number_of_all}"))?;
                group.hold(number, (period, slice))?;
                groups.push(group);
            }
            Ok(())
        });
        held = held.and(taken);
    }
    go.store(if held.is_ok() { GO } else { GIVE_UP }, Ordering::Release);
    let ended: Vec<_> = threads.into_iter().map(JoinHandle::join).collect();
    drop(groups);
    held?;
    let ended = ended.into_iter().map(|thread| thread.ok().flatten());
    ended
        .collect::<Option<_>>()
        .ok_or_else(|| "a thread ended early".into())
}

/// The whole life of a thread; `None`: another one was refused, or this one.
fn thread<T>(
    way: Throttle,
    (place, cpu): (usize, usize),
    (period, slice): (u64, u64),
    (ready, go): (&Sender<Result<i32, String>>, &AtomicU8),
    work: &dyn Fn(usize) -> T,
) -> Option<T> {
    let class = ordinary_class().and_then(|()| match way {
        Throttle::Free | Throttle::Quota => pin(cpu),
        Throttle::Deadline => deadline_class(slice, period, period),
    });
    // SAFETY: no arguments, no effect.
    let number = check("gettid", unsafe { libc::syscall(libc::SYS_gettid) });
    let number = number.and_then(|number| i32::try_from(number).map_err(|e| e.to_string()));
    // Nobody listens any more when another thread was refused: then there is nothing to do.
    let _told = ready.send(class.and(number));
    while go.load(Ordering::Acquire) == WAIT {
        std::thread::yield_now();
    }
    if go.load(Ordering::Acquire) != GO {
        return None;
    }
    // Not before all are there: on one CPU it would keep it from them.
    fifo_if(way == Throttle::Free);
    Some(work(place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// For how long a thread tries to execute.
    const TRIED: Duration = Duration::from_millis(100);

    /// The time that a thread has executed, as the kernel counts it, of so much; and whether the
    /// kernel says that it is held.
    fn executed(_: usize) -> (i64, i64, bool) {
        let clock = || crate::call::read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0);
        let (begun, before) = (Instant::now(), clock());
        while begun.elapsed() < TRIED {
            std::hint::spin_loop();
        }
        let passed = i64::try_from(begun.elapsed().as_nanos()).unwrap_or(0);
        // SAFETY: no pointers; 0 is the calling thread.
        let class = unsafe { libc::sched_getscheduler(0) };
        let groups = std::fs::read_to_string("/proc/thread-self/cgroup").unwrap_or_default();
        let mine = format!("punctual-{}-held", std::process::id());
        let is_held = class == libc::SCHED_DEADLINE || groups.contains(&mine);
        (clock() - before, passed, is_held)
    }

    #[test]
    fn a_thread_gets_its_share_at_most_or_a_refusal_in_words_and_no_group_is_left() {
        refusals();
        for way in [Throttle::Quota, Throttle::Deadline] {
            // A try in which the host takes the CPU away says nothing: the kernel counts that, too.
            let is_held = (0..50).any(|_| {
                match held(way, &[0], (10_000_000, 2_000_000), executed) {
                    // A tick of 10 ms beyond its budget, at each end, is the coarsest there is.
                    Ok(all) => all.iter().all(|&(ran, of, is_held)| {
                        assert!(is_held, "{way:?}: the kernel does not hold it");
                        ran <= of / 5 + 40_000_000
                    }),
                    Err(why) => {
                        eprintln!("skipped: {way:?}: {why}");
                        true
                    }
                }
            });
            assert!(is_held, "{way:?}");
        }
        // Groups of this process are named by its number.
        let mine = format!("punctual-{}-held", std::process::id());
        for root in [
            "/sys/fs/cgroup",
            "/sys/fs/cgroup/cpu",
            "/sys/fs/cgroup/unified",
        ] {
            let groups = std::fs::read_dir(root).into_iter().flatten().flatten();
            let mut names = groups.filter_map(|entry| entry.file_name().into_string().ok());
            assert!(!names.any(|name| name.starts_with(&mine)), "{root}");
        }
    }

    /// A slice that no kernel holds is refused with words.
    fn refusals() {
        // Control groups know a millisecond at least, SCHED_DEADLINE a microsecond.
        let quota = held(Throttle::Quota, &[0], (100_000, 10_000), executed);
        let quota = quota.expect_err("too short");
        assert!(!quota.is_empty());
        let deadline = held(Throttle::Deadline, &[0], (100_000, 10), executed);
        assert!(deadline.expect_err("too short").contains("SCHED_DEADLINE"));
    }

    #[test]
    fn free_threads_give_what_their_work_comes_to() {
        // SAFETY: no arguments, no effect.
        let here = unsafe { libc::sched_getcpu() };
        let here = usize::try_from(here).unwrap_or(0);
        let placed = held(Throttle::Free, &[here, here], (0, 0), |place| place + 1);
        assert_eq!(placed, Ok(vec![1, 2]));
    }
}
