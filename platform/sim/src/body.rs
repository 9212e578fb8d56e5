//! The seam of virtual time: a thread does so much work, and then an act, again and again.
//!
//! The simulation knows nothing more of a thread. A declared task is a body that repeats its
//! program, a recorded thread one that repeats its recording, and a program may bring its own
//! ([`crate::Guests`]).

use punctual_kern::Event;
use punctual_model::{Instant, Mode, Span, TaskId, Work};

/// The doings of a thread in virtual time.
///
/// The platform calls it from one kernel thread, in the order of virtual time. For equal calls it
/// must answer the same, or the run is not repeatable.
pub trait Body {
    /// A job begins: its number within the thread, and what it may use at most (`None`: no limit).
    fn begin(&mut self, job: u64, budget: Option<Work>);

    /// The next step. The platform asks when a job begins, and after each act that does not end it,
    /// as soon as the thread has the processor again. A body whose steps take no time for ever
    /// ([`Act::Continue`] after zero work) keeps virtual time from going on.
    fn next(&mut self, now: Instant, others: &mut Nudges) -> Step;

    /// Another thread, or nobody, has the processor from now on, in the middle of a step: so much
    /// work is left of it (`None`: it is endless).
    fn switched_out(&mut self, now: Instant, left: Option<Work>) {
        let _ = (now, left);
    }

    /// It has the processor again, in the middle of a step. `true`: it drops the rest of the step,
    /// and is asked for the next one at once.
    fn switched_in(&mut self, now: Instant) -> bool {
        let _ = now;
        false
    }

    /// The tasks on other CPUs that it may nudge. Their CPUs are simulated together with its own.
    fn peers(&self) -> &[TaskId] {
        &[]
    }
}

/// Some work, and what comes then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Processor time; `None`: for ever, or until another body nudges this one.
    pub work: Option<Work>,
    /// The wish of the body behind it.
    pub act: Act,
}

/// Bodies on other CPUs whose endless work, or work before [`Act::Poll`], ends now. They look
/// again, without an entry into the core. A body that does not run just now, or does other work,
/// hears nothing.
#[derive(Debug, Default)]
pub struct Nudges {
    tasks: Vec<TaskId>,
}

impl Nudges {
    /// Ends the waiting work of this task's body, if it is among the [`Body::peers`].
    pub fn nudge(&mut self, task: TaskId) {
        self.tasks.push(task);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    pub(crate) fn pop(&mut self) -> Option<TaskId> {
        self.tasks.pop()
    }
}

/// The wish of a body for the core. Spans count from the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// Nothing: it goes on with its next step, without an entry into the core.
    Continue,
    /// The same, after work that a nudge may end: it waits for something, until an instant.
    Poll,
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

impl Act {
    /// The event for the core; `None`: it is not asked.
    #[inline]
    pub(crate) fn event(self, now: Instant) -> Option<Event> {
        let until = |span: Option<Span>| span.map(|span| now.saturating_add(span));
        Some(match self {
            Act::Continue | Act::Poll => return None,
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
        })
    }

    /// Whether a section begins with it.
    pub(crate) fn locks(self) -> bool {
        matches!(self, Act::Protect | Act::Lock(..))
    }

    /// Whether the job ends with it.
    pub(crate) fn ends_job(self) -> bool {
        matches!(self, Act::Complete | Act::Exit)
    }
}
