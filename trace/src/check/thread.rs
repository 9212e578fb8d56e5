//! What the changes so far say about one thread.

use std::collections::VecDeque;

use punctual_kern::{Constraint, Event};
use punctual_model::{Class, Instant, Span, ThreadId};

use super::order::Attributes;

/// A released job that is not over.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenJob {
    pub(super) index: u64,
    pub(super) arrival: Instant,
    pub(super) deadline: Instant,
    /// The entry that released it.
    pub(super) released: Instant,
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
    /// Its scheduler, and the one in whose ready set it stands.
    pub(super) home: usize,
    pub(super) queue: usize,
    /// A committed change, not yet in force.
    pub(super) change: Option<Constraint>,
    pub(super) dead: bool,
    pub(super) ready: bool,
    pub(super) blocked: bool,
    pub(super) throttled: bool,
    /// When its wait ends by itself.
    pub(super) timeout: Option<Instant>,
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
    /// A thread of scheduler `home` that comes into being at an instant.
    pub(super) fn new(id: ThreadId, constraint: Constraint, place: (usize, Instant)) -> Thread {
        let (home, from) = place;
        Thread {
            id,
            constraint,
            home,
            queue: home,
            change: None,
            dead: false,
            ready: false,
            blocked: false,
            throttled: false,
            timeout: None,
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

    /// How the policy of its scheduler sees it.
    pub(super) fn attributes(&self) -> Attributes {
        let (release, deadline) = match &self.current {
            Some(current) => (current.job.arrival, current.urgency),
            None => (Instant::ZERO, (Instant::MAX, Instant::MAX)),
        };
        Attributes {
            priority: self.constraint.priority,
            deadline,
            release: (release, release),
            rank: self.constraint.order,
        }
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

    /// Since when the job that starts in an entry of this event has wanted to run: since its arrival
    /// if the clock has just released it, however late.
    pub(super) fn since(&self, now: Instant, event: Option<Event>) -> Instant {
        let arrived = matches!(event, Some(Event::Arrive { thread, .. }) if thread == self.id);
        let current = self.current.as_ref().map(|current| current.job);
        match current.filter(|current| current.released == now && !arrived) {
            Some(job) => job.arrival.min(now),
            None => now,
        }
    }

    /// The instant of the clocked release that is served at `now`: the first after the entry
    /// before.
    pub(super) fn release_before(&self, now: Instant, entered: Instant) -> Instant {
        let (Some(first), Some(period)) = (self.first, self.constraint.class.min_separation())
        else {
            return now;
        };
        let period = period.ticks().max(1);
        let passed = match entered.checked_since(first) {
            Some(since) if entered > Instant::ZERO => since.ticks() / period + 1,
            _ => 0,
        };
        let at = first.saturating_add(Span::from_ticks(passed.saturating_mul(period)));
        at.min(now)
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
