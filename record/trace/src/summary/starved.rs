//! How long work below a server waited because the server had no budget.
//!
//! A server that has used its budget is not missed by anybody while nothing below it is ready: of
//! the stretches without budget only those count in which a job of the subtree was ready.

use punctual_model::Instant;

use crate::behavior::{Behavior, WaitReason};

type Stretch = (Instant, Instant);

/// Ticks in which a job below the scheduler at place `at` was ready, and its server had no budget.
/// O(n log n) in the jobs and waits of the CPU.
pub(super) fn starved(behavior: &Behavior, at: usize) -> u64 {
    let stretches = behavior.starved.iter().filter(|s| s.node == at);
    let stretches: Vec<Stretch> = stretches.map(|s| (s.start, s.end)).collect();
    if stretches.is_empty() {
        return 0;
    }
    let ready = union(ready_below(behavior, at));
    let mut ready = ready.iter().peekable();
    let mut ticks = 0;
    for (start, end) in stretches {
        while let Some(&&(from, to)) = ready.peek() {
            if from >= end {
                break;
            }
            ticks += to.min(end).since(from.max(start)).ticks();
            if to > end {
                break;
            }
            let _ = ready.next();
        }
    }
    ticks
}

/// When jobs of the subtree were ready or executed, or waited for nothing but budget of servers.
fn ready_below(behavior: &Behavior, at: usize) -> Vec<Stretch> {
    let up = |place: &usize| behavior.nodes.get(*place)?.parent;
    let most = behavior.nodes.len();
    let is_below = |home: usize| {
        std::iter::successors(Some(home), up)
            .take(most)
            .any(|on| on == at)
    };
    let waits = behavior.waits.iter();
    let waits = waits.filter(|wait| wait.reason != WaitReason::Supply);
    let mut waits: Vec<(usize, Stretch)> = waits.map(|w| (w.job, (w.start, w.end))).collect();
    waits.sort_unstable();
    let mut ready = Vec::new();
    for (index, job) in behavior.jobs.iter().enumerate() {
        if !is_below(job.home) {
            continue;
        }
        let mut from = job.released;
        let first = waits.partition_point(|(of, _)| *of < index);
        for &(_, (start, end)) in waits[first..].iter().take_while(|(of, _)| *of == index) {
            ready.push((from, start));
            from = end;
        }
        ready.push((from, job.ended.unwrap_or(behavior.end)));
    }
    ready.retain(|(from, to)| from < to);
    ready
}

/// The same instants as disjoint stretches in order.
fn union(mut stretches: Vec<Stretch>) -> Vec<Stretch> {
    stretches.sort_unstable();
    let mut union: Vec<Stretch> = Vec::new();
    for (from, to) in stretches {
        match union.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => union.push((from, to)),
        }
    }
    union
}

#[cfg(test)]
mod tests {
    use punctual_model::{Span, ThreadId, Work};

    use super::*;
    use crate::behavior::{JobRecord, NodeRecord, Starved, Waiting};

    fn t(ticks: u64) -> Instant {
        Instant::from_ticks(ticks)
    }

    #[test]
    fn only_time_in_which_something_waits_counts() {
        let below = |parent| NodeRecord {
            parent,
            ..NodeRecord::default()
        };
        let job = |home, released: u64, ended: Option<u64>| JobRecord {
            thread: ThreadId::new(0, 0),
            index: 0,
            arrival: t(released),
            absolute_deadline: t(100),
            released: t(released),
            started: None,
            ended: ended.map(t),
            outcome: None,
            last: false,
            received: Work::ZERO,
            overran: false,
            demoted: None,
            suspended: Span::ZERO,
            held_back: Span::ZERO,
            throttled: Span::ZERO,
            locked_out: Span::ZERO,
            postponed: Span::ZERO,
            home,
        };
        let starved_at = |node, start, end| Starved {
            node,
            start: t(start),
            end: t(end),
        };
        let behavior = Behavior {
            nodes: [None, Some(0), Some(1)].map(below).into(),
            jobs: vec![
                job(2, 10, Some(30)),
                job(1, 25, Some(40)),
                job(0, 0, Some(100)),
                job(2, 90, None),
            ],
            waits: vec![Waiting {
                job: 0,
                start: t(14),
                end: t(18),
                reason: WaitReason::Request,
            }],
            starved: vec![
                starved_at(1, 12, 28),
                starved_at(2, 15, 20),
                starved_at(1, 50, 60),
                starved_at(1, 80, 100),
            ],
            end: t(100),
            ..Behavior::default()
        };
        // [12, 14), [18, 28), [90, 100); and below the inner one [18, 20).
        assert_eq!(starved(&behavior, 1), 22);
        assert_eq!(starved(&behavior, 2), 2);
        assert_eq!(starved(&behavior, 0), 0);
    }
}
