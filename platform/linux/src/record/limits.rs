//! The limits that every entry compares with: as constants, and in ticks of a run's clock.

use punctual_model::Span;

use crate::record::library_wait::{LONGEST_STEP_NS, SPIN_LIMIT_NS};
use crate::shared::kicks::WINDOW_NS;
use crate::sys::SwitchWatch;
use crate::time::clock::Clock;

/// How long before the armed instant a timer may fire and be waited for on the spot.
pub(crate) const EARLY_SPIN_NS: u64 = 2_000;

/// A timer that a library interrupted fires again after this.
pub(crate) const RETRY_NS: u64 = 4_000;

/// Preemption inside library text without a counted entry is deferred for at most this long
/// (design note 0004: it is safe at any time, deferring it only avoids waiting for its locks).
pub(crate) const DEFERRAL_LIMIT_NS: u64 = 500_000;

/// A timer later than this while user code runs: the processor did not run us.
pub(crate) const LATE_LIMIT_NS: u64 = 50_000;
/// An entry that takes longer than this until it sets its timer: the processor stood still in the
/// midst of it. One that hears of 64 arrivals takes half of that. Without optimization the
/// scheduler itself may take that long.
const ENTRY_LIMIT_NS: u64 = if cfg!(debug_assertions) {
    1_000_000
} else {
    100_000
};

/// A gap between two looks at the clock in a spinning loop that was not executed.
pub(crate) const GAP_NS: u64 = 4_000;

/// A call that sets the timer and takes longer than this had a hole in it. Without optimization,
/// and more so one instruction at a time, the way there and back may take as long.
const CALL_LIMIT_NS: u64 = if cfg!(debug_assertions) {
    1_000_000
} else {
    50_000
};

/// What is due within this may be due before its entry is over: only then is the clock read again.
const NEAR_NS: u64 = 5_000;
/// A thread that runs without anything due is looked at this often all the same (stop flag).
pub(crate) const LOOK_NS: u64 = 20_000_000;

/// While blocking calls of light threads are outstanding, a running thread is looked at this often:
/// the latest that an answer is noticed beside a thread that makes no calls of its own.
pub(crate) const ANSWER_LOOK_NS: u64 = 200_000;
/// How long before the due instant a sleep ends; the rest is spun. At least the first, which covers
/// the 99th percentile of wake-ups on a quiet machine; where they come later (a virtual processor
/// that its host has put to sleep), the margin follows all but one in sixteen up to the second.
pub(crate) const WAKE_MARGIN_NS: u64 = 60_000;

pub(crate) const LARGEST_MARGIN_NS: u64 = 600_000;
/// Where nobody tells whether the thread has been away, an interval longer than this is compared
/// with the kernel's account.
pub(crate) const SUSPICIOUS_NS: u64 = 100_000;

/// The clocks are compared this often in any case, so that they do not drift apart by more.
pub(crate) const STRETCH_NS: u64 = 20_000_000;

/// The shortest interval, in nanoseconds, that is suspicious by its length.
pub(crate) fn suspicious_ns(watch: &SwitchWatch) -> u64 {
    if watch.is_on() {
        u64::MAX
    } else {
        SUSPICIOUS_NS
    }
}

/// Samples that come more often leave nothing to be sampled.
const SHORTEST_SAMPLE_NS: u64 = 50_000;

/// How often a thread that runs on is looked at when so many nanoseconds are asked for: within
/// reason.
pub fn sample_in_force(ns: u64) -> u64 {
    ns.clamp(SHORTEST_SAMPLE_NS, LOOK_NS)
}

/// The limits that every entry compares with, in ticks: a conversion divides 128 bits, which takes
/// longer than a decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// [`LATE_LIMIT_NS`].
    pub(crate) late: u64,
    /// [`ENTRY_LIMIT_NS`].
    pub(crate) entry: u64,
    /// [`CALL_LIMIT_NS`].
    pub(crate) call: u64,
    /// [`suspicious_ns`].
    pub(crate) suspicious: u64,
    /// The same for entries of the fast path, in 32 bits: a shorter one is no clock gone back.
    pub(crate) short: u32,
    /// [`STRETCH_NS`].
    pub(crate) stretch: Span,
    /// [`crate::RunOptions::sample_ns`].
    pub(crate) look: Span,
    /// [`ANSWER_LOOK_NS`].
    pub(crate) answer_look: Span,
    /// [`NEAR_NS`].
    pub(crate) near: Span,
    /// [`WINDOW_NS`].
    pub(crate) kick_window: Span,
    /// [`EARLY_SPIN_NS`].
    pub(crate) early_spin: u64,
    /// [`SPIN_LIMIT_NS`].
    pub(crate) spin: Span,
    /// [`LONGEST_STEP_NS`].
    pub(crate) spin_step: Span,
}

impl Limits {
    pub(crate) fn of(clock: &Clock, watch: &SwitchWatch) -> Limits {
        Limits {
            late: clock.ticks(LATE_LIMIT_NS),
            entry: clock.ticks(ENTRY_LIMIT_NS),
            call: clock.ticks(CALL_LIMIT_NS),
            suspicious: clock.ticks(suspicious_ns(watch)),
            short: u32::try_from(clock.ticks(suspicious_ns(watch))).unwrap_or(u32::MAX),
            stretch: Span::from_ticks(clock.ticks(STRETCH_NS)),
            look: Span::from_ticks(clock.ticks(LOOK_NS)),
            answer_look: Span::from_ticks(clock.ticks(ANSWER_LOOK_NS)),
            near: Span::from_ticks(clock.ticks(NEAR_NS)),
            kick_window: Span::from_ticks(clock.ticks(WINDOW_NS)),
            early_spin: clock.ticks(EARLY_SPIN_NS),
            spin: Span::from_ticks(clock.ticks(SPIN_LIMIT_NS)),
            spin_step: Span::from_ticks(clock.ticks(LONGEST_STEP_NS)),
        }
    }

    /// A thread that runs on is looked at every so many nanoseconds, within reason.
    pub(crate) fn sample(&mut self, clock: &Clock, ns: u64) {
        self.look = Span::from_ticks(clock.ticks(sample_in_force(ns)));
    }
}
