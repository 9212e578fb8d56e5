//! A closure on a kernel thread of its own, as a task of a program.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use punctual::{Constraint, Error, PolicyKind, Program, Span, Work};

#[test]
fn a_closure_that_waits_as_it_likes_is_admitted_and_run_as_a_reservation() {
    let _alone = crate::alone();
    let mut program = Program::new();
    let cpu = program.cpu(0, PolicyKind::EarliestDeadlineFirst);
    let (jobs, rounds) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (counted, went_round) = (Arc::clone(&jobs), Arc::clone(&rounds));
    let every = Constraint::periodic(Span::from_ms(10), Work::from_us(500));
    program.task(cpu, "control", every, move |_| {
        counted.fetch_add(1, Relaxed);
    });
    let share = (Work::from_ms(3), Span::from_ms(10));
    let backed = program.backed(cpu, "backed", share, move |group| {
        while !group.is_over() {
            went_round.fetch_add(1, Relaxed);
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    assert!(backed.is_ok());
    let report = program.run_for(Span::from_ms(1_500)).expect("a run");
    assert!(report.tasks.iter().any(|task| task.name == "backed"));
    assert_eq!(report.faults, Vec::<String>::new());
    assert!(jobs.load(Relaxed) > 0 && rounds.load(Relaxed) > 1);
}

#[test]
fn a_closure_that_asks_for_more_than_there_is_is_refused_before_it_runs() {
    let _alone = crate::alone();
    let mut program = Program::new();
    let cpu = program.cpu(0, PolicyKind::EarliestDeadlineFirst);
    let ran = Arc::new(AtomicU64::new(0));
    for name in ["one", "two"] {
        let count = Arc::clone(&ran);
        let share = (Work::from_ms(6), Span::from_ms(10));
        let backed = program.backed(cpu, name, share, move |_| {
            count.fetch_add(1, Relaxed);
        });
        assert!(backed.is_ok());
    }
    let refused = program.run_for(Span::from_ms(50));
    assert!(matches!(refused, Err(Error::Refused(_))));
    assert_eq!(ran.load(Relaxed), 0);
}
