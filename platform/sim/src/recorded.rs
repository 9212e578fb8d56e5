//! What the threads of one CPU did in a recorded run, to be done again under another policy.
//!
//! Taken from the record: the work that each job received, what it asked of the core meanwhile and
//! how long it waited by its own request, the arrivals, and the time that was charged to nobody.
//! Not taken: who ran when. All times are ticks of the recorded tables.

use std::collections::BTreeMap;

use punctual_kern::{MissingCause, Plan};
use punctual_model::{Instant, Span, Work};

use crate::body::{Act, Body, Nudges, Step};

/// One CPU of a recorded run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recording {
    /// By the index of the thread.
    pub threads: Vec<RecordedThread>,
    /// Time charged to nobody, in order, disjoint.
    pub gaps: Vec<Gap>,
    /// The changes while it ran.
    pub plan: Plan,
}

/// What one thread did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecordedThread {
    /// By the number of the job in which they begin: work, and what the body asked for then, in
    /// order. What does not end with [`Act::Complete`] or [`Act::Exit`] works on for ever.
    pub jobs: BTreeMap<u64, Vec<(Work, Act)>>,
    /// Work of a job that is not recorded; `None`: it works for ever.
    pub unknown: Option<Work>,
    /// The instants at which the platform told the core of arrivals, and the arrivals; in order.
    pub arrivals: Vec<(Instant, Instant)>,
    /// The platform may be told later than the arrival without a gap: release jitter.
    pub jitters: bool,
}

/// A stretch of time that was charged to nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    /// From here.
    pub at: Instant,
    /// So long.
    pub length: Span,
    /// Who took it.
    pub cause: MissingCause,
}

impl Recording {
    /// The same without the gaps that were taken from below. An arrival that a gap delayed comes at
    /// its beginning, or when it was due if that was later. One with release jitter stays: nobody
    /// knows when it was due.
    #[must_use]
    pub fn without_stolen_time(mut self) -> Recording {
        let stolen = |gap: &Gap| gap.cause == MissingCause::Stolen;
        let end = |gap: &Gap| gap.at.saturating_add(gap.length);
        let threads = self.threads.iter_mut().filter(|thread| !thread.jitters);
        for (release, arrival) in threads.flat_map(|thread| &mut thread.arrivals) {
            let before = self.gaps.partition_point(|gap| end(gap) < *release);
            let gap = self.gaps.get(before).filter(|gap| stolen(gap));
            if let Some(gap) = gap.filter(|gap| end(gap) == *release) {
                *release = gap.at.max(*arrival);
            }
        }
        self.gaps.retain(|gap| !stolen(gap));
        self
    }
}

/// A thread that does again what it did.
pub(crate) struct Recorded {
    thread: RecordedThread,
    job: u64,
    /// Steps of the job that have been asked for.
    asked: usize,
}

impl Recorded {
    pub(crate) fn new(thread: RecordedThread) -> Recorded {
        Recorded {
            thread,
            job: 0,
            asked: 0,
        }
    }
}

impl Body for Recorded {
    fn begin(&mut self, job: u64, _: Option<Work>) {
        (self.job, self.asked) = (job, 0);
    }

    fn next(&mut self, _: Instant, _: &mut Nudges) -> Step {
        let act = Act::Complete;
        let Some(steps) = self.thread.jobs.get(&self.job) else {
            let work = self.thread.unknown;
            return Step { work, act };
        };
        let step = steps.get(self.asked).copied();
        self.asked += 1;
        let (work, act) = step.map_or((None, act), |(work, act)| (Some(work), act));
        Step { work, act }
    }
}
