//! The cost of an overrun is counted once, and owed: budgets in virtual time, and admission.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use punctual::{
    Class, Cpu, CpuId, Faults, PolicyKind, SimOptions, Span, System, Task, TaskId, Work, Workloads,
    admit, simulate_unjudged, terms_on,
};
use punctual_analysis::funding;
use punctual_kern::TraceEvent;
use punctual_model::{
    Funding, Instant, Machine, OnOverrun, Priority, Reserve, Scheduler, Supply, Trust,
};
use punctual_sim::{MissingTime, Overrun};
use punctual_trace::{Behavior, Record};

use crate::responses::task;

/// A task of 10 in every 100, whose jobs need so many thousandths of that.
fn alone(per_mille: u32, on_overrun: OnOverrun) -> (System, SimOptions) {
    let mut task = task("t", 100, 10);
    task.on_overrun = on_overrun;
    let system = System {
        cpus: vec![Cpu {
            name: "0".into(),
            host: None,
            policy: PolicyKind::EarliestDeadlineFirst,
        }],
        tasks: vec![task],
        ..System::default()
    };
    let overrun = Overrun {
        task: TaskId(0),
        per_mille,
    };
    // Budgets of 10 + 2 + 3.
    let funding = Funding {
        stretches: vec![Work::from_ns(2)],
        grace: Work::from_ns(3),
        stop: Work::from_ns(5),
        ..Funding::default()
    };
    let options = SimOptions {
        duration: Some(Span::from_ns(600)),
        faults: Faults {
            overruns: vec![overrun],
            funding: Some(funding),
            ..Faults::default()
        },
        ..SimOptions::default()
    };
    (system, options)
}

/// That task, on a CPU with a scheduler below: there debts last over idle times.
fn in_a_tree(per_mille: u32, on_overrun: OnOverrun) -> (System, SimOptions) {
    let (mut system, options) = alone(per_mille, on_overrun);
    let below = Scheduler {
        name: "below".into(),
        cpu: CpuId(0),
        parent: None,
        policy: PolicyKind::EarliestDeadlineFirst,
        priority: Priority::new(1),
        supply: Supply::Shared,
        trust: Trust::Inline,
        quota: None,
        fallback: None,
        code: None,
        receiver: None,
    };
    system.schedulers.push(below);
    system.cpus[0].policy = PolicyKind::FixedPriority { preemptive: true };
    (system, options)
}

/// The budgets that the first task gets, one after the other.
fn budgets((system, options): (System, SimOptions)) -> Vec<u64> {
    let log = simulate_unjudged(&system, &options, &mut Workloads::new(), &mut |_| true).unwrap();
    assert_eq!(punctual_rules::check(&log), []);
    let granted = |(_, record)| match record {
        Record::Trace(TraceEvent::Started { budget, .. }) => budget.map(Work::ticks),
        Record::Trace(TraceEvent::Replenished { budget, .. }) => Some(budget.ticks()),
        _ => None,
    };
    log.cpus[0].records.iter().filter_map(granted).collect()
}

#[test]
fn a_job_owes_what_it_uses_of_its_grace_and_what_it_costs_to_stop_it() {
    // 12 are counted: nothing is owed.
    assert_eq!(budgets(in_a_tree(1_200, OnOverrun::Throttle)), [15; 6]);
    // 13 of 15: one of the grace of 3.
    let by_one = budgets(in_a_tree(1_300, OnOverrun::Throttle));
    assert_eq!(by_one[..3], [15, 14, 13]);
    // 15 of 15, and stopped: 3 and 5.
    let stopped = budgets(in_a_tree(9_000, OnOverrun::Throttle));
    assert_eq!(stopped[..6], [15, 7, 7, 7, 7, 7]);
    // Under a rule that ends the job its successor owes.
    let ended = budgets(in_a_tree(9_000, OnOverrun::Demote));
    assert_eq!(ended[..2], [15, 7]);
}

#[test]
fn nothing_is_owed_across_an_idle_instant() {
    assert_eq!(budgets(alone(1_300, OnOverrun::Throttle)), [15; 6]);
    assert_eq!(budgets(alone(9_000, OnOverrun::Throttle))[..6], [15; 6]);
}

#[test]
fn a_job_that_waits_for_a_throttled_one_keeps_the_busy_window_open() {
    let (mut system, options) = alone(9_000, OnOverrun::Throttle);
    let mut waiting = system.tasks[0].clone();
    waiting.name = "waiting".into();
    waiting.after = vec![TaskId(0)];
    system.tasks.push(waiting);
    // The second never begins, and the first gets what the debts leave.
    assert_eq!(budgets((system, options))[..4], [15, 7, 7, 7]);
}

#[test]
fn a_preempted_job_fills_its_caches_on_the_budget_of_the_one_that_preempts_it() {
    let task = |name: &str, (phase, wcet, deadline)| {
        let class = Class::Periodic {
            period: Span::from_ns(100),
            wcet: Work::from_ns(wcet),
            relative_deadline: Span::from_ns(deadline),
        };
        let mut task = Task::new(name, CpuId(0), class);
        task.phase = Span::from_ns(phase);
        task
    };
    let (mut system, _) = alone(1_000, OnOverrun::Throttle);
    system.tasks = vec![task("long", (0, 20, 100)), task("urgent", (5, 10, 50))];
    let funding = Funding {
        stretches: vec![Work::from_ns(6); 2],
        cache_delay: Work::from_ns(4),
        ..Funding::default()
    };
    let overrun = Overrun {
        task: TaskId(1),
        per_mille: 9_000,
    };
    let options = SimOptions {
        duration: Some(Span::from_ns(100)),
        faults: Faults {
            overruns: vec![overrun],
            cache_delay: Work::from_ns(4),
            funding: Some(funding),
            ..Faults::default()
        },
        ..SimOptions::default()
    };
    let log = simulate_unjudged(&system, &options, &mut Workloads::new(), &mut |_| true).unwrap();
    assert_eq!(punctual_rules::check(&log), []);
    let switches = log.cpus[0].records.iter();
    let switches =
        switches.filter(|(_, r)| matches!(r, Record::Trace(TraceEvent::Switched { .. })));
    let switches = switches.map(|(at, _)| at.ticks());
    // `urgent` holds 10 + 6 and executes 12: 4 are for the caches of `long`, which does 20 + 4.
    assert_eq!(switches.take(4).collect::<Vec<_>>(), [0, 5, 17, 36]);
}

/// Its clock charges an entry to nobody: a job that is interrupted has lost nothing.
#[test]
fn virtual_time_gives_back_no_more_than_it_has_charged() {
    let (mut system, mut options) = alone(9_000, OnOverrun::Throttle);
    let mut urgent = system.tasks[0].clone();
    urgent.name = "urgent".into();
    urgent.phase = Span::from_ns(5);
    urgent.class = Class::Periodic {
        period: Span::from_ns(100),
        wcet: Work::from_ns(10),
        relative_deadline: Span::from_ns(50),
    };
    system.tasks.push(urgent);
    options.faults.timer_cost = Work::from_ns(5);
    options.faults.funding = Some(Funding {
        entry: Work::from_ns(5),
        ..Funding::default()
    });
    let log = simulate_unjudged(&system, &options, &mut Workloads::new(), &mut |_| true).unwrap();
    let switches = log.cpus[0].records.iter();
    let switches =
        switches.filter(|(_, r)| matches!(r, Record::Trace(TraceEvent::Switched { .. })));
    let switches = switches.map(|(at, _)| at.ticks());
    // The entry from 5 to 10, all 10 of `urgent`, and the other half of the job's own 10.
    assert_eq!(switches.take(4).collect::<Vec<_>>(), [0, 5, 20, 25]);
}

/// An entry takes 5, and 10 of each 100 are taken in the middle of the budget of a job that
/// overruns.
#[test]
fn a_timer_that_fires_early_behind_a_taking_is_counted() {
    let task = |name: &str, period, wcet, priority| {
        let mut task = task(name, period, wcet);
        task.priority = Priority::new(priority);
        task
    };
    let (mut system, _) = alone(1_000, OnOverrun::Throttle);
    system.cpus[0].policy = PolicyKind::FixedPriority { preemptive: true };
    system.tasks = vec![task("long", 5_000, 700, 1), task("urgent", 100, 50, 2)];
    system.machine.timer = Work::from_ns(5);
    system.machine.reserves = vec![Reserve {
        name: "taken".into(),
        budget: Work::from_ns(10),
        period: Span::from_ns(100),
    }];
    let bound = admit(&system).unwrap().tasks[0].response_bound.unwrap();
    let options = SimOptions {
        duration: Some(Span::from_ns(5_000)),
        faults: Faults {
            overruns: vec![Overrun {
                task: TaskId(1),
                per_mille: 9_000,
            }],
            missing: vec![MissingTime {
                cpu: None,
                length: Span::from_ns(10),
                every: Span::from_ns(100),
            }],
            missing_from: Some(Instant::from_ns(20)),
            timer_cost: Work::from_ns(5),
            funding: funding(&system).ok(),
            ..Faults::default()
        },
        ..SimOptions::default()
    };
    let log = simulate_unjudged(&system, &options, &mut Workloads::new(), &mut |_| true).unwrap();
    let behavior = Behavior::new(&log, 0);
    let long = behavior.jobs.iter().find(|job| job.thread.index() == 0);
    let response = long.and_then(|job| job.response_time()).unwrap();
    assert!(
        response.ticks() <= bound.as_ns(),
        "{response:?}, bound {bound:?}"
    );
}

/// Timer entries of 33 us: the terms of a virtual machine on a usual day.
#[test]
fn twenty_tasks_at_85_percent_are_admitted_where_a_timer_set_anew_takes_less_than_an_entry() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/compare/sets/twenty.toml");
    let system = punctual_spec::load(&file).unwrap().system;
    let with = |budget_timer_ns| {
        let here = Machine {
            switch: Work::from_ns(400),
            timer: Work::from_ns(33_000),
            budget_timer: Work::from_ns(budget_timer_ns),
            preemption: Work::from_ns(43_000),
            reserves: vec![Reserve {
                name: "stop-flag-looks".into(),
                budget: Work::from_ns(33_000),
                period: Span::from_ms(20),
            }],
            ..Machine::default()
        };
        let machine = terms_on(&system, &here).unwrap();
        let system = System {
            machine,
            ..system.clone()
        };
        admit(&system).unwrap().admitted
    };
    assert!(with(13_000));
    assert!(!with(33_000));
}
