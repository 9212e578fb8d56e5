//! Changes that are known before a run: the events that make them, and when a platform enters them.
//!
//! A platform asks its plan after each entry ([`Plan::next`]), and enters what it is given, at the
//! same instant. So the events stand in the record like any other, and a replay needs no plan.
//!
//! All of a change happens, or nothing of it. What is fixed before a run has been checked before
//! it. What only the state at that instant can refuse is asked before the first event
//! ([`Shard::permits`]), and then that event alone is entered: the core refuses it, and the record
//! says so. Every later change was judged as one that follows, so a plan ends with a refusal.
//! A delegation that a slice hinders which was taken back waits until that counts no more. A
//! transfer waits until the lender has that much left, and what follows one until it is over.

use alloc::vec::Vec;

use punctual_model::{Instant, PolicyKind, Span, ThreadId};
use punctual_order::{NodeId, Policy};

use crate::Constraint;
use crate::event::{Decision, Event};
use crate::manage::Request;
use crate::shard::Shard;

/// The part of one change that concerns one shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Planned {
    /// Number of the change in its system.
    pub change: u32,
    /// Not before this instant.
    pub at: Instant,
    /// Not while one of these has a job that was promised something ([`Shard::is_quiet`]).
    pub quiet: Vec<ThreadId>,
    /// Entered one after the other, at one instant.
    pub events: Vec<Event>,
}

/// The changes of one shard, in the order of time.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Plan {
    steps: Vec<Planned>,
    /// The step that is next, and the event of it.
    next: (usize, usize),
    /// The time of the next step has come.
    waits: bool,
    /// What hinders it ends by itself then.
    until: Option<Instant>,
    /// Budget that it has transferred is there until then.
    lent: Instant,
}

impl Plan {
    /// A plan of these steps.
    pub fn new(steps: Vec<Planned>) -> Plan {
        Plan {
            steps,
            ..Plan::default()
        }
    }

    /// Its steps.
    pub fn steps(&self) -> &[Planned] {
        &self.steps
    }

    /// Its steps, to be adapted to a platform before the run.
    pub fn steps_mut(&mut self) -> &mut [Planned] {
        &mut self.steps
    }

    /// The constraints that it brings, in the order of time.
    pub fn constraints(&self) -> impl Iterator<Item = (ThreadId, &Constraint)> {
        let events = self.steps.iter().flat_map(|step| &step.events);
        events.filter_map(|event| match event {
            Event::Change { thread, constraint } => Some((*thread, constraint)),
            _ => None,
        })
    }

    /// The policies that it asks for, in the order of time, and for which scheduler.
    pub fn policies(&self) -> impl Iterator<Item = (NodeId, PolicyKind)> {
        let events = self.steps.iter().flat_map(|step| &step.events);
        events.filter_map(|event| match event {
            Event::Manage {
                request: Request::Replace { node, policy },
                ..
            } => Some((*node, *policy)),
            _ => None,
        })
    }

    /// The longest relative deadline that it brings.
    pub fn longest_deadline(&self) -> Span {
        let deadlines = self.constraints();
        let deadlines = deadlines.filter_map(|(_, c)| c.class.relative_deadline());
        deadlines.max().unwrap_or(Span::ZERO)
    }

    /// When the platform must enter for it at the latest; `None`: nothing is left, or it waits for
    /// threads, which end their jobs by entries anyway. O(1).
    #[inline]
    pub fn due(&self) -> Option<Instant> {
        match self.waits {
            true => self.until,
            false => self.steps.get(self.next.0).map(|step| step.at),
        }
    }

    /// Whether nothing is left of it. O(1).
    #[inline]
    pub fn is_over(&self) -> bool {
        self.next.0 >= self.steps.len()
    }

    /// Whether each entry may be the one that it waits for. O(1).
    #[inline]
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// What to enter now, if anything. To be asked after each entry until it has nothing, with the
    /// instant of that entry; the platform tells it the decision ([`Plan::hear`]). O(threads of the
    /// step) while it waits, O(events) with the first event, else O(1).
    #[inline]
    pub fn next<P: Policy>(&mut self, now: Instant, shard: &Shard<P>) -> Option<Event> {
        // While it waits each entry may be the one.
        if !self.waits && self.steps.get(self.next.0).is_none_or(|step| step.at > now) {
            return None;
        }
        self.take(now, shard)
    }

    /// The decision on the event that it gave last: nothing comes after a refused one.
    #[inline]
    pub fn hear(&mut self, decision: &Decision) {
        if decision.refused.is_some() {
            (self.next, self.waits) = ((self.steps.len(), 0), false);
        }
    }

    #[cold]
    fn take<P: Policy>(&mut self, now: Instant, shard: &Shard<P>) -> Option<Event> {
        let (at, event) = self.next;
        let step = self.steps.get(at)?;
        self.until = None;
        self.waits = event > 0 || !step.quiet.iter().all(|&thread| shard.is_quiet(thread));
        if event == 0 && self.waits {
            return None;
        }
        if event == 0 {
            let lent = Some(self.lent).filter(|lent| *lent > now);
            self.until = lent.or_else(|| shard.waits_for(&step.events));
            self.waits = self.until.is_some();
            if self.waits {
                return None;
            }
        }
        let mut refused = step.events.iter().filter(|event| !shard.permits(event));
        if event == 0
            && let Some(&refused) = refused.next()
        {
            return Some(refused);
        }
        // A thread that has ended meanwhile needs no home.
        let rest = step.events.iter().enumerate().skip(event);
        let mut rest = rest.filter(|(_, event)| !shard.is_over(event));
        let found = rest.next();
        let taken = found.map(|(_, event)| *event);
        self.lent = taken.map_or(self.lent, |event| shard.lends_until(&event).max(self.lent));
        let event = found.map_or(step.events.len(), |(place, _)| place);
        self.next = (at, event + 1);
        self.waits = event + 1 < step.events.len();
        if !self.waits {
            self.next = (at + 1, 0);
        }
        taken
    }
}
