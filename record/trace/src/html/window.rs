//! Which stretches of a run are worth drawing.
//!
//! The one around the first miss that missing time does not excuse, else around the first miss,
//! else the start; and, closer, the longest response that no missing time touched: there the
//! schedule itself can be read.

use punctual_kern::MissingCause;
use punctual_model::Instant;

use super::svg::clip;
use crate::behavior::{Behavior, JobRecord};
use crate::log::Log;
use crate::short::Count;
use crate::summary::Miss;

/// Most jobs that a stretch aims at.
const MAX_JOBS: usize = 140;
/// A closer look must be this many times closer.
const CLOSER: u64 = 4;

/// A stretch that is drawn, in ticks, and why this one.
pub(super) struct Window {
    pub(super) start: Instant,
    pub(super) end: Instant,
    pub(super) why: String,
}

/// The stretches to draw, the most important first.
pub(super) fn windows(
    log: &Log,
    behaviors: &[Behavior],
    misses: &[Miss],
    end: Instant,
) -> Vec<Window> {
    let mut windows = vec![choose(log, behaviors, misses, end)];
    let length = windows[0].end.since(windows[0].start).ticks();
    let close = closest(log, behaviors);
    windows.extend(close.filter(|w| w.end.since(w.start).ticks() < length / CLOSER));
    windows
}

/// Around the longest response, as a share of its deadline, that no missing time touched.
fn closest(log: &Log, behaviors: &[Behavior]) -> Option<Window> {
    let all = behaviors.iter().enumerate();
    let jobs = all.flat_map(|(cpu, b)| {
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
            clean.then_some((share, response, cpu, job, over))
        })
    });
    let (_, _, cpu, job, over) = jobs.max_by_key(|(share, response, ..)| (*share, *response))?;
    let around = over.since(job.arrival).ticks().max(8);
    let task = log.task_name(cpu, job.thread);
    Some(Window {
        start: Instant::from_ticks(job.arrival.ticks().saturating_sub(around / 8)),
        end: Instant::from_ticks(over.ticks().saturating_add(around / 8)),
        why: format!(
            "Closer, the longest response for its deadline that no missing time touched, job {} of {}",
            Count(job.index),
            clip(task, 60)
        ),
    })
}

/// The job of a miss, and its CPU.
fn find<'a>(log: &Log, behaviors: &'a [Behavior], miss: &Miss) -> Option<(usize, &'a JobRecord)> {
    let cpu = log.cpus.iter().position(|cpu| cpu.name == miss.cpu)?;
    let is_it = |job: &&JobRecord| {
        let arrival = log.ns(job.arrival.ticks());
        (job.index, arrival) == (miss.job, miss.release_ns)
            && log.task_of(cpu, job.thread) == miss.task_index
    };
    let job = behaviors.get(cpu)?.jobs.iter().find(is_it)?;
    Some((cpu, job))
}

fn choose(log: &Log, behaviors: &[Behavior], misses: &[Miss], end: Instant) -> Window {
    let first = misses
        .iter()
        .min_by_key(|miss| (miss.excused, miss.release_ns));
    let job = first.and_then(|miss| find(log, behaviors, miss));
    let Some((cpu, job)) = job else {
        let length = length_from(log, behaviors, Instant::ZERO, end);
        return Window {
            start: Instant::ZERO,
            end: Instant::from_ticks(length),
            why: "The start of the run".into(),
        };
    };
    let (arrival, excused) = (job.arrival, first.is_some_and(|miss| miss.excused));
    let length = length_from(log, behaviors, arrival, end);
    let over = job.ended.unwrap_or(end).max(job.absolute_deadline);
    // A response somewhat longer than the window is shown whole.
    let around = over.since(arrival).ticks();
    let length = length.max((around + around / 4).min(length.saturating_mul(CLOSER)));
    let spare = length.saturating_sub(around);
    let start = arrival.ticks().saturating_sub((spare / 2).max(length / 10));
    let task = log.task_name(cpu, job.thread);
    let which = if excused {
        "first miss"
    } else {
        "first miss that is not excused"
    };
    Window {
        start: Instant::from_ticks(start),
        end: Instant::from_ticks(start.saturating_add(length)),
        why: format!(
            "Around the {which}, job {} of {}",
            Count(job.index),
            clip(task, 60)
        ),
    }
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
