//! The instant that the timer stands for after an entry, and when it is set anew.

use super::*;

/// A periodic task with this budget.
fn periodic(order: u32, wcet: u64, period: u64) -> Constraint {
    let period = Span::from_ns(period);
    let class = Class::Periodic {
        period,
        wcet: Work::from_ns(wcet),
        relative_deadline: period,
    };
    let task = Task::new("any", CpuId(0), class);
    Constraint::of_task(&task, order).in_ticks(Frequency::NANOSECONDS)
}

/// A CPU of periodic tasks of one priority with these budgets, at their common release.
fn released(wcets: &[u64], period: u64) -> Bench {
    let times = |(order, &wcet): (u32, &u64)| periodic(order, wcet, period);
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

/// An urgent periodic thread beside one that computes, at the instant of the first one's release.
fn preempting() -> (Bench, Instant) {
    let constraints = [
        periodic(0, 10_000, 1_000_000),
        periodic(1, 5_000_000, 10_000_000),
    ];
    let edf = PolicyKind::EarliestDeadlineFirst;
    let mut bench = Bench::new(edf, &constraints, &Feeds::nothing());
    assert!(bench.enter(at(0), Event::Tick, false).is_some());
    assert!(bench.enter(at(5_000), Event::Complete, true).is_some());
    assert_eq!(timer(&bench).0, Some(1));
    // Within the time in which nobody looks at the kernel's account.
    for now in (1..12).map(|step| at(5_000 + step * 80_000)) {
        bench.signal(now);
        assert!(bench.enter(now, Event::Tick, false).is_some());
    }
    (bench, at(1_000_000))
}

#[test]
fn a_release_by_the_timers_signal_is_the_cores_business_alone() {
    let (mut bench, release) = preempting();
    bench.signal(release);
    assert!(bench.enter(release, Event::Tick, true).is_some());
    assert_eq!(timer(&bench).0, Some(0), "it preempts");
    assert!(timer(&bench).1.is_some_and(|armed| armed > 1_000_000));
}

#[test]
fn a_release_takes_the_slow_path_where_the_platform_has_more_to_do() {
    for what in [0, 1, 2, 3, 4, 5, 7, 8, AWAY] {
        let (mut bench, release) = preempting();
        disturb(&mut bench, what, release, 1);
        bench.signal(release);
        assert_eq!(bench.enter(release, Event::Tick, true), None, "{what}");
        assert!(bench.enter(release, Event::Tick, false).is_some());
    }
    // The run is to end.
    let (mut bench, release) = preempting();
    bench.signal(release);
    bench.cpu.host.shared.stop.store(true, Ordering::Relaxed);
    assert_eq!(bench.enter(release, Event::Tick, true), None);
    // Without a signal nobody has looked for a hole.
    let (mut bench, release) = preempting();
    assert_eq!(bench.enter(release, Event::Tick, true), None);
    // The signal came long before its entry.
    let (mut bench, release) = preempting();
    bench.signal(release);
    bench.cpu.host.limits.entry = 10;
    bench.cpu.host.arrived.set(Some(at(release.ticks() - 11)));
    assert_eq!(bench.enter(release, Event::Tick, true), None);
}

/// How many entries each of so many notes of a signal took; nothing if the run was over before.
fn serve(signals: u64) -> Vec<u64> {
    let entries = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&entries);
    let body: Body = Box::new(move |_| {
        let light = current_light().expect("a run");
        // SAFETY: the host outlives its threads.
        let host = unsafe { &*light.host() };
        let served = |_| {
            let before = job::entries();
            host.gate.close();
            host.gate.note_pending();
            open_gate(host);
            job::entries() - before
        };
        let all: Vec<u64> = (0..signals).map(served).collect();
        *kept.lock().expect("one thread") = all;
        end_run();
    });
    let options = RunOptions::default();
    let cpu = sys::allowed_cpus().expect("known").pop().expect("one");
    let fast = Short {
        host: cpu,
        bodies: vec![body],
        ranked: false,
        turn_ns: 1_000_000,
        arrivals: 0,
        urgent: None,
    };
    assert!(short_run(vec![(fast, Told::default())], &options).is_ok());
    core::mem::take(&mut *entries.lock().expect("the run is over"))
}

/// The note of a signal that found the gate closed is served by one entry. Once the fast path left
/// it where it was, and whoever opened the gate entered until something else was due: 14,000
/// decisions instead of 420 in 300 ms.
#[test]
fn a_signal_that_found_the_gate_closed_costs_one_entry() {
    const SIGNALS: u64 = 200;
    // A run is over after a while, on a machine that had no time for it, too.
    let entries = (0..50).map(|_| serve(SIGNALS)).find(|all| !all.is_empty());
    let entries = entries.expect("there was time in one of fifty runs");
    assert_eq!(entries.len() as u64, SIGNALS);
    // A timer may come in between, and must not come in between all the time.
    let sum: u64 = entries.iter().sum();
    assert!((SIGNALS..2 * SIGNALS).contains(&sum), "{entries:?}");
}
