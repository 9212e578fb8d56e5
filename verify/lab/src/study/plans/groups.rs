//! Groups that arrive one after the other, and the plan that they are admitted to (Spring, §5.3).
//!
//! # Assumptions
//! 1. The threads of a group execute one after the other, and so do the segments of a thread.
//! 2. Each group arrives again and again. The distances are drawn from an exponential distribution;
//!    their mean is a multiple of the group's work.
//! 3. A segment executes for its wcet, which is that of memory elsewhere: a home is for nothing but
//!    the memory. A switch costs nothing beside it.
//! 4. Planning takes no time.
//! 5. There are places enough for the instances of each thread.

use core::time::Duration;
use std::collections::BTreeMap;

use punctual_generate::Random;
use punctual_model::{Instant, Span, Work};
use punctual_planner::{Book, Capacities, Location, Search, Segment, Segments, Why};

use super::mistaken;
use crate::answers::real;

/// As in the paper's Fig. 3.
pub(super) const CPUS: usize = 3;

/// Groups of each workload.
pub(super) const GROUPS: u64 = 5;

/// More segments are in no plan; a run that needs more ends with a failure.
const CAPACITIES: Capacities = Capacities::new(4_096, CPUS, 0);

/// The largest group has five threads of eight segments.
const REQUEST: Capacities = Capacities::new(40, CPUS, 0);

/// A thread of a group: its process, that one's home, and microseconds of each segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Thread {
    pub(super) process: u32,
    pub(super) home: Option<usize>,
    pub(super) segments: Vec<u64>,
}

/// Threads that execute one after the other.
pub(super) type Group = Vec<Thread>;

/// How groups arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Arrivals {
    /// The mean distance, in tenths of the group's work.
    pub(super) load_tenths: u64,
    /// The relative deadline, in hundredths of the group's work.
    pub(super) multiplier_percent: u64,
    /// The time in which they arrive.
    pub(super) seconds: u64,
}

/// The results of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Counts {
    pub(super) requests: u64,
    pub(super) accepted: u64,
    /// From one segment to the next on the same CPU.
    pub(super) switches: u64,
    /// Those of them within a process.
    pub(super) fast: u64,
    pub(super) segments: u64,
    /// Segments that have executed at the home of their process.
    pub(super) at_home: u64,
}

fn work(group: &Group) -> u64 {
    group.iter().flat_map(|thread| &thread.segments).sum()
}

/// All arrivals, in order: when, and of which group.
fn arrivals(groups: &[Group], how: Arrivals, random: &mut Random) -> Vec<(u64, usize)> {
    let end = how.seconds * 1_000_000;
    let mut all = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let mean = real(work(group) * how.load_tenths) / 1e7;
        let mut now = 0;
        loop {
            let distance = Duration::from_secs_f64(mean * -(1.0 - random.unit()).ln());
            now += u64::try_from(distance.as_micros()).unwrap_or(end);
            if now >= end {
                break;
            }
            all.push((now, number));
        }
    }
    all.sort_unstable();
    all
}

/// The segments of a group that arrives now; the tags count on from `tag`.
fn request(
    group: &Group,
    (now, deadline): (u64, u64),
    (number, tag): (u32, u64),
) -> Result<Segments, String> {
    let mut segments = Segments::new(REQUEST);
    for thread in group {
        for wcet in &thread.segments {
            let wcet = Work::from_ticks(*wcet);
            let own = Segment {
                group: number,
                release: Instant::from_ticks(now),
                wcet,
                absolute_deadline: Instant::from_ticks(deadline),
            };
            let last = segments.push(own, &[]).map_err(mistaken)?;
            segments.set_tag(last, tag + last as u64);
            segments.set_location(
                last,
                Location {
                    process: thread.process,
                    home: thread.home,
                    away: wcet,
                    switch: Work::ZERO,
                },
            );
            if last > 0 {
                segments.precede(last - 1, last).map_err(mistaken)?;
            }
        }
    }
    Ok(segments)
}

/// Where a segment has executed: the CPU, its start, its process, its home.
type Executed = (usize, u64, u32, Option<usize>);

/// A run: groups arrive and are planned beside those that were accepted before.
pub(super) fn run(
    groups: &[Group],
    how: Arrivals,
    search: &Search,
    random: &mut Random,
) -> Result<Counts, String> {
    let mut book = Book::new(CAPACITIES);
    let mut executed: BTreeMap<u64, Executed> = BTreeMap::new();
    let (mut counts, mut tag) = (Counts::default(), 0);
    for (now, of) in arrivals(groups, how, random) {
        let deadline = now + work(&groups[of]) * how.multiplier_percent / 100;
        let number = u32::try_from(counts.requests).unwrap_or(u32::MAX);
        let segments = request(&groups[of], (now, deadline), (number, tag))?;
        counts.requests += 1;
        tag += segments.len() as u64;
        match book.request(Instant::from_ticks(now), Span::ZERO, &segments, search) {
            Ok(_) => counts.accepted += 1,
            Err(refusal) if refusal.why == Why::TooLarge => return Err(refusal.to_string()),
            Err(_) => continue,
        }
        // A later plan moves what has not begun; what has begun stays, and is what was executed.
        for (at, place) in book.placements().iter().enumerate() {
            let planned = book.segments();
            let location = planned.location(at).ok_or("a segment without a process")?;
            let what = (
                place.cpu,
                place.start.ticks(),
                location.process,
                location.home,
            );
            let _ = executed.insert(planned.tag(at), what);
        }
    }
    Ok(count(counts, executed.into_values().collect()))
}

fn count(mut counts: Counts, mut executed: Vec<Executed>) -> Counts {
    executed.sort_unstable();
    counts.segments = executed.len() as u64;
    let at_home = executed
        .iter()
        .filter(|(cpu, .., home)| *home == Some(*cpu));
    counts.at_home = at_home.count() as u64;
    for pair in executed.windows(2) {
        let [(cpu, _, process, _), (next_cpu, _, next, _)] = pair else {
            continue;
        };
        if cpu == next_cpu {
            counts.switches += 1;
            counts.fast += u64::from(process == next);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(process: u32, segments: &[u64]) -> Group {
        vec![Thread {
            process,
            home: Some(0),
            segments: segments.to_vec(),
        }]
    }

    #[test]
    fn arrivals_have_the_mean_distance_that_was_asked_for() {
        let groups = [group(0, &[500_000, 500_000]), group(1, &[2_000_000])];
        let how = Arrivals {
            load_tenths: 25,
            multiplier_percent: 300,
            seconds: 100_000,
        };
        let all = arrivals(&groups, how, &mut Random::new(1));
        let of = |number| all.iter().filter(|(_, of)| *of == number).count();
        // 40,000 and 20,000 are expected, with a deviation of at most 200.
        assert!(of(0).abs_diff(40_000) < 1_000 && of(1).abs_diff(20_000) < 1_000);
        assert!(all.is_sorted());
    }

    #[test]
    fn switches_are_counted_between_neighbours_on_a_cpu() {
        let executed = vec![
            (1, 5, 7, Some(1)),
            (0, 0, 7, Some(1)),
            (1, 9, 7, Some(0)),
            (0, 4, 8, Some(0)),
            (1, 0, 9, None),
        ];
        let counts = count(Counts::default(), executed);
        assert_eq!((counts.switches, counts.fast), (3, 1));
        assert_eq!((counts.segments, counts.at_home), (5, 2));
    }

    #[test]
    fn a_deadline_of_less_than_the_work_is_never_met_and_one_of_more_is_met_alone() {
        let groups = [group(0, &[50_000; 3])];
        let accepted = |multiplier_percent, load_tenths| {
            let how = Arrivals {
                load_tenths,
                multiplier_percent,
                seconds: 100,
            };
            let counts = run(&groups, how, &Search::default(), &mut Random::new(3));
            counts.map(|counts| (counts.accepted, counts.requests))
        };
        assert!(accepted(99, 50).is_ok_and(|(accepted, all)| accepted == 0 && all > 50));
        assert!(accepted(100, 50).is_ok_and(|(accepted, all)| 10 * accepted > 9 * all));
    }
}
