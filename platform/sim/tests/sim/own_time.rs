//! Schedulers that decide on their own supply, honest ones and others.

use punctual_child::ChildScheduler;
use punctual_kern::{Event, NodeId, TraceEvent};
use punctual_model::{
    Frequency, Instant, Ns, PolicyKind, Priority, Scheduler, SchedulerId, Server, ServerKind, Span,
    Supply, System, Task, Trust, Work,
};
use punctual_policy::AnyPolicy;
use punctual_sim::{CpuInput, Faults, Misconduct, Options, prepare, run_with_children};
use punctual_tables::Tables;

use crate::common::{Tape, periodic, system};

const FIXED: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };
const RUN: u64 = 1_000_000;

/// `a` and `b` below a child on 40 us in every 200 us, `rest` on the CPU below it.
fn family() -> System {
    let mut system = system(1, FIXED);
    system.schedulers.push(Scheduler {
        name: "child".into(),
        cpu: punctual_model::CpuId(0),
        parent: None,
        policy: PolicyKind::EarliestDeadlineFirst,
        priority: Priority::new(9),
        supply: Supply::Server(Server {
            kind: ServerKind::Deferrable,
            budget: Work::from_ns(40_000),
            period: Span::from_ns(200_000),
        }),
        trust: Trust::OwnTime,
        quota: None,
    });
    let mut of_child = |mut task: Task| {
        task.scheduler = Some(SchedulerId(0));
        system.tasks.push(task);
    };
    of_child(periodic("a", 10_000, 200_000, 200_000));
    of_child(periodic("b", 20_000, 200_000, 100_000));
    system
        .tasks
        .push(periodic("rest", 100_000, 200_000, 200_000));
    system
}

fn simulate(system: &System, faults: Faults) -> Tape {
    let mut tables = Tables::new(system, Frequency::NANOSECONDS);
    let duration = Span::from_ns(RUN);
    tables.set_duration(system, duration);
    prepare(system, &mut tables, &faults);
    let cpu = &tables.cpus[0];
    let entities = cpu.capacity.entities();
    let policy = AnyPolicy::new(PolicyKind::EarliestDeadlineFirst, entities, &[]);
    let child = ChildScheduler::new(NodeId::new(1, 0), cpu.capacity.threads, Box::new(policy));
    let input = CpuInput {
        shard: cpu.build(AnyPolicy::new).expect("valid tables"),
        sink: Tape::default(),
    };
    let options = Options {
        duration,
        seed: 0,
        faults,
    };
    let codes = vec![vec![child]];
    let outcome = run_with_children(system, &tables, vec![input], codes, &options, &mut ());
    outcome.unwrap().cpus.remove(0).sink
}

fn costing(ticks: u64) -> Faults {
    Faults {
        decision_cost: Work::from_ns(ticks),
        ..Faults::default()
    }
}

fn misbehaving(how: Misconduct) -> Faults {
    Faults {
        children: vec![(SchedulerId(0), how)],
        ..costing(1_000)
    }
}

fn deciding(tape: &Tape) -> u64 {
    let charge = |(_, event): &(Instant, TraceEvent)| match event {
        TraceEvent::ChildCharged { work, .. } => Some(work.ticks()),
        _ => None,
    };
    tape.trace.iter().filter_map(charge).sum()
}

#[test]
fn a_child_orders_its_threads_by_its_own_policy_at_its_own_cost() {
    // Both come at 0; 1 us for each of three decisions, the last finds nobody and is spared.
    let tape = simulate(&family(), costing(1_000));
    assert_eq!(tape.responses(1), [21_000; 5], "b has the earlier deadline");
    assert_eq!(tape.responses(0), [32_000; 5], "then a");
    assert_eq!(tape.responses(2), [132_000; 5]);
    assert_eq!(deciding(&tape), 5 * 2_000);
}

#[test]
fn a_child_that_decides_in_no_time_is_as_good_as_one_inside() {
    let mut inline = family();
    inline.schedulers[0].trust = Trust::Inline;
    let own = simulate(&family(), Faults::default());
    let inside = simulate(&inline, Faults::default());
    for thread in 0..3 {
        assert_eq!(own.responses(thread), inside.responses(thread));
    }
}

#[test]
fn a_child_that_never_answers_wastes_its_own_budget_and_no_more() {
    let tape = simulate(&family(), misbehaving(Misconduct::Loops));
    assert!(tape.responses(0).is_empty());
    assert_eq!(tape.responses(2), [140_000; 5]);
    // Its jobs never end, so the run goes on for one deadline more.
    assert_eq!(deciding(&tape), 6 * 40_000);
}

#[test]
fn the_answers_of_a_liar_are_refused_and_others_do_not_notice() {
    let tape = simulate(&family(), misbehaving(Misconduct::Lies));
    let refused = tape.decisions.iter().filter(|d| d.1.refused.is_some());
    let refused = refused.count();
    assert!(refused > 10, "{refused}");
    let latest = tape.responses(2).into_iter().max();
    assert!(latest.is_some_and(|latest| latest <= 140_000), "{latest:?}");
    assert_eq!(tape.responses(2).len(), 5);
}

#[test]
fn a_child_that_wants_nobody_costs_only_its_decisions() {
    let tape = simulate(&family(), misbehaving(Misconduct::Silent));
    assert!(tape.responses(0).is_empty());
    let answers = tape
        .events
        .iter()
        .filter(|(_, e)| matches!(e, Event::ChildPicked(_)));
    let answers = u64::try_from(answers.count()).unwrap();
    assert_eq!(deciding(&tape), answers * 1_000);
    assert!(
        tape.responses(2)
            .iter()
            .all(|&r| r <= 100_000 + answers * 1_000)
    );
}
