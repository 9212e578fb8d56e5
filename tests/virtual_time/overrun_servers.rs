//! Servers that give to sections more than their budgets, and pay back, delay nobody too long.
//!
//! Jobs come once in a long while, at instants a few ticks apart, around the ends of two budgets in
//! a row: the second one may have paid back for the first, and end early.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use punctual::{
    Class, Cpu, CpuId, PolicyKind, Priority, SimOptions, Span, System, Task, Work, admit,
};
use punctual_generate::Dice;
use punctual_model::{
    AtBudgetEnd, Mode, Ns, Protocol, Resource, ResourceId, Scheduler, SchedulerId, Server,
    ServerKind, Supply, Trust, Use,
};

use crate::responses::{self, longest};

const FIXED: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };
const EDF: PolicyKind<Ns> = PolicyKind::EarliestDeadlineFirst;
const LONG: u64 = 1_000;

fn task(name: String, period: u64, wcet: u64, priority: u32, phase: u64) -> Task {
    let mut task = responses::task(name, period, wcet);
    task.priority = Priority::new(priority);
    task.phase = Span::from_ns(phase);
    task
}

/// A CPU with one server and two resources, without tasks.
fn empty(dice: &mut Dice, server: Server<Ns>) -> System {
    let policy = [FIXED, EDF][dice.index(2)];
    let ceiling = match policy {
        FIXED => Protocol::ImmediateCeiling,
        _ => Protocol::StackResource,
    };
    let mut resource = |name: &str| Resource {
        name: name.into(),
        protocol: [Protocol::Inheritance, ceiling][dice.index(2)],
        at_budget_end: match dice.index(3) {
            0 => AtBudgetEnd::CheckFirst,
            _ => AtBudgetEnd::Overrun,
        },
    };
    let resources = ["a", "b"].map(&mut resource).into();
    System {
        cpus: vec![Cpu {
            name: "0".into(),
            host: None,
            policy: [FIXED, EDF][dice.index(2)],
        }],
        schedulers: vec![Scheduler {
            name: "s".into(),
            cpu: CpuId(0),
            parent: None,
            policy,
            priority: Priority::new(5),
            supply: Supply::Server(server),
            trust: Trust::Inline,
            quota: None,
            receiver: None,
            fallback: None,
            code: None,
        }],
        resources,
        ..System::default()
    }
}

/// A task below the server, most often with one job in all.
fn served(dice: &mut Dice, name: String, (budget, period): (u64, u64)) -> Task {
    let wcet = match dice.index(6) {
        0 => 1 + dice.below(4 * budget),
        _ => 1 + dice.below(budget + 2),
    };
    let priority = 1 + u32::try_from(dice.below(4)).unwrap();
    let separation = match dice.index(4) {
        0 => period * (2 + dice.below(3)),
        _ => LONG,
    };
    let phase = dice.below(2 * period + 3);
    let mut task = task(name, separation, wcet, priority, phase);
    task.scheduler = Some(SchedulerId(0));
    if dice.below(6) == 0 {
        task.max_suspension = Span::from_ns(1 + dice.below(period));
        task.suspensions = 1;
    }
    // As many of a resource, one after the other, as the wcet has room for.
    let length = 1 + dice.below(wcet.min(6));
    let resource = ResourceId(u16::try_from(dice.below(2)).unwrap());
    let mode = [Mode::Exclusive, Mode::Exclusive, Mode::Shared][dice.index(3)];
    let most = wcet / length;
    let sections = most.min([0, 1, 1, 2, 8][dice.index(5)]);
    task.uses = (0..sections)
        .map(|_| Use {
            resource,
            length: Work::from_ns(length),
            mode,
            inside: None,
        })
        .collect();
    task
}

/// A server beside a more urgent task that begins later, and three to five tasks below the server.
fn system(seed: u64) -> System {
    let mut dice = Dice::new(seed);
    let period = 8 + dice.below(13);
    let budget = 2 + dice.below(period / 2);
    let server = Server {
        kind: ServerKind::ALL[dice.index(ServerKind::ALL.len())],
        budget: Work::from_ns(budget),
        period: Span::from_ns(period),
    };
    let mut system = empty(&mut dice, server);
    let above = dice.below(period - budget + 1);
    if above > 0 {
        let phase = period * (1 + dice.below(3));
        let above = task("above".into(), period, above, 9, phase);
        system.tasks.push(above);
    }
    for index in 0..3 + dice.below(3) {
        let task = served(&mut dice, format!("t{index}"), (budget, period));
        system.tasks.push(task);
    }
    system
}

/// The longest response of each task until an instant.
fn responses_until(system: &System, end: u64) -> Vec<u64> {
    let options = SimOptions {
        duration: Some(Span::from_ns(end)),
        ..SimOptions::default()
    };
    longest(system, &options)
}

#[test]
fn sections_at_the_end_of_two_budgets_in_a_row_delay_nobody_beyond_the_bounds() {
    let mut admitted = 0;
    for seed in 0..5_000 {
        let system = system(seed);
        let verdict = admit(&system);
        let Some(verdict) = verdict.ok().filter(|verdict| verdict.admitted) else {
            continue;
        };
        admitted += 1;
        // Time for two jobs of the rare ones.
        let seen = responses_until(&system, 2 * LONG);
        for (task, seen) in seen.into_iter().enumerate() {
            let bound = verdict.tasks[task].response_bound.unwrap().as_ns();
            let name = &system.tasks[task].name;
            assert!(
                seen <= bound,
                "seed {seed}: {name} took {seen}, bound {bound}:\n{system:?}"
            );
        }
    }
    assert!(admitted > 1_000, "only {admitted} systems admitted");
}

/// The worst case by hand, tick for tick: `low` overruns the first budget by almost 200, so the
/// second ends after 801 in place of 1,000, in a section of the next job of `low`. Just then `high`
/// comes.
#[test]
fn a_budget_that_pays_back_is_used_up_sooner() {
    let server = |kind| Server {
        kind,
        budget: Work::from_ns(1_000),
        period: Span::from_ns(2_000),
    };
    for kind in [ServerKind::Deferrable, ServerKind::PeriodicResource] {
        let mut system = system(0);
        system.cpus[0].policy = FIXED;
        system.schedulers[0].policy = FIXED;
        system.schedulers[0].supply = Supply::Server(server(kind));
        system.resources[0].protocol = Protocol::ImmediateCeiling;
        system.resources[0].at_budget_end = AtBudgetEnd::Overrun;
        system.tasks = vec![
            task("above".into(), 2_000, 500, 9, 4_000),
            task("high".into(), 40_000, 1_000, 3, 2_802),
            task("first".into(), 40_000, 899, 2, 0),
            task("second".into(), 40_000, 600, 2, 2_000),
            task("low".into(), 2_000, 400, 1, 0),
        ];
        for task in &mut system.tasks[1..] {
            task.scheduler = Some(SchedulerId(0));
        }
        system.tasks[4].class = Class::Periodic {
            period: Span::from_ns(2_000),
            wcet: Work::from_ns(400),
            relative_deadline: Span::from_ns(40_000),
        };
        system.tasks[4].uses = vec![Use {
            resource: ResourceId(0),
            length: Work::from_ns(200),
            mode: Mode::Exclusive,
            inside: None,
        }];
        let verdict = admit(&system).unwrap();
        let bound = verdict.tasks[1].response_bound.unwrap().as_ns();
        let seen = responses_until(&system, 40_000)[1];
        assert!(
            seen <= bound && bound - seen <= 4,
            "{kind:?}: {seen}, bound {bound}"
        );
    }
}

/// `b` is kept in its section until its server's deadline is past, and what it executes then renews
/// the budget, less the 2 that it had overrun. `a` waits for the whole of a budget, and no other
/// thing is to come.
#[test]
fn a_section_waits_for_the_next_budget_where_a_charge_renewed_the_last() {
    let mut system = system(0);
    system.cpus[0].policy = FIXED;
    system.schedulers[0].policy = FIXED;
    system.schedulers[0].supply = Supply::Server(Server {
        kind: ServerKind::ConstantBandwidth,
        budget: Work::from_ns(10),
        period: Span::from_ns(20),
    });
    let rules = [AtBudgetEnd::CheckFirst, AtBudgetEnd::Overrun];
    for (resource, rule) in system.resources.iter_mut().zip(rules) {
        (resource.protocol, resource.at_budget_end) = (Protocol::Inheritance, rule);
    }
    system.tasks = vec![
        task("above".into(), 2_000, 9, 9, 1),
        task("a".into(), 2_000, 10, 4, 18),
        task("b".into(), 2_000, 8, 1, 0),
        task("c".into(), 2_000, 6, 2, 0),
    ];
    for (task, resource, length) in [(1, 0, 10), (2, 1, 6)] {
        system.tasks[task].uses = vec![Use {
            resource: ResourceId(resource),
            length: Work::from_ns(length),
            mode: Mode::Exclusive,
            inside: None,
        }];
    }
    for task in &mut system.tasks[1..] {
        task.scheduler = Some(SchedulerId(0));
    }
    let verdict = admit(&system).unwrap();
    let bound = verdict.tasks[1].response_bound.unwrap().as_ns();
    let seen = responses_until(&system, 10_000)[1];
    assert!(seen <= bound && seen == 52, "took {seen}, bound {bound}");
}
