//! Each rival gives samples, or says why it is not there.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::sync::atomic::AtomicBool;

use punctual_rivals::periodic::{self, Class, Options, Task, Work};
use punctual_rivals::{
    Place, Samples, barriers, contended, contexts, flips, kernel, lines, locks, reads, signals,
    timers,
};

/// The last CPU that may be used.
fn place() -> Place {
    Place {
        cpu: 0,
        other: None,
        real_time: true,
    }
}

/// The same with the next one beside it.
fn two_places() -> Place {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    Place {
        other: (all > 1).then_some(1),
        ..place()
    }
}

fn measured(name: &str, samples: Samples) {
    let samples = samples.unwrap_or_else(|why| panic!("{name}: {why}"));
    assert!(!samples.is_empty(), "{name}");
    assert!(samples.iter().all(|ns| ns.is_finite()), "{name}");
    let mut sorted = samples;
    sorted.sort_by(f64::total_cmp);
    assert!(sorted[sorted.len() / 2] > 0.0, "{name}: {sorted:?}");
}

#[test]
fn what_every_linux_has_is_measured() {
    measured("swapcontext", contexts::swapcontext(place()));
    measured("corosensei", contexts::corosensei(place()));
    measured("sched_yield", kernel::sched_yield(place()));
    measured("futex", kernel::futex_same_cpu(place()));
    measured("create", kernel::create_join(place()));
    measured("pipe", kernel::pipe_same_cpu(place()));
    measured("read", reads::ready(place()));
    measured("blocking read", reads::blocking(place()));
    measured("epoll", reads::by_epoll(place()));
    measured("compare", locks::compare_exchange(place()));
    measured("mutex", locks::pthread_mutex(place()));
    measured("inheriting", locks::inheriting_mutex(place()));
    measured("lock_pi", locks::futex_lock_pi(place()));
    measured("wake", locks::futex_wake_nobody(place()));
    measured("signal", signals::bare(place(), 200_000));
    measured("rearmed", signals::rearmed(place(), 200_000));
    measured("nanosleep", timers::nanosleep(place()));
    measured("flips", flips::flips(place(), 8));
}

#[test]
fn what_may_be_missing_is_measured_or_says_why() {
    for (name, samples) in [
        ("boost", contexts::boost(place())),
        ("queue", kernel::message_queue(place())),
        ("deadline", timers::deadline(place())),
        ("busy", timers::nanosleep_busy(place())),
        ("contended", contended::pthread_mutex(place())),
        (
            "contended, inheriting",
            contended::inheriting_mutex(place()),
        ),
        ("other CPU", kernel::futex_other_cpu(place())),
        ("barrier", barriers::pthread(two_places())),
        ("line", lines::there_and_back(two_places())),
    ] {
        match samples {
            Ok(samples) => assert!(!samples.is_empty(), "{name}"),
            Err(why) => assert!(why.len() > 10, "{name}: {why}"),
        }
    }
}

/// A thread with this work every 10 ms, first after 2 ms.
fn task(work: Work, skips: bool, priority: i32) -> Task {
    Task {
        cpu: 0,
        priority,
        period: 10_000_000,
        phase: 2_000_000,
        relative_deadline: 10_000_000,
        runtime: 1_000_000,
        skips,
        work,
    }
}

#[test]
fn periodic_threads_keep_their_releases_or_say_why_there_are_none() {
    for class in [Class::Fifo, Class::Deadline] {
        let stop = AtomicBool::new(false);
        let options = Options {
            class,
            duration: 100_000_000,
            grace: 10_000_000,
            stop: &stop,
        };
        let tasks = vec![
            task(Work::Burn(100_000), false, 50),
            task(Work::Call(Box::new(|_, _| {})), true, 51),
            // Its third job never ends, and the end of the run ends it.
            task(Work::RunAway(50_000, 2), false, 49),
        ];
        let outcome = match periodic::run(tasks, &options) {
            Ok(outcome) => outcome,
            Err(why) => {
                eprintln!("SKIPPED: {class:?}: {why}");
                assert!(why.len() > 10, "{why}");
                continue;
            }
        };
        let [burning, calling, running_away] = &outcome.tasks[..] else {
            panic!("three threads")
        };
        for (number, job) in (0_u64..).zip(&burning.jobs) {
            assert_eq!(job.release, 2_000_000 + number * 10_000_000);
            let end = job.end.expect("it burns for a moment");
            assert!(job.start >= job.release && end >= job.start + 100_000);
        }
        assert!(burning.jobs.len() <= 10 && calling.jobs.len() <= 10);
        assert!(!burning.jobs.is_empty());
        assert!(
            calling
                .jobs
                .iter()
                .all(|job| job.release % 10_000_000 == 2_000_000)
        );
        if let Some(job) = running_away.jobs.get(2) {
            assert_eq!((running_away.jobs.len(), job.end), (3, None));
        }
        assert!(outcome.processor_ns > 0);
    }
}

#[test]
fn periodic_threads_see_a_wish_to_stop() {
    let stop = AtomicBool::new(false);
    let options = Options {
        class: Class::Fifo,
        duration: 60_000_000_000,
        grace: 0,
        stop: &stop,
    };
    std::thread::scope(|scope| {
        let _ = scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(200));
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        // The second would compute for a minute.
        let tasks = vec![
            task(Work::Burn(10_000), false, 51),
            task(Work::RunAway(0, 0), false, 50),
        ];
        match periodic::run(tasks, &options) {
            Ok(outcome) => assert!(outcome.tasks[0].jobs.len() < 6_000),
            Err(why) => eprintln!("SKIPPED: {why}"),
        }
    });
}

#[test]
fn a_refused_class_is_an_error_with_words() {
    let stop = AtomicBool::new(false);
    let options = Options {
        class: Class::Fifo,
        duration: 1_000_000,
        grace: 0,
        stop: &stop,
    };
    // There is no such priority, for nobody.
    let refused = periodic::run(vec![task(Work::Burn(1), false, 1_000)], &options);
    assert!(refused.is_err_and(|why| why.contains("pthread_attr_setschedparam")));
}
