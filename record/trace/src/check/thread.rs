//! What the changes so far say about one thread.

use std::collections::VecDeque;

use punctual_kern::{Constraint, Event};
use punctual_model::{Class, Instant, Mode, Span, ThreadId};

use super::locks::Standing;
use super::order::Attributes;

/// A released job that is not over.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenJob {
    pub(super) index: u64,
    pub(super) arrival: Instant,
    pub(super) deadline: Instant,
    /// The entry that released it.
    pub(super) released: Instant,
    /// The allotment that its release grants: the thread's first, second, ...
    pub(super) allotment: u64,
}

/// The job that a thread is working on.
#[derive(Clone, Copy, Debug)]
pub(super) struct CurrentJob {
    pub(super) job: OpenJob,
    /// By which EDF orders it: between these two (equal unless it lives on a later allotment).
    pub(super) urgency: (Instant, Instant),
    /// Among equals: its arrival, or that of the allotment it lives on.
    pub(super) place: (Instant, Instant),
    pub(super) received: u64,
    pub(super) started: bool,
    /// It was told to have exceeded its allotment.
    pub(super) overran: bool,
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
    /// Since when it has wanted to run; it had no budget, and what follows from that has not been
    /// told yet.
    pub(super) wants: Option<Instant>,
    pub(super) blocked: bool,
    pub(super) throttled: bool,
    /// When its wait ends by itself; when it would for the lock that it asked for last.
    pub(super) timeout: Option<Instant>,
    pub(super) lock_until: Option<Instant>,
    /// The scheduler that blocked it for itself.
    pub(super) blocker: Option<usize>,
    /// Below all real-time work.
    pub(super) background: bool,
    /// It counts below all real-time work, by its own or by lent urgency, which was this when it
    /// was queued.
    pub(super) low: bool,
    pub(super) standing: Option<Standing>,
    /// The lock that it asked for and has not got.
    pub(super) request: Option<(u32, Mode)>,
    /// In a non-preemptive section; it counts from its first executed tick on.
    pub(super) in_section: bool,
    pub(super) open: VecDeque<OpenJob>,
    pub(super) current: Option<CurrentJob>,

    // Releases. The arrival of `first_index` is `first`; unknown after a change.
    pub(super) first: Option<Instant>,
    pub(super) first_index: u64,
    pub(super) next_index: u64,
    pub(super) last_arrival: Option<Instant>,
    /// Of a policed stream: its next place, and the one that a throttled job waits for.
    place: Option<Instant>,
    awaited: Option<Instant>,
    /// Of a policed stream: the entry in which a release came behind a throttled job, and the
    /// instant from which on its allotment counts.
    released_behind: Option<(Instant, Instant)>,
    /// Arrivals fed by the platform that are not released yet.
    pub(super) fed: u64,

    // Budget, in ticks.
    pub(super) budget: u64,
    pub(super) debt: u64,
    /// Allotments granted by releases so far, and the last one taken.
    pub(super) granted: u64,
    pub(super) taken: u64,
    /// Arrival of the last release, become a job or not: between these two.
    last_seen: (Instant, Instant),
    /// A throttled job has seen a release of its stream, which is to grant it an allotment.
    seen: bool,
    /// The release by the clock that granted an allotment last.
    last_grant: Instant,
    /// The entry in which a place of a policed stream granted one last.
    granted_in: Instant,
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
            wants: None,
            blocked: false,
            throttled: false,
            timeout: None,
            lock_until: None,
            blocker: None,
            background: matches!(constraint.class, Class::Aperiodic),
            low: matches!(constraint.class, Class::Aperiodic),
            standing: None,
            request: None,
            in_section: false,
            open: VecDeque::new(),
            current: None,
            first: Some(from.saturating_add(constraint.phase)),
            first_index: 0,
            next_index: 0,
            last_arrival: None,
            place: None,
            awaited: None,
            released_behind: None,
            fed: 0,
            budget: 0,
            debt: 0,
            granted: 0,
            taken: 0,
            last_seen: (Instant::ZERO, Instant::ZERO),
            seen: false,
            last_grant: Instant::ZERO,
            granted_in: Instant::MAX,
        }
    }

    /// Whether the core releases its jobs by itself.
    pub(super) fn is_clocked(&self) -> bool {
        !self.constraint.fed && !matches!(self.constraint.class, Class::Sporadic { .. })
    }

    /// How the policy of its scheduler sees it.
    pub(super) fn attributes(&self) -> Attributes {
        let (release, deadline) = match &self.current {
            Some(current) => (current.place, current.urgency),
            None => ((Instant::ZERO, Instant::ZERO), (Instant::MAX, Instant::MAX)),
        };
        Attributes {
            priority: self.constraint.priority,
            deadline,
            release,
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

    /// Since when the job that starts in an entry of this event has wanted to run: since its
    /// arrival if the clock or its place in the stream has just released it, however late.
    pub(super) fn since(&self, now: Instant, event: Option<Event>) -> Instant {
        let current = self.current.as_ref().map(|current| current.job);
        match current.filter(|current| current.released == now) {
            Some(job) => self.since_arrival(job.arrival, now, event),
            None => now,
        }
    }

    /// From when on a release at `arrival` counts in the entry at `now`: then, or now if it is what
    /// this event brought.
    fn since_arrival(&self, arrival: Instant, now: Instant, event: Option<Event>) -> Instant {
        let brought = !self.is_clocked() && self.arrival_in(event) == Some(arrival);
        if brought { now } else { arrival.min(now) }
    }

    /// A release at `arrival` takes its place in the stream.
    fn take_place(&mut self, arrival: Instant) {
        let separation = self.constraint.class.min_separation();
        self.place = separation.map(|separation| arrival.saturating_add(separation));
    }

    /// In the entry at `now`, a release at `arrival` takes its place in the stream, also one that
    /// becomes no job. A throttled job gets its allotment: since `now` if it came with this event.
    pub(super) fn take_turn(&mut self, arrival: Instant, now: Instant, event: Option<Event>) {
        self.take_place(arrival);
        if self.throttled && !self.is_clocked() {
            self.released_behind = Some((now, self.since_arrival(arrival, now, event)));
        }
    }

    /// The arrival that is this event.
    fn arrival_in(&self, event: Option<Event>) -> Option<Instant> {
        match event {
            Some(Event::Arrive { thread, arrival }) if thread == self.id => Some(arrival),
            _ => None,
        }
    }

    /// Where a release of a policed stream stood that became no job in the entry at `now`; `None`:
    /// nowhere, it was one of too many that waited for their places.
    pub(super) fn place_of_dropped(
        &self,
        lost: bool,
        now: Instant,
        event: Option<Event>,
    ) -> Option<Instant> {
        let Some(arrival) = self.arrival_in(event).map(|arrival| arrival.min(now)) else {
            return self.place;
        };
        let waiting = self.fed > 1;
        match self.place {
            // It waited, and its place came before this event.
            Some(place) if waiting && place < now => Some(place),
            Some(place) if waiting || arrival < place => Some(place).filter(|_| !lost),
            _ => Some(arrival),
        }
    }

    /// It has no budget from `now` on, until its next place in the stream.
    pub(super) fn throttle(&mut self, now: Instant) {
        self.wants = None;
        self.throttled = true;
        self.seen = false;
        // What the same late entry has granted before counts at its own place.
        let earliest = if self.granted_in == now {
            Instant::ZERO
        } else {
            now
        };
        self.awaited = Some(self.place.unwrap_or(now).max(earliest));
    }

    /// The instant of the release that grants a budget at `now`: by the clock the first after the
    /// entry before, else the one that was waited for.
    /// It was due between `armed` and `now`.
    pub(super) fn granted_at(
        &mut self,
        (armed, now): (Instant, Instant),
        entered: Instant,
    ) -> Instant {
        if !self.throttled {
            // It takes what releases granted before.
            return now;
        }
        if !self.is_clocked() {
            let awaited = self.awaited.take().or(self.place);
            self.granted_in = now;
            let behind = self.released_behind.take();
            if let Some((_, since)) = behind.filter(|(entry, _)| *entry == now) {
                return since;
            }
            let at = awaited.unwrap_or(now).clamp(armed, now);
            self.take_place(at);
            // What several late entries serve may have been due before this wait began.
            self.last_seen = (armed, at);
            return at;
        }
        if std::mem::take(&mut self.seen) {
            self.last_grant = self.last_seen.0;
            return self.last_seen.0;
        }
        let (Some(first), Some(period)) = (self.first, self.constraint.class.min_separation())
        else {
            return now;
        };
        let period = period.ticks().max(1);
        let next_after = |after: Instant| {
            let passed = match after.checked_since(first) {
                Some(since) if after > Instant::ZERO => since.ticks() / period + 1,
                _ => 0,
            };
            first.saturating_add(Span::from_ticks(passed.saturating_mul(period)))
        };
        // No release comes any more, but the allotments do. One may go into debts at once, and the
        // next come in the same entry; and the entry before may have left some of what was due to
        // this one.
        let before = entered.min(armed).max(self.last_grant);
        let at = next_after(before.max(self.last_seen.0)).clamp(armed, now);
        self.last_grant = at;
        if at > self.last_seen.1 {
            let latest = next_after(entered).max(at).min(now);
            self.last_seen = (at, latest);
        }
        at
    }

    /// A release at `arrival` grants an allotment. What piles up behind a job that lost its
    /// guarantee lapses.
    pub(super) fn grant(&mut self, arrival: Instant) -> u64 {
        self.last_seen = (arrival, arrival);
        self.seen = self.throttled;
        self.granted += 1;
        if self.background && self.current.is_some() {
            self.taken = self.granted;
        }
        self.granted
    }

    /// A release became no job.
    pub(super) fn see(&mut self, arrival: Option<Instant>, now: Instant) {
        self.seen = self.throttled && arrival.is_some();
        self.last_seen = match arrival {
            Some(arrival) => (arrival, arrival),
            None => (self.last_seen.0, now),
        };
    }

    /// The thread turns to a job: its budget is the job's own allotment, or what the job before
    /// left of a later one.
    pub(super) fn take_allotment(&mut self, job: &OpenJob) {
        let renewed = matches!(self.constraint.class, Class::Reservation { .. });
        if self.taken < job.allotment || renewed {
            self.taken = job.allotment;
            self.budget = self.allotment();
            self.debt = 0;
        } else {
            self.postpone();
        }
    }

    /// A job on a later allotment is as urgent as the last release.
    pub(super) fn postpone(&mut self) {
        let deadline = |arrival: Instant| match self.constraint.class.relative_deadline() {
            Some(relative) => arrival.saturating_add(relative),
            None => Instant::MAX,
        };
        let (from, to) = (deadline(self.last_seen.0), deadline(self.last_seen.1));
        if let Some(current) = &mut self.current {
            let (a, b) = current.urgency;
            current.urgency = (a.max(from), b.max(to));
            let (a, b) = current.place;
            current.place = (a.max(self.last_seen.0), b.max(self.last_seen.1));
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
}
