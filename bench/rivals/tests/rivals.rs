//! Each rival gives samples, or says why it is not there.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use punctual_rivals::{Place, Samples, contended, contexts, kernel, locks, reads, signals, timers};

/// The last CPU that may be used.
fn place() -> Place {
    Place {
        cpu: 0,
        other: None,
        real_time: true,
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
    measured("nanosleep", timers::nanosleep(place()));
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
    ] {
        match samples {
            Ok(samples) => assert!(!samples.is_empty(), "{name}"),
            Err(why) => assert!(why.len() > 10, "{name}: {why}"),
        }
    }
}
