//! Tasks that a change starts or lengthens get their arrivals and their time.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use punctual_model::{
    Arrivals, Class, CpuId, Instant, Span, Step, System, Task, TaskId, Terms, Work,
};
use punctual_sim::Faults;

use crate::live_tree::{LENGTH, named, stop_and_start};

/// Two tasks of 10 ns that a change starts at 100 ns, one of them sporadic.
fn late_start() -> System {
    let mut system = stop_and_start();
    let (period, wcet) = (Span::from_ns(10), Work::from_ns(1));
    system.tasks = vec![
        Task::new(
            "clock".to_string(),
            CpuId(0),
            Class::Periodic {
                period,
                wcet,
                relative_deadline: period,
            },
        ),
        Task::new(
            "events".to_string(),
            CpuId(0),
            Class::Sporadic {
                min_separation: period,
                wcet,
                relative_deadline: period,
            },
        ),
    ];
    system.tasks[0].jitter = Span::from_ns(2);
    system.tasks[1].arrivals = Arrivals::Every(period);
    let starts = vec![Step::Start(TaskId(0)), Step::Start(TaskId(1))];
    system.changes = vec![named(0, 100, starts)];
    system.run.duration = Some(LENGTH);
    system
}

fn report(system: &System, faults: Faults) -> punctual::RunReport {
    let options = punctual::SimOptions {
        faults,
        ..punctual::SimOptions::default()
    };
    let mut none = punctual::Workloads::new();
    punctual::judge(&punctual::simulate(system, &options, &mut none, &mut |_| true).unwrap())
}

#[test]
fn a_task_that_a_change_starts_gets_its_arrivals_also_when_the_platform_feeds_them() {
    for jitter in [false, true] {
        let faults = Faults {
            jitter,
            ..Faults::default()
        };
        let report = report(&late_start(), faults);
        let jobs: Vec<u64> = report.tasks.iter().map(|task| task.jobs).collect();
        // What arrives at the instant of the change finds it done.
        assert_eq!(jobs, [80, 80], "jitter {jitter}: {report}");
        assert_eq!(report.verdict(), punctual_trace::RunVerdict::Met);
    }
}

#[test]
fn jobs_have_the_time_of_a_deadline_that_a_change_makes_longer() {
    // From 500 on it executes 60 in every 200: the last job arrives at 880 and ends at 940.
    let mut system = late_start();
    system.changes = Vec::new();
    system.tasks.truncate(1);
    system.tasks[0].jitter = Span::ZERO;
    let terms = Terms {
        separation: Some(Span::from_ns(200)),
        budget: Some(Work::from_ns(60)),
        ..Terms::default()
    };
    system.changes = vec![named(0, 480, vec![Step::Constrain(TaskId(0), terms)])];
    let report = report(&system, Faults::default());
    let task = &report.tasks[0];
    assert_eq!((task.misses, task.unfinished), (0, 0), "{report}");
    assert!(report.elapsed_ns > LENGTH.as_ns() + 10, "{report}");
}

#[test]
fn a_reservation_goes_on_in_virtual_time_when_its_constraint_has_changed() {
    let mut system = late_start();
    let (period, slice) = (Span::from_ns(10), Work::from_ns(2));
    let class = Class::Reservation { period, slice };
    system.tasks = vec![Task::new("endless".to_string(), CpuId(0), class)];
    let terms = Terms {
        budget: Some(Work::from_ns(3)),
        ..Terms::default()
    };
    system.changes = vec![named(0, 105, vec![Step::Constrain(TaskId(0), terms)])];
    let report = report(&system, Faults::default());
    assert_eq!(report.tasks[0].jobs, 90, "{report}");
    assert_eq!(report.verdict(), punctual_trace::RunVerdict::Met);
}

#[test]
fn an_admitted_change_that_is_not_done_is_a_miss_and_says_so() {
    use punctual_trace::RunVerdict::{Met, Missed};
    let system = late_start();
    let mut none = punctual::Workloads::new();
    let options = punctual::SimOptions::default();
    let mut log = punctual::simulate(&system, &options, &mut none, &mut |_| true).unwrap();
    assert_eq!(punctual::judge(&log).verdict(), Met);
    // One event of it was never entered.
    log.changes[0].parts[0] += 1;
    let report = punctual::judge(&log);
    assert_eq!(report.changes[0].done_ns, None, "{report}");
    assert_eq!((report.verdict(), report.exit_code()), (Missed, 1));
    assert!(report.reasons().contains(&"change c0 not done".to_string()));
    // Nothing is said of a run that was stopped, or that was over before.
    log.changes[0].at = Instant::from_ns(LENGTH.as_ns());
    assert_eq!(punctual::judge(&log).verdict(), Met);
    log.changes[0].at = Instant::from_ns(100);
    log.header.stopped = Some("stopped by request".into());
    assert_eq!(punctual::judge(&log).verdict(), Met);
}
