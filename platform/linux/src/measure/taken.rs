//! How much the kernel takes at once from a real-time thread, found by trying.
//!
//! A thread under SCHED_FIFO reads the clock on one CPU for some seconds, three times: alone (then
//! the throttling of the class takes), beside a normal thread that never rests (then a fair server
//! does, or one of sched_ext), and beside it but asleep for a sixteenth of the time, as a run is.
//! Another CPU stays free all the while.

use core::sync::atomic::{AtomicBool, Ordering};
use std::io;
use std::thread;

use crate::entry::give_back::{ONE_IN, SLICE_NS};
use crate::measure::probe::{Probe, Status};
use crate::sys::{self, HostClass};
use crate::time::clock::{Clock, clock_rate};

/// The kernel counts in seconds of its own: two of them end in here.
const TRIAL_NS: u64 = 2_300_000_000;
/// Before that, for what the kernel still has to give of the time before.
const LEAD_NS: u64 = 1_000_000_000;
/// From the start of one sleep to that of the next.
const SLEEP_EVERY_NS: u64 = SLICE_NS * ONE_IN;
/// Shorter gaps are of the host, or of interrupts.
const LEAST_NS: u64 = 15_000_000;

/// Gaps in one trial.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// How many were of [`LEAST_NS`] or more.
    times: u64,
    /// The longest of all, in nanoseconds.
    longest_ns: u64,
}

/// Each trial: its name, why it matters, whether a normal thread runs beside, whether it sleeps.
const TRIALS: [(&str, &str, bool, bool); 3] = [
    (
        "throttling-tried",
        "the class is stopped for the rest of a period: a CPU that never sleeps loses that at once",
        false,
        false,
    ),
    (
        "fair-server-tried",
        "a CPU that never sleeps loses that at once when an ordinary thread waits for it",
        true,
        false,
    ),
    (
        "share-tried",
        "a run sleeps a sixteenth of the time so that nothing is taken at once",
        true,
        true,
    ),
];

/// Tries for ten seconds what the kernel takes at once on this CPU. Changes nothing.
pub fn try_kernel(host: u32) -> Vec<Probe> {
    let alone = sys::allowed_cpus().map_or(0, |cpus| cpus.len()) < 2;
    let probe = |(name, why, beside, sleeps)| {
        let tried = match alone {
            true => Err(io::Error::other("this process may use one CPU only")),
            false => trial(host, beside, sleeps),
        };
        let (status, value) = match tried {
            Err(error) => (Status::Warn, format!("not tried: {error}")),
            Ok(taken) => {
                let longest = punctual_model::readable(taken.longest_ns);
                let trial = punctual_model::readable(TRIAL_NS);
                let status = if taken.times == 0 {
                    Status::Ok
                } else {
                    Status::Warn
                };
                let value = format!(
                    "{} times 15 ms or more in {trial}, the longest gap {longest}",
                    taken.times
                );
                (status, value)
            }
        };
        Probe::new(name, why, status, value)
    };
    TRIALS.map(probe).into()
}

fn trial(host: u32, beside: bool, sleeps: bool) -> io::Result<Taken> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let clock = Clock::starting_in(clock_rate(), 0);
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        if beside {
            let over = &over;
            named("punctual/hog").spawn_scoped(scope, move || {
                // Elsewhere it waits for nobody, which shows in the figure.
                let _ = sys::pin(None, &[host]);
                let end = clock.ticks(2 * (LEAD_NS + TRIAL_NS));
                while !over.load(Ordering::Relaxed) && clock.now().ticks() < end {
                    core::hint::spin_loop();
                }
            })?;
        }
        let looks = named("punctual/trial").spawn_scoped(scope, move || {
            sys::pin(None, &[host])?;
            sys::sharpen_sleep();
            sys::set_host_class(None, HostClass::fifo(1))?;
            Ok(look(clock, sleeps))
        });
        let taken = looks.and_then(|thread| {
            let panicked = |_| io::Error::other("the trial panicked");
            thread.join().map_err(panicked)?
        });
        over.store(true, Ordering::Relaxed);
        taken
    })
}

/// The gaps between two readings of the clock, those in which it slept left out.
fn look(clock: Clock, sleeps: bool) -> Taken {
    let nobody = core::sync::atomic::AtomicU32::new(0);
    let (begin, mut taken) = (clock.now(), Taken::default());
    let (mut last, mut slept) = (begin, begin);
    let (lead, end) = (clock.ticks(LEAD_NS), clock.ticks(LEAD_NS + TRIAL_NS));
    while last.since(begin).ticks() < end {
        let mut now = clock.now();
        let mut asleep = 0;
        if sleeps && now.since(slept).ticks() > clock.ticks(SLEEP_EVERY_NS) {
            sys::futex_wait(&nobody, 0, SLICE_NS);
            (slept, asleep) = (now, SLICE_NS);
            now = clock.now();
        }
        let gap = clock.ns(now.since(last).ticks()).saturating_sub(asleep);
        if now.since(begin).ticks() > lead {
            taken.longest_ns = taken.longest_ns.max(gap);
            taken.times += u64::from(gap >= LEAST_NS);
        }
        last = now;
    }
    taken
}
