//! Missing time: which part of an interval was executed by nobody of ours.
//!
//! Three witnesses, of which the one that saw most counts:
//! * gaps between two readings of the clock in loops of a few instructions (burning, idle
//!   spinning);
//! * timers that interrupted user code much later than they were due: a processor that executes
//!   takes its interrupts at once (`signal`). A hole that is over when the next timer is due is not
//!   seen, of another only what lies behind the timer; so a run may ask for timers more often;
//! * the kernel's account of this thread's processor time, read when an interval is long: it tells
//!   other threads and SIGSTOP, but not a hypervisor.
//!
//! What none of them sees stays charged to the thread that ran, and is not called missing.
//! (Counting executed cycles would be better; `doctor` says whether the processor offers it.)

use punctual_model::{Instant, Span};

use crate::host::Host;
use crate::outcome::MissingMethod;
use crate::sys::{self, KernelClock};

/// An interval longer than this is compared with the kernel's account (which costs a system call).
pub(crate) const SUSPICIOUS_NS: u64 = 100_000;
/// Differences up to this are noise of two clocks and of the calls between their readings.
const NOISE_NS: u64 = 5_000;
/// Two clocks may differ by this part of the interval.
const DRIFT_PPM: u64 = 200;

/// How missing time is measured here.
pub(crate) const METHOD: MissingMethod = MissingMethod {
    method: "gaps of the clock in own loops, late timers, and the kernel's account of processor \
             time for intervals over 100 us",
    error_ns: SUSPICIOUS_NS,
};

/// Both clocks at the start of a stretch in which this CPU never slept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MissingTime {
    since: Instant,
    account_ns: u64,
    /// Missing time of this stretch that has been booked.
    booked: Span,
}

impl MissingTime {
    /// Starts a stretch now. On the carrier's kernel thread.
    pub(crate) fn starting_at(now: Instant) -> MissingTime {
        MissingTime {
            since: now,
            account_ns: sys::read_clock(KernelClock::Thread),
            booked: Span::ZERO,
        }
    }

    /// A sleep has ended: a new stretch starts.
    #[cold]
    pub(crate) fn rebase(&mut self, now: Instant) {
        *self = MissingTime::starting_at(now);
    }

    /// How much of the interval from `last` to `now` was nobody's. `known`: as other witnesses saw.
    #[inline]
    pub(crate) fn assess(
        &mut self,
        host: &Host,
        last: Instant,
        now: Instant,
        known: Span,
        executing: bool,
    ) -> Span {
        let interval = now.since(last);
        let mut missing = known.min(interval);
        if executing && interval.ticks() >= host.limits.suspicious {
            missing = missing.max(self.by_account(host, now).min(interval));
            self.rebase(now);
        } else if !missing.is_zero() {
            // Only what lies in this stretch: a late wake-up lies before it.
            let inside = missing.min(now.since(self.since));
            self.booked = self.booked.saturating_add(inside);
        }
        missing
    }

    #[cold]
    fn by_account(&self, host: &Host, now: Instant) -> Span {
        let account = sys::read_clock(KernelClock::Thread).saturating_sub(self.account_ns);
        let stretch = now.since(self.since);
        let executed = Span::from_ticks(host.clock().ticks(account));
        let noise = host.clock().ticks(NOISE_NS) + stretch.ticks() / 1_000_000 * DRIFT_PPM;
        let missing = stretch.saturating_sub(executed).saturating_sub(self.booked);
        if missing.ticks() > noise {
            missing
        } else {
            Span::ZERO
        }
    }
}
