//! The instant that the timer stands for after an entry, and when it is set anew.

use super::*;

/// A CPU of periodic tasks of one priority with these budgets, at their common release.
fn released(wcets: &[u64], period: u64) -> Bench {
    let times = |(order, &wcet): (u32, &u64)| {
        let period = Span::from_ns(period);
        let class = Class::Periodic {
            period,
            wcet: Work::from_ns(wcet),
            relative_deadline: period,
        };
        let task = Task::new("any", CpuId(0), class);
        Constraint::of_task(&task, order).in_ticks(Frequency::NANOSECONDS)
    };
    let constraints: Vec<Constraint> = (0..).zip(wcets).map(times).collect();
    let mut bench = Bench::new(POLICIES[0], &constraints, &Feeds::nothing());
    assert!(bench.enter(at(0), Event::Tick, false).is_some());
    bench
}

/// The running thread, the instant of the timer, and how often it has been set.
fn timer(bench: &Bench) -> (Option<u32>, Option<u64>, u64) {
    let state = bench.state();
    let order = state.runs.and_then(|id| u32::try_from(id.index()).ok());
    let settings = state.counters.timer_settings;
    (order, state.armed.map(Instant::ticks), settings)
}

#[test]
fn a_job_that_is_done_leaves_no_timer_behind_for_its_budget() {
    for fast in [true, false] {
        let mut bench = released(&[30_000, 50_000, 70_000], 1_000_000);
        assert_eq!(timer(&bench), (Some(0), Some(30_000), 1));
        assert!(bench.enter(at(10_000), Event::Complete, fast).is_some());
        assert_eq!(timer(&bench), (Some(1), Some(60_000), 2), "set anew");
        // A thread that blocks leaves it where it is, and an entry follows.
        let blocks = Event::Block { until: None };
        assert!(bench.enter(at(20_000), blocks, fast).is_some());
        assert_eq!(timer(&bench), (Some(2), Some(60_000), 2), "rule 6");
        assert!(bench.enter(at(60_000), Event::Tick, false).is_some());
        assert_eq!(timer(&bench), (Some(2), Some(90_000), 3));
        // Nothing fires into the sleep of a CPU whose last job is done.
        assert!(bench.enter(at(70_000), Event::Complete, fast).is_some());
        assert_eq!(timer(&bench), (None, None, 4));
    }
}

#[test]
fn a_timer_that_stands_for_more_than_a_budget_stays_when_the_job_is_done() {
    for fast in [true, false] {
        let mut bench = released(&[30_000, 50_000], 25_000);
        assert_eq!(
            timer(&bench),
            (Some(0), Some(25_000), 1),
            "the next release"
        );
        assert!(bench.enter(at(10_000), Event::Complete, fast).is_some());
        assert_eq!(timer(&bench), (Some(1), Some(25_000), 1));
        assert_eq!(bench.enter(at(11_000), Event::Yield, true), Some(()));
        assert_eq!(timer(&bench), (Some(1), Some(25_000), 1));
    }
}

#[test]
fn a_signal_before_the_entry_of_a_job_that_is_done_is_the_timers() {
    let bench = released(&[30_000], 1_000_000);
    let host = &bench.cpu.host;
    host.end_budget();
    assert_eq!(host.fires_at(), Some(at(30_000)), "not yet set anew");
    assert_eq!(host.timer_fired(), Some(at(30_000)));
    assert_eq!((host.fires_at(), host.timer_fired()), (None, None));
}

#[test]
fn the_timer_stands_behind_a_promise_and_is_set_again_when_half_of_that_is_left() {
    let bench = on_the_fast_path();
    let host = &bench.cpu.host;
    let within = Span::from_ticks(1_000);
    let armed_behind = |due, now| {
        host.arm_behind(at(due), within, at(now));
        host.armed_for()
    };
    let _ = host.timer_fired();
    assert_eq!(armed_behind(5_000, 10), Some(at(6_000)));
    // With more than half of the promise left it stays, unless it is too late.
    assert_eq!(armed_behind(7_000, 5_499), Some(at(6_000)));
    assert_eq!(armed_behind(7_000, 5_500), Some(at(8_000)));
    assert_eq!(armed_behind(6_999, 5_600), Some(at(7_999)));
    assert_eq!(armed_behind(9_000, 8_500), Some(at(10_000)), "it has fired");
}
