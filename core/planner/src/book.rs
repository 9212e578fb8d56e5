//! The plan in force: a request changes it behind the cutoff line, or not at all

use alloc::vec::Vec;
use core::mem::swap;

use punctual_model::{Instant, Span, Ticks, Unit};

use crate::{Available, Capacities, Placement, Planner, Refusal, Search, Segments, Why};

/// A plan: segments, and the place of each.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Plan<U: Unit> {
    segments: Segments<U>,
    placements: Vec<Placement<U>>,
}

impl<U: Unit> Plan<U> {
    fn new(capacities: Capacities) -> Plan<U> {
        Plan {
            segments: Segments::new(capacities),
            placements: Vec::with_capacity(capacities.segments),
        }
    }
}

/// The answer to a request that was accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accepted<U: Unit = Ticks> {
    /// The new plan is in force from then on; segments that start before keep their places.
    pub cutoff: Instant<U>,
    /// The number of the request's first segment in the plan; the others follow.
    pub first: usize,
    /// Segments looked at.
    pub evaluations: u64,
}

/// The plan in force, and a planner for requests.
///
/// Nothing is allocated after [`Book::new`].
#[derive(Clone, Debug)]
pub struct Book<U: Unit = Ticks> {
    capacities: Capacities,
    plan: Plan<U>,
    /// The plan with the request, until it is accepted.
    next: Plan<U>,
    /// Segments of the next plan whose place stays, by number.
    frozen: Vec<Option<Placement<U>>>,
    /// By segment of the plan in force: its number in the next.
    renumbered: Vec<Option<usize>>,
    available: Available<U>,
    planner: Planner<U>,
    cutoff: Instant<U>,
}

impl<U: Unit> Book<U> {
    /// An empty plan.
    pub fn new(capacities: Capacities) -> Book<U> {
        let n = capacities.segments;
        Book {
            capacities,
            plan: Plan::new(capacities),
            next: Plan::new(capacities),
            frozen: Vec::with_capacity(n),
            renumbered: Vec::with_capacity(n),
            available: Available::from(Instant::ZERO, capacities),
            planner: Planner::new(capacities),
            cutoff: Instant::ZERO,
        }
    }

    /// The segments of the plan in force.
    pub fn segments(&self) -> &Segments<U> {
        &self.plan.segments
    }

    /// Their places, by number.
    pub fn placements(&self) -> &[Placement<U>] {
        &self.plan.placements
    }

    /// No segment that starts before is moved any more.
    pub fn cutoff(&self) -> Instant<U> {
        self.cutoff
    }

    /// Plans a group beside all that is guaranteed, at `now`, where planning takes at most `bound`.
    ///
    /// A request before the cutoff of the one before waits until then. Segments that have ended by
    /// the time at which planning begins are forgotten when the request is accepted.
    ///
    /// The cost is that of [`Planner::plan`] for the plan in force and the group together.
    ///
    /// # Errors
    /// [`Refusal`]; the plan in force is then what it was.
    pub fn request(
        &mut self,
        now: Instant<U>,
        bound: Span<U>,
        group: &Segments<U>,
        search: &Search,
    ) -> Result<Accepted<U>, Refusal<U>> {
        let begin = now.max(self.cutoff);
        self.cutoff = begin.saturating_add(bound);
        let Some(first) = self.assemble(begin, group) else {
            return Err(Refusal {
                why: Why::TooLarge,
                late: None,
                evaluations: 0,
                backtracks: 0,
            });
        };
        self.available.reset(self.cutoff);
        let placements =
            self.planner
                .plan_behind(&self.next.segments, &self.available, &self.frozen, search)?;
        self.next.placements.clear();
        self.next.placements.extend_from_slice(placements);
        swap(&mut self.plan, &mut self.next);
        Ok(Accepted {
            cutoff: self.cutoff,
            first,
            evaluations: self.planner.evaluations(),
        })
    }

    /// The next plan's segments: the old ones that have not ended, then the group's. The number of
    /// the first of those; `None` without room.
    fn assemble(&mut self, begin: Instant<U>, group: &Segments<U>) -> Option<usize> {
        self.next.segments.clear();
        self.frozen.clear();
        self.renumbered.clear();
        for place in &self.plan.placements {
            let ended = place.end <= begin;
            let number = (!ended).then_some(self.frozen.len());
            self.renumbered.push(number);
            if !ended {
                let frozen = place.start < self.cutoff;
                self.frozen.push(frozen.then_some(*place));
            }
        }
        let first = self.frozen.len();
        if group.len() > self.capacities.segments - first {
            return None;
        }
        let old = |number: usize| self.renumbered[number];
        let next = &mut self.next.segments;
        next.add(&self.plan.segments, old).ok()?;
        next.add(group, |number| Some(first + number)).ok()?;
        Some(first)
    }
}
