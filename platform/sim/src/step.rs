//! The steps of which jobs are made.

use punctual_model::{Mode, Span, Work};

use crate::recorded::{Act, RecordedThread};

/// What the body of a thread does when its current section of work is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    Complete,
    Suspend(Span),
    Protect,
    Unprotect,
    Lock(u32, Mode),
    Unlock(u32),
    Exit,
    Recorded(Act),
}

/// Some work, and what comes then.
pub(crate) type Step = (Work, Then);

impl RecordedThread {
    /// The step `at` of a job: how much work, and what comes then.
    pub(crate) fn step(&self, job: u64, at: usize) -> (Option<Work>, Then) {
        let Some(steps) = self.jobs.get(&job) else {
            return (self.unknown, Then::Complete);
        };
        match steps.get(at) {
            Some(&(work, act)) => (Some(work), Then::Recorded(act)),
            None => (None, Then::Complete),
        }
    }
}
