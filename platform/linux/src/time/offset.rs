//! How far apart the time-stamp counters of two CPUs are.
//!
//! ```text
//!   first CPU:   read t0, ask ----------------------> answer seen, read t1
//!   other CPU:            ask seen, read t, answer ---^
//! ```
//!
//! The other one's reading was taken between t0 and t1. So it is ahead by its distance from the
//! middle, give or take half of the round; the shortest of many rounds says it best.

use core::arch::x86_64::_mm_lfence;
use core::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use punctual_model::Frequency;
use punctual_switch::instructions::{pause, read_time_stamp};

use crate::sys;
use crate::time::clock::{ClockSource, clock_rate};

/// How many rounds are tried.
const ROUNDS: u64 = 400;
/// No more are begun after this: on a loaded machine each takes as long as the kernel likes.
const PATIENCE: Duration = Duration::from_millis(40);
/// What is asked when nothing more will be.
const ENOUGH: u64 = u64::MAX;

/// The counter, read after everything before it and before everything after it: by itself, the
/// processor reads it when it has time, a hundred cycles too early.
fn read_in_order() -> u64 {
    // SAFETY: LFENCE is part of SSE2, which x86-64 has.
    unsafe { _mm_lfence() };
    let now = read_time_stamp();
    // SAFETY: as above.
    unsafe { _mm_lfence() };
    now
}

/// How far the clock of a CPU is ahead of that of the first one of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockOffset {
    /// Ticks, negative behind; what is within the error may be nothing.
    pub ticks: i64,
    /// Largest error of that.
    pub error: u64,
}

impl ClockOffset {
    /// What is to be taken off the clock: nothing that may be nothing.
    pub(crate) fn correction(self) -> i64 {
        match self.ticks.unsigned_abs() > self.error {
            true => self.ticks,
            false => 0,
        }
    }

    /// By how much the corrected clock may still be off.
    pub fn residue(self) -> u64 {
        let left = self.ticks - self.correction();
        left.unsigned_abs().saturating_add(self.error)
    }

    /// What one round says.
    fn of_round(before: u64, other: u64, after: u64) -> ClockOffset {
        let length = after.wrapping_sub(before);
        let middle = before.wrapping_add(length / 2);
        ClockOffset {
            ticks: other.wrapping_sub(middle).cast_signed(),
            error: length / 2 + 1,
        }
    }
}

/// How far the counter of each CPU is ahead of that of the first; `None`: it was not to be had.
pub(crate) fn compare(hosts: &[u32], source: ClockSource) -> Vec<Option<ClockOffset>> {
    let same = ClockOffset { ticks: 0, error: 0 };
    let offset = |&host: &u32| {
        if host == hosts[0] || source == ClockSource::KernelClock {
            return Some(same);
        }
        measure(hosts[0], host)
    };
    hosts.iter().map(offset).collect()
}

/// Nanoseconds by which the clocks of two of these host CPUs may differ in a run, once their
/// offsets are taken off: the two largest residues. `None`: some offset was not to be had in time.
/// Takes as long as the comparison before a run.
pub fn clock_error(hosts: &[u32]) -> Option<u64> {
    let rate = clock_rate();
    error_of(&compare(hosts, rate.source), rate.frequency)
}

/// The same of these offsets.
pub(crate) fn error_of(offsets: &[Option<ClockOffset>], frequency: Frequency) -> Option<u64> {
    let residues: Option<Vec<u64>> = offsets
        .iter()
        .map(|offset| offset.map(ClockOffset::residue))
        .collect();
    Some(frequency.ns_up(largest_two(residues?)))
}

/// The sum of the two largest: of no pair is it more.
fn largest_two(mut residues: Vec<u64>) -> u64 {
    residues.sort_unstable();
    let largest = residues.iter().rev().take(2).copied();
    largest.fold(0, u64::saturating_add)
}

/// Measures how far the second host CPU is ahead of the first, by two kernel threads there;
/// `None`: one of them did not get there in time. Takes less than a millisecond on a quiet machine,
/// a twentieth of a second at most.
pub fn measure(first: u32, other: u32) -> Option<ClockOffset> {
    let (asked, answered, reading) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let pinned = sys::pin(None, &[other]).is_ok();
            let mut last = 0;
            loop {
                match asked.load(Ordering::Acquire) {
                    ENOUGH => return,
                    round if round != last && pinned => {
                        reading.store(read_in_order(), Ordering::Relaxed);
                        answered.store(round, Ordering::Release);
                        last = round;
                    }
                    _ => pause(),
                }
            }
        });
        let asks = scope.spawn(|| {
            let pinned = sys::pin(None, &[first]).is_ok();
            let best = pinned.then(|| ask(&asked, &answered, &reading)).flatten();
            asked.store(ENOUGH, Ordering::Release);
            best
        });
        asks.join().ok().flatten()
    })
}

fn ask(asked: &AtomicU64, answered: &AtomicU64, reading: &AtomicU64) -> Option<ClockOffset> {
    let start = Instant::now();
    let mut best: Option<ClockOffset> = None;
    for round in 1..=ROUNDS {
        let before = read_in_order();
        asked.store(round, Ordering::Release);
        while answered.load(Ordering::Acquire) != round {
            if start.elapsed() > PATIENCE {
                return best;
            }
            pause();
        }
        let after = read_in_order();
        let found = ClockOffset::of_round(before, reading.load(Ordering::Relaxed), after);
        if best.is_none_or(|best| found.error < best.error) {
            best = Some(found);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_says_how_far_ahead_within_half_of_itself() {
        let offset = ClockOffset::of_round(1_000, 6_050, 1_100);
        assert_eq!((offset.ticks, offset.error), (5_000, 51));
        assert_eq!(offset.correction(), 5_000);
        let behind = ClockOffset::of_round(1_000, 450, 1_100);
        assert_eq!(behind.correction(), -600);
        let nothing = ClockOffset::of_round(1_000, 1_075, 1_100);
        assert_eq!((nothing.ticks, nothing.correction()), (25, 0));
        let residues = [offset, behind, nothing].map(ClockOffset::residue);
        assert_eq!(residues, [51, 51, 76]);
        assert_eq!(largest_two(residues.to_vec()), 127);
        assert_eq!((largest_two(vec![0]), largest_two(vec![])), (0, 0));
    }

    #[test]
    fn one_cpu_is_as_far_ahead_as_the_other_is_behind() {
        let cpus = sys::allowed_cpus().expect("Linux");
        let [first, other, ..] = cpus[..] else {
            println!("skipped: needs two CPUs");
            return;
        };
        if !crate::time::clock::has_invariant_counter() {
            println!("skipped: needs counters of one rate");
            return;
        }
        let (Some(there), Some(back)) = (measure(first, other), measure(other, first)) else {
            println!("skipped: this machine gave no time for a round");
            return;
        };
        let sum = there.ticks + back.ticks;
        assert!(
            sum.unsigned_abs() <= there.error + back.error,
            "{there:?} {back:?}"
        );
    }
}
