//! Threads that are created while a run goes on: they return, wait, are woken and end.

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::{Log, alone, test_cpu};
use punctual_kern::{Capacity, Constraint, Event, Plan, Shard, Tree};
use punctual_linux::{
    Child, CpuInput, JoinError, Monitor, MonitorError, Outcome, RunOptions, SectionEnd, SpawnError,
    Step, ThreadInput, block, clock_rate, job, run, spawn,
};
use punctual_model::{Class, CpuId, Ns, Priority, Span, Task};
use punctual_policy::FixedPriority;

/// Background work of this priority.
fn free(priority: u32) -> Constraint<Ns> {
    let mut task = Task::new("free", CpuId(0), Class::Aperiodic);
    task.priority = Priority::new(priority);
    Constraint::of_task(&task, 0)
}

/// Runs `main` with priority 5 on a CPU with a pool of `pool` threads, and returns what it did.
fn start<T: Send + 'static>(
    pool: usize,
    main: impl FnOnce() -> T + Send + 'static,
) -> (T, Outcome<Log>) {
    let rate = clock_rate().frequency;
    let capacity = Capacity {
        background_turn: Span::from_ticks(rate.ticks_up(1_000_000)),
        ..Capacity::for_threads(pool + 1)
    };
    let policy = FixedPriority::new(capacity.threads);
    let mut shard = Shard::new(Tree::new(capacity, policy));
    let id = shard
        .attach(free(5).in_ticks(rate))
        .expect("a valid constraint");
    let options = RunOptions {
        pool,
        stack_bytes: 64 * 1024,
        duration_ns: Some(60_000_000_000),
        ..RunOptions::default()
    };
    let stop = Arc::clone(&options.stop);
    let result = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&result);
    let mut main = Some(main);
    let body = Box::new(move |_: &punctual_linux::JobInfo| {
        let main = main.take().expect("called once");
        *kept.lock().expect("nobody panicked") = Some(main());
        stop.store(true, Ordering::Relaxed);
    });
    let input = CpuInput {
        host: test_cpu(),
        name: "0".to_owned(),
        shard,
        sink: Log::with_room(200_000),
        threads: vec![ThreadInput {
            id,
            name: "main".to_owned(),
            body,
        }],
        children: Vec::new(),
        resources: Vec::new(),
        arrivals: Vec::new(),
        plan: Plan::default(),
    };
    let outcome = run(vec![input], &options).expect("a run");
    let result = result.lock().expect("nobody panicked").take();
    (result.expect("main came to its end"), outcome)
}

#[test]
fn a_thread_returns_its_result_to_who_joins_it() {
    let _alone = alone();
    let (sum, outcome) = start(4, || {
        let children: Vec<Child<u64>> = (0..4)
            .map(|n| spawn("adder", free(1), move || n * 10).expect("a thread"))
            .collect();
        children
            .into_iter()
            .map(|c| c.join(None).expect("a result"))
            .sum::<u64>()
    });
    assert_eq!(sum, 60);
    assert_eq!(outcome.cpus[0].abandoned, 0);
    assert_eq!(outcome.panics, []);
}

#[test]
fn the_pool_is_used_again_and_again() {
    let _alone = alone();
    let (sum, outcome) = start(2, || {
        let mut sum = 0;
        for n in 0..20_000_u64 {
            let child = spawn("short", free(9), move || n).expect("a thread");
            sum += child.join(None).expect("a result");
        }
        sum
    });
    assert_eq!(sum, (0..20_000).sum::<u64>());
    assert_eq!(outcome.cpus[0].abandoned, 0);
}

#[test]
fn a_thread_that_changes_its_constraint_keeps_its_place_among_its_equals() {
    let _alone = alone();
    let ((), outcome) = start(2, || {
        let all = [0, 1].map(|_| spawn("equal", free(1), || block(None)).expect("a thread"));
        all[1].change(free(1)).expect("no change at all");
        for child in all {
            while !child.wake() {
                job::burn_ns(10_000);
            }
            let _over = child.join(None);
        }
    });
    let events = &outcome.cpus[0].sink.events;
    let created = events.iter().filter_map(|(_, event)| match event {
        Event::Create(constraint) => Some(constraint.order),
        _ => None,
    });
    let changed = events.iter().find_map(|(_, event)| match event {
        Event::Change { constraint, .. } => Some(constraint.order),
        _ => None,
    });
    let created: Vec<u32> = created.collect();
    assert!(created.len() == 2 && created[0] < created[1], "{created:?}");
    assert_eq!(changed, created.last().copied());
}

#[test]
fn an_empty_pool_and_a_meaningless_constraint_are_refused_and_nothing_is_lost() {
    let _alone = alone();
    let counted = Arc::new(());
    let kept = Arc::clone(&counted);
    let (ends, _) = start(1, move || {
        let first = spawn("first", free(1), || block(None)).expect("a thread");
        let again = Arc::clone(&kept);
        let empty = spawn("second", free(1), move || drop(again)).err();
        assert!(first.wake());
        assert_eq!(first.join(None).ok(), Some(true));
        let mut wrong = free(1);
        wrong.class = Class::Reservation {
            period: Span::ZERO,
            slice: punctual_model::Work::from_us(1),
        };
        let again = Arc::clone(&kept);
        let refused = spawn("third", wrong, move || drop(again)).err();
        let after = spawn("fourth", free(1), || 4)
            .expect("a thread")
            .join(None)
            .ok();
        (
            empty,
            matches!(refused, Some(SpawnError::Refused(_))),
            after,
        )
    });
    assert_eq!(ends, (Some(SpawnError::PoolIsEmpty), true, Some(4)));
    assert_eq!(Arc::strong_count(&counted), 1, "closures are dropped");
}

#[test]
fn large_closures_and_results_work_too() {
    let _alone = alone();
    let (all, _) = start(1, || {
        let large = [7_u64; 200];
        let child = spawn("large", free(1), move || large.map(|n| n + 1)).expect("a thread");
        child.join(None).expect("a result")
    });
    assert_eq!(all, [8; 200]);
}

#[test]
fn a_panic_ends_its_thread_and_is_told_with_its_name() {
    let _alone = alone();
    let (said, outcome) = start(2, || {
        let child = spawn("clumsy", free(1), || panic!("dropped it")).expect("a thread");
        let said: Result<(), _> = child.join(None);
        let next = spawn("next", free(1), || 1)
            .expect("a thread")
            .join(None)
            .ok();
        (said.err().map(|e| e.0), next)
    });
    assert_eq!(said.0, Some(JoinError::Panicked("dropped it".to_owned())));
    assert_eq!(said.1, Some(1));
    assert_eq!(outcome.panics.len(), 1);
    assert_eq!(outcome.panics[0].name, "clumsy");
}

#[test]
fn a_wake_up_that_comes_first_is_not_lost_in_another_wait() {
    let _alone = alone();
    let (woken, _) = start(2, || {
        let order = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&order);
        let sleeper = spawn("sleeper", free(1), move || {
            job::sleep_ns(2_000_000);
            seen.store(1, Ordering::Relaxed);
            block(None)
        });
        let sleeper = sleeper.expect("a thread");
        job::sleep_ns(500_000);
        assert!(sleeper.wake(), "while it sleeps");
        let woken = sleeper.join(None).ok();
        (woken, order.load(Ordering::Relaxed))
    });
    assert_eq!(woken, (Some(true), 1));
}

#[test]
fn a_block_with_a_timeout_ends_without_a_wake_up() {
    let _alone = alone();
    let (woken, _) = start(1, || {
        let soon = job::now_ns().map(|now| now + 1_000_000);
        let rate = clock_rate().frequency;
        let soon = soon.map(|ns| punctual_model::Instant::from_ticks(rate.ticks_up(ns)));
        block(soon)
    });
    assert!(!woken);
}

#[test]
fn a_cancelled_thread_lets_go_of_all_that_it_has() {
    let _alone = alone();
    let counted = Arc::new(());
    let kept = Arc::clone(&counted);
    let (ends, outcome) = start(3, move || {
        let one = Arc::clone(&kept);
        let blocked = spawn("blocked", free(9), move || {
            let _one = one;
            block(None)
        });
        let two = Arc::clone(&kept);
        let busy = spawn("busy", free(1), move || {
            let _two = two;
            loop {
                job::burn_ns(1_000);
            }
        });
        let (blocked, busy) = (blocked.expect("a thread"), busy.expect("a thread"));
        assert!(blocked.cancel() && busy.cancel());
        let ends: [Result<bool, _>; 2] = [blocked.join(None), busy.join(None)];
        ends.map(|end| end.err().map(|e| e.0))
    });
    assert_eq!(
        ends,
        [Some(JoinError::Cancelled), Some(JoinError::Cancelled)]
    );
    assert_eq!(Arc::strong_count(&counted), 1);
    assert_eq!(outcome.cpus[0].abandoned, 0);
}

#[test]
fn a_cancelled_epoll_wait_fails_and_says_why() {
    let _alone = alone();
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    // Without a ring of the kernel the waiter stops its CPU: it is helped out in the end.
    let helper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(20));
        drop(theirs);
    });
    drop(helper);
    let (end, outcome) = start(2, move || {
        let waits = spawn("waits", free(9), move || {
            let mut event = libc::epoll_event { events: 1, u64: 0 };
            // SAFETY: the descriptors are open, and the event is valid for both calls.
            let found = unsafe {
                let epoll = libc::epoll_create1(0);
                let add = libc::EPOLL_CTL_ADD;
                assert_eq!(libc::epoll_ctl(epoll, add, ours.as_raw_fd(), &mut event), 0);
                libc::epoll_wait(epoll, &mut event, 1, -1)
            };
            let error = std::io::Error::last_os_error();
            (found, error.raw_os_error())
        });
        let waits = waits.expect("a thread");
        assert!(waits.cancel());
        waits.join(None).map_err(|(why, _)| why)
    });
    if !outcome.lost.iter().any(|loss| loss.what == "io_uring") {
        assert_eq!(end, Ok((-1, Some(libc::ECANCELED))));
    }
}

#[test]
fn what_a_thread_leaves_when_nobody_joins_it_is_dropped() {
    let _alone = alone();
    let counted = Arc::new(());
    let kept = Arc::clone(&counted);
    let ((), outcome) = start(3, move || {
        for priority in [1, 9] {
            let one = Arc::clone(&kept);
            drop(spawn("let go", free(priority), move || one).expect("a thread"));
        }
        job::sleep_ns(1_000_000);
        let one = Arc::clone(&kept);
        let held = spawn("held to the end", free(9), move || one);
        std::mem::forget(held);
        let one = Arc::clone(&kept);
        drop(spawn("never begun", free(1), move || one));
    });
    assert_eq!(outcome.cpus[0].abandoned, 0);
    assert_eq!(Arc::strong_count(&counted), 1);
}

#[test]
fn a_monitor_answers_the_most_urgent_first_and_times_out() {
    let _alone = alone();
    let (order, _) = start(4, || {
        let monitor = Arc::new(Monitor::<Vec<u64>, 1>::new(Vec::new()));
        let ask = |n| Step::<()>::Wait {
            queue: 0,
            ask: n,
            holder: None,
        };
        let mut children = Vec::new();
        for priority in [7, 9, 8, 9] {
            let monitor = Arc::clone(&monitor);
            let n = u64::from(priority);
            let waits = move || monitor.critical_section(None, |_, _| ask(n));
            children.push(spawn("waits", free(priority), waits).expect("a thread"));
        }
        let mut order = Vec::new();
        for round in 0..4 {
            let next = monitor.critical_section(None, |_, waiters| {
                let next = waiters.most_urgent(0);
                if let Some((who, _)) = next {
                    waiters.answer(who, round);
                }
                Step::Done(next.map(|(_, ask)| ask))
            });
            order.push(next);
        }
        let soon = punctual_model::Instant::from_ticks(1);
        let late = monitor.critical_section(Some(soon), |_, _| ask(0));
        assert_eq!(late, Err(MonitorError::TimedOut));
        let answers: Vec<_> = children.into_iter().map(|c| c.join(None).ok()).collect();
        (order, answers)
    });
    let done = |n| Ok(SectionEnd::Done(Some(n)));
    assert_eq!(order.0, [done(9), done(9), done(8), done(7)]);
    let answered = |n| Some(Ok(SectionEnd::Answered(n)));
    assert_eq!(
        order.1,
        [answered(3), answered(0), answered(2), answered(1)]
    );
}

#[test]
fn a_cancelled_sleep_returns_early_and_the_one_in_seconds_tells_what_is_left() {
    let _alone = alone();
    let (left, _) = start(2, || {
        let sleeps = |body: fn() -> u32| {
            // More urgent than this thread: it sleeps when this one goes on.
            let sleeps = spawn("sleeps", free(9), body).expect("a thread");
            assert!(sleeps.cancel());
            sleeps.join(None).map_err(|(why, _)| why)
        };
        // SAFETY: no memory is named.
        let seconds = sleeps(|| unsafe { libc::sleep(1_000) });
        let precise = sleeps(|| {
            let time = libc::timespec {
                tv_sec: 1_000,
                tv_nsec: 0,
            };
            // SAFETY: the time is there, and nobody wants the rest.
            let said = unsafe { libc::nanosleep(&raw const time, core::ptr::null_mut()) };
            u32::from(said != 0)
        });
        (seconds, precise)
    });
    let (seconds, precise) = left;
    let seconds = seconds.expect("it returns");
    assert!((1..=1_000).contains(&seconds), "{seconds} s are left");
    assert_eq!(precise, Ok(0));
}
