//! Sleeping: not shorter than asked for, and wrong times.

use core::ffi::c_int;
use std::time::{Duration, Instant};

use crate::calls::Told;
use crate::{Said, Scene, alone_on_stage, compare};

fn time(seconds: i64, ns: i64) -> libc::timespec {
    libc::timespec {
        tv_sec: seconds,
        tv_nsec: ns,
    }
}

/// What a call returns, and whether it took at least so long.
fn at_least(said: &mut Said, name: &str, ms: u64, call: impl FnOnce() -> c_int) {
    let start = Instant::now();
    let result = call();
    let in_time = start.elapsed() >= Duration::from_millis(ms);
    said.say(name, format!("{} {in_time}", Told::new(result as isize)));
}

fn now(clock: c_int) -> libc::timespec {
    let mut now = time(0, 0);
    // SAFETY: the place is there.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now
}

fn in_ms(clock: c_int, ms: i64) -> libc::timespec {
    let mut until = now(clock);
    let ns = until.tv_nsec + ms * 1_000_000;
    until.tv_sec += ns.div_euclid(1_000_000_000);
    until.tv_nsec = ns.rem_euclid(1_000_000_000);
    until
}

fn sleeps() -> Vec<Scene> {
    let scene = alone_on_stage("sleeps", |said: &mut Said| {
        let nobody = core::ptr::null_mut();
        let times = [
            time(0, 0),
            time(0, 5_000_000),
            time(0, 1_000_000_000),
            time(0, -1),
            time(-1, 0),
            time(i64::MIN, 0),
            time(i64::MAX, i64::MAX),
        ];
        for asked in times {
            let ms = u64::try_from(asked.tv_nsec / 1_000_000).unwrap_or(0) % 1_000;
            let asked = &raw const asked;
            // SAFETY: the time is there; valid or not is what is asked.
            at_least(said, "nanosleep", ms, || unsafe {
                libc::nanosleep(asked, nobody)
            });
            for clock in [
                libc::CLOCK_MONOTONIC,
                libc::CLOCK_REALTIME,
                libc::CLOCK_BOOTTIME,
            ] {
                // SAFETY: as above.
                at_least(said, "clock_nanosleep", ms, || unsafe {
                    libc::clock_nanosleep(clock, 0, asked, nobody)
                });
            }
        }
        for clock in [libc::CLOCK_MONOTONIC, libc::CLOCK_REALTIME, libc::CLOCK_TAI] {
            for ms in [-5, 0, 5] {
                let until = in_ms(clock, ms);
                let ms = u64::try_from(ms).unwrap_or(0);
                // SAFETY: the time is valid.
                at_least(said, "until", ms, || unsafe {
                    libc::clock_nanosleep(clock, libc::TIMER_ABSTIME, &raw const until, nobody)
                });
            }
        }
        for clock in [
            libc::CLOCK_THREAD_CPUTIME_ID,
            77,
            -1,
            libc::CLOCK_MONOTONIC_RAW,
        ] {
            let asked = time(0, 1);
            // SAFETY: the time is valid.
            at_least(said, "which clock", 0, || unsafe {
                libc::clock_nanosleep(clock, 0, &raw const asked, nobody)
            });
        }
        // SAFETY: no memory is named.
        at_least(said, "usleep", 3, || unsafe { libc::usleep(3_000) });
        // SAFETY: no memory is named.
        at_least(said, "usleep", 0, || unsafe { libc::usleep(0) });
        // SAFETY: no memory is named.
        at_least(said, "sleep", 0, || unsafe { libc::sleep(0) as c_int });
        // SAFETY: no memory is named.
        at_least(said, "sleep", 1_000, || unsafe { libc::sleep(1) as c_int });
    });
    vec![scene]
}

#[test]
fn sleeps_are_as_long_as_asked_for_and_wrong_times_are_refused() {
    compare(sleeps);
}
