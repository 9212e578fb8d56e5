//! The doings of one thread: its body, and the step under way.

use punctual_model::{Instant, Work};

use crate::body::{Body, Nudges, Step};
use crate::declared::Declared;
use crate::recorded::Recorded;

/// Where bodies come from.
pub(crate) enum Kind<'a> {
    Declared(Declared),
    Recorded(Recorded),
    /// A program's own.
    Own(Box<dyn Body + 'a>),
}

/// A thread from the outside.
pub(crate) struct Doing<'a> {
    kind: Kind<'a>,
    /// The job that has begun and not ended.
    pub(crate) job: Option<u64>,
    /// The step under way, with the work that is left of it.
    pub(crate) step: Option<Step>,
}

impl<'a> Doing<'a> {
    pub(crate) fn new(kind: Kind<'a>) -> Doing<'a> {
        Doing {
            kind,
            job: None,
            step: None,
        }
    }

    /// Whether its jobs look at the budget that they have.
    #[inline]
    pub(crate) fn asks_for_budget(&self) -> bool {
        match &self.kind {
            Kind::Declared(body) => body.follows(),
            Kind::Recorded(_) | Kind::Own(_) => true,
        }
    }

    #[inline]
    pub(crate) fn begin(&mut self, job: u64, budget: Option<Work>) {
        match &mut self.kind {
            Kind::Declared(body) => body.begin(job, budget),
            Kind::Recorded(body) => body.begin(job, budget),
            Kind::Own(body) => body.begin(job, budget),
        }
        self.job = Some(job);
        self.step = None;
    }

    /// A job begins whose body is declared, and which is work and nothing else: that work, which
    /// is under way from now on. `None`: it is not like that, and nothing has happened.
    #[inline]
    pub(crate) fn begin_plainly(&mut self, job: u64) -> Option<Option<Work>> {
        let Kind::Declared(body) = &mut self.kind else {
            return None;
        };
        let step = body.begin_plainly(job)?;
        self.job = Some(job);
        self.step = Some(step);
        Some(step.work)
    }

    /// The next step, from now on under way.
    #[inline]
    pub(crate) fn ask(&mut self, now: Instant, nudges: &mut Nudges) -> &mut Step {
        let step = match &mut self.kind {
            Kind::Declared(body) => body.next(now, nudges),
            Kind::Recorded(body) => body.next(now, nudges),
            Kind::Own(body) => body.next(now, nudges),
        };
        self.step.insert(step)
    }

    /// Whether a program brought its body, which hears of switches.
    #[inline]
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.kind, Kind::Own(_))
    }

    /// The processor goes to another.
    #[cold]
    pub(crate) fn switched_out(&mut self, now: Instant) {
        if let Kind::Own(body) = &mut self.kind
            && let Some(step) = &self.step
        {
            body.switched_out(now, step.work);
        }
    }

    /// The processor comes back in the middle of a job.
    #[cold]
    pub(crate) fn switched_in(&mut self, now: Instant) {
        if let Kind::Own(body) = &mut self.kind
            && self.step.is_some()
            && body.switched_in(now)
        {
            self.step = None;
        }
    }
}
