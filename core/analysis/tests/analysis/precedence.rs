//! The cost of waiting for predecessors: nothing where it is consistent, else a term of the bound

use crate::common::{EDF, FP, bounds, empty, periodic, span, work};
use punctual_analysis::{
    AnalysisError, Exactness, Verdict, When, admit, admit_changes, admit_transition,
};
use punctual_model::{
    Change, Class, CpuId, Instant, PolicyKind, Priority, Requirement, Step, System, Task, TaskId,
    Terms,
};

fn verdict(system: &System) -> Verdict {
    admit(system).expect("analysis ends")
}

fn all_exact(verdict: &Verdict) -> bool {
    verdict
        .tasks
        .iter()
        .all(|t| t.exactness == Exactness::Exact)
}

#[test]
fn a_less_urgent_successor_waits_for_nothing_it_would_not_wait_for_anyway() {
    for policy in [FP, EDF, PolicyKind::Fifo] {
        let mut system = periodic(policy, &[(2, 10, 10), (5, 20, 20)]);
        let before = bounds(&system);
        system.tasks[1].after.push(TaskId(0));
        assert_eq!(bounds(&system), before, "{policy:?}");
        assert!(
            all_exact(&verdict(&system)) || policy == PolicyKind::Fifo,
            "{policy:?}"
        );
    }
}

#[test]
fn a_fast_task_that_follows_a_slow_one_does_not_wait_when_it_is_done_by_then() {
    // A controller every 20 that is done after 5, and an actuator every 5 that uses its last
    // output.
    let mut system = periodic(FP, &[(1, 5, 5), (4, 20, 20)]);
    system.tasks[0].follows.push(TaskId(1));
    assert_eq!(bounds(&system), [Some(1), Some(5)]);
    assert!(all_exact(&verdict(&system)));
    // One tick longer and the actuator waits for the rest.
    system.tasks[1].class = Class::Periodic {
        period: span(20),
        wcet: work(5),
        relative_deadline: span(20),
    };
    let v = verdict(&system);
    // 5 + 2·1 = 7, hence a wait of 2 and one actuator more: 5 + ⌈(8 + 2)/5⌉ = 7 still.
    assert_eq!(bounds(&system), [Some(3), Some(7)]);
    assert_eq!(
        v.tasks[0].explanation,
        "3ns = 1ns (own t0) + 2ns (waiting for predecessors)"
    );
    assert_eq!(v.tasks[0].exactness, Exactness::Sufficient);
}

#[test]
fn a_chain_over_cpus_adds_the_responses() {
    let mut system = empty(FP, 3);
    for (cpu, wcet) in [3, 2, 4].into_iter().enumerate() {
        let class = Class::Periodic {
            period: span(20),
            wcet: work(wcet),
            relative_deadline: span(9),
        };
        let cpu = CpuId(u16::try_from(cpu).expect("small"));
        let mut task = Task::new(format!("step{}", cpu.0), cpu, class);
        if cpu.0 > 0 {
            task.after.push(TaskId(u32::from(cpu.0) - 1));
        }
        system.tasks.push(task);
    }
    assert_eq!(bounds(&system), [Some(3), Some(5), Some(9)]);
    assert!(verdict(&system).admitted);
    // Three later it finds its predecessor done, and its successor waits for the job before.
    system.tasks[1].phase = span(3);
    assert_eq!(bounds(&system), [Some(3), Some(2), Some(4)]);
}

#[test]
fn an_urgent_successor_waits_for_its_predecessor_but_no_longer_than_the_busy_window() {
    for policy in [FP, EDF] {
        let mut system = periodic(policy, &[(4, 10, 10), (5, 10, 12)]);
        system.tasks[0].after.push(TaskId(1));
        // Everything is done 9 after it was released together.
        assert_eq!(bounds(&system), [Some(9), Some(9)], "{policy:?}");
    }
}

#[test]
fn tasks_that_follow_each_other_across_cpus_need_no_order() {
    let mut system = periodic(FP, &[(3, 10, 10), (4, 10, 10)]);
    system.cpus.push(system.cpus[0].clone());
    system.tasks[1].cpu = CpuId(1);
    system.tasks[0].follows.push(TaskId(1));
    system.tasks[1].follows.push(TaskId(0));
    assert_eq!(bounds(&system), [Some(3), Some(4)]);
    assert!(all_exact(&verdict(&system)));
}

#[test]
fn nothing_bounds_who_waits_for_background_work() {
    let mut system = periodic(FP, &[(2, 10, 10)]);
    system
        .tasks
        .push(Task::new("logger", CpuId(0), Class::Aperiodic));
    system.tasks[0].after.push(TaskId(1));
    let v = verdict(&system);
    assert!(!v.admitted);
    assert_eq!(v.tasks[0].response_bound, None);
    assert!(
        v.tasks[0].explanation.contains("waits for logger"),
        "{}",
        v.tasks[0].explanation
    );
}

#[test]
fn a_change_of_a_running_system_is_judged_like_a_file() {
    let system = periodic(FP, &[(2, 10, 10), (5, 20, 20)]);
    let class = Class::Periodic {
        period: span(40),
        wcet: work(20),
        relative_deadline: span(40),
    };
    let mut task = Task::new("new", CpuId(0), class);
    task.priority = Priority::new(0);
    let mut changed = system.clone();
    changed.free_phases = true;
    changed.tasks.push(task);
    let joins = admit_transition(std::slice::from_ref(&system), changed.clone()).expect("it ends");
    assert_eq!(joins.when, When::AtOnce);
    assert_eq!(joins.verdict, verdict(&changed));
    assert_eq!(joins.verdict.tasks[2].response_bound, Some(span(38)));
    let mut rest = changed.clone();
    let _ = rest.tasks.remove(0);
    let leaves = admit_transition(&[changed], rest).expect("it ends");
    assert_eq!(leaves.when, When::AtOnce);
    assert_eq!(leaves.verdict.tasks[1].response_bound, Some(span(30)));
    assert!(matches!(
        admit_transition(&[], system),
        Err(AnalysisError::Invalid { .. })
    ));
}

/// A job of 3 that has arrived with one of 1 goes first, whichever of the two tasks leaves.
#[test]
fn what_has_left_and_what_comes_tie_in_the_order_of_the_file() {
    for policy in [PolicyKind::Fifo, FP] {
        let mut system = periodic(policy, &[(3, 10, 10), (1, 10, 10)]);
        for task in &mut system.tasks {
            task.priority = Priority::new(1);
        }
        let expected = [("t0".to_string(), span(3)), ("t1".to_string(), span(4))];
        for (goes, comes) in [(0, 1), (1, 0)] {
            let mut changing = system.clone();
            changing.changes.push(Change {
                name: "swap".into(),
                at: Instant::from_ns(50),
                steps: vec![Step::Stop(TaskId(goes)), Step::Start(TaskId(comes))],
            });
            let transitions = admit_changes(&changing).expect("it ends");
            let swap = transitions.first().expect("there is one change");
            assert_eq!(swap.when, When::AtOnce, "{}", swap.ground);
            for (name, bound) in &expected {
                let found = swap.meanwhile.iter().find(|(other, _)| other == name);
                let found = found.and_then(|(_, bound)| *bound);
                assert_eq!(found, Some(*bound), "{name}, {policy:?}, {goes} goes");
            }
        }
        // Where no file says it, what came first goes first.
        let only = |at: usize| System {
            tasks: vec![system.tasks[at].clone()],
            free_phases: true,
            ..system.clone()
        };
        let swap = admit_transition(&[only(0)], only(1)).expect("it ends");
        let comes = swap.meanwhile.iter().find(|(name, _)| name == "t1");
        assert_eq!(comes.and_then(|(_, bound)| *bound), Some(span(4)));
    }
}

/// A job of a task that leaves as another one changes by bandwidth keeps its deadline, and no
/// shorter response: `cargo xtask soundness --only 96367 --seed 6` found 25 where 24 was promised.
#[test]
fn who_leaves_as_bandwidth_decides_is_promised_the_deadline() {
    let mut system = periodic(EDF, &[(2, 4, 4), (12, 30, 30)]);
    let terms = Terms {
        separation: Some(span(8)),
        budget: Some(work(3)),
        relative_deadline: None,
        priority: None,
    };
    system.changes.push(Change {
        name: "swap".into(),
        at: Instant::from_ns(84),
        steps: vec![Step::Constrain(TaskId(0), terms), Step::Stop(TaskId(1))],
    });
    let transitions = admit_changes(&system).expect("it ends");
    let swap = transitions.first().expect("there is one change");
    assert_eq!(swap.when, When::ZeroLag, "{}", swap.ground);
    let bound = |name: &str| {
        let mut named = swap.meanwhile.iter().filter(|(other, _)| other == name);
        let found = named.next().and_then(|(_, bound)| *bound);
        assert_eq!(named.count(), 0, "{name} is promised one bound");
        found
    };
    assert_eq!(bound("t1"), Some(span(30)));
    assert_eq!(bound("t0"), Some(span(8)));
}

#[test]
fn another_predecessor_is_a_change_though_there_is_one_as_before() {
    let mut before = periodic(FP, &[(1, 20, 20), (8, 20, 20), (2, 20, 20)]);
    before.free_phases = true;
    before.tasks[2].after.push(TaskId(0));
    let mut after = before.clone();
    after.tasks[2].after = vec![TaskId(1)];
    let changed = admit_transition(std::slice::from_ref(&before), after).expect("it ends");
    assert_eq!(changed.when, When::Idle, "{}", changed.ground);
    // The same predecessor under another number is none.
    let mut rest = before.clone();
    let _ = rest.tasks.remove(1);
    rest.tasks.swap(0, 1);
    rest.tasks[0].after = vec![TaskId(1)];
    let leaves = admit_transition(&[before], rest).expect("it ends");
    assert_eq!(leaves.when, When::AtOnce, "{}", leaves.ground);
}

#[test]
fn another_machine_or_requirement_is_no_change_of_a_running_system() {
    let mut before = periodic(FP, &[(1, 20, 20), (2, 20, 20)]);
    before.requirements.push(Requirement::Response {
        task: TaskId(0),
        within: span(5),
    });
    type Change = fn(&mut System);
    let changes: [(Change, &str); 2] = [
        (|s| s.machine.timer = work(1), "machine"),
        (|s| s.requirements.clear(), "requirements"),
    ];
    for (change, word) in changes {
        let mut after = before.clone();
        change(&mut after);
        let answer = admit_transition(std::slice::from_ref(&before), after);
        let Err(AnalysisError::Invalid { what }) = answer else {
            panic!("{answer:?}");
        };
        assert!(what.contains(word), "{what}");
    }
    // One that leaves takes its requirement with it.
    let mut rest = before.clone();
    let _ = rest.tasks.remove(0);
    rest.requirements.clear();
    let leaves = admit_transition(&[before], rest).expect("it ends");
    assert_eq!(leaves.when, When::AtOnce);
}

#[test]
fn numbers_at_the_end_of_the_range_are_errors_and_not_panics() {
    let most = u64::MAX;
    for rows in [
        [(most, most, most), (most, most, most)],
        [(1, 1, most), (1, most, most)],
        [(most / 2, most - 1, most), (most / 2, most, most)],
        [(1, 2, 1), (1, 2, 2)],
    ] {
        for policy in [FP, crate::common::NP_FP, EDF, PolicyKind::Fifo] {
            let mut system = periodic(policy, &rows);
            system.tasks[0].jitter = span(most / 3);
            let answer = admit(&system);
            let admitted = answer.as_ref().is_ok_and(|v| v.admitted);
            assert!(!admitted, "{policy:?} {rows:?}: {answer:?}");
        }
    }
}
