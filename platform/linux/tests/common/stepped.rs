//! Rounds that are preempted at every instruction, or twice at instructions drawn by chance.

#![allow(dead_code, unreachable_pub)] // Each test program includes this file and uses a part of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use punctual_linux::broken_invariant;
use punctual_switch::stepping;

/// Rounds of one storm at most: each must interrupt something new, so that this is never reached.
const MOST_ROUNDS: u64 = 20_000;

/// Another beginning for what is drawn by chance; the same number draws the same again.
const SEED: &str = "PUNCTUAL_STEPPING_SEED";

/// A handler that finds the gate closed has some more instructions than this.
const SHORTEST: u64 = 40;

/// Rounds that are interrupted twice, and how deep in the handler at most: a stepped entry of a
/// debug build is some ten times longer.
pub const SAMPLED: (u64, u64) = match cfg!(debug_assertions) {
    true => (12, 20_000),
    false => (80, 2_000),
};

/// Ends the run, also when something was found.
pub struct Ends(pub Arc<AtomicBool>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Where a round is interrupted.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    at: u64,
    second: u64,
}

impl Place {
    /// From here on the caller is stepped, and interrupted there. Between the two calls the round
    /// does what is to be interrupted.
    #[inline(always)]
    pub fn begin(self) {
        // SAFETY: whoever made the place has prepared.
        unsafe { stepping::begin(self.at, self.second) };
    }

    /// Whether it is every place that has not been interrupted yet.
    pub fn is_everywhere(self) -> bool {
        self.at == 0
    }

    /// The end of the round.
    #[inline(always)]
    pub fn end(self) {
        stepping::end();
    }
}

/// What a storm did.
#[derive(Debug, Default)]
pub struct Covered {
    /// Instructions that were interrupted (different ones, when everywhere).
    pub interrupted: u64,
    pub rounds: u64,
    /// Rounds that were not stepped to their end.
    pub cut: u64,
    /// Preemptions inside the handler of another.
    pub seconds: u64,
    /// Boundaries between two instructions at which INV-1 to INV-6 were looked at, and held.
    pub boundaries: u64,
}

impl std::fmt::Display for Covered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Covered {
            interrupted,
            rounds,
            cut,
            seconds,
            boundaries,
        } = self;
        write!(f, "{interrupted} instructions interrupted")?;
        if *seconds > 0 {
            write!(f, ", {seconds} preemptions inside another")?;
        }
        write!(f, " in {rounds} rounds")?;
        if *cut > 0 {
            write!(f, " ({cut} of them cut)")?;
        }
        write!(f, "; INV-1 to INV-6 held at all {boundaries} boundaries")
    }
}

/// The real-time signal that the run has taken: the one with a handler.
fn signal_of_the_run() -> i32 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status
        .lines()
        .find(|l| l.starts_with("SigCgt:"))
        .expect("known since 2.6");
    let mask = line.split_whitespace().nth(1).expect("a mask");
    let mask = u64::from_str_radix(mask, 16).expect("hexadecimal");
    // The C library keeps 32 and 33 for itself.
    (34..=64)
        .find(|signal| mask >> (signal - 1) & 1 == 1)
        .expect("a run is going on")
}

fn prepare() {
    // SAFETY: nobody else uses SIGTRAP, and one storm goes on at a time.
    assert!(unsafe { stepping::prepare(signal_of_the_run()) });
    stepping::watch(broken_invariant);
}

fn boundaries() -> u64 {
    let (boundaries, broken) = stepping::watched();
    let at = stepping::broken_at();
    assert_eq!(broken, 0, "INV-{broken} is broken at {at:#x}");
    boundaries
}

/// Steps `round` until it meets no instruction that has not been interrupted; debug builds stop
/// after so many rounds.
pub fn everywhere(sampled: u64, round: impl FnMut(u64, Place)) -> Covered {
    stepping::forget();
    everywhere_else(sampled, round)
}

/// As [`everywhere`], but for the instructions that an earlier storm has interrupted.
pub fn everywhere_else(sampled: u64, mut round: impl FnMut(u64, Place)) -> Covered {
    prepare();
    let known = stepping::covered();
    let (mut rounds, mut cut) = (0, 0);
    loop {
        let (before, _) = stepping::sent();
        round(rounds, Place { at: 0, second: 0 });
        rounds += 1;
        cut += u64::from(stepping::was_cut());
        let (after, _) = stepping::sent();
        let enough = cfg!(debug_assertions) && rounds == sampled;
        if after == before || enough {
            break;
        }
        assert!(rounds < MOST_ROUNDS, "every round meets something new");
    }
    Covered {
        interrupted: (stepping::covered() - known) as u64,
        rounds,
        cut,
        seconds: 0,
        boundaries: boundaries(),
    }
}

/// Interrupts each of `rounds` rounds at one instruction drawn by chance, and its handler again up
/// to `deepest` instructions later. `shard` draws others.
pub fn drawn(
    shard: u64,
    (rounds, deepest): (u64, u64),
    mut round: impl FnMut(u64, Place),
) -> Covered {
    prepare();
    // SAFETY: prepared; the handler of a run stays for as long as the run.
    assert!(unsafe { stepping::wrap_handler() });
    let seed = std::env::var(SEED).map_or(1, |seed| seed.parse().expect("a number"));
    let mut state = seed + 1_000 * shard;
    let mut draw = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below + 1
    };
    let (sent, seconds) = stepping::sent();
    let nowhere = Place {
        at: u64::MAX,
        second: 0,
    };
    round(0, nowhere);
    let length = stepping::steps();
    for number in 1..=rounds {
        // Half of them soon: at most instructions the gate is closed, and the handler is short.
        let deepest = if draw(2) == 1 { SHORTEST } else { deepest };
        let (at, second) = (draw(length), draw(deepest));
        round(number, Place { at, second });
    }
    let now = stepping::sent();
    println!("shard {shard} of seed {seed}, a round of {length} steps");
    Covered {
        interrupted: now.0 - sent - (now.1 - seconds),
        rounds: rounds + 1,
        cut: 0,
        seconds: now.1 - seconds,
        boundaries: boundaries(),
    }
}
