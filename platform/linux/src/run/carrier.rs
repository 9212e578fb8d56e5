//! The kernel thread under a CPU: starts its light threads, sleeps when nobody runs, ends the run.
//!
//! The carrier keeps the gate closed whenever it has the processor, so a signal never switches away
//! from it; it looks at everything itself, all the time or after every sleep.

use core::sync::atomic::AtomicU32;

use punctual_kern::{Event, Policy, Sink};
use punctual_model::{Instant, Span};
use punctual_switch::instructions::pause;

use crate::entry::cpu::{decide, note_sleep};
use crate::entry::give_back::AWAKE_NS;
use crate::entry::switch::switch_to;
use crate::record::boundary::AHEAD_NS;
use crate::record::light::{Light, Phase};
use crate::record::limits::{GAP_NS, LARGEST_MARGIN_NS, WAKE_MARGIN_NS};
use crate::record::per_cpu::{PerCpu, Reason};
use crate::sys;

/// A wake-up in time takes this off the margin; a late one adds [`LATE_STEPS`] times as much. So
/// one in sixteen is late, and a single very late one does not make many sleeps short.
const STEP_NS: u64 = 2_000;
const LATE_STEPS: u64 = 15;
/// Shorter sleeps are not worth their system call.
const SHORTEST_SLEEP_NS: u64 = 10_000;
/// A CPU that hears of others so soon after it began to sleep (most of that is the way out of the
/// sleep) had better looked for news first. It does so from then on, for so long at most; half as
/// long after each time in vain, and below the last of these not at all.
const SOON_NS: u64 = 100_000;
const LONGEST_WATCH_NS: u64 = 40_000;
const SHORTEST_WATCH_NS: u64 = 1_000;
/// With nothing due, the stop flag is looked at this often.
const LOOK_NS: u64 = 20_000_000;

/// A release so soon after the start of a slot is decided with it: frames and periods are rounded
/// to ticks apart.
const BEHIND_NS: u64 = 1_000;

/// Lets every light thread run up to its first job, once. A signal between the change to a thread's
/// own storage and the first store there (of its CPU) finds no CPU and returns. Nothing is lost: no
/// timer is set, nobody kicks yet, and the first entry looks at everything. Every thread that can
/// run later, those of the pool included, has passed that place here.
///
/// # Safety
/// The caller is the carrier of `per_cpu`, with the gate closed; the threads are new and its own.
pub(crate) unsafe fn start_threads(host: *const PerCpu, threads: &[*const Light]) {
    for &light in threads {
        // SAFETY: gate closed, the thread is new, so its context is the prepared one.
        unsafe { switch_to(host, light) };
        // SAFETY: records outlive the run (INV-L1 of `light`).
        debug_assert_eq!(unsafe { (*light).phase.get() }, Phase::Between);
    }
}

/// Carries the CPU until the run ends.
///
/// # Safety
/// The caller is the carrier of `per_cpu`, which is the host of a `Cpu<P, S>`, with the gate closed
/// and no reference into the core alive.
pub(crate) unsafe fn run_loop<P: Policy, S: Sink>(host: *const PerCpu) {
    // SAFETY: the host outlives the run; only its cells and atomics are used through this.
    let view = unsafe { &*host };
    let begun = loop {
        match view.clock().now() {
            Instant::ZERO => pause(),
            now => break now,
        }
    };
    // A loop of a few instructions: it was late because the processor was away.
    if begun.ticks() > view.limits.late {
        view.note_missing(begun.ticks());
    }
    let mut given_back = None;
    let mut ahead = None;
    loop {
        view.shared.post.executes(view.index);
        let now = view.clock().now();
        // Others may have called meanwhile, or the machine took the time.
        let is_ahead = |at: &Instant| is_of_next(view, now, *at);
        let start = ahead.take().filter(is_ahead);
        let at = start.unwrap_or(now);
        // SAFETY: as the caller vouches; `view` is not a reference into the core.
        let target = unsafe { decide::<P, S>(host, at, Event::Tick, given_back) };
        given_back = None;
        if view.boundaries.is_some() {
            leave_gap(view, now, start, target);
        }
        // SAFETY: the target is a started thread of this host, or null, which returns at once.
        unsafe { switch_to(host, target) };
        view.shared.post.polls(view.index);
        view.disarm_stale();
        // Behind the sleep and ahead of what is due: it takes a call of the kernel.
        // SAFETY: as above.
        let note = |from, to| unsafe { note_sleep::<P, S>(host, from, to) };
        match view.reason.get() {
            Reason::End => return,
            Reason::Idle { due, owes, awaits } => {
                let margin = match (view.keeps_idle_time(), owes) {
                    // It looks again before that: it does not sleep.
                    (true, _) => LOOK_NS,
                    (false, true) => 0,
                    (false, false) => view.wake_margin_ns.get(),
                };
                let (due, at) = ahead_of(view, due);
                ahead = at;
                idle(view, due, margin, (true, !owes), awaits, note);
            }
            Reason::GiveBack { until, listens } => {
                given_back = Some(until);
                let left = view.clock().ns(until.since(view.clock().now()).ticks());
                let awake = if left > 3 * AWAKE_NS { AWAKE_NS } else { 0 };
                idle(view, Some(until), awake, (listens, false), None, note);
            }
        }
    }
}

/// Whether the core can decide now, for an instant at the start of a slot.
fn is_of_next(host: &PerCpu, now: Instant, at: Instant) -> bool {
    let [within, behind] = [AHEAD_NS, BEHIND_NS].map(|ns| Span::from_ticks(host.clock().ticks(ns)));
    let boundaries = host.boundaries.as_ref();
    boundaries.is_some_and(|all| all.is_of_next(now, at, within, behind))
}

/// The start of the slot for which the core can decide now, if it is not more than that away.
fn next_start(host: &PerCpu, now: Instant, within_ns: u64) -> Option<Instant> {
    let within = Span::from_ticks(host.clock().ticks(within_ns));
    host.boundaries.as_ref()?.starts_within(now, within)
}

/// When the CPU is to look into what is due, and the instant for which it decides then: the start
/// of a slot (or a release right behind it), and ahead of that.
fn ahead_of(host: &PerCpu, due: Option<Instant>) -> (Option<Instant>, Option<Instant>) {
    let Some(at) = due else { return (None, None) };
    let clock = host.clock();
    let [ahead, behind] = [AHEAD_NS, BEHIND_NS].map(|ns| clock.ticks(ns));
    let before = Instant::from_ticks(at.ticks().saturating_sub(ahead + behind));
    let before = before.max(clock.now());
    match next_start(host, before, 2 * AHEAD_NS) {
        Some(start) if at.since(start).ticks() <= behind => {
            let look = Instant::from_ticks(start.ticks().saturating_sub(ahead));
            (Some(look.min(at)), Some(start.max(at)))
        }
        _ => (due, None),
    }
}

/// The entry of `now` leaves: where it decided for the start of a slot, when that starts, with the
/// owner's group raised before. Nobody's time passes meanwhile.
fn leave_gap(host: &PerCpu, now: Instant, start: Option<Instant>, target: *const Light) {
    let Some(start) = start else {
        return host.leave_entry(target, None);
    };
    // SAFETY: records of light threads outlive the run (INV-L1 of `light`).
    let owner = unsafe { target.as_ref() };
    if let Some(group) = owner.and_then(|light| light.group()) {
        group.raise_ahead();
    }
    let mut last = host.clock().now();
    let work = last.since(now);
    while last < start {
        pause();
        let at = host.clock().now();
        // The time before the start is nobody's anyway.
        let late = at.since(start.max(last)).ticks();
        if at.since(last).ticks() > host.clock().ticks(GAP_NS) && late > 0 {
            host.note_missing(late);
        }
        last = at;
    }
    host.leave_entry(target, Some(work));
}

/// Waits until `due`, the end, or news that it listens to; for the last `margin_ns` awake. It looks
/// for news before it sleeps only if it `may_watch`: who owes its sleep to others, or is left to
/// them, does not spend it on looking. It looks until `awaits` at least. Each sleep is told to
/// `note`.
fn idle(
    host: &PerCpu,
    due: Option<Instant>,
    margin_ns: u64,
    (listens, may_watch): (bool, bool),
    awaits: Option<Instant>,
    note: impl Fn(Instant, Instant),
) {
    let clock = host.clock();
    let margin = clock.ticks(margin_ns);
    let shortest = clock.ticks(SHORTEST_SLEEP_NS);
    let look = Instant::from_ticks(clock.now().ticks() + clock.ticks(LOOK_NS));
    let due = due.map_or(look, |due| due.min(look));
    let due = match may_watch && listens {
        true => meet(host, due, margin + shortest),
        false => due,
    };
    let nobody = AtomicU32::new(0);
    let mut has_slept = false;
    let mut last = clock.now();
    host.note_entry_until(last);
    let watch = if may_watch { host.watch_ns.get() } else { 0 };
    let sleepy = sleepy_from(last, clock.ticks(watch), awaits.filter(|_| may_watch));
    loop {
        let now = clock.now();
        let gap = now.since(last).ticks();
        if gap > clock.ticks(GAP_NS) {
            host.note_missing(gap);
        }
        last = now;
        if now >= due || is_to_end(host) || listens && has_news(host) {
            if !has_slept && watch > 0 && now < due {
                host.watch_ns.set(LONGEST_WATCH_NS);
            }
            return;
        }
        let left = due.since(now).ticks();
        if left > margin + shortest && now >= sleepy {
            let wake = Instant::from_ticks(due.ticks() - margin);
            let ns = clock.ns(left - margin);
            if listens {
                sleep_for_news(host, ns);
            } else {
                sys::futex_wait(&nobody, 0, ns);
            }
            let woken = clock.now();
            has_slept = true;
            note_wake(host, wake, due, woken);
            note(now, woken);
            last = clock.now();
            if may_watch {
                let heard = has_news(host).then(|| clock.ns(woken.since(now).ticks()));
                host.watch_ns.set(next_watch(watch, heard));
            }
        } else {
            pause();
        }
    }
}

/// From when on an idle CPU sleeps that has had nothing to do since `idle`: it looks for so many
/// ticks where that has paid, and until it awaits no predecessor any more.
fn sleepy_from(idle: Instant, watch: u64, awaits: Option<Instant>) -> Instant {
    let watched = idle.saturating_add(Span::from_ticks(watch));
    awaits.map_or(watched, |until| watched.max(until))
}

/// Compares the clocks with others that have nothing to do either, if this is the time for it, but
/// no longer than `margin` before `due`; when to look next.
fn meet(host: &PerCpu, due: Instant, margin: u64) -> Instant {
    let Some(clocks) = host.shared.clocks.as_ref().filter(|clocks| clocks.is_on()) else {
        return due;
    };
    let now = || host.clock().now().ticks();
    let (end, next) = clocks.meeting(now());
    if let Some(end) = end {
        let until = end.min(due.ticks().saturating_sub(margin));
        let stays = || !has_news(host) && !is_to_end(host);
        clocks.come(host.index, until, now, stays);
    }
    due.min(Instant::from_ticks(next))
}

/// Sleeps for so long, or until there is news.
fn sleep_for_news(host: &PerCpu, ns: u64) {
    host.shared.post.sleep(host.index, ns, |kicks, seen, ns| {
        // SAFETY: gate closed, and nothing in here reaches the ring by another way.
        match unsafe { &mut *host.ring.get() } {
            Some(ring) if ring.is_busy() => ring.sleep(kicks, seen, ns),
            _ => sys::futex_wait(kicks, seen, ns),
        }
    });
}

/// Whether an operation of a light thread is over, or can be finished now.
fn has_answers(host: &PerCpu) -> bool {
    // SAFETY: gate closed; the borrow ends here.
    let ring = unsafe { &mut *host.ring.get() };
    ring.as_mut().is_some_and(|ring| ring.has_answers())
}

fn has_news(host: &PerCpu) -> bool {
    host.shared.post.waits(host.index) || has_answers(host)
}

fn is_to_end(host: &PerCpu) -> bool {
    host.shared.is_to_end()
}

/// A sleep that was to end at `wake` for something due a little later ended at `now`.
fn note_wake(host: &PerCpu, wake: Instant, due: Instant, now: Instant) {
    let late = host.clock().ns(now.since(wake).ticks());
    host.count(|c| {
        c.sleeps += 1;
        c.wake_late_max_ns = c.wake_late_max_ns.max(late);
    });
    let margin = host.wake_margin_ns.get();
    host.wake_margin_ns.set(next_margin(margin, late));
    let lost = now.since(due).ticks();
    if now.since(wake).ticks() > host.limits.late && lost > 0 {
        // Its timer came later than any does whose processor executes: that was ours from `due` on.
        host.note_missing(lost);
    }
}

/// How long to look for news before the next sleep, after one that such a look did not prevent.
/// `heard`: news ended it after so many nanoseconds.
fn next_watch(watch: u64, heard: Option<u64>) -> u64 {
    let is_soon = heard.is_some_and(|ns| ns <= SOON_NS);
    match watch {
        0 if is_soon => LONGEST_WATCH_NS,
        _ if watch / 2 < SHORTEST_WATCH_NS => 0,
        _ => watch / 2,
    }
}

/// The margin after a wake-up that was so late with this one.
fn next_margin(margin: u64, late: u64) -> u64 {
    if late > margin {
        (margin + LATE_STEPS * STEP_NS).min(LARGEST_MARGIN_NS)
    } else {
        (margin - STEP_NS).max(WAKE_MARGIN_NS)
    }
}

/// How long a thread that waits for a lock of the program on its way out is waited for.
const LAST_WAIT_NS: u64 = 100_000_000;
/// It looks again after this.
const LAST_LOOK_NS: u64 = 200_000;

/// Ends the light threads after the run. Those that are between two jobs, or in a call that can
/// be unwound, run to their end here; returns those that cannot.
///
/// # Safety
/// As for [`run_loop`], which has returned.
pub(crate) unsafe fn end_threads(host: *const PerCpu, threads: &[*const Light]) -> usize {
    // SAFETY: records outlive the run (INV-L1 of `light`).
    let phase = |thread: &*const Light| unsafe { (**thread).phase.get() };
    for thread in threads {
        // SAFETY: as above.
        if let Some(group) = unsafe { (**thread).group() } {
            group.lower();
            group.dismiss();
        }
        if matches!(phase(thread), Phase::Between | Phase::Resting) {
            // SAFETY: as above, and as the caller vouches.
            unsafe {
                (**thread).quit.set(true);
                (**thread).may_end.set(true);
                end_thread(host, *thread);
            }
        }
    }
    let held = || threads.iter().filter(|thread| phase(thread) == Phase::Held);
    let nobody = AtomicU32::new(0);
    let mut waited = 0;
    while waited < LAST_WAIT_NS && held().next().is_some() {
        let before = held().count();
        // SAFETY: as above.
        held().for_each(|thread| unsafe { end_thread(host, *thread) });
        if held().count() == before {
            sys::futex_wait(&nobody, 0, LAST_LOOK_NS);
            waited += LAST_LOOK_NS;
        }
    }
    let is_left = |thread: &&*const Light| !matches!(phase(thread), Phase::Finished | Phase::Left);
    threads.iter().filter(is_left).count()
}

/// Lets a thread run to its end, or to where it waits on its way there.
///
/// # Safety
/// As for [`end_threads`]; the thread is one of the host's, has been told that the run is over, and
/// is suspended where it looks.
unsafe fn end_thread(host: *const PerCpu, thread: *const Light) {
    // SAFETY: gate closed; the thread is suspended and belongs to this host. It comes back through
    // `finish`, with the gate closed.
    unsafe { switch_to(host, thread) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_generate::Dice;

    /// The margin after so many wake-ups, and how many of them came later than it was.
    fn after(margin: u64, wakes: u64, mut late: impl FnMut() -> u64) -> (u64, u64) {
        (0..wakes).fold((margin, 0), |(margin, missed), _| {
            let late = late();
            let missed = missed + u64::from(late > margin);
            (next_margin(margin, late), missed)
        })
    }

    #[test]
    fn a_cpu_looks_before_it_sleeps_where_news_come_soon_and_no_longer_when_it_is_in_vain() {
        assert_eq!(next_watch(0, None), 0);
        assert_eq!(next_watch(0, Some(SOON_NS + 1)), 0, "worth no look");
        assert_eq!(next_watch(0, Some(SOON_NS)), LONGEST_WATCH_NS);
        let in_vain = |watch: &u64| Some(next_watch(*watch, Some(SOON_NS))).filter(|&ns| ns > 0);
        let looks = core::iter::successors(Some(LONGEST_WATCH_NS), in_vain);
        assert_eq!(looks.count(), 6);
    }

    #[test]
    fn a_cpu_that_awaits_predecessors_sleeps_when_their_jobs_would_be_late() {
        let at = Instant::from_ticks;
        assert_eq!(sleepy_from(at(5), 0, None), at(5));
        assert_eq!(sleepy_from(at(5), 40, None), at(45));
        assert_eq!(sleepy_from(at(5), 40, Some(at(900))), at(900));
        assert_eq!(sleepy_from(at(5), 40, Some(at(6))), at(45));
    }

    #[test]
    fn the_margin_lets_one_wake_up_in_sixteen_be_late() {
        let mut dice = Dice::new(7);
        let (margin, missed) = after(WAKE_MARGIN_NS, 16_000, || dice.below(400_000));
        assert!((300_000..450_000).contains(&margin), "{margin}");
        assert!((900..1_100).contains(&missed), "{missed}");
    }

    #[test]
    fn one_wake_up_that_is_very_late_is_forgotten_soon_and_many_are_not_followed_for_good() {
        let (once, _) = after(WAKE_MARGIN_NS, 1, || 47_000_000);
        assert_eq!(once, WAKE_MARGIN_NS + LATE_STEPS * STEP_NS);
        let (again, _) = after(once, LATE_STEPS, || 0);
        assert_eq!(again, WAKE_MARGIN_NS);
        assert_eq!(after(once, 1_000, || 47_000_000).0, LARGEST_MARGIN_NS);
    }
}
