//! The body of the thread that runs from now on: it begins a job, or goes on from where it was.

use punctual_kern::{Policy, Sink};
use punctual_model::{Instant, ThreadId, Work};

use super::Cpu;
use crate::NEVER;
use crate::body::{Act, Step};

impl<P: Policy, S: Sink> Cpu<'_, P, S> {
    /// A job begins that is work and nothing else: when it ends. `None`: it is not like that, and
    /// nothing has happened.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn start(&mut self, now: Instant, id: ThreadId) -> Option<Instant> {
        let doing = &mut self.doing[id.index()];
        if doing.job.is_some() || !self.segments.is_empty() {
            return None;
        }
        let job = self.shard.job(id).filter(|job| !job.stop)?;
        Some(end_of(now, doing.begin_plainly(job.index)?))
    }

    /// What the thread that runs now does, from where it was; when its section ends.
    #[inline(never)]
    pub(super) fn resume(&mut self, now: Instant, id: ThreadId, switched: bool) -> Instant {
        let job = self.shard.job(id);
        let doing = &mut self.doing[id.index()];
        let is_new = doing.job.is_none();
        if is_new {
            self.begin(id, job.map_or(0, |job| job.index));
        } else if switched && doing.is_own() {
            doing.switched_in(now);
        }
        let doing = &mut self.doing[id.index()];
        let step = match &mut doing.step {
            Some(step) => step,
            None => doing.ask(now, &mut self.nudges),
        };
        if switched
            && !is_new
            && let Some(left) = &mut step.work
        {
            *left = left.saturating_add(self.cache_delay);
        }
        // An overrun rule may have said that this job ends here.
        if job.is_some_and(|job| job.stop) {
            step.work = Some(Work::ZERO);
            step.act = Act::Complete;
        }
        end_of(now, step.work)
    }

    /// A job of a thread begins.
    fn begin(&mut self, id: ThreadId, job: u64) {
        let planned = match self.segments.is_empty() {
            true => None,
            false => self.segment_work(id),
        };
        let doing = &mut self.doing[id.index()];
        let constraint = match doing.asks_for_budget() {
            true => self.shard.constraint(id),
            false => None,
        };
        let budget = constraint.and_then(|constraint| constraint.class.budget());
        doing.begin(job, budget);
        if let Some(work) = planned {
            let (work, act) = (Some(work), Act::Complete);
            doing.step = Some(Step { work, act });
        }
    }
}

/// When so much work ends that begins now; [`NEVER`]: it is endless.
#[inline]
pub(super) fn end_of(now: Instant, work: Option<Work>) -> Instant {
    work.map_or(NEVER, |work| now.saturating_add(work.as_span()))
}
