//! Small systems whose schedules are known by hand or from the literature.

use crate::common::{in_order_of_urgency, periodic, simulate, system};
use punctual_kern::{Outcome, TraceEvent};
use punctual_model::{
    Arrivals, Class, CpuId, Late, Ns, OnOverrun, PolicyKind, Priority, Span, Task, TaskId, Work,
    WorkSource,
};
use punctual_sim::{Crash, Faults, MissingTime, Overrun};

const FIXED: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };
const EDF: PolicyKind<Ns> = PolicyKind::EarliestDeadlineFirst;

fn textbook() -> Vec<Task> {
    let tasks = vec![
        periodic("a", 3, 7, 7),
        periodic("b", 3, 12, 12),
        periodic("c", 5, 20, 20),
    ];
    in_order_of_urgency(tasks)
}

#[test]
fn rate_monotonic_responses_of_the_textbook_set_are_3_6_20() {
    let mut s = system(1, FIXED);
    s.tasks = textbook();
    let outcome = simulate(&s, 420, Faults::default(), 0);
    let tape = &outcome.cpus[0].sink;
    let worst = [0, 1, 2].map(|i| tape.responses(i).into_iter().max().unwrap());
    assert_eq!(worst, [3, 6, 20]);
    assert_eq!([0, 1, 2].map(|i| tape.responses(i).len()), [60, 35, 21]);
}

#[test]
fn edf_responses_of_the_textbook_set_are_3_8_14_with_ties_to_the_older_job() {
    let mut s = system(1, EDF);
    s.tasks = textbook();
    let outcome = simulate(&s, 420, Faults::default(), 0);
    let tape = &outcome.cpus[0].sink;
    let worst = [0, 1, 2].map(|i| tape.responses(i).into_iter().max().unwrap());
    assert_eq!(worst, [3, 8, 14]);
}

#[test]
fn fifo_never_preempts_and_serves_in_the_order_of_release() {
    let mut s = system(1, PolicyKind::Fifo);
    s.tasks = vec![periodic("long", 10, 100, 100), periodic("short", 1, 20, 20)];
    s.tasks[1].phase = Span::from_ns(1);
    let outcome = simulate(&s, 100, Faults::default(), 0);
    let tape = &outcome.cpus[0].sink;
    assert_eq!(tape.responses(1), [10, 1, 1, 1, 1]);
    let preempted = |e: &TraceEvent| {
        matches!(
            e,
            TraceEvent::Switched {
                preempted: true,
                ..
            }
        )
    };
    assert_eq!(tape.count(preempted), 0);
}

#[test]
fn round_robin_shares_in_timeslices() {
    let mut s = system(
        1,
        PolicyKind::RoundRobin {
            timeslice: Span::from_ns(2),
        },
    );
    s.tasks = vec![periodic("a", 4, 100, 100), periodic("b", 4, 100, 100)];
    let outcome = simulate(&s, 100, Faults::default(), 0);
    let lane = outcome.cpus[0].sink.lane();
    let turns = [
        (0, Some(0)),
        (2, Some(1)),
        (4, Some(0)),
        (6, Some(1)),
        (8, None),
    ];
    assert_eq!(lane, turns);
}

#[test]
fn without_preemption_urgent_work_waits_for_the_job_that_runs() {
    let mut s = system(1, PolicyKind::FixedPriority { preemptive: false });
    s.tasks = in_order_of_urgency(vec![periodic("a", 2, 50, 50), periodic("b", 10, 100, 100)]);
    s.tasks[0].phase = Span::from_ns(1);
    let outcome = simulate(&s, 100, Faults::default(), 0);
    assert_eq!(outcome.cpus[0].sink.responses(0), [11, 2]);
}

#[test]
fn a_non_preemptive_section_delays_urgent_work_by_its_length() {
    let mut s = system(1, FIXED);
    s.tasks = in_order_of_urgency(vec![periodic("a", 2, 50, 50), periodic("b", 10, 100, 100)]);
    s.tasks[0].phase = Span::from_ns(1);
    s.tasks[1].non_preemptive = Work::from_ns(4);
    let outcome = simulate(&s, 100, Faults::default(), 0);
    assert_eq!(outcome.cpus[0].sink.responses(0), [5, 2]);
}

#[test]
fn an_overrun_hurts_only_its_owner_under_every_rule() {
    for policy in [FIXED, EDF] {
        for rule in [
            OnOverrun::Throttle,
            OnOverrun::Demote,
            OnOverrun::Stop,
            OnOverrun::Signal,
        ] {
            let mut s = system(1, policy);
            s.tasks = textbook();
            s.tasks[0].on_overrun = rule;
            let overruns = vec![Overrun {
                task: TaskId(0),
                per_mille: 1_900,
            }];
            let faults = Faults {
                overruns,
                ..Faults::default()
            };
            let outcome = simulate(&s, 420, faults, 0);
            let tape = &outcome.cpus[0].sink;
            let bounds = if policy == FIXED { [6, 20] } else { [8, 16] };
            for (thread, bound) in [1, 2].into_iter().zip(bounds) {
                let worst = tape.responses(thread).into_iter().max().unwrap();
                assert!(
                    worst <= bound,
                    "{policy:?} {rule:?}: thread {thread} took {worst}"
                );
            }
            let overran = |e: &TraceEvent| matches!(e, TraceEvent::Overran { .. });
            // Demoted work that never drains stays in the background, where no budget is overrun.
            let demotes = matches!(rule, OnOverrun::Demote | OnOverrun::Stop);
            let least = if demotes { 1 } else { 11 };
            let count = tape.count(overran);
            assert!(count >= least, "{policy:?} {rule:?}: only {count} overruns");
        }
    }
}

#[test]
fn a_throttled_job_goes_on_at_the_next_release_and_the_next_job_gets_the_rest() {
    let mut s = system(1, FIXED);
    s.tasks = vec![periodic("a", 4, 10, 10)];
    let faults = Faults {
        overruns: vec![Overrun {
            task: TaskId(0),
            per_mille: 1_500,
        }],
        ..Faults::default()
    };
    let outcome = simulate(&s, 20, faults, 0);
    // Job 0 needs 6: 4 at once, 2 at 10. Job 1 needs 6: 2 at 12, 4 at 20.
    assert_eq!(
        outcome.cpus[0].sink.lane(),
        [
            (0, Some(0)),
            (4, None),
            (10, Some(0)),
            (14, None),
            (20, Some(0)),
            (24, None)
        ]
    );
    assert_eq!(outcome.cpus[0].sink.responses(0), [12, 14]);
}

#[test]
fn a_stopped_job_ends_at_its_budget_and_says_so() {
    let mut s = system(1, FIXED);
    s.tasks = vec![periodic("a", 4, 10, 10)];
    s.tasks[0].on_overrun = OnOverrun::Stop;
    let overruns = vec![Overrun {
        task: TaskId(0),
        per_mille: 2_000,
    }];
    let outcome = simulate(
        &s,
        50,
        Faults {
            overruns,
            ..Faults::default()
        },
        0,
    );
    let stopped = |e: &TraceEvent| {
        matches!(e, TraceEvent::Completed { outcome: Outcome::Stopped, received, .. }
            if received.ticks() == 4)
    };
    assert_eq!(outcome.cpus[0].sink.count(stopped), 5);
}

#[test]
fn releases_queue_or_are_skipped_and_are_counted() {
    let late = |late| {
        let mut s = system(1, FIXED);
        let mut hog = periodic("hog", 35, 100, 100);
        hog.priority = Priority::new(2);
        let mut t = periodic("t", 1, 10, 10);
        t.late = late;
        s.tasks = vec![hog, t];
        simulate(&s, 100, Faults::default(), 0).cpus.remove(0).sink
    };
    let skipped = |e: &TraceEvent| matches!(e, TraceEvent::Skipped { .. });
    let lost = |e: &TraceEvent| matches!(e, TraceEvent::Lost { .. });
    let queued = late(Late::default());
    assert_eq!(queued.responses(1), [36, 27, 18, 9, 1, 1, 1, 1, 1, 1]);
    let dropped = late(Late::Skip);
    assert_eq!((dropped.responses(1).len(), dropped.count(skipped)), (7, 3));
    let short = late(Late::Queue { backlog: 2 });
    assert_eq!((short.responses(1).len(), short.count(lost)), (9, 1));
}

#[test]
fn early_arrivals_wait_for_the_separation() {
    let mut s = system(1, FIXED);
    let class = Class::Sporadic {
        min_separation: Span::from_ns(10),
        wcet: Work::from_ns(2),
        relative_deadline: Span::from_ns(10),
    };
    let mut t = Task::new("s", CpuId(0), class);
    let at = punctual_model::Instant::from_ns;
    t.arrivals = Arrivals::At(vec![at(1), at(3), at(4), at(50)]);
    s.tasks = vec![t];
    let outcome = simulate(&s, 100, Faults::default(), 0);
    let runs: Vec<u64> = outcome.cpus[0]
        .sink
        .lane()
        .iter()
        .filter(|l| l.1.is_some())
        .map(|l| l.0)
        .collect();
    assert_eq!(runs, [1, 11, 21, 50]);
}

#[test]
fn a_reservation_gets_its_slice_every_period_and_no_more() {
    let mut s = system(1, EDF);
    let class = Class::Reservation {
        period: Span::from_ns(10),
        slice: Work::from_ns(3),
    };
    s.tasks = vec![Task::new("r", CpuId(0), class), periodic("t", 4, 8, 8)];
    let outcome = simulate(&s, 400, Faults::default(), 0);
    let tape = &outcome.cpus[0].sink;
    let full = |e: &TraceEvent| {
        matches!(e, TraceEvent::Completed { thread, outcome: Outcome::Done, received, .. }
            if thread.index() == 0 && received.ticks() == 3)
    };
    assert_eq!(tape.count(full), 40);
    assert!(tape.responses(1).into_iter().all(|r| r <= 8));
}

#[test]
fn once_keeps_its_deadline_and_goes_on_in_the_background() {
    let mut s = system(1, EDF);
    let once = Class::Once {
        size: Work::from_ns(5),
        relative_deadline: Span::from_ns(20),
    };
    let mut o = Task::new("o", CpuId(0), once);
    o.phase = Span::from_ns(2);
    o.work = Some(WorkSource::Burn(Work::from_ns(9)));
    s.tasks = vec![o, periodic("t", 5, 10, 10)];
    let outcome = simulate(&s, 40, Faults::default(), 0);
    let tape = &outcome.cpus[0].sink;
    assert_eq!(tape.responses(0).len(), 1);
    assert!(tape.responses(0)[0] <= 20);
    assert!(tape.responses(1).into_iter().all(|r| r <= 10));
    let ended = |e: &TraceEvent| matches!(e, TraceEvent::Ended { .. });
    assert_eq!(tape.count(ended), 1, "the rest of the body ran and ended");
}

#[test]
fn background_work_runs_only_when_no_guaranteed_work_wants_to() {
    for policy in [FIXED, EDF, PolicyKind::Fifo] {
        let mut s = system(1, policy);
        let mut b = Task::new("b", CpuId(0), Class::Aperiodic);
        b.priority = Priority::new(1_000);
        s.tasks = vec![b, periodic("t", 3, 10, 10)];
        let outcome = simulate(&s, 100, Faults::default(), 0);
        assert_eq!(outcome.cpus[0].sink.responses(1), [3; 10], "{policy:?}");
    }
}

#[test]
fn missing_time_is_charged_to_nobody_and_jobs_queue_behind_it() {
    let mut s = system(1, FIXED);
    s.tasks = textbook();
    let missing = vec![MissingTime {
        cpu: None,
        length: Span::from_ns(30),
        every: Span::from_ns(97),
    }];
    let outcome = simulate(
        &s,
        420,
        Faults {
            missing,
            ..Faults::default()
        },
        3,
    );
    let tape = &outcome.cpus[0].sink;
    let overran = |e: &TraceEvent| matches!(e, TraceEvent::Overran { .. });
    assert_eq!(tape.count(overran), 0, "nobody pays for missing time");
    let over = |e: &TraceEvent| matches!(e, TraceEvent::Released { .. });
    let done = |e: &TraceEvent| matches!(e, TraceEvent::Completed { .. });
    assert!(tape.count(over) >= tape.count(done) && tape.count(done) > 90);
    assert!(outcome.cpus[0].counters.missing_total >= Span::from_ticks(90));
}

#[test]
fn a_release_that_is_delayed_past_the_horizon_comes_all_the_same() {
    let mut s = system(1, FIXED);
    s.tasks = vec![periodic("a", 2, 10, 40)];
    let standstill = Faults {
        missing: vec![MissingTime {
            cpu: None,
            length: Span::from_ns(16),
            every: Span::from_ns(1_000),
        }],
        missing_from: Some(punctual_model::Instant::from_ns(28)),
        ..Faults::default()
    };
    let outcome = simulate(&s, 40, standstill, 0);
    assert_eq!(outcome.cpus[0].sink.responses(0), [2, 2, 2, 16]);
    let late_timer = Faults {
        late_timer: Span::from_ns(30),
        ..Faults::default()
    };
    for seed in 0..100 {
        let outcome = simulate(&s, 40, late_timer.clone(), seed);
        assert_eq!(outcome.cpus[0].sink.responses(0).len(), 4, "seed {seed}");
    }
}

#[test]
fn a_crash_ends_its_task_and_nobody_else() {
    let mut s = system(1, FIXED);
    s.tasks = textbook();
    let crashes = vec![Crash {
        task: TaskId(0),
        job: 3,
    }];
    let outcome = simulate(
        &s,
        420,
        Faults {
            crashes,
            ..Faults::default()
        },
        0,
    );
    let tape = &outcome.cpus[0].sink;
    assert_eq!([0, 1, 2].map(|i| tape.responses(i).len()), [3, 35, 21]);
}

#[test]
fn equal_seeds_give_equal_runs_and_other_seeds_others() {
    let mut s = system(2, EDF);
    s.tasks = textbook();
    s.tasks[1].cpu = CpuId(1);
    s.tasks[2].jitter = Span::from_ns(3);
    let faults = || Faults {
        missing: vec![MissingTime {
            cpu: None,
            length: Span::from_ns(2),
            every: Span::from_ns(50),
        }],
        late_timer: Span::from_ns(1),
        jitter: true,
        ..Faults::default()
    };
    let a = simulate(&s, 4_200, faults(), 7);
    assert_eq!(a, simulate(&s, 4_200, faults(), 7));
    assert_ne!(a, simulate(&s, 4_200, faults(), 8));
}

#[test]
fn dense_jitter_holds_the_first_release_back_and_lets_the_others_follow_at_once() {
    let mut s = system(1, FIXED);
    s.tasks = vec![periodic("a", 2, 10, 40)];
    s.tasks[0].jitter = Span::from_ns(14);
    let faults = Faults {
        dense_jitter: true,
        ..Faults::default()
    };
    let outcome = simulate(&s, 40, faults, 0);
    // Arrivals at 0, 10, 20, 30; releases at 14, 14, 20, 30.
    assert_eq!(outcome.cpus[0].sink.responses(0), [16, 8, 2, 2]);
}
