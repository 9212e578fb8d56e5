//! What the last run left behind.

use core::ffi::{c_char, c_int};
use core::fmt::Write as _;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ::punctual_thread::Finished;
use punctual_linux::{ClocksSeen, TakingThread};
use punctual_model::readable;
use serde_json::{Value, json};

use crate::admission::said;
use crate::application::faults_of_all;
use crate::edge::{answer, give, is_place, write_text};
use crate::status::{punctual_status, punctual_status as Status};

static LAST: Mutex<Option<Kept>> = Mutex::new(None);

/// A run that is over, and what was wrong with streaming applications then.
struct Kept {
    run: Finished<()>,
    applications: Vec<String>,
}

/// Keeps what a run left behind, until the next one.
pub(crate) fn keep_report(finished: Finished<()>) {
    let kept = Kept {
        run: finished,
        applications: faults_of_all(),
    };
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
}

fn last<R>(look: impl FnOnce(&Kept) -> Result<R, Status>) -> Result<R, Status> {
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    look(last.as_ref().ok_or(Status::PUNCTUAL_NOTHING)?)
}

/// The report of the last run that came to its end: whether it was real time, what the machine
/// refused, the counts of each CPU with the threads of the machine that took most of its time, and
/// the promises. For the threads of each name it has the jobs, late ones, overruns, throttles and
/// lost releases. Then come the threads that failed, where offered work was done, and what is wrong
/// with streaming applications. Where a gang was admitted it says how often clocks were compared,
/// and from when on two differed by more than bounds of gangs count with. The arguments are those
/// of `punctual_why`. `PUNCTUAL_NOTHING` when there was none. On threads of the program, not of a
/// run.
///
/// # Safety
/// As for `punctual_why`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_report(
    form: u32,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> punctual_status {
    answer(|| {
        let said = last(|run| said(form, || lines(run), || report_json(run)))?;
        // SAFETY: as the caller vouches.
        unsafe { write_text(&said, buffer, capacity, length) }
    })
}

/// Whether the guarantees of the last run could be kept: `was` gets 1 if it had real-time priority
/// and 0 if not. `PUNCTUAL_NOTHING` when there was none. On threads of the program.
///
/// # Safety
/// `was` is null, or to a place for an `int`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn punctual_was_real_time(was: *mut c_int) -> punctual_status {
    answer(|| {
        is_place(was)?;
        let real = last(|kept| Ok(kept.run.is_real_time()))?;
        // SAFETY: as the caller vouches.
        unsafe { give(was, c_int::from(real)) }
    })
}

fn lines(kept: &Kept) -> String {
    let run = &kept.run;
    let outcome = &run.outcome;
    let mut text = outcome.mode.name().to_owned();
    for loss in &outcome.lost {
        // Writing to a string does not fail, here and below.
        let _ = write!(text, "\nrefused: {}: {}", loss.what, loss.detail);
    }
    for (place, cpu) in outcome.cpus.iter().enumerate() {
        let c = &cpu.counters;
        let _ = write!(
            text,
            "\ncpu {place}: {} decisions, {} switches, {} preemptions, {} sleeps; \
             missing {} ns, at most {} ns at once",
            c.decisions, c.switches, c.preemptions, c.sleeps, c.missing_ns, c.missing_max_ns
        );
        for (name, ns) in by_name(&cpu.takers) {
            let _ = write!(text, "\ncpu {place}: `{name}` took {}", readable(ns));
        }
    }
    for promise in &run.promises {
        let _ = write!(
            text,
            "\ncpu {}: `{}` was promised ",
            promise.cpu, promise.name
        );
        let _ = match promise.response_bound {
            Some(bound) => write!(text, "to be done within {}", readable(bound.as_ns())),
            None => write!(text, "its share"),
        };
    }
    for jobs in &run.jobs {
        let _ = write!(
            text,
            "\ncpu {}: `{}`: {} jobs, {} late, {} overruns, {} throttles, {} lost",
            jobs.cpu, jobs.name, jobs.done, jobs.late, jobs.overruns, jobs.throttles, jobs.lost
        );
    }
    for (place, work) in run.spreads.iter().enumerate() {
        let _ = write!(
            text,
            "\ncpu {place}: {} offered, {} of them begun here, {} taken from others",
            work.offered, work.own, work.taken
        );
    }
    if let Some(said) = of_clocks(&outcome.clocks) {
        let _ = write!(text, "\n{said}");
    }
    for panic in &outcome.panics {
        let _ = write!(text, "\n`{}` failed: {}", panic.name, panic.message);
    }
    for fault in &kept.applications {
        let _ = write!(text, "\n{fault}");
    }
    text
}

/// The threads of the machine that took most of a CPU's time, most first; those of one name count
/// together.
fn by_name(takers: &[TakingThread]) -> Vec<(&str, u64)> {
    const MOST: usize = 4;
    let mut shares = BTreeMap::<&str, u64>::new();
    for taker in takers {
        let share = shares.entry(&taker.name).or_default();
        *share = share.saturating_add(taker.ns);
    }
    let mut shares: Vec<(&str, u64)> = shares.into_iter().collect();
    shares.sort_by_key(|(_, ns)| Reverse(*ns));
    shares.truncate(MOST);
    shares
}

/// What was seen of the clocks; `None`: nobody looked.
fn of_clocks(seen: &ClocksSeen) -> Option<String> {
    let compared = seen.compared;
    match seen.apart_ns {
        Some(from) => Some(format!(
            "clocks: compared {compared} times; from {} on two differ by more than bounds of gangs \
             count with, which are not kept",
            readable(from)
        )),
        None if compared > 0 => Some(format!(
            "clocks: compared {compared} times, never surely apart"
        )),
        None => None,
    }
}

fn report_json(kept: &Kept) -> Value {
    let run = &kept.run;
    let outcome = &run.outcome;
    let cpus = outcome.cpus.iter().map(|cpu| {
        let c = &cpu.counters;
        let takers = by_name(&cpu.takers).into_iter();
        let taken_by = takers.map(|(name, ns)| json!({ "name": name, "taken_ns": ns }));
        json!({
            "decisions": c.decisions,
            "switches": c.switches,
            "preemptions": c.preemptions,
            "sleeps": c.sleeps,
            "missing_ns": c.missing_ns,
            "missing_max_ns": c.missing_max_ns,
            "taken_by": taken_by.collect::<Vec<Value>>(),
            "given_back_ns": c.given_back_ns,
            "wake_late_max_ns": c.wake_late_max_ns,
            "abandoned": cpu.abandoned,
        })
    });
    let lost = outcome.lost.iter();
    let lost = lost.map(|loss| json!({ "what": loss.what, "detail": loss.detail }));
    let promises = run.promises.iter().map(|promise| {
        json!({
            "cpu": promise.cpu,
            "name": promise.name,
            "response_bound_ns": promise.response_bound.map(|bound| bound.as_ns()),
            "exactness": promise.exactness.name(),
        })
    });
    let threads = run.jobs.iter().map(|jobs| {
        json!({
            "cpu": jobs.cpu,
            "name": jobs.name,
            "jobs": jobs.done,
            "misses": jobs.late,
            "overruns": jobs.overruns,
            "throttles": jobs.throttles,
            "lost": jobs.lost,
        })
    });
    let spread = run.spreads.iter();
    let spread =
        spread.map(|work| json!({ "offered": work.offered, "own": work.own, "taken": work.taken }));
    let failed = outcome.panics.iter();
    let failed =
        failed.map(|panic| json!({ "cpu": panic.cpu, "name": panic.name, "said": panic.message }));
    json!({
        "format": 1,
        "mode": outcome.mode.name(),
        "lost": lost.collect::<Vec<Value>>(),
        "cpus": cpus.collect::<Vec<Value>>(),
        "promises": promises.collect::<Vec<Value>>(),
        "threads": threads.collect::<Vec<Value>>(),
        "spread": spread.collect::<Vec<Value>>(),
        "failed": failed.collect::<Vec<Value>>(),
        "clocks": { "compared": outcome.clocks.compared, "apart_from_ns": outcome.clocks.apart_ns },
        "applications": kept.applications,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_one_name_count_together_and_those_that_took_most_are_told() {
        let took = |(ns, name): (u64, &str)| TakingThread {
            at: punctual_model::Instant::ZERO,
            ns,
            name: name.to_owned(),
        };
        let all = [(3, "a"), (4, "b"), (2, "a"), (1, "c"), (2, "d"), (3, "e")].map(took);
        assert_eq!(by_name(&all), [("a", 5), ("b", 4), ("e", 3), ("d", 2)]);
        assert!(by_name(&[]).is_empty());
    }

    #[test]
    fn clocks_that_left_their_error_are_told_with_the_instant() {
        let seen = |compared, apart_ns| of_clocks(&ClocksSeen { compared, apart_ns });
        assert_eq!(seen(0, None), None);
        let kept = seen(7, None).unwrap_or_default();
        assert!(
            kept.ends_with("compared 7 times, never surely apart"),
            "{kept}"
        );
        let left = seen(7, Some(1_500_000)).unwrap_or_default();
        assert!(left.contains("from 1.5ms on"), "{left}");
    }
}
