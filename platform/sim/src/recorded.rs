//! What the threads of one CPU did in a recorded run, to be done again under another policy.
//!
//! Taken from the record: the work that each job received, what it asked of the core meanwhile and
//! how long it waited by its own request, the arrivals, and the time that was charged to nobody.
//! Not taken: who ran when. All times are ticks of the recorded tables.

use std::collections::BTreeMap;

use punctual_kern::{Event, MissingCause, Plan};
use punctual_model::{Instant, Mode, Span, Work};

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

/// What a body asks of the core. Spans count from the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// Its job is over.
    Complete,
    /// The thread is over.
    Exit,
    /// It gives way to its equals.
    Yield,
    /// It waits so long; `None`: for ever.
    Suspend(Option<Span>),
    /// It must not be preempted.
    Protect,
    /// It may be preempted again.
    Unprotect,
    /// It locks a resource, by its number on the shard, and waits for it at most so long.
    Lock(u32, Mode, Option<Span>),
    /// It gives a resource back.
    Unlock(u32),
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

impl Act {
    pub(crate) fn event(self, now: Instant) -> Event {
        let until = |span: Option<Span>| span.map(|span| now.saturating_add(span));
        match self {
            Act::Complete => Event::Complete,
            Act::Exit => Event::Exit,
            Act::Yield => Event::Yield,
            Act::Suspend(span) => Event::Block { until: until(span) },
            Act::Protect => Event::Protect,
            Act::Unprotect => Event::Unprotect,
            Act::Lock(resource, mode, patience) => Event::Lock {
                resource,
                mode,
                until: until(patience),
            },
            Act::Unlock(resource) => Event::Unlock { resource },
        }
    }
}
