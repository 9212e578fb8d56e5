//! The short way through an entry of the platform, beside that of the core.
//!
//! Between two instants at which the platform has something of its own to do (an arrival to feed,
//! a slice to give back, a look whether the run is to end, that end) most entries only charge,
//! decide and go on. The long way notes until when that is so; what can happen at any time (mail,
//! lateness, an interval long enough to be suspicious, a timer that is not set) is a flag each,
//! looked at here.

#[cfg(test)]
mod tests;

use core::sync::atomic::Ordering;

use punctual_kern::{Decision, Event, JobStamp, Next, Policy, Sink};
use punctual_model::Instant;

use super::{Core, Counting, arm_for};
use crate::record::light::{Light, NOTHING};
use crate::record::per_cpu::PerCpu;

impl<P: Policy, S: Sink> Core<P, S> {
    /// The entry at `now`, if it can be taken the short way: who runs then. Else nothing has
    /// changed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn step_calmly(
        &mut self,
        host: &PerCpu,
        now: Instant,
        event: &Event,
    ) -> Option<*const Light> {
        let (light, executed) = self.calm_interval(host, now, event)?;
        let mut sink = Counting {
            sink: &mut self.sink,
            tally: &mut self.tally,
            yields: false,
        };
        let (next, arm) = self.shard.handle_calmly(now, event, &mut sink)?;
        host.book_calmly(now, light, executed);
        let near = now.saturating_add(host.limits.near);
        if let Next::Thread(id) = next
            && !self.shard.has_message()
            && arm.is_none_or(|at| at > near)
            && let Some(&chosen) = self.threads.get(id.index())
            // SAFETY: as above.
            && let Some(light) = unsafe { chosen.as_ref() }
        {
            self.show(light);
            let due = arm.map_or(self.calm_until, |at| at.min(self.calm_until));
            arm_for(host, light, due, now);
            return Some(chosen);
        }
        Some(self.conclude_uncalmly(host, now, next, arm))
    }

    /// Who has run since the last entry, and for how long, if this one can be taken the short way.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn calm_interval(
        &self,
        host: &PerCpu,
        now: Instant,
        event: &Event,
    ) -> Option<(&'static Light, u64)> {
        if !self.is_calm(host, now, event) {
            return None;
        }
        // SAFETY: records of light threads outlive the run (INV-L1 of `light`).
        let light = unsafe { host.current.get().as_ref() }?;
        let last = host.last_entry.load(Ordering::Relaxed);
        let executed = now.ticks().saturating_sub(last);
        let is_calm = executed < host.limits.suspicious
            && light.group.get().is_none()
            && !light.wait_node.has_news();
        is_calm.then_some((light, executed))
    }

    /// The entry is about to become a long one after all.
    #[cold]
    #[inline(never)]
    pub(super) fn conclude_uncalmly(
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

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_calm(&self, host: &PerCpu, now: Instant, event: &Event) -> bool {
        let is_ordinary = matches!(
            event,
            Event::Tick | Event::Yield | Event::Block { .. } | Event::Wake(_) | Event::Complete
        );
        is_ordinary
            && now < self.calm_until
            && host.armed_for().is_some_and(|armed| now < armed)
            && host.is_undisturbed()
    }

    /// Shows a thread that is about to run what has become of its job and of its last request.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn show(&mut self, light: &Light) {
        self.show_as(light, self.shard.job_stamp(light.id()));
    }

    /// [`Core::show`] of a thread whose job has this stamp.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn show_as(&mut self, light: &Light, stamp: JobStamp) {
        debug_assert_eq!(stamp, self.shard.job_stamp(light.id()));
        if stamp != light.stamp.get() || light.wait_node.cancelled.get() {
            light.stamp.set(stamp);
            self.show_job(light);
        }
        if light.asked.load(Ordering::Relaxed) != NOTHING {
            self.show_lock(light);
        }
    }

    #[inline(never)]
    fn show_job(&mut self, light: &Light) {
        let job = self.shard.job(light.id());
        let asked = job.is_some_and(|job| job.stop) || light.wait_node.cancelled.get();
        let stop = asked && !light.pooled.ending.get();
        light.stop.store(stop, Ordering::Relaxed);
        light.job.set(job);
    }

    #[inline(never)]
    fn show_lock(&mut self, light: &Light) {
        let asked = light.asked.load(Ordering::Relaxed);
        let holds = self.shard.holds(light.id(), asked);
        light.granted.store(holds, Ordering::Relaxed);
    }

    /// Notes until when entries may take the short way: `light` runs now.
    pub(super) fn set_calm(&mut self, host: &PerCpu, now: Instant) {
        let is_calm = self.children.is_empty() && now < self.end.horizon;
        self.calm_until = if is_calm {
            // Who looks at the clock itself has no timer that would fire for a look.
            let look = now.saturating_add(host.limits.look);
            self.next_due(host, now, None, false, false).min(look)
        } else {
            Instant::ZERO
        };
    }
}
