//! The platform's part of the fast path: nothing outside the core is due.
//!
//! Between two instants at which the platform has something of its own to do (an arrival to feed,
//! a slice to give back, a look whether the run is to end, that end) most entries only charge,
//! decide and go on. The slow path says until when that is so. A flag each stands for what can
//! happen at any time: mail, lateness, a suspiciously long interval, a timer that is not set.

#[cfg(test)]
mod tests;

use core::sync::atomic::Ordering;

use punctual_kern::{
    Decision, Entry, Event, FastOutcome, Front, JobStamp, Next, Policy, Sink, Turn,
};
use punctual_model::{Instant, Span, ThreadId};

use super::enter::enter;
use super::{Core, Cpu, RESEND_NS};
use crate::entry::switch::switch_here;
use crate::record::light::{Light, NOTHING};
use crate::record::per_cpu::PerCpu;

impl<P: Policy, S: Sink> Core<P, S> {
    /// The entry at `now` on the fast path: the thread that runs then. `None`: the path is closed,
    /// and nothing has happened.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn step_fast(
        &mut self,
        host: &PerCpu,
        now: Instant,
        event: &Event,
    ) -> Option<*const Light> {
        if !is_ordinary(event) {
            return None;
        }
        let interval = self.fast_interval(host, now)?;
        let outcome = self.shard.handle_fast(now, event, &mut self.sink)?;
        Some(self.finish_fast(host, now, event, interval, outcome))
    }

    /// Follows a switch of the core on the shortest way: the thread that runs. No other CPU is to
    /// hear of it. `None`: more is to be done ([`Core::end_turn`]).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn take_turn(
        &mut self,
        host: &PerCpu,
        now: Instant,
        (from, executed): (&Light, u64),
        turn: Turn,
    ) -> Option<&'static Light> {
        debug_assert!(from.refused.get().is_none(), "its entry takes another way");
        host.book_fast(now, from, executed);
        self.follow_turn(host, now, turn)
    }

    /// The same, booked already.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn follow_turn(&mut self, host: &PerCpu, now: Instant, turn: Turn) -> Option<&'static Light> {
        debug_assert!(!self.shard.has_message());
        if now >= self.owing_from {
            return None;
        }
        let &to = self.threads.get(turn.next.index())?;
        // SAFETY: records of light threads outlive the run (INV-L1 of `light`).
        let to = unsafe { to.as_ref() }?;
        if to.is_usual(turn.stamp) && host.timer_stays(turn.arm) {
            return Some(to);
        }
        self.follow_to(host, now, to, (turn.arm, turn.stamp))
    }

    /// There is something to tell the thread that runs, or the timer may have to be set.
    #[inline(never)]
    fn follow_to(
        &mut self,
        host: &PerCpu,
        now: Instant,
        to: &'static Light,
        (arm, stamp): (Instant, JobStamp),
    ) -> Option<&'static Light> {
        // A near instant with a timer comes in time, or as the gate opens.
        let is_near = arm <= now.saturating_add(host.limits.near);
        if is_near && !host.timer_stays(arm) {
            return None;
        }
        debug_assert_eq!(stamp, self.shard.job_stamp(to.id()));
        self.publish_all(to, stamp);
        let due = arm.min(host.fast_until());
        host.arm_for(to, due, now, || self.comes_by_clock(due));
        Some(to)
    }

    /// The end of an entry whose switch [`Core::take_turn`] has booked and not followed: the
    /// thread that runs (null: the carrier).
    #[cold]
    #[inline(never)]
    pub(super) fn end_turn(
        &mut self,
        host: &PerCpu,
        now: Instant,
        next: ThreadId,
        arm: Instant,
    ) -> *const Light {
        let stamp = self.shard.job_stamp(next);
        self.go_on(host, now, Turn { next, arm, stamp }.outcome())
    }

    /// The shortest way was not enough: the fast path of all entries, as [`Core::step_fast`].
    #[inline(never)]
    pub(super) fn step_behind(
        &mut self,
        host: &PerCpu,
        now: Instant,
        event: &Event,
        (interval, front): ((&Light, u64), Front),
    ) -> Option<*const Light> {
        let outcome = match front {
            Front::Turn(turn) => turn.outcome(),
            Front::Chosen(arm) => self.shard.chosen(arm),
            Front::Closed => self.shard.handle_fast(now, event, &mut self.sink)?,
        };
        Some(self.finish_fast(host, now, event, interval, outcome))
    }

    /// Whether the fast path of a tree of schedulers is open in the core.
    #[inline]
    pub(super) fn is_open_in_tree(&self, now: Instant) -> bool {
        self.shard.is_open_in_tree(now)
    }

    /// The same in a tree of schedulers.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn step_in_tree(
        &mut self,
        host: &PerCpu,
        now: Instant,
        event: &Event,
    ) -> Option<*const Light> {
        if !is_ordinary(event) {
            return None;
        }
        let interval = self.fast_interval(host, now)?;
        let outcome = self.shard.handle_in_tree(now, event, &mut self.sink)?;
        Some(self.finish_fast(host, now, event, interval, outcome))
    }

    /// Follows a decision of the core on the fast path. Returns the thread that runs then.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn finish_fast(
        &mut self,
        host: &PerCpu,
        now: Instant,
        event: &Event,
        (light, executed): (&Light, u64),
        outcome: FastOutcome,
    ) -> *const Light {
        host.book_fast(now, light, executed);
        // A signal's entry may come before the thread has read what was refused.
        if !matches!(event, Event::Tick) {
            light.tell(None);
        }
        self.go_on(host, now, outcome)
    }

    /// The entry of a timer that came for the core alone, by its signal: the core serves what is
    /// due, and the platform has nothing of its own to do. Most timers release a job that goes
    /// before all others, which the core tries first ([`punctual_kern::Shard::release_front`]).
    /// `None`: the platform may have something to do, and nothing has happened.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn step_due(&mut self, host: &PerCpu, now: Instant) -> Option<*const Light> {
        let arrived = host.arrived.get()?;
        let is_open = now < host.fast_until()
            && now.since(arrived).ticks() <= host.limits.entry
            && host.fires_at().is_none()
            && !host.shared.is_to_end()
            && host.is_undisturbed();
        let (light, executed) = self.usual_interval(host, now).filter(|_| is_open)?;
        host.arrived.set(None);
        host.book_fast(now, light, executed);
        match self.shard.release_front(now, &mut self.sink) {
            Front::Turn(turn) => Some(match self.follow_turn(host, now, turn) {
                Some(to) => to,
                None => self.end_turn(host, now, turn.next, turn.arm),
            }),
            Front::Chosen(arm) => {
                let outcome = self.shard.chosen(arm);
                Some(self.go_on(host, now, outcome))
            }
            Front::Closed => Some(self.serve_due(host, now)),
        }
    }

    /// More than one job is released, or less.
    #[inline(never)]
    fn serve_due(&mut self, host: &PerCpu, now: Instant) -> *const Light {
        let entry = Entry::at(now, &Event::Tick);
        let Decision { next, arm, .. } = self.shard.handle_apart(entry, &mut self.sink);
        let stamp = match next {
            Next::Thread(id) => self.shard.job_stamp(id),
            _ => JobStamp::NONE,
        };
        self.go_on(host, now, FastOutcome { next, arm, stamp })
    }

    /// The thread that was chosen goes on, unless the platform has to look at more than the timer.
    /// Returns the thread that runs then.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn go_on(&mut self, host: &PerCpu, now: Instant, outcome: FastOutcome) -> *const Light {
        let FastOutcome { next, arm, stamp } = outcome;
        let near = now.saturating_add(host.limits.near);
        if let Next::Thread(id) = next
            && !self.shard.has_message()
            && arm.is_none_or(|at| at > near)
            && (now < self.owing_from || !self.gives_slice(host, now, next))
            && let Some(&chosen) = self.threads.get(id.index())
            // SAFETY: records of light threads outlive the run (INV-L1 of `light`).
            && let Some(light) = unsafe { chosen.as_ref() }
        {
            self.publish_as(light, stamp);
            let own = host.fast_until();
            let due = arm.map_or(own, |at| at.min(own));
            host.arm_for(light, due, now, || self.comes_by_clock(due));
            return chosen;
        }
        self.conclude_slowly(host, now, next, arm)
    }

    /// The thread that has run since the last entry, and for how long, if the fast path is open.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn fast_interval(
        &self,
        host: &PerCpu,
        now: Instant,
    ) -> Option<(&'static Light, u64)> {
        match host.is_open(now) {
            true => self.usual_interval(host, now),
            false => None,
        }
    }

    /// For how long `light`, which runs and is plain ([`Light::is_plain`]), has done so since the
    /// last entry, if the fast path is open at this reading of the clock.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn plain_interval(&self, host: &PerCpu, light: &Light, reading: u64) -> Option<u64> {
        debug_assert!(core::ptr::eq(host.current.get(), light), "it runs");
        debug_assert!(light.group().is_none() && !light.has_news(), "it is plain");
        // A reading from before the run is greater than any instant up to which that path is open.
        let now = Instant::from_ticks(reading);
        match host.is_open(now) {
            true => self.short_interval(host, now),
            false => None,
        }
    }

    /// [`Core::fast_interval`], whatever is due.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn usual_interval(&self, host: &PerCpu, now: Instant) -> Option<(&'static Light, u64)> {
        // SAFETY: records of light threads outlive the run (INV-L1 of `light`).
        let light = unsafe { host.current.get().as_ref() }?;
        let executed = self.short_interval(host, now)?;
        let is_usual = light.group().is_none() && !light.has_news();
        is_usual.then_some((light, executed))
    }

    /// How long ago the last entry was, if that is not suspicious. A clock that has gone back gives
    /// an interval that is.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn short_interval(&self, host: &PerCpu, now: Instant) -> Option<u64> {
        let last = self.shard.now();
        debug_assert!(host.last_entry.load(Ordering::Relaxed) <= last.ticks());
        let executed = now.ticks().wrapping_sub(last.ticks());
        (executed < u64::from(host.limits.short)).then_some(executed)
    }

    /// The entry goes on along the slow path.
    #[cold]
    #[inline(never)]
    fn conclude_slowly(
        &mut self,
        host: &PerCpu,
        now: Instant,
        next: Next,
        arm: Option<Instant>,
    ) -> *const Light {
        self.send_messages(host);
        let refused = None;
        self.conclude(host, now, Decision { next, arm, refused })
    }

    /// Writes what has become of its job and of its last request into the record of a thread that
    /// is about to run.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn publish(&mut self, light: &Light) {
        self.publish_as(light, self.shard.job_stamp(light.id()));
    }

    /// [`Core::publish`] of a thread whose job has this stamp.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn publish_as(&mut self, light: &Light, stamp: JobStamp) {
        debug_assert_eq!(stamp, self.shard.job_stamp(light.id()));
        if !light.is_usual(stamp) {
            self.publish_apart(light, stamp);
        }
    }

    #[inline(never)]
    fn publish_apart(&mut self, light: &Light, stamp: JobStamp) {
        self.publish_all(light, stamp);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn publish_all(&mut self, light: &Light, stamp: JobStamp) {
        if stamp != light.stamp.get() || light.wait_node.cancelled.get() {
            light.stamp.set(stamp);
            self.publish_job(light);
        }
        if light.asked.load(Ordering::Relaxed) != NOTHING {
            self.publish_lock(light);
        }
        light.note_usual();
    }

    fn publish_job(&mut self, light: &Light) {
        let job = self.shard.job(light.id());
        let asked = job.is_some_and(|job| job.stop) || light.wait_node.cancelled.get();
        let stop = asked && !light.pooled.ending.get();
        light.stop.store(stop, Ordering::Relaxed);
        light.may_end.set(asked || light.quit.get());
        light.job.set(job);
    }

    #[inline(never)]
    fn publish_lock(&mut self, light: &Light) {
        let asked = light.asked.load(Ordering::Relaxed);
        let holds = self.shard.holds(light.id(), asked);
        light.granted.store(holds, Ordering::Relaxed);
    }

    /// Whether a slice is due if this is next.
    #[cold]
    fn gives_slice(&self, host: &PerCpu, now: Instant, next: Next) -> bool {
        let working = self.working_for(host, next);
        self.owed.is_some_and(|owed| owed.gives(now, working))
    }

    /// When the next entry is due, for whatever reason.
    pub(super) fn next_due(
        &self,
        host: &PerCpu,
        now: Instant,
        arm: Option<Instant>,
        more: bool,
        idle: bool,
    ) -> Instant {
        if more {
            return now;
        }
        let mut due = self.end.next(now);
        due = due.min(arm.unwrap_or(Instant::MAX));
        if let Some(&(arrival, _)) = self.arrivals.get(self.next_arrival) {
            due = due.min(arrival);
        }
        due = due.min(self.plan.due().unwrap_or(Instant::MAX));
        // The idle CPU looks at its rings all the time, or is woken.
        if let Some(at) = host.kicks.get().due()
            && !idle
        {
            due = due.min(at);
        }
        if let Some(owed) = &self.owed
            && (!idle || host.keeps_idle_time())
        {
            due = due.min(owed.next(now));
        }
        if !self.unsent.is_empty() {
            due = due.min(now.saturating_add(Span::from_ticks(host.clock().ticks(RESEND_NS))));
        }
        due
    }

    /// Until when entries may take the fast path.
    pub(super) fn open_fast_path(&mut self, host: &PerCpu, now: Instant) {
        self.owing_from = self.owed.map_or(Instant::MAX, |owed| owed.due);
        let is_open = self.children.is_empty() && now < self.end.horizon && !self.plan.waits();
        let until = if is_open {
            // A thread that promised checkpoints has no timer that would fire for a look.
            let look = now.saturating_add(host.limits.look);
            self.next_due(host, now, None, false, false).min(look)
        } else {
            Instant::ZERO
        };
        host.set_fast_until(until);
    }
}

/// [`enter`] for [`Event::Tick`] by a signal: nearly all of those are of the timer, which comes for
/// the core.
///
/// # Safety
/// As for [`decide`].
pub(super) unsafe fn preempt<P: Policy, S: Sink, const DIVIDES: bool>(host: *const PerCpu) {
    // SAFETY: as in `decide`; the borrow ends with the block.
    let target = unsafe {
        let cpu = &*host.cast::<Cpu<P, S>>();
        let now = cpu.host.clock().now();
        (*cpu.core.get()).step_due(&cpu.host, now)
    };
    let Some(target) = target else {
        // SAFETY: as the caller vouches.
        return unsafe { enter::<P, S, DIVIDES>(host, Event::Tick) };
    };
    if DIVIDES {
        // SAFETY: the host is alive, and this reference ends here.
        unsafe { &*host }.leave_entry(target, None);
    }
    // SAFETY: as in `enter_here`.
    unsafe { switch_here(host, target) };
}

/// Whether the way of most entries is for this event.
#[cfg_attr(not(debug_assertions), inline(always))]
fn is_ordinary(event: &Event) -> bool {
    matches!(
        event,
        Event::Tick
            | Event::Yield
            | Event::Block { .. }
            | Event::Wake(_)
            | Event::Complete
            | Event::BlockOn { .. }
            | Event::HandOver { .. }
    )
}
