//! Trees: bounds under servers and slots that can be checked by hand

use crate::common::{EDF, FP, bounds, empty, periodic, span, work};
use punctual_analysis::{Exactness, Subject, Witness, admit, is_admitted};
use punctual_model::{
    Class, CpuId, Ns, PolicyKind, Priority, Receiver, Scheduler, SchedulerId, Server, ServerKind,
    Slot, Span, Supply, System, Task, Trust,
};

fn scheduler(name: &str, policy: PolicyKind<Ns>, priority: u32, supply: Supply) -> Scheduler {
    Scheduler {
        name: name.into(),
        cpu: CpuId(0),
        parent: None,
        policy,
        priority: Priority::new(priority),
        supply,
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    }
}

fn server(kind: ServerKind, budget: u64, period: u64) -> Supply {
    Supply::Server(Server {
        kind,
        budget: work(budget),
        period: span(period),
    })
}

fn slots(list: &[(u64, u64)]) -> Supply {
    let slot = |&(at, length): &(u64, u64)| Slot {
        at: span(at),
        length: span(length),
    };
    Supply::Slots(list.iter().map(slot).collect())
}

/// The first `inside` tasks of a system move into scheduler number 0.
fn within(mut system: System, inside: usize, scheduler: Scheduler) -> System {
    system.schedulers.push(scheduler);
    for task in &mut system.tasks[..inside] {
        task.scheduler = Some(SchedulerId(0));
    }
    system
}

#[test]
fn a_task_alone_in_the_most_urgent_server_waits_for_its_next_budget() {
    // Budget 3 in 10 at the top: it always comes at once, so nothing is late but the wait.
    let one = periodic(FP, &[(2, 40, 40)]);
    let bound = |kind| {
        let system = within(one.clone(), 1, scheduler("app", FP, 9, server(kind, 3, 10)));
        bounds(&system)[0]
    };
    assert_eq!(bound(ServerKind::Deferrable), Some(7 + 2));
    assert_eq!(bound(ServerKind::PeriodicResource), Some(7 + 2));
    assert_eq!(bound(ServerKind::Sporadic), Some(7 + 2));
    assert_eq!(bound(ServerKind::ConstantBandwidth), Some(7 + 2));
    assert_eq!(bound(ServerKind::Polling), Some(10 + 2));
    // Five units take two budgets.
    let five = periodic(FP, &[(5, 40, 40)]);
    let system = within(
        five,
        1,
        scheduler("app", FP, 9, server(ServerKind::Deferrable, 3, 10)),
    );
    assert_eq!(bounds(&system)[0], Some(7 + 10 + 2));
}

#[test]
fn a_deferrable_server_hits_twice_where_a_periodic_one_hits_once() {
    // A task below a server of 2 in 10: C = 7, so 9 with one hit, 11 with two back to back.
    let below = periodic(FP, &[(1, 50, 50), (7, 30, 30)]);
    let response = |kind| {
        let system = within(
            below.clone(),
            1,
            scheduler("app", FP, 9, server(kind, 2, 10)),
        );
        bounds(&system)[1]
    };
    assert_eq!(response(ServerKind::Polling), Some(9));
    assert_eq!(response(ServerKind::Deferrable), Some(11));
}

#[test]
fn work_without_deadline_in_a_server_is_said_to_run_on_its_budget() {
    let background = |scheduler| {
        let mut task = Task::new("console", CpuId(0), Class::Aperiodic);
        task.scheduler = scheduler;
        task
    };
    let mut system = empty(FP, 1);
    let supply = server(ServerKind::Deferrable, 2, 10);
    let priorities = PolicyKind::FixedPriority { preemptive: true };
    system
        .schedulers
        .push(scheduler("events", priorities, 2, supply));
    system.schedulers.push(Scheduler {
        parent: Some(SchedulerId(0)),
        ..scheduler("inner", priorities, 1, Supply::Shared)
    });
    let places = [None, Some(SchedulerId(0)), Some(SchedulerId(1))];
    system.tasks = places.map(background).into();
    let rows = admit(&system).expect("a verdict").tasks;
    let says = rows
        .iter()
        .map(|row| row.explanation.as_str())
        .collect::<Vec<_>>();
    assert_eq!(
        says[0],
        "no bound: it runs when no real-time work of its CPU wants to"
    );
    let on_budget = "no bound: nothing says how much it wants; it runs on the budget of events, \
                     2ns in every 10ns, when no real-time work of events wants to";
    assert_eq!(says[1..], [on_budget; 2]);
}

#[test]
fn two_partitions_are_strangers() {
    let tdm = PolicyKind::Tdm {
        frame: span(10),
        scheduling: span(0),
    };
    let mut system = periodic(tdm, &[(2, 20, 20), (1, 40, 40), (5, 20, 20)]);
    system
        .schedulers
        .push(scheduler("a", FP, 1, slots(&[(0, 4)])));
    system
        .schedulers
        .push(scheduler("b", FP, 1, slots(&[(4, 3), (8, 1)])));
    for (task, home) in [(0, 0), (1, 0), (2, 1)] {
        system.tasks[task].scheduler = Some(SchedulerId(home));
    }
    // a: a window from 4 on waits 6; its two tasks are done after 8 and 9.
    // b: the worst begins at 9: [14,17) [18,19) [24,25).
    assert_eq!(bounds(&system), [Some(8), Some(9), Some(16)]);
    let verdict = admit(&system).expect("small numbers");
    assert!(verdict.admitted, "{:?}", verdict.refusals);
    assert_eq!(verdict.cpus[0].utilization_ppm, 800_000);
    assert_eq!(verdict.schedulers[0].blackout, Some(span(6)));
    let sporadic = verdict.tasks[2].assumptions.join(" ");
    assert!(!sporadic.is_empty());
    // The neighbour may do as it likes.
    system.tasks[2].class = punctual_model::Class::Aperiodic;
    assert_eq!(bounds(&system)[..2], [Some(8), Some(9)]);
}

#[test]
fn a_server_that_gets_its_budget_late_is_refused_by_name() {
    let mut system = periodic(FP, &[(6, 10, 10), (1, 20, 20)]);
    system
        .schedulers
        .push(scheduler("app", FP, 1, server(ServerKind::Polling, 5, 10)));
    system.tasks[1].scheduler = Some(SchedulerId(0));
    let verdict = admit(&system).expect("small numbers");
    assert!(!verdict.admitted);
    assert!(!is_admitted(&system).expect("valid"));
    let subjects: Vec<Subject> = verdict.refusals.iter().map(|r| r.subject).collect();
    assert!(
        subjects.contains(&Subject::Cpu(CpuId(0))),
        "it is overloaded: {subjects:?}"
    );
    system.tasks[0].class = punctual_model::Class::Periodic {
        period: span(13),
        wcet: work(6),
        relative_deadline: span(13),
    };
    let verdict = admit(&system).expect("small numbers");
    let first = &verdict.refusals[0];
    assert_eq!(first.subject, Subject::Scheduler(SchedulerId(0)));
    let witness = Witness::Demand {
        at: span(10),
        demand: work(11),
        supply: work(10),
    };
    assert_eq!(first.witness, Some(witness));
    assert_eq!(verdict.refusals.len(), 1, "the task inside is not blamed");
}

#[test]
fn a_shared_child_is_analysed_with_everything_more_urgent_above() {
    // The same tasks, flat and with the middle two in a child of their own.
    let rows = [(1, 8, 8), (2, 16, 16), (3, 32, 32), (4, 64, 64)];
    let flat = periodic(FP, &rows);
    let mut tree = flat.clone();
    tree.schedulers
        .push(scheduler("mid", FP, 3, Supply::Shared));
    tree.tasks[1].scheduler = Some(SchedulerId(0));
    tree.tasks[2].scheduler = Some(SchedulerId(0));
    tree.tasks[0].priority = Priority::new(5);
    assert_eq!(bounds(&tree), bounds(&flat));
    let verdict = admit(&tree).expect("small numbers");
    assert_eq!(verdict.tasks[2].exactness, Exactness::Exact);
}

#[test]
fn edf_inside_a_server_is_tested_against_its_supply() {
    // Shin and Lee 2003: Γ(5, 3) supplies 0 until 4, then 3 of every 5.
    let inside = |tasks: &[(u64, u64, u64)]| {
        let system = periodic(FP, tasks);
        let home = scheduler("app", EDF, 1, server(ServerKind::PeriodicResource, 3, 5));
        within(system, tasks.len(), home)
    };
    // The budget comes within 3 here: supply after 2, 3 of every 5.
    assert!(admit(&inside(&[(3, 5, 5)])).expect("small").admitted);
    assert!(!admit(&inside(&[(3, 5, 4)])).expect("small").admitted);
    assert!(
        admit(&inside(&[(1, 6, 5), (2, 8, 8)]))
            .expect("small")
            .admitted
    );
}

#[test]
fn a_server_in_a_server_gets_what_the_outer_one_leaves() {
    // Outer 5 in 10 at the top; inner 2 in 20 inside: its budget comes within 5 + 2.
    let mut system = periodic(FP, &[(2, 100, 100)]);
    system.schedulers.push(scheduler(
        "outer",
        FP,
        1,
        server(ServerKind::PeriodicResource, 5, 10),
    ));
    let mut inner = scheduler("inner", FP, 1, server(ServerKind::PeriodicResource, 2, 20));
    inner.parent = Some(SchedulerId(0));
    system.schedulers.push(inner);
    system.tasks[0].scheduler = Some(SchedulerId(1));
    let verdict = admit(&system).expect("small numbers");
    assert_eq!(verdict.schedulers[1].budget_bound, Some(span(7)));
    // T − Q = 18, and the budget 5 late.
    assert_eq!(verdict.tasks[0].response_bound, Some(span(18 + 5 + 2)));
}

#[test]
fn more_budget_is_never_worse_inside() {
    for kind in ServerKind::ALL {
        let mut last = u64::MAX;
        for budget in 1..=10 {
            let one = periodic(FP, &[(4, 100, 100), (3, 200, 200)]);
            let system = within(one, 2, scheduler("app", FP, 9, server(kind, budget, 10)));
            let found = bounds(&system)[1].expect("enough");
            assert!(found <= last, "{kind:?} {budget}");
            last = found;
        }
    }
}

#[test]
fn an_empty_tree_changes_nothing() {
    let mut system = periodic(FP, &[(1, 4, 4), (2, 8, 8)]);
    let before = bounds(&system);
    system
        .schedulers
        .push(scheduler("idle", FP, 1, Supply::Shared));
    assert_eq!(bounds(&system), before);
}

#[test]
fn a_task_that_is_late_in_its_scheduler_is_mended_by_more_supply() {
    // 4 in 10 at the top: 6 + 10 + 1 for 5 units; by 16 it takes a budget of 5: 5 + 5.
    let one = periodic(FP, &[(5, 40, 16)]);
    let home = scheduler("app", FP, 9, server(ServerKind::Deferrable, 4, 10));
    let mut system = within(one, 1, home);
    let verdict = admit(&system).expect("small numbers");
    let fix = verdict.refusals[0].fix.clone().expect("more budget");
    assert_eq!(
        fix.to_string(),
        "scheduler.app.server.budget = \"5ns\" instead of \"4ns\""
    );
    fix.apply(&mut system);
    assert!(admit(&system).expect("small numbers").admitted);

    let tdm = PolicyKind::Tdm {
        frame: span(10),
        scheduling: span(1),
    };
    let mut system = periodic(tdm, &[(5, 40, 16), (1, 40, 40)]);
    system
        .schedulers
        .push(scheduler("a", FP, 1, slots(&[(0, 3)])));
    system
        .schedulers
        .push(scheduler("b", FP, 1, slots(&[(7, 2)])));
    for (task, home) in [(0, 0), (1, 1)] {
        system.tasks[task].scheduler = Some(SchedulerId(home));
    }
    let verdict = admit(&system).expect("small numbers");
    let fix = verdict.refusals[0].fix.clone().expect("a longer slot");
    assert_eq!(fix.parameter, "scheduler.a.slots[0].length");
    assert_eq!(fix.to, span(5));
    fix.apply(&mut system);
    assert!(admit(&system).expect("small numbers").admitted);
}

#[test]
fn a_task_that_is_late_in_its_own_slots_is_mended_by_the_smallest_longer_slot() {
    let tdm = PolicyKind::Tdm {
        frame: span(10),
        scheduling: span(1),
    };
    // 5 in slots of 3 in 10: 7 + 3 + 7 + 2 = 19; by 16 it takes slots of 5: 5 + 5 = 10.
    let mut system = periodic(tdm, &[(5, 40, 16), (1, 40, 40)]);
    for (task, at, length) in [(0, 0, 3), (1, 7, 2)] {
        system.tasks[task].slots = vec![punctual_model::Slot {
            at: Span::from_ns(at),
            length: span(length),
        }];
    }
    let verdict = admit(&system).expect("small numbers");
    let fix = verdict.refusals[0].fix.clone().expect("a longer slot");
    assert_eq!(
        fix.to_string(),
        "task.t0.slots[0].length = \"5ns\" instead of \"3ns\""
    );
    let mut shorter = system.clone();
    fix.apply(&mut system);
    assert!(admit(&system).expect("small numbers").admitted);
    shorter.tasks[0].slots[0].length = span(4);
    assert!(!admit(&shorter).expect("small numbers").admitted);
}

#[test]
fn a_server_whose_budget_comes_late_is_mended_by_less_of_it() {
    let mut system = periodic(FP, &[(6, 13, 13), (1, 20, 20)]);
    system
        .schedulers
        .push(scheduler("app", FP, 1, server(ServerKind::Polling, 5, 10)));
    system.tasks[1].scheduler = Some(SchedulerId(0));
    let verdict = admit(&system).expect("small numbers");
    let fix = verdict.refusals[0].fix.clone().expect("less budget");
    assert_eq!(
        fix.to_string(),
        "scheduler.app.server.budget = \"4ns\" instead of \"5ns\""
    );
}

#[test]
fn a_slice_is_guaranteed_or_background_and_the_verdict_says_why() {
    // The giver has 4 in 10, of which its own task takes 3 in 20 before the slice or after it.
    let judged = |priority: u32, every: u64, ends: bool| {
        let mut system = within(
            periodic(FP, &[(3, 20, 20), (1, 40, 40)]),
            1,
            scheduler("giver", FP, 9, server(ServerKind::Deferrable, 4, 10)),
        );
        let given = server(ServerKind::Deferrable, 1, every);
        let mut slice = scheduler("giver:b", FP, priority, given);
        slice.parent = Some(SchedulerId(0));
        slice.receiver = Some(Receiver {
            scheduler: None,
            task: Some("b".into()),
        });
        system.schedulers.push(slice);
        system.tasks[0].priority = Priority::new(5);
        system.tasks[1].scheduler = Some(SchedulerId(1));
        if !ends {
            system.tasks[1].class = Class::Aperiodic;
        }
        let verdict = admit(&system).expect("checked");
        let slice = verdict.schedulers[1].slice.clone().expect("a slice");
        assert_eq!((slice.by.as_str(), slice.to.as_str()), ("giver", "task.b"));
        let answers = (slice.is_guaranteed, verdict.admitted);
        assert_eq!(is_admitted(&system), Ok(verdict.admitted));
        (answers, slice.reason, verdict.tasks[1].response_bound)
    };
    // Before the task: 6 without supply, and 1.
    let (answers, reason, bound) = judged(6, 10, true);
    assert_eq!(answers, (true, true), "{reason}");
    assert!(reason.starts_with("given whole within 7ns"), "{reason}");
    assert_eq!(bound, Some(span(15 + 1)));
    // Behind it, in 8: the task may take 3 of the 4, and the supply may be as late as 6.
    let (answers, reason, bound) = judged(4, 8, true);
    assert_eq!(answers, (false, false), "{reason}");
    assert!(
        reason.contains("its supply may not give the slice within 8ns"),
        "{reason}"
    );
    assert_eq!(bound, None, "nothing on it is bounded");
    // Where nobody on it has a deadline, that is no reason to refuse the others.
    let (answers, reason, bound) = judged(4, 8, false);
    assert_eq!(answers, (false, true), "{reason}");
    assert_eq!(bound, None);
}
