//! Segments, jobs and missing time of a run whose schedule is known.

use crate::common::{FIXED, at_ms, missing, rich, simulate, two_tasks};
use punctual_kern::MissingCause;
use punctual_model::{Instant, Span, ThreadId, Work};
use punctual_sim::Faults;
use punctual_trace::Behavior;

const FAST: ThreadId = ThreadId::new(0, 0);
const SLOW: ThreadId = ThreadId::new(1, 0);

/// `fast` executes in [0, 2) and [10, 12), `slow` in [2, 7), and so on every 20 ms.
fn behavior() -> Behavior {
    Behavior::new(&simulate(&two_tasks(), 100, 0, Faults::default()), 0)
}

#[test]
fn segments_are_who_executes_and_ends_are_exclusive() {
    let b = behavior();
    let tick = Span::from_ticks(1);
    let at = |from: Instant| b.segments_in(from, from.saturating_add(tick));
    let who = |ms| at(at_ms(ms)).first().map(|s| s.thread);
    assert_eq!(
        [0, 1, 2, 6].map(who),
        [Some(FAST), Some(FAST), Some(SLOW), Some(SLOW)]
    );
    assert_eq!([7, 9, 10, 12].map(who), [None, None, Some(FAST), None]);
}

#[test]
fn service_during_adds_up_what_was_executed_in_the_interval() {
    let b = behavior();
    let slow = |from, to| b.service_during(SLOW, at_ms(from), at_ms(to));
    assert_eq!(slow(0, 100), Work::from_ticks(25_000_000));
    assert_eq!(slow(3, 5), Work::from_ticks(2_000_000));
    assert_eq!(slow(6, 23), Work::from_ticks(2_000_000));
    assert_eq!(slow(7, 20), Work::ZERO);
    let second = b.jobs.iter().position(|j| j.thread == SLOW && j.index == 1);
    let second = second.expect("it has five");
    assert_eq!(
        b.job_service_during(second, at_ms(0), at_ms(100)),
        Work::from_ticks(5_000_000)
    );
    assert_eq!(
        b.job_service_during(second, at_ms(0), at_ms(20)),
        Work::ZERO
    );
}

#[test]
fn a_job_lasts_from_its_arrival_to_its_completion() {
    let b = behavior();
    let job = b.jobs.iter().find(|j| j.thread == SLOW);
    let job = job.expect("it has jobs");
    assert_eq!((job.arrival, job.started), (at_ms(0), Some(at_ms(0))));
    assert_eq!(job.ended, Some(at_ms(7)));
    assert_eq!(job.response_time(), Some(Span::from_ticks(7_000_000)));
}

#[test]
fn missing_time_is_nobodys() {
    let log = simulate(&rich(FIXED), 500, 4, missing(900, 17));
    let b = Behavior::new(&log, 0);
    let taken = b.missing_during(Instant::ZERO, b.end, MissingCause::Stolen);
    assert!(taken >= Span::from_ticks(1_000 * (900 * 28)), "{taken:?}");
    assert!(b.segments.windows(2).all(|w| w[0].end <= w[1].start));
    for gap in &b.missing {
        assert!(b.segments_in(gap.start, gap.end).is_empty());
    }
    let received: u64 = b.jobs.iter().map(|j| j.received.ticks()).sum();
    let executed: u64 = (0..6)
        .map(|t| {
            b.service_during(ThreadId::new(t, 0), Instant::ZERO, b.end)
                .ticks()
        })
        .sum();
    assert!(received <= executed, "jobs got {received} of {executed}");
}
