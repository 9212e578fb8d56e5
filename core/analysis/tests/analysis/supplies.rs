//! Suggested budgets and slots: admitted, and one step less is refused

use crate::common::random::Random;
use crate::common::{EDF, FP, periodic, span, work};
use punctual_analysis::{Aim, NoSuggestion, When, admit, admit_transition, is_admitted, suggest};
use punctual_model::{
    Class, CpuId, Ns, PolicyKind, Priority, Scheduler, SchedulerId, Server, ServerKind, Slot, Span,
    Supply, System, Trust, Work,
};

fn child(name: &str, policy: PolicyKind<Ns>, priority: u32, supply: Supply) -> Scheduler {
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

fn budget(system: &System, index: usize) -> u64 {
    match system.schedulers[index].supply {
        Supply::Server(server) => server.budget.as_ns(),
        _ => panic!("it is a server"),
    }
}

fn period(system: &System, index: usize) -> u64 {
    match system.schedulers[index].supply {
        Supply::Server(server) => server.period.as_ns(),
        _ => panic!("it is a server"),
    }
}

fn with_budget(system: &System, index: usize, budget: u64) -> System {
    let mut changed = system.clone();
    if let Supply::Server(server) = &mut changed.schedulers[index].supply {
        server.budget = Work::from_ns(budget);
    }
    changed
}

#[test]
fn the_grace_of_a_sibling_is_executed_on_the_budget_of_their_server() {
    let mut system = periodic(FP, &[(5, 100, 1_000), (4, 100, 1_000)]);
    let supply = server(ServerKind::Polling, 10, 100);
    system.schedulers.push(child("s0", FP, 9, supply));
    for task in &mut system.tasks {
        task.scheduler = Some(SchedulerId(0));
    }
    let last = |system: &System| admit(system).expect("valid").tasks[1].response_bound;
    let free = last(&system).expect("bounded");
    system.machine.timer = work(1);
    // A sibling that overruns executes 2 beyond its 5, and 10 are not enough for both: the second
    // task goes on with the next budget, which comes a period later.
    let paid = last(&system).expect("bounded");
    assert!(paid >= free.saturating_add(span(90)), "{free:?}, {paid:?}");
}

/// Two servers with a task each, and a task beside them.
fn two_servers(random: &mut Random) -> System {
    let pick = |random: &mut Random, from: &[u64]| {
        from[usize::try_from(random.within(0, from.len() as u64 - 1)).expect("small")]
    };
    let mut rows = Vec::new();
    for _ in 0..3 {
        let period = pick(random, &[30, 40, 60]);
        rows.push((random.within(1, 12), period, period));
    }
    let policy = [FP, EDF][usize::from(random.within(0, 2) == 0)];
    let mut system = periodic(policy, &rows);
    for (index, priority) in [(0, 9), (1, random.within(0, 8))] {
        let kind = match random.within(0, 3) {
            0 => ServerKind::Polling,
            1 => ServerKind::Sporadic,
            2 => ServerKind::PeriodicResource,
            _ => ServerKind::Deferrable,
        };
        let period = pick(random, &[8, 10, 12]);
        let name = format!("s{index}");
        let priority = u32::try_from(priority).expect("small");
        let supply = server(kind, 1, period);
        system.schedulers.push(child(&name, FP, priority, supply));
        system.tasks[index].scheduler = Some(SchedulerId(u16::try_from(index).expect("small")));
    }
    system
}

#[test]
fn no_smaller_budgets_are_admitted_than_those_suggested() {
    let mut random = Random::new(41);
    let (mut found, mut none) = (0, 0);
    for seed in 0..150 {
        let system = two_servers(&mut random);
        let admitted = |a: u64, b: u64| {
            let changed = with_budget(&with_budget(&system, 0, a), 1, b);
            is_admitted(&changed).expect("valid")
        };
        match suggest(&system, Aim::Budgets) {
            Ok(suggestion) => {
                let (a, b) = (budget(&suggestion.system, 0), budget(&suggestion.system, 1));
                assert_eq!(is_admitted(&suggestion.system), Ok(true), "seed {seed}");
                for x in 1..=a {
                    for y in 1..=b {
                        let same = (x, y) == (a, b);
                        assert_eq!(admitted(x, y), same, "seed {seed}: {x} {y} of {a} {b}");
                    }
                }
                found += 1;
            }
            Err(NoSuggestion::Reason(_)) => {
                let most = [period(&system, 0), period(&system, 1)];
                let any = (1..=most[0]).any(|a| (1..=most[1]).any(|b| admitted(a, b)));
                assert!(!any, "seed {seed}: {system:#?}");
                none += 1;
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(found > 40, "{found}");
    assert!(none > 5, "{none}");
}

#[test]
fn a_server_with_background_work_alone_keeps_its_budget() {
    let mut system = periodic(FP, &[(2, 20, 20)]);
    let supply = server(ServerKind::Deferrable, 3, 10);
    system.schedulers.push(child("idle", FP, 1, supply));
    let Err(NoSuggestion::Reason(reason)) = suggest(&system, Aim::Budgets) else {
        panic!("there is nothing to suggest");
    };
    assert!(
        reason.contains("no server here has real-time work"),
        "{reason}"
    );
}

/// `a` at 0, `b` at 5 and 8, in a frame of 10 with 1 between slots.
fn divided(tasks: &[(u64, u64, u64)]) -> System {
    let tdm = PolicyKind::Tdm {
        frame: span(10_000),
        scheduling: span(100),
    };
    let slot = |at, length| Slot {
        at: span(at),
        length: span(length),
    };
    let mut system = periodic(tdm, tasks);
    let a = Supply::Slots(vec![slot(0, 4_000)]);
    let b = Supply::Slots(vec![slot(5_000, 2_000), slot(8_000, 1_000)]);
    system.schedulers.push(child("a", EDF, 0, a));
    system.schedulers.push(child("b", FP, 0, b));
    for (index, task) in system.tasks.iter_mut().enumerate() {
        task.scheduler = Some(SchedulerId(u16::from(index > 0)));
    }
    system
}

fn lengths(system: &System, index: usize) -> Vec<u64> {
    match &system.schedulers[index].supply {
        Supply::Slots(slots) => slots.iter().map(|s| s.length.as_ns()).collect(),
        _ => panic!("it has slots"),
    }
}

#[test]
fn slots_become_as_short_as_their_work_allows() {
    let system = divided(&[(1_000, 20_000, 20_000), (2_000, 20_000, 20_000)]);
    let suggestion = suggest(&system, Aim::Slots).expect("there are some");
    let shorter = &suggestion.system;
    assert_eq!(is_admitted(shorter), Ok(true));
    for index in 0..2 {
        let best = lengths(shorter, index);
        for place in 0..best.len() {
            let mut less = shorter.clone();
            if let Supply::Slots(slots) = &mut less.schedulers[index].supply {
                slots[place].length = Span::from_ns(best[place] - 1);
            }
            let admitted = is_admitted(&less).expect("valid");
            assert!(
                best[place] == 1 || !admitted,
                "slot {place} of {index}: {best:?}"
            );
        }
    }
    // One job of 1000 within 20000: any such window has the time of two slots.
    assert_eq!(lengths(shorter, 0), [500]);
    let first = suggestion
        .changes
        .first()
        .expect("shorter slots")
        .to_string();
    assert_eq!(
        first,
        "scheduler.a.slots[0].length = \"500ns\" instead of \"4us\""
    );
}

#[test]
fn slots_that_are_too_short_grow_up_to_the_next_owner() {
    let system = divided(&[(4_500, 10_000, 10_000), (500, 20_000, 20_000)]);
    assert_eq!(is_admitted(&system), Ok(false));
    let suggestion = suggest(&system, Aim::Slots).expect("there are some");
    assert_eq!(lengths(&suggestion.system, 0), [4_500]);
    assert_eq!(is_admitted(&suggestion.system), Ok(true));
    let system = divided(&[(4_901, 10_000, 10_000), (500, 20_000, 20_000)]);
    let Err(NoSuggestion::Reason(reason)) = suggest(&system, Aim::Slots) else {
        panic!("there is no room");
    };
    assert!(reason.contains("scheduler.a"), "{reason}");
}

#[test]
fn servers_get_priorities_among_the_tasks_beside_them() {
    let mut random = Random::new(43);
    let mut found = 0;
    for seed in 0..200 {
        let mut system = two_servers(&mut random);
        system.cpus[0].policy = FP;
        for index in 0..2 {
            system = with_budget(&system, index, random.within(2, 4));
            system.schedulers[index].priority = Priority::LOWEST;
        }
        for task in &mut system.tasks {
            task.priority = Priority::LOWEST;
        }
        match suggest(&system, Aim::Priorities) {
            Ok(suggestion) => {
                assert_eq!(is_admitted(&suggestion.system), Ok(true), "seed {seed}");
                found += usize::from(!suggestion.changes.is_empty());
            }
            // Everybody at the root: two servers and a task, in any order.
            Err(NoSuggestion::Reason(reason)) => {
                let orders = [
                    [1, 2, 3],
                    [1, 3, 2],
                    [2, 1, 3],
                    [2, 3, 1],
                    [3, 1, 2],
                    [3, 2, 1],
                ];
                let any = orders.iter().any(|order| {
                    let mut changed = system.clone();
                    changed.schedulers[0].priority = Priority::new(order[0]);
                    changed.schedulers[1].priority = Priority::new(order[1]);
                    changed.tasks[2].priority = Priority::new(order[2]);
                    is_admitted(&changed).expect("valid")
                });
                assert!(!any, "seed {seed}: {reason} {system:#?}");
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(found > 10, "{found}");
}

#[test]
fn a_change_inside_one_supply_waits_for_that_scheduler_alone() {
    let mut system = periodic(
        EDF,
        &[(50, 700, 700), (300, 2_000, 1_000), (90, 1_000, 1_000)],
    );
    let supply = server(ServerKind::Polling, 400, 500);
    system.schedulers.push(child("app", EDF, 9, supply));
    for task in &mut system.tasks[..2] {
        task.scheduler = Some(SchedulerId(0));
    }
    let judged = |change: &dyn Fn(&mut System)| {
        let mut before = system.clone();
        change(&mut before);
        assert!(is_admitted(&before).expect("valid"));
        let mut after = before.clone();
        after.tasks[0].class = Class::Periodic {
            period: span(2_000),
            wcet: work(100),
            relative_deadline: span(1_000),
        };
        let transition = admit_transition(&[before], after).expect("valid");
        (transition.when, transition.idle)
    };
    let app = Some("app".to_string());
    assert_eq!(judged(&|_| {}), (When::Idle, app));
    // Entries, locks and sections cross the border.
    for crosses in [
        |system: &mut System| system.machine.timer = work(1),
        |system: &mut System| system.tasks[2].non_preemptive = work(1),
    ] {
        let (_, idle) = judged(&crosses);
        assert_eq!(idle, None);
    }
}

#[test]
fn a_server_changes_when_its_cpu_is_idle_if_the_new_one_is_admitted() {
    let mut system = periodic(FP, &[(2, 30, 30), (3, 30, 30)]);
    let supply = server(ServerKind::Deferrable, 3, 10);
    system.schedulers.push(child("app", FP, 9, supply));
    system.tasks[0].scheduler = Some(SchedulerId(0));
    let change = |budget| {
        let server = Server {
            kind: ServerKind::Deferrable,
            budget: work(budget),
            period: span(10),
        };
        let mut changed = system.clone();
        changed.schedulers[0].supply = Supply::Server(server);
        admit_transition(std::slice::from_ref(&system), changed).expect("valid")
    };
    assert_eq!(change(2).when, When::Idle);
    assert_eq!(
        change(10).when,
        When::Never,
        "nothing is left for the other task"
    );
    assert_eq!(budget(&change(2).system, 0), 2);
}
