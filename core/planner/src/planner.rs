//! The planner: one segment after the other, and back where one would be late

use alloc::vec::Vec;

use core::cmp::Reverse;

use punctual_model::{Instant, Mode, Ticks, Unit, Work};

use crate::{Available, Capacities, Late, Locality, Location, Refusal, Search, Segments, Use, Why};

/// When and where a segment executes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement<U: Unit = Ticks> {
    /// The CPU, by number.
    pub cpu: usize,
    /// It starts then at the latest.
    pub start: Instant<U>,
    /// It has ended by then: the start and the wcet.
    pub end: Instant<U>,
}

/// A segment in the window: its value, its rank by effective deadline, its earliest start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Candidate<U: Unit> {
    /// It switches to another process, and that counts.
    switches: bool,
    value: Instant<U>,
    rank: usize,
    start: Instant<U>,
    end: Instant<U>,
    /// `None`: the one of those that are free by then.
    cpu: Option<usize>,
}

impl<U: Unit> Candidate<U> {
    /// The least goes first; no two of a window have the same.
    #[inline]
    fn order(&self) -> (bool, Instant<U>, usize) {
        (self.switches, self.value, self.rank)
    }
}

/// A placement that may be taken back, and how much had been noted for that before.
#[derive(Clone, Copy, Debug)]
struct Vertex<U: Unit> {
    choice: Candidate<U>,
    notes: usize,
    /// The process that its CPU executed before.
    process: Option<u32>,
}

/// Where the times of one kind begin in [`Planner::times`]: of CPUs at 0, then those.
#[derive(Clone, Copy, Debug)]
struct Base {
    shared: usize,
    exclusive: usize,
    ready: usize,
}

/// The planner with its room; nothing is allocated after [`Planner::new`].
#[derive(Clone, Debug)]
pub struct Planner<U: Unit = Ticks> {
    capacities: Capacities,
    base: Base,
    /// By segment: its deadline, or an earlier one for its successors.
    effective: Vec<Instant<U>>,
    /// Segments in order of their effective deadlines.
    by_deadline: Vec<usize>,
    /// By segment: where it stands there.
    rank: Vec<usize>,
    /// By segment: predecessors that are not placed.
    waits: Vec<u32>,
    /// Ranks of the segments that are not placed and wait for nobody, ascending.
    eligible: Vec<usize>,
    /// From when on: CPUs, resources for shared and for exclusive use, segments.
    times: Vec<Instant<U>>,
    /// By CPU: the process of the segment placed last.
    processes: Vec<Option<u32>>,
    /// Former values of those, in order of the changes.
    notes: Vec<(usize, Instant<U>)>,
    vertices: Vec<Vertex<U>>,
    placements: Vec<Placement<U>>,
    late: Option<Late<U>>,
    complete: bool,
    evaluations: u64,
    backtracks: u64,
}

impl<U: Unit> Planner<U> {
    /// A planner with room for so much.
    pub fn new(capacities: Capacities) -> Planner<U> {
        let (n, cpus, resources) = (
            capacities.segments,
            capacities.cpus.max(1),
            capacities.resources,
        );
        let base = Base {
            shared: cpus,
            exclusive: cpus + resources,
            ready: cpus + 2 * resources,
        };
        Planner {
            capacities,
            base,
            effective: Vec::with_capacity(n),
            by_deadline: Vec::with_capacity(n),
            rank: Vec::with_capacity(n),
            waits: Vec::with_capacity(n),
            eligible: Vec::with_capacity(n),
            times: Vec::with_capacity(base.ready + n),
            processes: Vec::with_capacity(cpus),
            notes: Vec::with_capacity(n + 2 * capacities.uses + capacities.orders),
            vertices: Vec::with_capacity(n),
            placements: Vec::with_capacity(n),
            late: None,
            complete: true,
            evaluations: 0,
            backtracks: 0,
        }
    }

    /// A place for each segment, by number, or the reason why there is none.
    ///
    /// O(n log n) for n segments, and the evaluations of the search: each takes O(CPUs + uses), and
    /// each placement O(n) words moved.
    ///
    /// # Errors
    /// [`Refusal`]: no plan was found, time was too short, or there is no room.
    pub fn plan(
        &mut self,
        segments: &Segments<U>,
        available: &Available<U>,
        search: &Search,
    ) -> Result<&[Placement<U>], Refusal<U>> {
        self.plan_behind(segments, available, &[], search)
    }

    /// The same, where the first segments have their places already.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    pub(crate) fn plan_behind(
        &mut self,
        segments: &Segments<U>,
        available: &Available<U>,
        fixed: &[Option<Placement<U>>],
        search: &Search,
    ) -> Result<&[Placement<U>], Refusal<U>> {
        (self.late, self.complete) = (None, true);
        (self.evaluations, self.backtracks) = (0, 0);
        let sizes = [&available.cpus, &available.shared, &available.exclusive].map(Vec::len);
        let resources = self.capacities.resources;
        let is_for_this = sizes == [self.base.shared, resources, resources]
            && available.processes.len() == self.base.shared;
        if !is_for_this || !segments.fits(&self.capacities) {
            return Err(self.refusal(Why::TooLarge));
        }
        self.prepare(segments, available);
        let unplaced = self.fix(segments, fixed);
        match self.search(segments, unplaced, search) {
            Ok(()) => Ok(&self.placements),
            Err(why) => Err(self.refusal(why)),
        }
    }

    /// Segments looked at for the last plan.
    pub fn evaluations(&self) -> u64 {
        self.evaluations
    }

    /// Placements taken back for the last plan.
    pub fn backtracks(&self) -> u64 {
        self.backtracks
    }

    fn refusal(&self, why: Why) -> Refusal<U> {
        Refusal {
            why,
            late: self.late,
            evaluations: self.evaluations,
            backtracks: self.backtracks,
        }
    }

    /// Effective deadlines, their order, and the times at the root.
    fn prepare(&mut self, segments: &Segments<U>, available: &Available<U>) {
        let n = segments.len();
        self.effective.clear();
        let deadlines = segments.iter().map(|segment| segment.absolute_deadline);
        self.effective.extend(deadlines);
        // Segments stand behind their predecessors, so this goes from successors to those.
        for before in (0..n).rev() {
            for after in segments.successors(before) {
                let work = segments.least_wcet(after).as_span();
                let latest = self.effective[after].saturating_sub(work);
                self.effective[before] = self.effective[before].min(latest);
            }
        }
        self.by_deadline.clear();
        self.by_deadline.extend(0..n);
        let effective = &self.effective;
        self.by_deadline
            .sort_unstable_by_key(|&number| (effective[number], number));
        self.rank.clear();
        self.rank.resize(n, 0);
        for (rank, &number) in self.by_deadline.iter().enumerate() {
            self.rank[number] = rank;
        }
        self.waits.clear();
        self.waits
            .extend((0..n).map(|number| segments.predecessors(number)));
        self.times.clear();
        self.processes.clear();
        self.processes.extend_from_slice(&available.processes);
        self.times.extend_from_slice(&available.cpus);
        self.times.extend_from_slice(&available.shared);
        self.times.extend_from_slice(&available.exclusive);
        self.times
            .extend(segments.iter().map(|segment| segment.release));
        self.notes.clear();
        self.vertices.clear();
        let nowhere = Placement {
            cpu: 0,
            start: Instant::ZERO,
            end: Instant::ZERO,
        };
        self.placements.clear();
        self.placements.resize(n, nowhere);
    }

    /// Takes fixed placements over. The other segments are eligible if they wait for nobody. How
    /// many others there are.
    fn fix(&mut self, segments: &Segments<U>, fixed: &[Option<Placement<U>>]) -> usize {
        let place_of = |number: usize| fixed.get(number).copied().flatten();
        for number in 0..segments.len() {
            let Some(place) = place_of(number) else {
                continue;
            };
            self.placements[number] = place;
            if place.end >= self.times[place.cpu] {
                let location = segments.location(number);
                self.processes[place.cpu] = location.map(|location| location.process);
            }
            self.later(place.cpu, place.end);
            self.occupy(segments, number, place.end);
            for after in segments.successors(number) {
                self.waits[after] -= 1;
                self.later(self.base.ready + after, place.end);
            }
        }
        self.notes.clear();
        self.eligible.clear();
        let mut unplaced = 0;
        for (rank, &number) in self.by_deadline.iter().enumerate() {
            if place_of(number).is_none() {
                unplaced += 1;
                if self.waits[number] == 0 {
                    self.eligible.push(rank);
                }
            }
        }
        unplaced
    }

    fn search(
        &mut self,
        segments: &Segments<U>,
        unplaced: usize,
        search: &Search,
    ) -> Result<(), Why> {
        let mut tried = None;
        while self.vertices.len() < unplaced {
            if let Some(choice) = self.choose(segments, search, tried)? {
                self.place(segments, choice);
                tried = None;
                continue;
            }
            // The root's alternatives are used up: this is the end of the search.
            let Some(&last) = self.vertices.last() else {
                let complete = self.complete;
                return Err(Why::NoPlanFound { complete });
            };
            if self.backtracks == search.backtracks {
                return Err(Why::NoPlanFound { complete: false });
            }
            self.backtracks += 1;
            self.vertices.pop();
            self.take_back(segments, last);
            tried = Some(last.choice);
        }
        Ok(())
    }

    /// The next best segment in the window after the one tried; `None` when there is none, or one
    /// of the window could not be in time.
    fn choose(
        &mut self,
        segments: &Segments<U>,
        search: &Search,
        tried: Option<Candidate<U>>,
    ) -> Result<Option<Candidate<U>>, Why> {
        let window = search.window.max(1).min(self.eligible.len());
        if search.evaluations - self.evaluations < window as u64 {
            return Err(Why::OutOfTime);
        }
        // The loop changes nothing of the planner, so it reads the same once.
        let cpus = &self.times[..self.base.shared];
        let free = cpus.iter().min().copied().unwrap_or(Instant::MAX);
        let mut best: Option<Candidate<U>> = None;
        let (mut evaluations, mut everywhere, mut late) = (0, true, None);
        for &rank in &self.eligible[..window] {
            let candidate = self.evaluate(segments, search, (rank, free));
            evaluations += 1;
            // Where CPUs differ, not every choice of one is tried.
            everywhere &= candidate.cpu.is_none();
            // The end of one that would never end is its start.
            let deadline = self.effective[self.by_deadline[rank]];
            if candidate.end > deadline || candidate.end == candidate.start {
                late = Some(candidate);
                break;
            }
            let untried = tried.is_none_or(|tried| candidate.order() > tried.order());
            if untried && best.is_none_or(|best| candidate.order() < best.order()) {
                best = Some(candidate);
            }
        }
        self.evaluations += evaluations;
        self.complete &= everywhere;
        if let Some(candidate) = late {
            self.note_late(candidate);
            return Ok(None);
        }
        self.complete &= window == self.eligible.len();
        Ok(best)
    }

    /// The first one that would be late is a reason for a refusal.
    #[cold]
    fn note_late(&mut self, candidate: Candidate<U>) {
        let segment = self.by_deadline[candidate.rank];
        self.late.get_or_insert(Late {
            segment,
            start: candidate.start,
            effective_deadline: self.effective[segment],
            behind: self.vertices.len(),
        });
    }

    /// An eligible segment, as early as it can start; the first CPU is `free` from then on.
    #[inline]
    fn evaluate(
        &self,
        segments: &Segments<U>,
        search: &Search,
        (rank, free): (usize, Instant<U>),
    ) -> Candidate<U> {
        let number = self.by_deadline[rank];
        let (segment, uses, location) = segments.row(number);
        let ready = self.ready(number, uses);
        let value = |start| {
            let deadline = self.effective[number];
            let heuristic = search.heuristic;
            heuristic.value(segment.release, start, segment.wcet, deadline)
        };
        if let Some(location) = location {
            let located = self.locate(segment.wcet, location, ready, search);
            let start = located.start;
            let (value, switches) = (value(start), located.switches);
            return Candidate {
                value,
                rank,
                switches,
                ..located
            };
        }
        let start = ready.max(free);
        Candidate {
            switches: false,
            value: value(start),
            rank,
            start,
            end: start.checked_add(segment.wcet.as_span()).unwrap_or(start),
            cpu: None,
        }
    }

    /// A segment with a location, on the best CPU for it. O(CPUs).
    #[inline(never)]
    fn locate(
        &self,
        wcet: Work<U>,
        location: &Location<U>,
        ready: Instant<U>,
        search: &Search,
    ) -> Candidate<U> {
        let home = location.home.filter(|&home| home < self.base.shared);
        let only = home.filter(|_| search.locality == Locality::OnlyLocal);
        let switches = |cpu: usize| self.processes[cpu] != Some(location.process);
        let cpus = only.map_or(0..self.base.shared, |home| home..home + 1);
        let best = cpus.min_by_key(|&cpu| {
            let start = ready.max(self.times[cpu]);
            let (away, freed) = (home != Some(cpu), Reverse(self.times[cpu]));
            (start, away, search.within_process && switches(cpu), freed)
        });
        let cpu = best.unwrap_or(0);
        let start = ready.max(self.times[cpu]);
        let work = match home {
            Some(home) if home != cpu => location.away,
            _ => wcet,
        };
        let whole = match switches(cpu) {
            true => work.saturating_add(location.switch),
            false => work,
        };
        Candidate {
            switches: search.within_process && switches(cpu),
            value: start,
            rank: 0,
            start,
            end: start.checked_add(whole.as_span()).unwrap_or(start),
            cpu: Some(cpu),
        }
    }

    /// The latest of: its release, its predecessors' ends, its resources.
    #[inline]
    fn ready(&self, number: usize, uses: &[Use]) -> Instant<U> {
        let own = self.times[self.base.ready + number];
        uses.iter().fold(own, |start, used| {
            let base = match used.mode {
                Mode::Shared => self.base.shared,
                Mode::Exclusive => self.base.exclusive,
            };
            start.max(self.times[base + used.resource])
        })
    }

    fn place(&mut self, segments: &Segments<U>, choice: Candidate<U>) {
        let number = self.by_deadline[choice.rank];
        let Candidate { start, end, .. } = choice;
        // Of the CPUs that are free by then the one that has been free for the shortest time.
        let free = (0..self.base.shared).filter(|&cpu| self.times[cpu] <= start);
        let shortest = || free.max_by_key(|&cpu| (self.times[cpu], usize::MAX - cpu));
        let cpu = choice.cpu.or_else(shortest).unwrap_or(0);
        let location = segments.location(number);
        let process = location.map(|location| location.process);
        self.vertices.push(Vertex {
            choice,
            notes: self.notes.len(),
            process: core::mem::replace(&mut self.processes[cpu], process),
        });
        self.placements[number] = Placement { cpu, start, end };
        self.later(cpu, end);
        self.occupy(segments, number, end);
        self.set_eligible(choice.rank, false);
        for after in segments.successors(number) {
            self.later(self.base.ready + after, end);
            self.waits[after] -= 1;
            if self.waits[after] == 0 {
                self.set_eligible(self.rank[after], true);
            }
        }
    }

    fn take_back(&mut self, segments: &Segments<U>, vertex: Vertex<U>) {
        let number = self.by_deadline[vertex.choice.rank];
        self.processes[self.placements[number].cpu] = vertex.process;
        for after in segments.successors(number) {
            if self.waits[after] == 0 {
                self.set_eligible(self.rank[after], false);
            }
            self.waits[after] += 1;
        }
        self.set_eligible(vertex.choice.rank, true);
        while self.notes.len() > vertex.notes {
            if let Some((index, former)) = self.notes.pop() {
                self.times[index] = former;
            }
        }
    }

    /// The resources of a segment are free for others from its end on.
    fn occupy(&mut self, segments: &Segments<U>, number: usize, end: Instant<U>) {
        for used in segments.uses(number) {
            self.later(self.base.exclusive + used.resource, end);
            if used.mode == Mode::Exclusive {
                self.later(self.base.shared + used.resource, end);
            }
        }
    }

    /// One of the times becomes `instant` if that is later; the former one is noted.
    fn later(&mut self, index: usize, instant: Instant<U>) {
        let time = &mut self.times[index];
        if instant > *time {
            self.notes.push((index, *time));
            *time = instant;
        }
    }

    fn set_eligible(&mut self, rank: usize, eligible: bool) {
        match (self.eligible.binary_search(&rank), eligible) {
            (Err(position), true) => self.eligible.insert(position, rank),
            (Ok(position), false) => {
                self.eligible.remove(position);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Book, Segment};
    use punctual_model::Span;

    /// Where all that is kept stands, and how much room it has.
    fn room(planner: &Planner) -> [(usize, usize); 9] {
        fn of<T>(vector: &Vec<T>) -> (usize, usize) {
            (vector.as_ptr().addr(), vector.capacity())
        }
        [
            of(&planner.effective),
            of(&planner.by_deadline),
            of(&planner.rank),
            of(&planner.waits),
            of(&planner.eligible),
            of(&planner.times),
            of(&planner.notes),
            of(&planner.vertices),
            of(&planner.placements),
        ]
    }

    #[test]
    fn nothing_is_allocated_after_construction() {
        // As full as can be: each segment uses everything alone and comes after all others.
        let n = 12;
        let capacities = Capacities {
            segments: n,
            orders: n * (n - 1) / 2,
            uses: 3 * n,
            cpus: 2,
            resources: 3,
        };
        let mut planner: Planner = Planner::new(capacities);
        let before = room(&planner);
        let mut segments = Segments::new(capacities);
        let mode = Mode::Exclusive;
        let uses = [0, 1, 2].map(|resource| Use { resource, mode });
        for number in 0..n {
            let segment = Segment {
                group: 0,
                release: Instant::ZERO,
                wcet: Work::from_ticks(1),
                absolute_deadline: Instant::from_ticks(n as u64),
            };
            assert_eq!(segments.push(segment, &uses), Ok(number));
            for earlier in 0..number {
                assert_eq!(segments.precede(earlier, number), Ok(()));
            }
        }
        let available = Available::from(Instant::ZERO, capacities);
        for search in [Search::default(), Search::complete()] {
            assert!(planner.plan(&segments, &available, &search).is_ok());
            assert_eq!(room(&planner), before);
        }
        let mut book = Book::new(capacities);
        let bound = Span::ZERO;
        let answer = book.request(Instant::ZERO, bound, &segments, &Search::default());
        assert!(answer.is_ok(), "{answer:?}");
    }
}
