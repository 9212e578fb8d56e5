//! Resources on a real CPU: they exclude, holders inherit priority, and nobody keeps them for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{Log, alone, for_ms, input_of, one_cpu, periodic};
use punctual_kern::{Refusal, TraceEvent};
use punctual_linux::job::{self, LockError};
use punctual_linux::{Body, Outcome, run};
use punctual_model::{AtBudgetEnd, Mode, Protocol, Resource, ResourceId, Span, System, Use, Work};

/// Tasks by (name, priority, period in us, phase in us), each declaring the resource `bus`.
fn sharing(protocol: Protocol, tasks: &[(&str, u32, u64, u64)]) -> System {
    let task = |&(name, priority, period, phase): &(&str, u32, u64, u64)| {
        let mut task = periodic(name, priority, period, period / 2, |_| {}).task;
        task.phase = Span::from_us(phase);
        task.uses.push(Use {
            resource: ResourceId(0),
            length: Work::from_us(period / 4),
            mode: Mode::Exclusive,
            inside: None,
        });
        task
    };
    let mut system = one_cpu(tasks.iter().map(task).collect());
    system.resources.push(Resource {
        name: "bus".to_owned(),
        protocol,
        at_budget_end: AtBudgetEnd::default(),
    });
    system
}

fn fly(system: &System, bodies: Vec<Body>, ms: u64) -> Outcome<Log> {
    let input = input_of(system, bodies, Vec::new(), Log::with_room(100_000));
    let outcome = run(vec![input], &for_ms(ms));
    outcome.expect("a run")
}

#[test]
fn what_is_changed_under_a_lock_is_changed_by_one_thread_at_a_time() {
    let _alone = alone();
    let system = sharing(
        Protocol::Inheritance,
        &[("fast", 2, 1_000, 0), ("slow", 1, 10_000, 0)],
    );
    let value = Arc::new(AtomicU64::new(0));
    let torn = Arc::new(AtomicU64::new(0));
    let adder = |rounds: u64| -> Body {
        let (value, torn) = (Arc::clone(&value), Arc::clone(&torn));
        Box::new(move |_| {
            let held = job::lock("bus").expect("declared");
            let before = value.load(Ordering::Relaxed);
            for round in 1..=rounds {
                job::burn_ns(1_000);
                if value.swap(before + round, Ordering::Relaxed) != before + round - 1 {
                    torn.fetch_add(1, Ordering::Relaxed);
                }
            }
            drop(held);
        })
    };
    let outcome = fly(&system, vec![adder(50), adder(1_500)], 200);
    assert_eq!(torn.load(Ordering::Relaxed), 0);
    let waited = |(_, e): &(_, TraceEvent)| matches!(e, TraceEvent::Waits { .. });
    assert!(
        outcome.cpus[0].sink.traces.iter().any(waited),
        "nobody ever waited"
    );
}

#[test]
fn a_holder_is_as_urgent_as_who_waits_for_it() {
    let _alone = alone();
    // `low` locks at 0, `high` and `middle` come at 1 ms; `middle` wants nothing.
    let system = sharing(
        Protocol::Inheritance,
        &[
            ("high", 3, 50_000, 1_000),
            ("middle", 2, 50_000, 1_000),
            ("low", 1, 50_000, 0),
        ],
    );
    let locker = |ns: u64| -> Body {
        Box::new(move |_| {
            let _held = job::lock("bus").expect("declared");
            job::burn_ns(ns);
        })
    };
    // Whoever takes the processor for more than the 1 ms between the two arrivals hides a wait.
    let seen = (0..20).any(|_| {
        let middle: Body = Box::new(|_| job::burn_ns(10_000_000));
        let bodies = vec![locker(500_000), middle, locker(5_000_000)];
        waits_of_the_first(&fly(&system, bodies, 400)) > 0
    });
    assert!(seen, "nobody waited in 160 periods");
}

/// How often thread 0 waited; thread 1 did not run meanwhile.
fn waits_of_the_first(outcome: &Outcome<Log>) -> u32 {
    let mut waiting = false;
    let mut waits = 0;
    for (_, event) in &outcome.cpus[0].sink.traces {
        match event {
            TraceEvent::Waits { thread, .. } if thread.index() == 0 => {
                waiting = true;
                waits += 1;
            }
            TraceEvent::Locked { thread, .. } if thread.index() == 0 => waiting = false,
            TraceEvent::Switched { to: Some(to), .. } if waiting => {
                assert_ne!(to.index(), 1, "the middle came between");
            }
            _ => {}
        }
    }
    waits
}

#[test]
fn a_lock_that_cannot_be_had_says_why() {
    let _alone = alone();
    let mut system = sharing(Protocol::Inheritance, &[("only", 1, 10_000, 0)]);
    system.resources.push(Resource {
        name: "other".to_owned(),
        ..system.resources[0].clone()
    });
    let answers = Arc::new(std::sync::Mutex::new(Vec::new()));
    let told = Arc::clone(&answers);
    let body: Body = Box::new(move |info| {
        if info.index == 0 {
            let first = job::lock("bus");
            let again = job::lock("bus").err();
            drop(first);
            let other = job::lock("other").err();
            told.lock().expect("one user").extend([again, other]);
        }
    });
    assert_eq!(job::lock("bus").err(), Some(LockError::NoRun));
    let _ = fly(&system, vec![body], 50);
    let answers = answers.lock().expect("one user").clone();
    let undeclared = LockError::Unknown("other".to_owned());
    let held = LockError::Refused(Refusal::AlreadyHeld(0));
    let other = answers.get(1).cloned().flatten();
    assert_eq!(answers.first().cloned().flatten(), Some(held));
    assert!(
        other == Some(undeclared) || other == Some(LockError::Refused(Refusal::NotDeclared(1))),
        "{other:?}"
    );
}

#[test]
fn a_holder_that_panics_or_ends_its_job_gives_back_what_it_held() {
    let _alone = alone();
    let system = sharing(
        Protocol::ImmediateCeiling,
        &[("user", 2, 5_000, 1_000), ("leaky", 1, 10_000, 0)],
    );
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let user: Body = Box::new(move |_| {
        let _held = job::lock("bus").expect("declared");
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let leaky: Body = Box::new(|info| {
        std::mem::forget(job::lock("bus").expect("declared"));
        assert!(info.index < 3, "enough");
    });
    let outcome = fly(&system, vec![user, leaky], 100);
    assert!(count.load(Ordering::Relaxed) >= 10, "{count:?}");
    assert_eq!(outcome.panics.len(), 1);
}

#[test]
fn a_wait_can_have_an_end() {
    let _alone = alone();
    let system = sharing(
        Protocol::Inheritance,
        &[("hasty", 2, 20_000, 1_000), ("holder", 1, 20_000, 0)],
    );
    let late = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&late);
    let hasty: Body = Box::new(move |_| {
        if job::lock_within("bus", Mode::Exclusive, 200_000).err() == Some(LockError::TimedOut) {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let holder: Body = Box::new(|_| {
        let _held = job::lock("bus").expect("declared");
        job::burn_ns(4_000_000);
    });
    let _ = fly(&system, vec![hasty, holder], 400);
    assert!(late.load(Ordering::Relaxed) > 0, "not in 20 periods");
}
