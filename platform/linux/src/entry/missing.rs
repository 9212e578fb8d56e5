//! Missing time: which part of an interval was executed by nobody of ours.
//!
//! Four witnesses, of which the one that saw most counts:
//! * gaps between two readings of the clock in loops of a few instructions (burning, idle
//!   spinning), and between the last of them and the signal that interrupted the loop;
//! * timers that interrupted user code much later than they were due: a processor that executes
//!   takes its interrupts at once ([`note_hole`]). A hole that is over when the next timer is due
//!   is not seen, of another only what lies behind the timer; so a run may ask for timers more
//!   often;
//! * entries of the scheduler, and calls that set its timer, that take much longer than they do;
//! * the kernel's account of this thread's processor time, which tells other threads and SIGSTOP,
//!   but not a hypervisor. To read it is a system call, so it is read when the thread has been away
//!   ([`SwitchWatch`]), or when an interval is long where the kernel does not tell that.
//!
//! What none of them sees stays charged to the thread that ran, and is not called missing.
//! (Counting executed cycles would be better; `doctor` says whether the processor offers it.)

use core::sync::atomic::Ordering;

use punctual_kern::{Taker, Uncharged};
use punctual_model::{Instant, Span};

use crate::record::limits::{STRETCH_NS, SUSPICIOUS_NS};
use crate::record::outcome::MissingMethod;
use crate::record::per_cpu::PerCpu;
use crate::record::takers::Taken;
use crate::record::thread_group::ThreadGroup;
use crate::sys::{self, KernelClock, SwitchWatch};
use crate::time::clock::Clock;

/// Differences up to this are noise of two clocks and of the calls between their readings.
const NOISE_NS: u64 = 5_000;
/// Two clocks may differ by this part of the interval.
const DRIFT_PPM: u64 = 200;

/// How missing time is measured: where all CPUs have a [`SwitchWatch`], and where not.
pub(crate) fn method(watched: bool) -> MissingMethod {
    if watched {
        MissingMethod {
            method: "gaps of the clock in own loops, late timers, and the kernel's account of \
                     processor time whenever it was taken away",
            error_ns: NOISE_NS + STRETCH_NS * DRIFT_PPM / 1_000_000,
        }
    } else {
        MissingMethod {
            method: "gaps of the clock in own loops, late timers, and the kernel's account of \
                     processor time for intervals over 100 us",
            error_ns: SUSPICIOUS_NS,
        }
    }
}

/// Notes a hole that the processor has just come out of, at `now`, when nobody has noted it: it
/// fell into the running thread's loop of readings of the clock, or a timer is long overdue. The
/// timer interrupted the thread just now, met a closed gate, or has not come yet. A processor that
/// executes would have taken it. Gate closed.
pub(crate) fn note_hole(host: &PerCpu, now: Instant, overdue: Option<Instant>) {
    // SAFETY: records outlive the run (INV-L1 of `light`).
    let Some(light) = (unsafe { host.current.get().as_ref() }) else {
        return;
    };
    if let Some(group) = light.group() {
        return note_hold_up(host, group, overdue.map_or(0, |at| now.since(at).ticks()));
    }
    let executing = match light.looked.load(Ordering::Relaxed) {
        0 => overdue,
        looked => Some(Instant::from_ticks(looked.max(host.left_at()))),
    };
    let hole = executing.map_or(0, |at| now.since(at).ticks());
    if hole > host.limits.late {
        host.note_missing(hole);
    }
}

/// The same where a group runs in place of the thread: the carrier, which is above it, was woken
/// `late` ticks after its timer. The group may have kept the CPU itself, in a call of the kernel;
/// that somebody else did is known only where the kernel tells who ran.
#[cold]
fn note_hold_up(host: &PerCpu, group: &ThreadGroup, late: u64) {
    if late <= host.limits.late {
        return;
    }
    let is_member = |thread: u32| i32::try_from(thread).is_ok_and(|number| group.has(number));
    if for_most(host, Span::from_ticks(late)).is_some_and(|(thread, _)| !is_member(thread)) {
        host.note_missing(late);
    }
}

/// The thread that had this CPU for most of the last time that others had it, and for how long.
fn for_most(host: &PerCpu, of_others: Span) -> Option<(u32, u64)> {
    let is_most = |ns: u64| ns.saturating_mul(2) >= host.clock().ns(of_others.ticks());
    longest(host, of_others).filter(|(_, ns)| is_most(*ns))
}

/// The one that took most of `missing`. The kernel's account leaves `by_account` of it out, as it
/// does with the time of a hypervisor. `switched`: whether another thread ran, if that is known.
fn taker(by_account: Span, missing: Span, switched: Option<bool>) -> Taker {
    let is_most = by_account.saturating_add(by_account) >= missing;
    match switched {
        None | Some(true) if is_most => Taker::Kernel,
        None => Taker::Unknown,
        Some(_) => Taker::Below,
    }
}

/// The same, with its name noted if the kernel tells it.
#[cold]
#[inline(never)]
fn taker_at(
    host: &PerCpu,
    now: Instant,
    (by_account, missing): (Span, Span),
    switched: Option<bool>,
    executing: bool,
) -> Taker {
    match taker(by_account, missing, switched) {
        Taker::Kernel => {
            note_taker(host, longest(host, by_account), by_account, now);
            Taker::Kernel
        }
        Taker::Below if !executing => of_late_wake(host, missing, now),
        taker => taker,
    }
}

/// The one that made a carrier wake up late: a thread that is real-time, too, and had this CPU for
/// most of that time, or else the machine below. Other threads make way for a carrier at once.
/// Where the kernel does not tell who had it, it tells how long the carrier waited for others.
fn of_late_wake(host: &PerCpu, late: Span, now: Instant) -> Taker {
    let found = for_most(host, late).filter(|(thread, _)| sys::is_real_time(*thread));
    if found.is_none() && (host.switches.is_on() || !waited_for_most(host, late)) {
        return Taker::Below;
    }
    note_taker(host, found, late, now);
    Taker::Kernel
}

/// Whether the carrier was ready and others had its CPU for most of that time, by what the kernel
/// counted since somebody looked last: the onlooker, or an entry that found time taken.
fn waited_for_most(host: &PerCpu, late: Span) -> bool {
    let Some(waited_ns) = host.account.read().map(|account| account.waited_ns) else {
        return false;
    };
    let before = &host.questions().waited_ns;
    let waited = waited_ns.saturating_sub(before.swap(waited_ns, Ordering::Relaxed));
    waited.saturating_mul(2) >= host.clock().ns(late.ticks())
}

/// The thread of the machine that had this CPU longest of the last time that others had it (so much
/// of it), and for how many nanoseconds, if the kernel tells.
fn longest(host: &PerCpu, of_others: Span) -> Option<(u32, u64)> {
    host.switches.longest(host.clock().ns(of_others.ticks()))
}

/// Notes who had the CPU, and for how long; or, where the kernel does not tell who, so much of
/// `others`, for the onlooker to find out.
fn note_taker(host: &PerCpu, found: Option<(u32, u64)>, others: Span, now: Instant) {
    let questions = host.questions();
    let (thread, ns) = match found {
        Some((thread, ns)) => {
            questions.ask(thread);
            (Some(thread), ns)
        }
        // What its records do not show is no other thread: the process was stopped.
        None if host.switches.is_on() => return,
        None => {
            questions.untold.fetch_add(1, Ordering::Relaxed);
            // A later wake-up is not late by what has been told here.
            questions.note_account(host.account.read());
            (None, host.clock().ns(others.ticks()))
        }
    };
    let Ok(mut takers) = host.takers.try_borrow_mut() else {
        return;
    };
    // What has room now does not allocate.
    if takers.len() < takers.capacity() {
        takers.push(Taken {
            at: now,
            ns,
            thread,
        });
    }
}

/// Both clocks at the start of a stretch in which this CPU never slept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MissingTime {
    since: Instant,
    account_ns: u64,
    /// Missing time of this stretch that has been booked.
    booked: Span,
    /// Time that other threads of this machine had, and that nobody has taken note of.
    others: Span,
}

impl MissingTime {
    /// Starts a stretch now. On the carrier's kernel thread.
    #[cold]
    pub(crate) fn starting(clock: Clock, watch: &SwitchWatch) -> MissingTime {
        // In this order: whoever is away from here on is away in the new stretch, and has been
        // when it is looked at the next time.
        watch.take_note();
        let since = clock.now();
        MissingTime {
            since,
            account_ns: sys::read_clock(KernelClock::Thread),
            booked: Span::ZERO,
            others: Span::ZERO,
        }
    }

    /// How much of the interval from `last` to `now` was nobody's, and who took it. `known`: as
    /// other witnesses saw.
    #[inline]
    pub(crate) fn assess(
        &mut self,
        host: &PerCpu,
        last: Instant,
        now: Instant,
        known: Span,
        executing: bool,
    ) -> Uncharged {
        let interval = now.since(last);
        let was_away = host.watch.has_news();
        let mut missing = known.min(interval);
        let mut by_account = Span::ZERO;
        let is_long = interval.ticks() >= host.limits.suspicious
            || now.since(self.since) >= host.limits.stretch;
        if was_away || executing && is_long {
            let others = self.others;
            let seen = self.settle(host).min(interval);
            self.others = others.saturating_add(if was_away { seen } else { Span::ZERO });
            by_account = seen;
            if executing {
                missing = missing.max(seen);
            }
        } else if !missing.is_zero() {
            // Only what lies in this stretch: a late wake-up lies before it.
            let inside = missing.min(now.since(self.since));
            self.booked = self.booked.saturating_add(inside);
        }
        if missing.is_zero() {
            return Uncharged::NONE;
        }
        // A group that runs in place of a thread has the rest of what the account leaves out.
        let by_account = by_account.min(missing);
        let switched = host.watch.is_on().then_some(was_away);
        let taker = taker_at(host, now, (by_account, missing), switched, executing);
        Uncharged::by(taker, missing)
    }

    /// Takes what other threads of this machine had.
    #[inline]
    pub(crate) fn take_others(&mut self) -> Span {
        core::mem::take(&mut self.others)
    }

    /// Ends the stretch: how much of it was nobody's by the kernel's account, less what has been
    /// booked.
    #[cold]
    fn settle(&mut self, host: &PerCpu) -> Span {
        let before = *self;
        *self = MissingTime::starting(host.clock(), &host.watch);
        let account = self.account_ns.saturating_sub(before.account_ns);
        let stretch = self.since.since(before.since);
        let executed = Span::from_ticks(host.clock().ticks(account));
        let noise = host.clock().ticks(NOISE_NS) + stretch.ticks() / 1_000_000 * DRIFT_PPM;
        let missing = stretch
            .saturating_sub(executed)
            .saturating_sub(before.booked);
        if missing.ticks() > noise {
            missing
        } else {
            Span::ZERO
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_the_account_leaves_out_is_of_the_kernel_only_if_it_switched() {
        let of = |by_account, switched| {
            let [by_account, missing] = [by_account, 10].map(Span::from_ticks);
            taker(by_account, missing, switched)
        };
        assert_eq!(of(5, Some(true)), Taker::Kernel);
        assert_eq!(of(4, Some(true)), Taker::Below);
        assert_eq!(of(10, Some(false)), Taker::Below);
        assert_eq!([of(10, None), of(4, None)], [Taker::Kernel, Taker::Unknown]);
    }
}
