//! Event by event: arrivals, completions and slot ends, until a state comes again
//!
//! # Assumptions
//! 1. Those of [`crate::hyperperiod`]. At one instant completions come first, then arrivals, then
//!    the choice of the next job.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use punctual_model::{Instant, Ns, PolicyKind};

use super::lane::{Contestant, Lane, Shape};
use super::{MAX_SIMULATED_JOBS, SimulatedJob};
use crate::error::{Checked, in_range};
use crate::units::{Span, Work};

const WHAT: &str = "simulated time";

/// A job that is not done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pending {
    arrival: Span,
    remaining: Work,
    start: Option<Span>,
}

/// One task's progress.
#[derive(Clone, Debug, Default)]
struct Progress {
    arrived: u64,
    pending: VecDeque<Pending>,
}

/// Everything that the future depends on, relative to now: unfinished jobs and the holder of each
/// lane.
type State = (Vec<Vec<(Span, Work)>>, Vec<Option<usize>>);

struct Schedule<'a> {
    lanes: &'a [Lane],
    /// By lane and contestant.
    progress: Vec<Vec<Progress>>,
    /// By lane: the task that has started and lets no other run.
    holders: Vec<Option<usize>>,
    /// By task: lane and contestant.
    places: Vec<Option<(usize, usize)>>,
    now: Span,
    done: Vec<SimulatedJob>,
}

/// All jobs until two instants one round apart find the same state; `None`: more jobs than the
/// limit. O(events · tasks).
pub(crate) fn until_repeated(lanes: &[Lane], shape: &Shape) -> Checked<Option<Vec<SimulatedJob>>> {
    let mut schedule = Schedule::new(lanes);
    let mut before: Option<State> = None;
    let mut checkpoint = shape.settled;
    loop {
        if !schedule.advance(checkpoint)? {
            return Ok(None);
        }
        let state = schedule.state();
        if before.as_ref() == Some(&state) {
            return Ok(Some(schedule.done));
        }
        before = Some(state);
        checkpoint = in_range(checkpoint.checked_add(shape.round), WHAT)?;
    }
}

impl<'a> Schedule<'a> {
    fn new(lanes: &'a [Lane]) -> Schedule<'a> {
        let all = lanes.iter().enumerate().flat_map(|(lane, l)| {
            let contestants = l.contestants.iter().enumerate();
            contestants.map(move |(place, c)| (c.task.index(), (lane, place)))
        });
        let all: Vec<_> = all.collect();
        let tasks = all.iter().map(|&(task, _)| task + 1).max().unwrap_or(0);
        let mut places = vec![None; tasks];
        for (task, place) in all {
            places[task] = Some(place);
        }
        let fresh = |lane: &Lane| vec![Progress::default(); lane.contestants.len()];
        Schedule {
            lanes,
            progress: lanes.iter().map(fresh).collect(),
            holders: vec![None; lanes.len()],
            places,
            now: Span::ZERO,
            done: Vec::new(),
        }
    }

    /// Runs up to `until`, completions at that instant included, arrivals not.
    fn advance(&mut self, until: Span) -> Checked<bool> {
        loop {
            self.complete();
            if self.done.len() as u64 > MAX_SIMULATED_JOBS {
                return Ok(false);
            }
            if self.now >= until {
                return Ok(true);
            }
            self.arrive()?;
            let running: Vec<Option<usize>> = (0..self.lanes.len())
                .map(|lane| self.choose(lane))
                .collect();
            let next = self.next_event(&running, until)?;
            for (lane, place) in running.into_iter().enumerate() {
                let Some(place) = place else { continue };
                let ran = next.saturating_sub(self.now).as_work();
                if let Some(job) = self.progress[lane][place].pending.front_mut() {
                    job.start.get_or_insert(self.now);
                    job.remaining = job.remaining.saturating_sub(ran);
                }
                if self.lanes[lane].contestants[place].runs_through {
                    self.holders[lane] = Some(place);
                }
            }
            self.now = next;
        }
    }

    fn complete(&mut self) {
        for (lane, tasks) in self.progress.iter_mut().enumerate() {
            for (place, progress) in tasks.iter_mut().enumerate() {
                // A job without work is done when it would start; there are none.
                while progress
                    .pending
                    .front()
                    .is_some_and(|j| j.remaining.is_zero())
                {
                    let Some(job) = progress.pending.pop_front() else {
                        break;
                    };
                    if self.holders[lane] == Some(place) {
                        self.holders[lane] = None;
                    }
                    self.done.push(SimulatedJob {
                        task: self.lanes[lane].contestants[place].task,
                        arrival: instant(job.arrival),
                        start: instant(job.start.unwrap_or(self.now)),
                        completion: instant(self.now),
                    });
                }
            }
        }
    }

    fn arrive(&mut self) -> Checked<()> {
        for (lane, tasks) in self.lanes.iter().zip(&mut self.progress) {
            for (contestant, progress) in lane.contestants.iter().zip(tasks) {
                while next_arrival(contestant, progress.arrived)? == Some(self.now) {
                    progress.arrived += 1;
                    if progress.pending.len() as u64 >= contestant.places {
                        continue;
                    }
                    let (until, alone) = contestant.alone;
                    let is_alone = self.now < until;
                    progress.pending.push_back(Pending {
                        arrival: self.now,
                        remaining: if is_alone { alone } else { contestant.cost },
                        start: None,
                    });
                }
            }
        }
        Ok(())
    }

    /// The task that runs on this lane now.
    fn choose(&self, lane: usize) -> Option<usize> {
        let description = &self.lanes[lane];
        if let Some((frame, slots)) = &description.slots {
            let at = self.now % *frame;
            if !slots
                .iter()
                .any(|&(start, length)| (start..start.saturating_add(length)).contains(&at))
            {
                return None;
            }
        }
        if self.holders[lane].is_some() {
            return self.holders[lane];
        }
        let ready = (0..description.contestants.len()).filter(|&place| self.is_ready(lane, place));
        ready.min_by_key(|&place| self.rank(description, lane, place))
    }

    fn is_ready(&self, lane: usize, place: usize) -> bool {
        let Some(job) = self.progress[lane][place].pending.front() else {
            return false;
        };
        let contestant = &self.lanes[lane].contestants[place];
        contestant.waits_for.iter().all(|&(from, strictly)| {
            let Some(Some((lane, place))) = self.places.get(from.index()).copied() else {
                return true;
            };
            // Those of `from` that arrived up to the job's arrival and are not done.
            let unfinished = self.progress[lane][place].pending.front();
            unfinished.is_none_or(|other| {
                other.arrival > job.arrival || (strictly && other.arrival == job.arrival)
            })
        })
    }

    /// Smaller goes first.
    fn rank(&self, lane: &Lane, index: usize, place: usize) -> (Span, Reverse<u32>, Span, usize) {
        let contestant = &lane.contestants[place];
        let job = self.progress[index][place].pending.front();
        let arrival = job.map_or(Span::MAX, |j| j.arrival);
        let task = contestant.task.index();
        match lane.policy {
            PolicyKind::EarliestDeadlineFirst => {
                let deadline = arrival.saturating_add(contestant.deadline);
                (deadline, Reverse(0), arrival, task)
            }
            PolicyKind::FixedPriority { .. } => {
                (Span::ZERO, Reverse(contestant.priority), arrival, task)
            }
            PolicyKind::Fifo
            | PolicyKind::RoundRobin { .. }
            | PolicyKind::Tdm { .. }
            | PolicyKind::Planned => (Span::ZERO, Reverse(0), arrival, task),
        }
    }

    fn next_event(&self, running: &[Option<usize>], until: Span) -> Checked<Span> {
        let mut next = until;
        for (index, lane) in self.lanes.iter().enumerate() {
            for (contestant, progress) in lane.contestants.iter().zip(&self.progress[index]) {
                if let Some(at) = next_arrival(contestant, progress.arrived)? {
                    next = next.min(at);
                }
            }
            if let Some(place) = running[index]
                && let Some(job) = self.progress[index][place].pending.front()
            {
                next = next.min(in_range(
                    self.now.checked_add(job.remaining.as_span()),
                    WHAT,
                )?);
            }
            if let Some((frame, slots)) = &lane.slots {
                let at = self.now % *frame;
                let borders = slots
                    .iter()
                    .flat_map(|&(start, length)| [start, start.saturating_add(length)]);
                let ahead = borders.filter(|&border| border > at).chain([*frame]).min();
                let border =
                    ahead.and_then(|border| self.now.checked_add(border.saturating_sub(at)));
                next = next.min(in_range(border, WHAT)?);
            }
        }
        Ok(next)
    }

    fn state(&self) -> State {
        let job = |j: &Pending| (self.now.saturating_sub(j.arrival), j.remaining);
        let tasks = self.progress.iter().flatten();
        let pending = tasks.map(|p| p.pending.iter().map(job).collect()).collect();
        (pending, self.holders.clone())
    }
}

fn instant(since: Span) -> Instant<Ns> {
    Instant::from_ns(since.as_ns())
}

/// The arrival after the first `arrived` ones.
fn next_arrival(contestant: &Contestant, arrived: u64) -> Checked<Option<Span>> {
    let since = match contestant.period {
        None if arrived > 0 => return Ok(None),
        None => Some(Span::ZERO),
        Some(period) => period.checked_mul(arrived),
    };
    let at = since.and_then(|since| since.checked_add(contestant.first));
    in_range(at, WHAT).map(Some)
}
