//! The clocks of a run, compared again while it goes on
//!
//! CPUs that have nothing to do meet at instants of the run that all know: so often, for so long
//! at most. The first one answers with its clock; another asks, as before the run (`offset`).
//! Nobody is kicked, and a CPU with work does not come. A difference that is surely beyond what
//! the verdict counts with is noted, with its instant.

use core::arch::x86_64::_mm_lfence;
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use punctual_switch::instructions::pause;

/// From one meeting to the next. It is no multiple of usual periods: each meeting finds the CPUs at
/// another place of their schedule.
const EVERY_NS: u64 = 10_007_000;
/// The length of a meeting, at most.
const WITHIN_NS: u64 = 100_000;
/// Questions of one CPU in a meeting; the shortest round counts.
const ROUNDS: u32 = 8;
/// In place of a difference: nobody meets.
const NEVER: u64 = u64::MAX;

/// The words of one CPU.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line {
    asked: AtomicU64,
    answered: AtomicU64,
    reading: AtomicU64,
    /// How far it was ahead of the first one when it was last compared, and the error of that.
    ahead: AtomicI64,
    error: AtomicU64,
}

/// The meetings of a run. Times are ticks since its start, by the clock of each CPU.
#[derive(Debug)]
pub(crate) struct ClockWatch {
    lines: Vec<Line>,
    /// Clocks may differ by so much; `NEVER` until somebody wants to know.
    counted: AtomicU64,
    every: u64,
    within: u64,
    compared: AtomicU64,
    apart: AtomicU64,
}

impl ClockWatch {
    /// For CPUs that meet once [`ClockWatch::allow`] says how far apart they may be; `ticks` are
    /// those of nanoseconds.
    pub(crate) fn new(cpus: usize, ticks: impl Fn(u64) -> u64) -> ClockWatch {
        ClockWatch {
            lines: (0..cpus).map(|_| Line::default()).collect(),
            counted: AtomicU64::new(NEVER),
            every: ticks(EVERY_NS).max(1),
            within: ticks(WITHIN_NS),
            compared: AtomicU64::new(0),
            apart: AtomicU64::new(u64::MAX),
        }
    }

    /// From now on CPUs meet, and clocks may differ by so many ticks. The first word counts.
    pub(crate) fn allow(&self, counted: u64) {
        let order = Ordering::Relaxed;
        let _ = self.counted.compare_exchange(NEVER, counted, order, order);
    }

    /// Whether CPUs meet.
    pub(crate) fn is_on(&self) -> bool {
        self.counted.load(Ordering::Relaxed) != NEVER
    }

    /// The end of the meeting of this instant, if there is one; and the beginning of the next.
    pub(crate) fn meeting(&self, now: u64) -> (Option<u64>, u64) {
        let began = now - now % self.every;
        let end = began + self.within;
        let this = (began > 0 && now < end).then_some(end);
        (this, began + self.every)
    }

    /// How often clocks were compared, and the first instant at which two of them were apart.
    pub(crate) fn found(&self) -> (u64, Option<u64>) {
        let apart = self.apart.load(Ordering::Relaxed);
        let compared = self.compared.load(Ordering::Relaxed);
        (compared, (apart < u64::MAX).then_some(apart))
    }

    /// A CPU with nothing to do comes to a meeting, until then or until it has something to do.
    pub(crate) fn come(
        &self,
        cpu: usize,
        until: u64,
        now: impl Fn() -> u64,
        stays: impl Fn() -> bool,
    ) {
        let goes_on = || now() < until && stays();
        match cpu {
            0 => self.answer(&now, goes_on),
            _ => self.ask(cpu, &now, goes_on),
        }
    }

    fn answer(&self, now: &impl Fn() -> u64, goes_on: impl Fn() -> bool) {
        while goes_on() {
            for line in &self.lines {
                let asked = line.asked.load(Ordering::Acquire);
                if asked != line.answered.load(Ordering::Relaxed) {
                    line.reading.store(in_order(now), Ordering::Relaxed);
                    line.answered.store(asked, Ordering::Release);
                }
            }
            pause();
        }
    }

    fn ask(&self, cpu: usize, now: &impl Fn() -> u64, goes_on: impl Fn() -> bool) {
        let Some(line) = self.lines.get(cpu) else {
            return;
        };
        let mut best: Option<(i64, u64)> = None;
        for _ in 0..ROUNDS {
            let number = line.asked.load(Ordering::Relaxed) + 1;
            let before = in_order(now);
            line.asked.store(number, Ordering::Release);
            while line.answered.load(Ordering::Acquire) != number {
                if !goes_on() {
                    return self.note(line, best, now);
                }
                pause();
            }
            let after = in_order(now);
            let half = after.wrapping_sub(before) / 2;
            let first = line.reading.load(Ordering::Relaxed);
            let ahead = before.wrapping_add(half).wrapping_sub(first).cast_signed();
            if best.is_none_or(|(_, error)| half < error) {
                best = Some((ahead, half + 1));
            }
        }
        self.note(line, best, now);
    }

    /// Takes the shortest round, and compares with all others.
    fn note(&self, line: &Line, best: Option<(i64, u64)>, now: &impl Fn() -> u64) {
        let Some((ahead, error)) = best else { return };
        line.ahead.store(ahead, Ordering::Relaxed);
        line.error.store(error, Ordering::Relaxed);
        self.compared.fetch_add(1, Ordering::Relaxed);
        let counted = self.counted.load(Ordering::Relaxed);
        let is_beyond = |other: &Line| {
            let apart = ahead.abs_diff(other.ahead.load(Ordering::Relaxed));
            let error = error.saturating_add(other.error.load(Ordering::Relaxed));
            apart > error.saturating_add(counted)
        };
        if self.lines.iter().any(is_beyond) {
            self.apart.fetch_min(now(), Ordering::Relaxed);
        }
    }
}

/// The clock, read after everything before and before everything after.
fn in_order(now: &impl Fn() -> u64) -> u64 {
    // SAFETY: LFENCE is part of SSE2, which x86-64 has.
    unsafe { _mm_lfence() };
    let read = now();
    // SAFETY: as above.
    unsafe { _mm_lfence() };
    read
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Two kernel threads that meet for a while; the clock of the second is so far ahead.
    fn met(ahead_ns: u64, counted_ns: u64) -> (u64, Option<u64>) {
        let watch = ClockWatch::new(2, |ns| ns);
        assert!(!watch.is_on(), "nobody has asked yet");
        watch.allow(counted_ns);
        watch.allow(NEVER - 1);
        assert!(watch.is_on());
        let start = Instant::now();
        let clock = || u64::try_from(start.elapsed().as_nanos()).expect("years");
        let until = 30_000_000_000;
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                let done = || watch.found().0 == 0 && clock() < until;
                watch.come(0, u64::MAX, clock, done);
            });
            watch.come(1, u64::MAX, || clock() + ahead_ns, || clock() < until);
            first.join().expect("it ends");
        });
        watch.found()
    }

    #[test]
    fn clocks_that_keep_their_error_are_compared_and_one_that_is_surely_beyond_is_told() {
        assert_eq!(met(0, 0), (1, None));
        // Nobody is held up for ten seconds in each of eight rounds.
        let (compared, apart) = met(10_000_000_000, 1_000);
        assert_eq!(compared, 1);
        assert!(apart.is_some_and(|at| at >= 10_000_000_000), "{apart:?}");
        assert_eq!(met(10_000_000_000, 10_000_000_000), (1, None));
    }

    #[test]
    fn a_meeting_is_short_and_not_at_the_start_of_the_run() {
        let watch = ClockWatch::new(2, |ns| ns);
        assert_eq!(watch.meeting(5), (None, EVERY_NS));
        assert_eq!(
            watch.meeting(EVERY_NS),
            (Some(EVERY_NS + WITHIN_NS), 2 * EVERY_NS)
        );
        assert_eq!(watch.meeting(EVERY_NS + WITHIN_NS), (None, 2 * EVERY_NS));
    }
}
