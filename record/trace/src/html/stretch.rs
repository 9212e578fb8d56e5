//! Which stretches of a run are drawn in detail.
//!
//! A short run is drawn whole. Of a longer one the page draws, in this order and as long as there
//! is room: the first miss that missing time does not excuse, else the first miss; the start; the
//! longest response that no missing time touched; each further miss of the list.

use punctual_kern::MissingCause;
use punctual_model::Instant;

use super::svg::clip;
use crate::behavior::{Behavior, JobRecord};
use crate::log::Log;
use crate::short::Count;
use crate::slots;
use crate::summary::Miss;

/// Most jobs in the first window.
const MAX_JOBS: usize = 140;
/// A response is shown whole if it is at most so many times as long as the window would be.
const LONGER: u64 = 8;
/// Most shapes in all stretches together, about.
pub(super) const MAX_SHAPES: usize = 6_000;
/// Most stretches.
const MAX_STRETCHES: usize = 64;
/// Shapes that a job takes beside its executions: release, deadline, pending.
const SHAPES_PER_JOB: usize = 3;

/// A part of the run, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stretch {
    pub(super) start: Instant,
    pub(super) end: Instant,
}

impl Stretch {
    fn around(from: Instant, to: Instant, margin: u64) -> Stretch {
        Stretch {
            start: Instant::from_ticks(from.ticks().saturating_sub(margin)),
            end: Instant::from_ticks(to.ticks().saturating_add(margin)),
        }
    }

    pub(super) fn ticks(&self) -> u64 {
        self.end.since(self.start).ticks()
    }

    /// Whether the two have an instant in common, or meet.
    fn touches(&self, other: &Stretch) -> bool {
        self.start <= other.end && other.start <= self.end
    }
}

/// The drawn parts of a run.
pub(super) struct Drawn {
    /// In order of time, apart from each other.
    pub(super) stretches: Vec<Stretch>,
    /// The part that the reader sees first.
    pub(super) window: Stretch,
    /// Why this.
    pub(super) why: String,
}

/// The stretches to draw of a run that ended at `end`. O(misses · (log jobs + stretches)).
pub(super) fn drawn(log: &Log, behaviors: &[Behavior], misses: &[&Spot], end: Instant) -> Drawn {
    let (window, why) = choose(log, behaviors, misses, end);
    let whole = Stretch {
        start: Instant::ZERO,
        end,
    };
    if cost(log, behaviors, &whole) <= MAX_SHAPES {
        let stretches = vec![whole];
        return Drawn {
            stretches,
            window,
            why,
        };
    }
    let length = length_from(log, behaviors, Instant::ZERO, end);
    let first = Stretch {
        start: Instant::ZERO,
        end: Instant::from_ticks(length),
    };
    let longest = longest(behaviors);
    let around = misses.iter().map(|spot| spot.stretch);
    let wanted = [window, first].into_iter().chain(longest).chain(around);
    let mut stretches: Vec<Stretch> = Vec::new();
    for mut one in wanted {
        one.end = one.end.min(end);
        let (mut apart, met): (Vec<Stretch>, Vec<Stretch>) =
            stretches.iter().partition(|old| !old.touches(&one));
        one.start = met
            .iter()
            .map(|old| old.start)
            .fold(one.start, Instant::min);
        one.end = met.iter().map(|old| old.end).fold(one.end, Instant::max);
        apart.push(one);
        let shapes: usize = apart.iter().map(|part| cost(log, behaviors, part)).sum();
        // What the reader sees first is drawn, however much it is.
        if stretches.is_empty() || (shapes <= MAX_SHAPES && apart.len() <= MAX_STRETCHES) {
            stretches = apart;
        }
    }
    stretches.sort_by_key(|part| part.start);
    Drawn {
        stretches,
        window,
        why,
    }
}

/// About how many shapes a part of the run takes. O(log jobs).
fn cost(log: &Log, behaviors: &[Behavior], part: &Stretch) -> usize {
    let one = |b: &Behavior| {
        let jobs = b.jobs.partition_point(|j| j.released < part.end)
            - b.jobs.partition_point(|j| j.released < part.start);
        let gaps = b.missing.partition_point(|m| m.start < part.end)
            - b.missing.partition_point(|m| m.end <= part.start);
        let held = b.holds.partition_point(|h| h.end < part.end)
            - b.holds.partition_point(|h| h.end < part.start);
        let runs = b.segments_in(part.start, part.end).len();
        let budgets = b.budgets.partition_point(|l| l.at < part.end)
            - b.budgets.partition_point(|l| l.at < part.start);
        runs + SHAPES_PER_JOB * jobs + gaps + 2 * held + budgets
    };
    let slots = |cpu| usize::try_from(slots::count(cpu, part.ticks())).unwrap_or(usize::MAX);
    let all = behaviors
        .iter()
        .map(one)
        .chain(log.tables.cpus.iter().map(slots));
    all.fold(0, usize::saturating_add)
}

/// A listed miss, and where its job lies.
pub(super) struct Spot {
    /// Its place in the list.
    pub(super) number: usize,
    /// Its CPU, and its job there.
    pub(super) cpu: usize,
    pub(super) job: JobRecord,
    /// Missing time alone made it late.
    pub(super) excused: bool,
    /// From its arrival until it was over and due, with a margin.
    stretch: Stretch,
}

/// Where the jobs of these misses lie. O(misses · log jobs), and the jobs of one instant.
pub(super) fn spots(log: &Log, behaviors: &[Behavior], misses: &[Miss]) -> Vec<Spot> {
    let find = |(number, miss): (usize, &Miss)| {
        let cpu = log.cpus.iter().position(|cpu| cpu.name == miss.cpu)?;
        let b = behaviors.get(cpu)?;
        let is_it = |job: &&JobRecord| {
            let arrival = log.ns(job.arrival.ticks());
            (job.index, arrival) == (miss.job, miss.release_ns)
                && log.task_of(cpu, job.thread) == miss.task_index
        };
        // A job is never released before it arrives.
        let first = b
            .jobs
            .partition_point(|j| log.ns(j.released.ticks()) < miss.release_ns);
        let job = b.jobs[first..].iter().find(is_it)?;
        let over = job.ended.unwrap_or(b.end).max(job.absolute_deadline);
        let margin = over.since(job.arrival).ticks() / 4;
        Some(Spot {
            number,
            cpu,
            job: *job,
            excused: miss.excused,
            stretch: Stretch::around(job.arrival, over, margin),
        })
    };
    misses.iter().enumerate().filter_map(find).collect()
}

/// Around the longest response, as a share of its deadline, that no missing time touched: there
/// the schedule itself can be read.
fn longest(behaviors: &[Behavior]) -> Option<Stretch> {
    let jobs = behaviors.iter().flat_map(|b| {
        let timed = b
            .jobs
            .iter()
            .filter(|j| j.absolute_deadline != Instant::MAX);
        timed.filter_map(move |job| {
            let over = job.ended?;
            let causes = [MissingCause::Stolen, MissingCause::GivenBack];
            let touched = causes.map(|c| b.missing_during(job.arrival, over, c));
            let response = u128::from(job.response_time()?.ticks());
            let deadline = job.absolute_deadline.since(job.arrival).ticks();
            let share = response * 1_000 / u128::from(deadline.max(1));
            let clean = touched.iter().all(|span| span.is_zero());
            clean.then_some((share, response, job.arrival, over))
        })
    });
    let (_, _, arrival, over) = jobs.max_by_key(|(share, response, ..)| (*share, *response))?;
    let margin = over.since(arrival).ticks() / 8;
    Some(Stretch::around(arrival, over, margin.max(1)))
}

/// The part that the reader sees first, and why.
fn choose(log: &Log, behaviors: &[Behavior], misses: &[&Spot], end: Instant) -> (Stretch, String) {
    let first = misses
        .iter()
        .min_by_key(|spot| (spot.excused, spot.job.arrival));
    let Some(spot) = first else {
        let length = length_from(log, behaviors, Instant::ZERO, end);
        let window = Stretch {
            start: Instant::ZERO,
            end: Instant::from_ticks(length),
        };
        return (window, "the start of the run".into());
    };
    let job = &spot.job;
    let length = length_from(log, behaviors, job.arrival, end);
    let over = job.ended.unwrap_or(end).max(job.absolute_deadline);
    // A response somewhat longer than the window is shown whole.
    let around = over.since(job.arrival).ticks();
    let length = length.max((around + around / 4).min(length.saturating_mul(LONGER)));
    let spare = length.saturating_sub(around);
    let start = job
        .arrival
        .ticks()
        .saturating_sub((spare / 2).max(length / 10));
    let window = Stretch {
        start: Instant::from_ticks(start),
        end: Instant::from_ticks(start.saturating_add(length)).min(end.max(over)),
    };
    let which = if spot.excused {
        "the first miss"
    } else {
        "the first miss that is not excused"
    };
    let task = clip(log.task_name(spot.cpu, job.thread), 60);
    (
        window,
        format!("{which}, job {} of {task}", Count(job.index)),
    )
}

/// A length of window that shows the slowest task twice, unless that is too much to see.
fn length_from(log: &Log, behaviors: &[Behavior], from: Instant, end: Instant) -> u64 {
    let threads = log.tables.cpus.iter().flat_map(|cpu| &cpu.threads);
    let periods = threads.filter_map(|(_, c)| c.class.min_separation());
    let longest = periods.map(|p| p.ticks()).max().unwrap_or(end.ticks());
    let mut length = longest.saturating_mul(2).clamp(1, end.ticks().max(1));
    loop {
        let to = Instant::from_ticks(from.ticks().saturating_add(length));
        let inside = |b: &Behavior| {
            let first = b.jobs.partition_point(|j| j.released < from);
            b.jobs.partition_point(|j| j.released < to) - first
        };
        if behaviors.iter().map(inside).sum::<usize>() <= MAX_JOBS || length < 1_000 {
            return length;
        }
        length = length / 4 * 3;
    }
}
