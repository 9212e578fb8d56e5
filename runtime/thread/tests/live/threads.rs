//! Threads of a runtime: admitted, periodic, woken, changed, ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{FIXED, alone, done, fly, free, ms, runtime, us};
use punctual_model::{Ns, PolicyKind};
use punctual_thread::sync::Semaphore;
use punctual_thread::thread::{self, JoinError, SpawnError};
use punctual_thread::{Constraint, Guarantee, NoNextJob, NotAdmitted, OnFault, StartError, Timer};

const EDF: PolicyKind<Ns> = PolicyKind::EarliestDeadlineFirst;

#[test]
fn a_periodic_thread_is_a_loop_around_its_jobs() {
    let jobs = fly(runtime(EDF), || {
        let every = Constraint::periodic(ms(2), us(500));
        let body = || -> Result<Vec<(u64, u64)>, NoNextJob> {
            let first = thread::current_job().ok_or(NoNextJob)?;
            let mut jobs = vec![(first.index, first.arrival_ns)];
            while jobs.len() < 10 {
                let job = thread::wait_next_period()?;
                jobs.push((job.index, job.arrival_ns));
            }
            Ok(jobs)
        };
        let control = thread::spawn("control", every, body).expect("admitted");
        control.join().expect("no panic").expect("it is periodic")
    });
    let first = jobs.result[0].1;
    for (place, (index, arrival)) in (0..).zip(&jobs.result) {
        assert_eq!(*index, place);
        assert!(
            arrival.abs_diff(first + place * 2_000_000) < 1_000,
            "{jobs:?}"
        );
    }
}

#[test]
fn what_would_make_somebody_late_is_refused_and_may_come_when_there_is_room() {
    let (refused, later) = fly(runtime(EDF), || {
        let half = |period| Constraint::periodic(ms(period), us(period * 500));
        let wait = || thread::block();
        let first = thread::spawn("first", half(4), wait).expect("half");
        let _second = thread::spawn("second", half(8), wait).expect("the other half");
        let refused = thread::spawn("third", half(8), wait).err();
        assert!(thread::verdict().is_ok_and(|v| v.tasks.len() == 2));
        assert!(first.wake());
        first.join().expect("it was woken");
        // Its bandwidth is free when the zero-lag instant of its last job has passed.
        thread::sleep(ms(8));
        let later = thread::spawn("third", half(4), wait).map(|t| t.wake());
        (refused, later)
    })
    .result;
    let Some(SpawnError::NotAdmitted(NotAdmitted::Refused(verdict))) = refused else {
        panic!("{refused:?}");
    };
    assert!(!verdict.admitted && !verdict.refusals.is_empty());
    assert_eq!(later, Ok(true));
}

#[test]
fn a_thread_that_gives_its_guarantee_back_is_as_urgent_as_it_was_before() {
    let came_back = fly(runtime(FIXED), || {
        let asks = || {
            let every = Constraint::reservation(ms(2), us(200)).priority(1);
            let mut guarantee = Guarantee::ask(every).expect("room");
            let now = thread::now().expect("a thread of the run");
            guarantee.begin(now).expect("it was admitted");
            // One in place of another that is in force, whose number is no background thread's.
            let mut nested = Guarantee::ask(every).expect("room");
            let now = thread::now().expect("a thread of the run");
            nested.begin(now).expect("it was admitted");
            drop(nested);
            drop(guarantee);
        };
        // This one never waits: what is less urgent gets nothing.
        let other = thread::spawn("other", free(2), || {
            loop {
                thread::yield_now();
            }
        });
        let other = other.expect("room");
        let asks = thread::spawn("asks", free(3), asks).expect("room");
        let came_back = asks.join_within(ms(5_000)).is_ok();
        other.cancel();
        let _: Result<(), _> = other.join();
        came_back
    });
    assert!(came_back.result);
}

fn last_gap(arrivals: &[u64]) -> u64 {
    arrivals.windows(2).last().map_or(0, |w| w[1] - w[0])
}

#[test]
fn a_constraint_changes_while_its_thread_runs() {
    let (refused, gaps) = fly(runtime(EDF), || {
        let every = |n| Constraint::periodic(ms(n), us(100));
        let beside = Constraint::reservation(ms(10), us(9_000));
        let _beside = thread::spawn("beside", beside, thread::block).expect("admitted");
        let changed = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&changed);
        let body = move || {
            let mut arrivals = Vec::new();
            let mut after = 0;
            // However late the first thread comes to it on a loaded machine, and however many jobs
            // wait then that were released before the change.
            while after < 200 && !(after >= 8 && last_gap(&arrivals) >= 3_000_000) {
                after += u32::from(told.load(Ordering::Relaxed));
                arrivals.extend(thread::wait_next_period().map(|job| job.arrival_ns));
            }
            arrivals.windows(2).map(|w| w[1] - w[0]).collect::<Vec<_>>()
        };
        let thread_ = thread::spawn("changing", every(2), body).expect("admitted");
        thread::sleep(ms(5));
        let all = Constraint::periodic(ms(2), us(2_000));
        let refused = thread_.change(all).is_err();
        thread_.change(every(4)).expect("less than before");
        changed.store(true, Ordering::Relaxed);
        (refused, thread_.join().expect("its gaps"))
    })
    .result;
    assert!(refused);
    let close = |gap: u64, to: u64| gap.abs_diff(to) < 1_000;
    assert!(close(gaps[0], 2_000_000), "{gaps:?}");
    assert!(close(gaps[gaps.len() - 1], 4_000_000), "{gaps:?}");
}

#[test]
fn a_change_of_a_thread_that_has_ended_takes_nothing() {
    done(|| {
        let little = Constraint::periodic(ms(10), us(100));
        let over = thread::spawn("over", little, || {}).expect("admitted");
        while !over.is_finished() {
            thread::sleep(ms(1));
        }
        let much = Constraint::periodic(ms(10), us(8_000));
        assert_eq!(over.change(much), Err(thread::SpawnError::NotHere));
        let next = thread::spawn("next", much, || {}).expect("nobody has taken it");
        next.join().expect("its end");
    });
}

#[test]
fn a_sporadic_thread_has_one_job_per_release_never_too_close() {
    let arrivals = done(|| {
        let rarely = Constraint::sporadic(ms(2), us(100)).priority(9);
        let body = || {
            let mut jobs = vec![thread::current_job().map(|job| job.index)];
            for _ in 0..2 {
                jobs.push(thread::wait_next_period().ok().map(|job| job.index));
            }
            (jobs, thread::now())
        };
        let begun = thread::now();
        let sporadic = thread::spawn("sporadic", rarely, body).expect("admitted");
        for _ in 0..3 {
            sporadic.release().expect("it is sporadic");
        }
        let (jobs, end) = sporadic.join().expect("three jobs");
        (jobs, begun, end)
    });
    assert_eq!(arrivals.0, [Some(0), Some(1), Some(2)]);
    let (begun, end) = (arrivals.1.expect("in a run"), arrivals.2.expect("in a run"));
    assert!(end.since(begun) >= ms(4), "the third came no sooner");
}

#[test]
fn a_thread_with_one_job_has_no_next_one() {
    let next = done(|| {
        let child = thread::spawn("once", free(1), || thread::wait_next_period().err());
        child.expect("a thread").join().ok().flatten()
    });
    assert_eq!(next, Some(NoNextJob));
    assert_eq!(thread::wait_next_period().err(), Some(NoNextJob), "no run");
    let outside = thread::spawn("outside", free(1), || ());
    assert_eq!(outside.err(), Some(SpawnError::NoRun));
}

#[test]
fn a_join_that_times_out_gives_the_thread_back() {
    let ends = done(|| {
        let child = thread::spawn("slow", free(1), || {
            thread::block();
            7
        });
        let child = child.expect("a thread");
        let Err((why, Some(child))) = child.join_within(ms(1)) else {
            return None;
        };
        assert!(child.wake());
        Some((why, child.join()))
    });
    assert_eq!(ends, Some((JoinError::TimedOut, Ok(7))));
}

#[test]
fn threads_have_names_and_a_panic_follows_its_rule() {
    let name = done(|| {
        let child = thread::spawn("a name", free(1), thread::current_name);
        child.expect("a thread").join().ok().flatten()
    });
    assert_eq!(name.as_deref(), Some("a name"));
    let ended = std::panic::catch_unwind(|| {
        done(|| {
            let builder = thread::Builder::new("vital", free(60));
            let builder = builder.on_fault(OnFault::EndRun);
            let child = builder.spawn(|| panic!("gone")).expect("a thread");
            let _: Result<(), _> = child.join();
            thread::sleep(ms(60_000));
        });
    });
    assert!(ended.is_err(), "the first thread has no result");
}

#[test]
fn a_first_thread_that_panics_is_named() {
    let _alone = alone();
    let started = runtime(FIXED).start(|| -> () { panic!("at once") });
    let Err(StartError::NoResult { panics }) = started else {
        panic!("it did not come to its end");
    };
    let said: Vec<_> = panics.iter().map(|p| (&*p.name, &*p.message)).collect();
    assert_eq!(said, [("first", "at once")]);
}

#[test]
fn a_run_is_ended_after_its_time_whatever_its_threads_do() {
    let _alone = alone();
    let started = runtime(FIXED).at_most(ms(30)).start(|| -> () {
        loop {
            std::hint::spin_loop();
        }
    });
    let Err(StartError::Ended { after }) = started else {
        panic!("it was not ended: {started:?}");
    };
    assert_eq!(after, ms(30));
    // One that is done before has its result.
    let done = runtime(FIXED).at_most(ms(60_000)).start(|| 7);
    assert_eq!(done.expect("a run").result, 7);
}

#[test]
fn ten_thousand_threads_live_on_one_cpu() {
    // Without optimization the core checks all threads at every entry: fewer will do there.
    const MANY: usize = if cfg!(debug_assertions) {
        1_000
    } else {
        10_000
    };
    let runtime = runtime(FIXED).threads(MANY).stack_bytes(16 * 1024);
    let (sum, used) = fly(runtime, || {
        let all = Arc::new(Semaphore::new(0));
        let children: Vec<_> = (0..MANY)
            .map(|n| {
                let all = Arc::clone(&all);
                let body = move || all.acquire().map_or(0, |()| n);
                thread::spawn("one of many", free(60), body).expect("a thread")
            })
            .collect();
        let full = thread::spawn("one too many", free(60), || ()).err();
        assert_eq!(full, Some(SpawnError::PoolIsEmpty));
        let used = children.iter().filter_map(|child| child.stack_used());
        let used = used
            .map(|(used, of)| (used > 0 && used < of / 2) as usize)
            .sum::<usize>();
        for _ in 0..MANY {
            all.release().expect("in a run");
        }
        let sum: usize = children
            .into_iter()
            .map(|child| child.join().expect("no panic"))
            .sum();
        (sum, used)
    })
    .result;
    assert_eq!(sum, MANY * (MANY - 1) / 2);
    assert_eq!(used, MANY, "a small stack is enough");
}

#[test]
fn a_directed_yield_lends_urgency_to_the_one_that_is_meant() {
    let ends = done(|| {
        let me = thread::waker().expect("in a run");
        let low = thread::spawn("low", free(1), move || {
            let begun = thread::now();
            (me.wake(), begun)
        });
        let middle = thread::spawn("middle", free(40), thread::now).expect("a thread");
        let low = low.expect("a thread");
        let woken = low.yield_to(ms(1_000));
        let (woke, low_ran) = low.join().expect("no panic");
        let middle_ran = middle.join().expect("no panic");
        let ended = thread::spawn("ended", free(60), || ()).expect("a thread");
        (
            (woken, woke, low_ran < middle_ran),
            ended.yield_to(ms(1_000)),
        )
    });
    assert_eq!(ends, ((true, true, true), false));
}

#[test]
fn a_timer_keeps_its_pace() {
    let (count, drift) = done(|| {
        let mut timer = Timer::every(ms(2)).expect("in a run");
        let first = timer.next();
        let count: u64 = (0..10).map(|_| timer.wait()).sum();
        (count, timer.next().since(first))
    });
    assert!(count >= 10);
    assert_eq!(drift, ms(2 * count), "whatever was missed");
}

#[test]
fn a_thread_that_is_cancelled_while_it_sleeps_does_not_sleep_on() {
    let ended = fly(runtime(FIXED), || {
        let sleeper = thread::spawn("sleeper", Constraint::aperiodic(9), || {
            thread::sleep(punctual_model::Span::MAX);
        })
        .expect("free");
        let cancelled = sleeper.cancel();
        (cancelled, sleeper.join())
    });
    assert_eq!(ended.result, (true, Err(JoinError::Cancelled)));
}

/// INV-B1: else each entry uses the budget up that it has just given, and the thread never ends.
#[test]
fn a_thread_whose_budget_is_shorter_than_an_entry_comes_to_its_end() {
    let short = Constraint::periodic(ms(1), us(10));
    let ended = done(move || {
        let body = || (0..1_000_u64).fold(0, |sum, n| core::hint::black_box(sum ^ n));
        let short = thread::spawn("short", short, body).expect("it is admitted");
        short.join_within(ms(20_000)).is_ok()
    });
    assert!(ended);
}
