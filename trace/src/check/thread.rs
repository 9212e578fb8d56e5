//! What the changes so far say about one thread.

use std::collections::VecDeque;

use punctual_kern::Constraint;
use punctual_model::{Class, Instant, Span, ThreadId};

/// A released job that is not over.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenJob {
    pub(super) index: u64,
    pub(super) arrival: Instant,
    pub(super) deadline: Instant,
}

/// The job that a thread is working on.
#[derive(Clone, Copy, Debug)]
pub(super) struct CurrentJob {
    pub(super) job: OpenJob,
    /// By which EDF orders it: between these two (equal unless it lives on a later allotment).
    pub(super) urgency: (Instant, Instant),
    pub(super) received: u64,
    pub(super) started: bool,
    /// Its guarantee is settled; a reservation or a former `once` goes on.
    pub(super) settled: bool,
}

/// One thread of the shard.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) id: ThreadId,
    pub(super) constraint: Constraint,
    /// A committed change, not yet in force.
    pub(super) change: Option<Constraint>,
    pub(super) dead: bool,
    pub(super) ready: bool,
    pub(super) blocked: bool,
    pub(super) throttled: bool,
    /// Below all real-time work.
    pub(super) background: bool,
    /// In a non-preemptive section; it counts from its first executed tick on.
    pub(super) in_section: bool,
    pub(super) open: VecDeque<OpenJob>,
    pub(super) current: Option<CurrentJob>,

    // Releases. The arrival of `first_index` is `first`; unknown after a change.
    pub(super) first: Option<Instant>,
    pub(super) first_index: u64,
    pub(super) next_index: u64,
    pub(super) last_arrival: Option<Instant>,
    /// Arrivals fed by the platform that are not released yet.
    pub(super) fed: u64,

    // Budget, in ticks.
    pub(super) budget: u64,
    pub(super) debt: u64,
    pub(super) allotments: u64,
}

impl Thread {
    /// A thread that comes into being at `from`.
    pub(super) fn new(id: ThreadId, constraint: Constraint, from: Instant) -> Thread {
        Thread {
            id,
            constraint,
            change: None,
            dead: false,
            ready: false,
            blocked: false,
            throttled: false,
            background: matches!(constraint.class, Class::Aperiodic),
            in_section: false,
            open: VecDeque::new(),
            current: None,
            first: Some(from.saturating_add(constraint.phase)),
            first_index: 0,
            next_index: 0,
            last_arrival: None,
            fed: 0,
            budget: 0,
            debt: 0,
            allotments: 0,
        }
    }

    /// Whether the core releases its jobs by itself.
    pub(super) fn is_clocked(&self) -> bool {
        !self.constraint.fed && !matches!(self.constraint.class, Class::Sporadic { .. })
    }

    /// Whether it executes on a budget.
    pub(super) fn is_budgeted(&self) -> bool {
        !self.background
    }

    /// Work of one allotment, in ticks.
    pub(super) fn allotment(&self) -> u64 {
        self.constraint.class.budget().unwrap_or_default().ticks()
    }

    /// Where job `index` arrives by the clock; `None` when unknown, or never.
    pub(super) fn arrival_of(&self, index: u64) -> Option<Instant> {
        let nth = index.checked_sub(self.first_index)?;
        let first = self.first?;
        match self.constraint.class.min_separation() {
            Some(period) => first.checked_add(Span::from_ticks(period.ticks().checked_mul(nth)?)),
            None => (nth == 0).then_some(first),
        }
    }

    /// How many releases could have come up to `now`; `None`: as many as were fed, or unknown.
    pub(super) fn opportunities(&self, now: Instant) -> Option<u64> {
        if self.constraint.fed {
            return None;
        }
        let first = match self.constraint.class {
            Class::Sporadic { .. } => self.last_arrival.and(self.first)?,
            _ => self.first?,
        };
        let since = now.checked_since(first)?;
        let separation = self.constraint.class.min_separation();
        let count = separation.map_or(0, |s| since.ticks() / s.ticks().max(1));
        Some(count + 1)
    }

    /// The deadline of the latest release that could have come up to `now`.
    pub(super) fn latest_deadline(&self, now: Instant) -> Instant {
        match self.constraint.class.relative_deadline() {
            Some(deadline) => now.saturating_add(deadline),
            None => Instant::MAX,
        }
    }
}
