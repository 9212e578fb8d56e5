//! Windows of measurements that are made elsewhere: a batch is stepped instead of timed.
//!
//! `punctual bench` starts itself once more for each of its rows. The child executes the row's own
//! measurement, whose batches have few units then. The first one is executed as ever; those that
//! follow are stepped through, and the process ends.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::io;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::child;
use crate::stepper::{self, NONE, begin, mark, pause};

/// Batches that are stepped through.
const BATCHES: usize = 2;
/// A window of nothing goes before them: each window has as much beside its batch.
const WINDOWS: usize = BATCHES + 1;
/// The most units of a batch: a step takes up to 25 us.
const UNITS: u32 = 4;
/// No row takes longer, on however busy a machine.
const MOST: Duration = Duration::from_secs(100);
/// Nor more processor time, in seconds.
const PROCESSOR_TIME: u64 = 3;

/// How many batches there were, from 1: 0 where none are stepped.
static BATCH: AtomicU32 = AtomicU32::new(0);
/// Whether stepping goes on between them.
static GOES_ON: AtomicBool = AtomicBool::new(false);

/// To be called before anything else by the child: from now on batches are stepped.
///
/// # Errors
/// A machine on which nothing can be stepped.
pub fn prepare() -> io::Result<()> {
    stepper::prepare(WINDOWS, false)?;
    let limit = Rlimit {
        current: Some(PROCESSOR_TIME),
        maximum: Some(PROCESSOR_TIME),
    };
    setrlimit(Resource::Cpu, limit)?;
    BATCH.store(1, Relaxed);
    Ok(())
}

/// Whether batches are stepped in this process, not timed.
pub fn is_on() -> bool {
    BATCH.load(Relaxed) > 0
}

/// The code between batches is stepped, too, from the first one on: the program has a clock, which
/// would jump if it were not.
pub fn goes_on() {
    GOES_ON.store(true, Relaxed);
}

/// The units of a batch, of which there are so many where it is timed.
pub fn units(timed: u32) -> u32 {
    match is_on() {
        true => timed.min(UNITS),
        false => timed,
    }
}

/// Executes a batch of so many units, in a process that steps.
pub fn batch(units: u32, work: impl FnOnce()) {
    let number = BATCH.fetch_add(1, Relaxed);
    if number == 1 {
        // It touches everything for the first time.
        return work();
    }
    let goes_on = GOES_ON.load(Relaxed);
    if number == 2 || !goes_on {
        begin();
    }
    if number == 2 {
        mark(0);
        mark(NONE);
    }
    mark(units.into());
    work();
    mark(NONE);
    if !goes_on {
        pause();
    }
}

/// Executes a part of a batch that is not counted.
pub fn uncounted<T>(work: impl FnOnce() -> T) -> T {
    let steps = BATCH.load(Relaxed) > 2;
    if steps {
        pause();
    }
    let done = work();
    if steps {
        begin();
    }
    done
}

/// Starts this program with these arguments, which is to [`prepare`], and counts the instructions
/// of a unit: those of the program itself. Batches of different length have their growth for it.
///
/// # Errors
/// Why they cannot be counted.
pub fn count(arguments: &[&str]) -> Result<u64, String> {
    let told = child::told(arguments, WINDOWS, MOST);
    let told = told.map_err(|why| match why.contains("SIGKILL") {
        true => format!("more than {PROCESSOR_TIME} s of steps"),
        false => why,
    })?;
    let windows: Vec<(u64, u64)> = told.iter().map(|&[units, own, ..]| (units, own)).collect();
    per_unit(&windows).ok_or_else(|| "its batches have no units".to_owned())
}

/// Of windows with units and instructions each, the first of which is one of nothing.
fn per_unit(windows: &[(u64, u64)]) -> Option<u64> {
    let (&(_, nothing), batches) = windows.split_first()?;
    let &(few, short) = batches.iter().min()?;
    let &(many, long) = batches
        .iter()
        .max_by_key(|(units, own)| (*units, u64::MAX - own))?;
    match many - few {
        0 => short.saturating_sub(nothing).checked_div(few),
        more => Some(long.saturating_sub(short).div_ceil(more)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_has_its_part_of_the_shortest_batch_or_of_the_growth() {
        assert_eq!(per_unit(&[(0, 6), (4, 46), (4, 986), (4, 46)]), Some(10));
        assert_eq!(per_unit(&[(0, 6), (1, 110), (3, 130), (1, 112)]), Some(10));
        assert_eq!(per_unit(&[(0, 6), (0, 6)]), None);
        assert_eq!(per_unit(&[]), None);
    }
}
