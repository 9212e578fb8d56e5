//! One periodic thread: it sleeps to its releases, does its jobs, and keeps what it saw.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::{Call, GAP_NS, Gap, Job, Options, Seen, Task, Work};
use crate::call::{now, sleep_until};

/// A sleep is not longer, so that a wish to stop is seen.
const LONGEST_SLEEP_NS: i64 = 100_000_000;

/// Room for gaps: of a job, one more for so much of its work, and at all.
const GAPS_PER_JOB: u64 = 8;
const WORK_PER_GAP_NS: u64 = 20_000;
const MOST_GAPS: u64 = 1 << 19;

/// One thread with all that it needs.
pub(super) struct Worker {
    pub(super) task: Task,
    /// Releases before this, and the end of everything, since the start.
    duration: u64,
    limit: u64,
    start: Arc<OnceLock<i64>>,
    over: Arc<AtomicBool>,
    seen: Seen,
}

/// The clock of a run, and when it is over.
struct Clock<'a> {
    start: i64,
    limit: u64,
    over: &'a AtomicBool,
}

impl Clock<'_> {
    fn now(&self) -> u64 {
        now().map_or(0, |at| u64::try_from(at - self.start).unwrap_or(0))
    }

    fn is_over(&self, at: u64) -> bool {
        at >= self.limit || self.over.load(Ordering::Relaxed)
    }

    /// Sleeps until `release`; `false` when the run is over first.
    fn sleep_until(&self, release: u64) -> bool {
        let until = self.start + i64::try_from(release).unwrap_or(i64::MAX);
        while let Ok(at) = now() {
            if self.over.load(Ordering::Relaxed) {
                return false;
            }
            if at >= until {
                return true;
            }
            // The last part of a long sleep is one of its own: its end is exact.
            let next = match until - at > 2 * LONGEST_SLEEP_NS {
                true => at + LONGEST_SLEEP_NS,
                false => until,
            };
            if sleep_until(next).is_err() {
                return false;
            }
        }
        false
    }
}

impl Worker {
    /// With all memory that it will need.
    pub(super) fn new(
        task: Task,
        options: &Options<'_>,
        start: Arc<OnceLock<i64>>,
        over: Arc<AtomicBool>,
    ) -> Worker {
        let jobs = options.duration / task.period.max(1) + 2;
        let room = |n: u64| usize::try_from(n).unwrap_or(0);
        let of_work = match task.work {
            Work::Burn(ns) | Work::RunAway(ns, _) => ns / WORK_PER_GAP_NS,
            Work::Call(_) => 0,
        };
        let gaps = jobs.saturating_mul(GAPS_PER_JOB + of_work);
        let seen = Seen {
            jobs: Vec::with_capacity(room(jobs)),
            gaps: Vec::with_capacity(room(gaps.min(MOST_GAPS))),
            ..Seen::default()
        };
        Worker {
            task,
            duration: options.duration,
            limit: options.duration.saturating_add(options.grace),
            start,
            over,
            seen,
        }
    }

    /// Does all jobs, and gives the observations of them.
    pub(super) fn work(mut self) -> Seen {
        let start = loop {
            match self.start.get() {
                Some(start) => break *start,
                None => std::thread::park(),
            }
        };
        let (over, limit) = (Arc::clone(&self.over), self.limit);
        let over = &*over;
        let clock = Clock { start, limit, over };
        let done = catch_unwind(AssertUnwindSafe(|| self.jobs(&clock)));
        self.seen.panicked = done.is_err();
        self.seen
    }

    fn jobs(&mut self, clock: &Clock<'_>) {
        let mut release = self.task.phase;
        let mut number = 0;
        while release < self.duration && clock.sleep_until(release) {
            let start = clock.now();
            if clock.is_over(start) {
                return;
            }
            let end = match &mut self.task.work {
                Work::Burn(ns) => burn(*ns, start, clock, &mut self.seen),
                Work::RunAway(_, from) if number >= *from => {
                    burn(u64::MAX, start, clock, &mut self.seen)
                }
                Work::RunAway(ns, _) => burn(*ns, start, clock, &mut self.seen),
                Work::Call(call) => called(call, number, release, clock),
            };
            self.seen.jobs.push(Job {
                release,
                start,
                end,
            });
            number += 1;
            release += self.task.period;
            while self.task.skips && end.is_some_and(|end| release < end) {
                (release, number) = (release + self.task.period, number + 1);
            }
        }
    }
}

fn called(call: &mut Call, number: u64, release: u64, clock: &Clock<'_>) -> Option<u64> {
    call(number, release);
    Some(clock.now())
}

/// Executes for `ns` nanoseconds from the reading `start` on, and notes the gaps; the last reading,
/// or `None` if the end of the run came first. One reading of the clock per round says how long
/// the round was, and whether there was a gap in it.
fn burn(ns: u64, start: u64, clock: &Clock<'_>, seen: &mut Seen) -> Option<u64> {
    let (mut last, mut executed) = (start, 0);
    while executed < ns {
        let at = clock.now();
        let round = at.saturating_sub(last);
        if round > GAP_NS {
            note(
                Gap {
                    at: last,
                    length: round,
                },
                seen,
            );
        } else {
            executed += round;
        }
        last = at;
        if clock.is_over(at) {
            return None;
        }
    }
    Some(last)
}

fn note(gap: Gap, seen: &mut Seen) {
    if seen.gaps.len() < seen.gaps.capacity() {
        seen.gaps.push(gap);
    } else {
        seen.gaps_lost += 1;
    }
}
