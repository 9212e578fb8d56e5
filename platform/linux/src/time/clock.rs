//! The clock: the one place where time is read, and how its rate is known.
//!
//! Ticks are cycles of the time-stamp counter where the processor keeps it at a constant rate in
//! all states and the kernel trusts it too; else nanoseconds of `CLOCK_MONOTONIC_RAW`.

use std::sync::OnceLock;

use punctual_model::{Frequency, Instant};
use punctual_switch::instructions::{pause, read_time_stamp};

use crate::sys::{self, KernelClock};

/// What a tick is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockSource {
    /// A cycle of the time-stamp counter.
    TimeStampCounter,
    /// A nanosecond of `CLOCK_MONOTONIC_RAW`, which costs a call per reading.
    KernelClock,
}

/// The rate of the clock and how well it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockRate {
    /// What is counted.
    pub source: ClockSource,
    /// Ticks per second.
    pub frequency: Frequency,
    /// Largest error of `frequency`, in parts per million, rounded up.
    pub error_ppm: u32,
}

/// How long the rate is measured: long enough for the reading error (some 100 ns) to vanish.
const CALIBRATION_NS: u64 = 60_000_000;
/// Readings at each end, of which the least disturbed counts.
const READINGS: usize = 64;

/// The rate of this machine's clock; measured once per process (60 ms), then remembered.
pub fn clock_rate() -> ClockRate {
    static RATE: OnceLock<ClockRate> = OnceLock::new();
    *RATE.get_or_init(|| {
        if has_invariant_counter() {
            calibrate()
        } else {
            kernel_rate()
        }
    })
}

/// The processor says that the counter runs at one rate (CPUID 8000_0007h, EDX bit 8), and the
/// kernel has not found otherwise (it then drops "tsc" from its list of clocks).
pub(crate) fn has_invariant_counter() -> bool {
    let highest = core::arch::x86_64::__cpuid(0x8000_0000).eax;
    let invariant =
        highest >= 0x8000_0007 && core::arch::x86_64::__cpuid(0x8000_0007).edx & (1 << 8) != 0;
    let path = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    let trusted = std::fs::read_to_string(path)
        .is_ok_and(|list| list.split_whitespace().any(|clock| clock == "tsc"));
    invariant && trusted
}

fn kernel_rate() -> ClockRate {
    ClockRate {
        source: ClockSource::KernelClock,
        frequency: Frequency::NANOSECONDS,
        error_ppm: 0,
    }
}

/// Both clocks at one moment, with the uncertainty of "one moment" in ticks.
fn read_both() -> (u64, u64, u64) {
    let mut best = (0, 0, u64::MAX);
    for _ in 0..READINGS {
        let before = read_time_stamp();
        let ns = sys::read_clock(KernelClock::Raw);
        let after = read_time_stamp();
        if after - before < best.2 {
            best = (before + (after - before) / 2, ns, after - before);
        }
    }
    best
}

fn calibrate() -> ClockRate {
    let (ticks_0, ns_0, uncertain_0) = read_both();
    while sys::read_clock(KernelClock::Raw).wrapping_sub(ns_0) < CALIBRATION_NS {
        pause();
    }
    let (ticks_1, ns_1, uncertain_1) = read_both();
    let (ticks, ns) = (
        ticks_1.wrapping_sub(ticks_0),
        ns_1.wrapping_sub(ns_0).max(1),
    );
    let hertz = u128::from(ticks) * 1_000_000_000 / u128::from(ns);
    let uncertain = u128::from(uncertain_0 + uncertain_1) / 2 + 1;
    let error_ppm = (uncertain * 1_000_000).div_ceil(u128::from(ticks.max(1)));
    match u64::try_from(hertz).ok().and_then(Frequency::try_new) {
        Some(frequency) => ClockRate {
            source: ClockSource::TimeStampCounter,
            frequency,
            error_ppm: u32::try_from(error_ppm).unwrap_or(u32::MAX),
        },
        None => kernel_rate(),
    }
}

/// A clock that started at the origin of a run.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: ClockSource,
    frequency: Frequency,
    origin: u64,
}

impl Clock {
    /// A clock whose instant 0 is `ns` from now.
    pub(crate) fn starting_in(rate: ClockRate, ns: u64) -> Clock {
        let mut clock = Clock {
            source: rate.source,
            frequency: rate.frequency,
            origin: 0,
        };
        clock.origin = clock.raw().wrapping_add(rate.frequency.ticks_up(ns));
        clock
    }

    /// The same clock on a CPU whose counter is so many ticks ahead.
    pub(crate) fn ahead_by(self, ticks: i64) -> Clock {
        Clock {
            origin: self.origin.wrapping_add_signed(ticks),
            ..self
        }
    }

    #[inline]
    fn raw(&self) -> u64 {
        match self.source {
            ClockSource::TimeStampCounter => read_time_stamp(),
            ClockSource::KernelClock => sys::read_clock(KernelClock::Raw),
        }
    }

    /// The instant of the run; 0 before its start.
    #[inline]
    pub fn now(&self) -> Instant {
        Clock::instant_of(self.reading())
    }

    /// What [`Clock::now`] is made from ([`Clock::instant_of`]): the same from the start of the run
    /// on, and in the upper half of the numbers before it.
    #[inline]
    fn reading(&self) -> u64 {
        self.raw().wrapping_sub(self.origin)
    }

    /// Whether its readings take no call.
    pub(crate) fn is_counter(&self) -> bool {
        self.source == ClockSource::TimeStampCounter
    }

    /// A reading for [`Clock::instant_of`] where [`Clock::is_counter`] says so.
    #[inline]
    pub(crate) fn count(&self) -> u64 {
        debug_assert!(self.is_counter());
        read_time_stamp().wrapping_sub(self.origin)
    }

    /// The instant of a reading.
    #[inline]
    pub(crate) fn instant_of(reading: u64) -> Instant {
        // Before the origin the difference wraps.
        Instant::from_ticks(if reading > u64::MAX / 2 { 0 } else { reading })
    }

    /// Ticks per second.
    #[inline]
    pub(crate) fn frequency(&self) -> Frequency {
        self.frequency
    }

    /// Ticks in `ns` nanoseconds, rounded up.
    pub fn ticks(&self, ns: u64) -> u64 {
        self.frequency.ticks_up(ns)
    }

    /// Nanoseconds in `ticks`, rounded up.
    pub fn ns(&self, ticks: u64) -> u64 {
        self.frequency.ns_up(ticks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_agrees_with_a_second_measurement() {
        let rate = clock_rate();
        if rate.source == ClockSource::KernelClock {
            assert_eq!(rate.frequency, Frequency::NANOSECONDS);
            return;
        }
        let again = calibrate();
        let (a, b) = (rate.frequency.hertz(), again.frequency.hertz());
        let allowed = u64::from(rate.error_ppm + again.error_ppm) + 2;
        assert!(
            a.abs_diff(b) <= a / 1_000_000 * allowed,
            "{rate:?} {again:?}"
        );
    }

    #[test]
    fn instants_before_the_origin_are_zero() {
        let clock = Clock::starting_in(clock_rate(), 3_600_000_000_000);
        assert_eq!(clock.now(), Instant::ZERO);
    }
}
