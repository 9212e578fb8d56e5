//! The plan in force: a request changes it behind the cutoff line, or not at all

use alloc::vec;
use alloc::vec::Vec;
use core::mem::swap;

use punctual_model::{Importance, Instant, Overload, Span, Ticks, Unit};

use crate::{
    Available, Capacities, Order, Pace, Placement, Planner, Refusal, Search, Segments, Why,
};

/// A plan: segments, and the place of each.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Plan<U: Unit> {
    segments: Segments<U>,
    placements: Vec<Placement<U>>,
    /// By segment: one that comes before it has begun.
    entered: Vec<bool>,
}

impl<U: Unit> Plan<U> {
    fn new(capacities: Capacities) -> Plan<U> {
        Plan {
            segments: Segments::new(capacities),
            placements: Vec::with_capacity(capacities.segments),
            entered: Vec::with_capacity(capacities.segments),
        }
    }
}

/// A request, beside its segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ask<U: Unit = Ticks> {
    /// When.
    pub now: Instant<U>,
    /// The most that planning takes: the distance of the cutoff line.
    pub bound: Span<U>,
    /// The most effort.
    pub search: Search,
    /// How fast this machine plans: the window is as wide as `bound` allows. `None`: it does not
    /// count.
    pub pace: Option<Pace<U>>,
    /// The answer is there so long after `now`, or the request is out of time. `None`: it waits
    /// until the requests before have been answered.
    pub max_wait: Option<Span<U>>,
    /// If it does not fit.
    pub overload: Overload,
}

impl<U: Unit> Ask<U> {
    /// One that waits, and keeps what is guaranteed.
    pub fn new(now: Instant<U>, bound: Span<U>, search: Search) -> Ask<U> {
        Ask {
            now,
            bound,
            search,
            pace: None,
            max_wait: None,
            overload: Overload::Keep,
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
    /// Segments looked at, with those of attempts before others were removed.
    pub evaluations: u64,
    /// Placements taken back, with those of the same attempts.
    pub backtracks: u64,
    /// How many groups were removed ([`Book::removed`]).
    pub removed: usize,
}

/// How far a CPU is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Told<U: Unit> {
    /// Segments with a smaller number are done.
    done: u64,
    /// The last one that has started, and when.
    started: Option<(u64, Instant<U>)>,
}

/// The segments that a request meets and brings.
#[derive(Clone, Copy, Default, Debug)]
struct Load {
    unplaced: usize,
    /// They keep their places, and are sorted and taken over with the others.
    frozen: usize,
    /// They are looked at, and no more.
    gone: usize,
}

impl Load {
    /// The time for those that are not planned.
    fn kept<U: Unit>(&self, pace: &Pace<U>) -> Span<U> {
        pace.spent(self.frozen, self.gone as u64, 0)
    }

    /// The search for the others in the time that is left.
    fn search<U: Unit>(&self, pace: &Pace<U>, left: Span<U>, most: &Search) -> Option<Search> {
        let left = left.checked_sub(self.kept(pace))?;
        pace.search(self.unplaced, left, most)
    }
}

/// The plan in force, and a planner for requests.
///
/// Nothing is allocated after its construction.
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
    order: Order,
    /// By CPU: how many segments there were before those of the plan in force.
    base: Vec<u64>,
    /// By CPU, in a book that is told.
    told: Option<Vec<Told<U>>>,
    /// By family, of numbers below the capacity for segments: one of its segments is frozen or
    /// done.
    begun: Vec<bool>,
    /// By the same numbers: the importance of a family, filled before one is removed.
    worth: Vec<Importance>,
    /// Groups that the request takes the place of.
    removed: Vec<u32>,
}

impl<U: Unit> Book<U> {
    /// An empty plan, for a time in which each segment ends when the plan says.
    pub fn new(capacities: Capacities) -> Book<U> {
        let (n, cpus) = (capacities.segments, capacities.cpus.max(1));
        Book {
            capacities,
            plan: Plan::new(capacities),
            next: Plan::new(capacities),
            frozen: Vec::with_capacity(n),
            renumbered: Vec::with_capacity(n),
            available: Available::from(Instant::ZERO, capacities),
            planner: Planner::new(capacities),
            cutoff: Instant::ZERO,
            order: Order::new(capacities),
            base: vec![0; cpus],
            told: None,
            begun: vec![false; n],
            worth: vec![Importance(0); n],
            removed: Vec::with_capacity(n),
        }
    }

    /// The same for a plan that is executed: a segment has started when [`Book::started`] says so,
    /// and ended when [`Book::done`] does, earlier than planned or later.
    pub fn told(capacities: Capacities) -> Book<U> {
        let told = Told {
            done: 0,
            started: None,
        };
        Book {
            told: Some(vec![told; capacities.cpus.max(1)]),
            ..Book::new(capacities)
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

    /// Their needs before they start.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// The segments that a request which was refused was planned with, its own last, and the places
    /// of those that stay where they are. [`Refusal::late`] has their numbers.
    pub fn looked_at(&self) -> (&Segments<U>, &[Option<Placement<U>>]) {
        (&self.next.segments, &self.frozen)
    }

    /// No segment that starts before is moved any more.
    pub fn cutoff(&self) -> Instant<U> {
        self.cutoff
    }

    /// The groups that the last request removed when it was accepted.
    pub fn removed(&self) -> &[u32] {
        &self.removed
    }

    /// On a CPU, the segments with a number below `frontier` are done ([`Order::number`]). O(1).
    pub fn done(&mut self, cpu: usize, frontier: u64) {
        if let Some(told) = self.told.as_mut().and_then(|told| told.get_mut(cpu)) {
            told.done = frontier.max(told.done);
        }
    }

    /// On a CPU, the segment of this number has started. Earlier than planned, it keeps its place
    /// also where that is behind a cutoff, and is over earlier. O(1).
    pub fn started(&mut self, cpu: usize, number: u64, now: Instant<U>) {
        if let Some(told) = self.told.as_mut().and_then(|told| told.get_mut(cpu)) {
            told.started = Some((number, now));
        }
    }

    /// Plans a group beside all that is guaranteed, at `now`, where planning takes at most `bound`.
    ///
    /// # Errors
    /// As [`Book::ask`].
    pub fn request(
        &mut self,
        now: Instant<U>,
        bound: Span<U>,
        group: &Segments<U>,
        search: &Search,
    ) -> Result<Accepted<U>, Refusal<U>> {
        self.ask(&Ask::new(now, bound, *search), group, |_| false)
    }

    /// Plans a group beside all that is guaranteed. `dead` tells the groups that were killed: their
    /// segments behind the cutoff are taken out, but for those in whose place a handler cleans up.
    ///
    /// A request before the cutoff of the one before waits until then. Segments that have ended by
    /// the time at which planning begins are forgotten when the request is accepted.
    ///
    /// The cost is that of [`Planner::plan`] for the plan in force and the group together. With
    /// [`Overload::Shed`] it may be so for each group that is removed; the evaluations and the time
    /// of the search are those of all attempts.
    ///
    /// # Errors
    /// [`Refusal`]; the plan in force is then what it was.
    pub fn ask(
        &mut self,
        ask: &Ask<U>,
        group: &Segments<U>,
        dead: impl Fn(u32) -> bool,
    ) -> Result<Accepted<U>, Refusal<U>> {
        let begin = ask.now.max(self.cutoff);
        let answer = begin.saturating_add(ask.bound);
        let wait = answer.since(ask.now);
        if ask.max_wait.is_some_and(|most| wait > most) {
            return Err(refused(Why::OutOfTime));
        }
        self.cutoff = answer;
        self.removed.clear();
        let done = self.plan_with(ask, group, begin, dead);
        if done.is_err() {
            self.removed.clear();
        }
        done
    }

    /// Adds a part of a plan that was made before: segments whose places are known and that start
    /// behind all others of their CPUs. Nobody else is moved. O(n log n) in all segments.
    ///
    /// # Errors
    /// There is no room; the plan in force is then what it was.
    pub fn append(
        &mut self,
        now: Instant<U>,
        part: &Segments<U>,
        places: &[Placement<U>],
    ) -> Result<usize, Refusal<U>> {
        self.removed.clear();
        self.enter(now);
        let first = self.assemble(now, part, |_| false);
        let first = first.filter(|_| places.len() == part.len());
        let first = first.ok_or(refused(Why::TooLarge))?;
        self.next.placements.clear();
        for number in 0..self.plan.placements.len() {
            if self.renumbered[number].is_some() {
                self.next.placements.push(self.plan.placements[number]);
            }
        }
        self.next.placements.extend_from_slice(places);
        Ok(self.accept(first, (0, 0), now, part).first)
    }

    fn plan_with(
        &mut self,
        ask: &Ask<U>,
        group: &Segments<U>,
        begin: Instant<U>,
        dead: impl Fn(u32) -> bool,
    ) -> Result<Accepted<U>, Refusal<U>> {
        let (mut spent, mut back, mut left) = (0, 0, ask.bound);
        let mut within_process = ask.search.within_process;
        loop {
            // Others have no room to give before they have been looked at.
            let search = Search {
                evaluations: ask.search.evaluations.saturating_sub(spent),
                within_process,
                ..ask.search
            };
            let fits = |load: Load| match ask.pace {
                Some(pace) => load.search(&pace, left, &search),
                None => Some(search),
            };
            // No time is spent on what does not fit into it, not even to look at the plan.
            let _ = fits(self.least_load(group)).ok_or(refused(Why::OutOfTime))?;
            self.enter(begin);
            let load = self.load(begin, group, &dead);
            let search = fits(load).ok_or(refused(Why::OutOfTime))?;
            let first = self.assemble(begin, group, &dead);
            let first = first.ok_or(refused(Why::TooLarge));
            self.available.reset(self.cutoff);
            let planned = first.and_then(|first| {
                let (next, frozen) = (&self.next.segments, &self.frozen);
                let plan = self
                    .planner
                    .plan_behind(next, &self.available, frozen, &search);
                plan.map(|plan| {
                    self.next.placements.clear();
                    self.next.placements.extend_from_slice(plan);
                    first
                })
            });
            let (evaluations, backtracks) = match planned {
                Ok(_) => (self.planner.evaluations(), self.planner.backtracks()),
                Err(refusal) => (refusal.evaluations, refusal.backtracks),
            };
            spent += evaluations;
            back += backtracks;
            if let Some(pace) = ask.pace {
                let taken = pace.spent(load.unplaced, evaluations, backtracks);
                left = left.saturating_sub(load.kept(&pace).saturating_add(taken));
            }
            match planned {
                Ok(first) => return Ok(self.accept(first, (spent, back), begin, group)),
                // A guarantee is worth more than fast switches.
                Err(refusal) if within_process && refusal.why != Why::OutOfTime => {
                    within_process = false;
                }
                Err(refusal) => {
                    let keep = ask.overload == Overload::Keep || refusal.why == Why::OutOfTime;
                    if keep || !self.remove_one(group, begin, &dead) {
                        return Err(refusal);
                    }
                }
            }
        }
    }

    /// The next plan is in force.
    fn accept(
        &mut self,
        first: usize,
        (evaluations, backtracks): (u64, u64),
        begin: Instant<U>,
        group: &Segments<U>,
    ) -> Accepted<U> {
        for number in 0..self.plan.placements.len() {
            if self.has_ended(number, begin) {
                let base = &mut self.base[self.plan.placements[number].cpu];
                *base = self.order.number(number).saturating_add(1).max(*base);
            }
        }
        for number in 0..group.len() {
            if let Some(begun) = self.begun.get_mut(group.family(number) as usize) {
                *begun = false;
            }
        }
        swap(&mut self.plan, &mut self.next);
        let plan = &self.plan;
        self.order.set(&plan.segments, &plan.placements, &self.base);
        Accepted {
            cutoff: self.cutoff,
            first,
            evaluations,
            backtracks,
            removed: self.removed.len(),
        }
    }

    /// Whether a segment of the plan in force is over when planning begins.
    fn has_ended(&self, number: usize, begin: Instant<U>) -> bool {
        let place = self.plan.placements[number];
        match &self.told {
            Some(told) => self.order.number(number) < told[place.cpu].done,
            None => place.end <= begin,
        }
    }

    /// When a segment that has not ended has started, if it has.
    fn has_started(&self, number: usize) -> Option<Instant<U>> {
        let told = self.told.as_ref()?[self.plan.placements[number].cpu];
        let (last, at) = told.started?;
        (last == self.order.number(number)).then_some(at)
    }

    /// Whether the place of a segment stays: it starts before the cutoff, or has started.
    ///
    /// # Panics
    /// A number that is none.
    pub fn is_frozen(&self, number: usize) -> bool {
        self.plan.placements[number].start < self.cutoff || self.has_started(number).is_some()
    }

    /// Whether a segment that has not ended stays, and whether its place does.
    fn stays(&self, number: usize, dead: impl Fn(u32) -> bool) -> (bool, bool) {
        let segments = &self.plan.segments;
        let group = segments.segment(number).group;
        let frozen = self.is_frozen(number);
        let cleans = self.plan.entered[number] && !segments.cleanup(number).is_zero();
        let stays = frozen || !(dead(group) && !cleans || self.removed.contains(&group));
        (stays, frozen)
    }

    /// The least that a request may meet: all others are gone. O(1).
    fn least_load(&self, group: &Segments<U>) -> Load {
        Load {
            unplaced: group.len(),
            frozen: 0,
            gone: self.plan.placements.len(),
        }
    }

    /// The segments that it meets, by what is to be done with them. O(segments).
    fn load(&self, begin: Instant<U>, group: &Segments<U>, dead: impl Fn(u32) -> bool) -> Load {
        let mut load = self.least_load(group);
        for number in 0..self.plan.placements.len() {
            let (stays, frozen) = self.stays(number, &dead);
            if stays && !self.has_ended(number, begin) {
                load.gone -= 1;
                load.frozen += usize::from(frozen);
                load.unplaced += usize::from(!frozen);
            }
        }
        load
    }

    /// The next plan's segments: the old ones that have not ended, then the group's. The number of
    /// the first of those; `None` without room.
    fn assemble(
        &mut self,
        begin: Instant<U>,
        group: &Segments<U>,
        dead: impl Fn(u32) -> bool,
    ) -> Option<usize> {
        self.next.segments.clear();
        self.next.entered.clear();
        self.frozen.clear();
        self.renumbered.clear();
        for number in 0..self.plan.placements.len() {
            let (stays, frozen) = self.stays(number, &dead);
            let stays = stays && !self.has_ended(number, begin);
            self.renumbered.push(stays.then_some(self.frozen.len()));
            if stays {
                let place = self.plan.placements[number];
                self.frozen.push(frozen.then_some(place));
                self.next.entered.push(self.plan.entered[number]);
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
        self.next.entered.resize(first + group.len(), false);
        Some(first)
    }

    /// Notes which groups have begun, and behind which segments of theirs others have.
    fn enter(&mut self, begin: Instant<U>) {
        for number in 0..self.plan.placements.len() {
            if !self.is_frozen(number) && !self.has_ended(number, begin) {
                continue;
            }
            let place = &self.plan.placements[number];
            if let Some(at) = self.has_started(number).filter(|&at| at < place.start) {
                let length = place.end.since(place.start);
                let (start, end) = (at, at.saturating_add(length));
                self.plan.placements[number] = Placement {
                    start,
                    end,
                    ..*place
                };
            }
            let family = self.plan.segments.family(number);
            if let Some(begun) = self.begun.get_mut(family as usize) {
                *begun = true;
            }
            for after in self.plan.segments.successors(number) {
                self.plan.entered[after] = true;
            }
        }
    }

    /// Adds the least important family below the new group to those that are removed, if any is
    /// left that has not begun: a child that was planned with its parent goes with it. A family is
    /// as important as its most important group. O(segments).
    fn remove_one(
        &mut self,
        group: &Segments<U>,
        begin: Instant<U>,
        dead: impl Fn(u32) -> bool,
    ) -> bool {
        let own = (0..group.len()).map(|number| group.importance(number));
        let own = own.min().unwrap_or(Importance(0));
        let segments = &self.plan.segments;
        self.worth.fill(Importance(0));
        for number in 0..segments.len() {
            if let Some(worth) = self.worth.get_mut(segments.family(number) as usize) {
                *worth = segments.importance(number).max(*worth);
            }
        }
        // A family without a place is never removed.
        let worth = |number: usize| self.worth.get(segments.family(number) as usize);
        let candidates = (0..segments.len()).filter(|&number| {
            let family = segments.family(number);
            let begun = self.begun.get(family as usize).copied().unwrap_or(true);
            !begun
                && worth(number).is_some_and(|&worth| worth < own)
                && self.stays(number, &dead).0
                && !self.has_ended(number, begin)
        });
        let least = candidates.min_by_key(|&number| (worth(number), usize::MAX - number));
        let Some(least) = least else {
            return false;
        };
        for number in 0..segments.len() {
            let group = segments.segment(number).group;
            if segments.family(number) == segments.family(least) && !self.removed.contains(&group) {
                self.removed.push(group);
            }
        }
        true
    }
}

fn refused<U: Unit>(why: Why) -> Refusal<U> {
    Refusal {
        why,
        late: None,
        evaluations: 0,
        backtracks: 0,
    }
}
