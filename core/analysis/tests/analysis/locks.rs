//! Resources: blocking that can be checked by hand

use crate::common::{EDF, FP, bounds, periodic, span, work};
use punctual_analysis::{Subject, admit, is_admitted};
use punctual_model::{
    AtBudgetEnd, CpuId, Mode, PolicyKind, Priority, Protocol, Resource, ResourceId, Scheduler,
    SchedulerId, Server, ServerKind, Supply, System, TaskId, Trust, Use,
};

fn resource(system: &mut System, protocol: Protocol) -> ResourceId {
    let id = ResourceId(u16::try_from(system.resources.len()).expect("few"));
    system.resources.push(Resource {
        name: format!("r{}", id.0),
        protocol,
        at_budget_end: AtBudgetEnd::Overrun,
    });
    id
}

fn lock(system: &mut System, task: usize, resource: ResourceId, length: u64, mode: Mode) {
    system.tasks[task].uses.push(Use {
        resource,
        length: work(length),
        mode,
        inside: None,
    });
}

fn server(
    system: &mut System,
    kind: ServerKind,
    budget: u64,
    period: u64,
    priority: u32,
) -> SchedulerId {
    let id = SchedulerId(u16::try_from(system.schedulers.len()).expect("few"));
    system.schedulers.push(Scheduler {
        name: format!("s{}", id.0),
        cpu: CpuId(0),
        parent: None,
        policy: FP,
        priority: Priority::new(priority),
        supply: Supply::Server(Server {
            kind,
            budget: work(budget),
            period: span(period),
        }),
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    });
    id
}

/// Two sections below: 3 on the first resource, 4 on the second; the top uses both.
fn two_holders(protocol: Protocol) -> System {
    let mut system = periodic(FP, &[(2, 40, 40), (5, 60, 60), (6, 80, 80), (7, 120, 120)]);
    let a = resource(&mut system, protocol);
    let b = resource(&mut system, protocol);
    lock(&mut system, 0, a, 1, Mode::Exclusive);
    lock(&mut system, 0, b, 1, Mode::Exclusive);
    lock(&mut system, 2, a, 3, Mode::Exclusive);
    lock(&mut system, 3, b, 4, Mode::Exclusive);
    system
}

#[test]
fn inheritance_may_block_once_per_holder_a_ceiling_once_in_all() {
    assert_eq!(
        bounds(&two_holders(Protocol::Inheritance)),
        [2 + 7, 7 + 7, 13 + 4, 20].map(Some)
    );
    for protocol in [Protocol::ImmediateCeiling, Protocol::StackResource] {
        let expected = [2 + 4, 7 + 4, 13 + 4, 20].map(Some);
        assert_eq!(bounds(&two_holders(protocol)), expected);
    }
    // The third task is blocked by the fourth, whose resource is used above it.
    assert_eq!(
        bounds(&two_holders(Protocol::NonPreemptive)),
        [2 + 4, 7 + 4, 13 + 4, 20].map(Some)
    );
}

#[test]
fn one_resource_held_by_many_blocks_once_under_inheritance() {
    let mut system = periodic(FP, &[(2, 40, 40), (5, 60, 60), (6, 80, 80)]);
    let r = resource(&mut system, Protocol::Inheritance);
    for (task, length) in [(0, 1), (1, 3), (2, 4)] {
        lock(&mut system, task, r, length, Mode::Exclusive);
    }
    assert_eq!(bounds(&system)[0], Some(2 + 4));
}

#[test]
fn a_holder_that_waits_passes_its_wait_on() {
    // The chain of Sha, Rajkumar and Lehoczky: 0 waits for 2 in `log`, which waits for 3 in `bus`.
    let mut system = periodic(
        FP,
        &[(2, 20, 20), (20, 100, 60), (4, 100, 100), (6, 100, 100)],
    );
    let log = resource(&mut system, Protocol::Inheritance);
    let bus = resource(&mut system, Protocol::Inheritance);
    lock(&mut system, 0, log, 1, Mode::Exclusive);
    lock(&mut system, 2, log, 3, Mode::Exclusive);
    lock(&mut system, 2, bus, 1, Mode::Exclusive);
    system.tasks[2].uses[1].inside = Some(log);
    lock(&mut system, 3, bus, 4, Mode::Exclusive);
    let verdict = admit(&system).expect("small numbers");
    assert_eq!(verdict.tasks[0].response_bound, Some(span(2 + 3 + 4)));
    let words = &verdict.tasks[0].explanation;
    assert!(words.contains("4ns (blocked by t3 in r1)"), "{words}");
    assert!(words.contains("3ns (blocked by t2 in r0)"), "{words}");
}

#[test]
fn readers_do_not_block_readers() {
    let mut system = periodic(FP, &[(2, 40, 40), (5, 60, 60), (6, 80, 80)]);
    let r = resource(&mut system, Protocol::Inheritance);
    for (task, length) in [(0, 1), (1, 3), (2, 4)] {
        lock(&mut system, task, r, length, Mode::Shared);
    }
    assert_eq!(bounds(&system), [2, 7, 13].map(Some));
    // A writer above waits for both that read together.
    system.tasks[0].uses[0].mode = Mode::Exclusive;
    assert_eq!(bounds(&system)[0], Some(2 + 7));
}

#[test]
fn srp_enters_the_processor_demand() {
    // The long task holds r for 3; deadlines up to its own meet it there, if r is used by then.
    let rows = [(2, 10, 5), (2, 20, 8), (8, 40, 40)];
    let mut system = periodic(EDF, &rows);
    let r = resource(&mut system, Protocol::StackResource);
    lock(&mut system, 1, r, 1, Mode::Exclusive);
    lock(&mut system, 2, r, 4, Mode::Exclusive);
    assert!(admit(&system).expect("small").admitted, "2 + 2 + 4 by 8");
    system.tasks[2].uses[0].length = work(5);
    assert!(!admit(&system).expect("small").admitted, "2 + 2 + 5 by 8");
    // Nobody that is due by 5 uses it: 2 + 4 by 5 would be too much.
    system.tasks[2].uses[0].length = work(4);
    lock(&mut system, 0, r, 1, Mode::Exclusive);
    assert!(!admit(&system).expect("small").admitted, "2 + 4 by 5");
    assert!(!is_admitted(&system).expect("valid"));
}

#[test]
fn a_holder_that_overruns_its_server_costs_both_sides() {
    let mut system = periodic(FP, &[(2, 40, 40), (3, 60, 60), (5, 50, 50)]);
    let home = server(&mut system, ServerKind::Polling, 4, 20, 9);
    system.tasks[0].scheduler = Some(home);
    system.tasks[1].scheduler = Some(home);
    let before = bounds(&system);
    assert_eq!(before, [20 + 2, 40 + 3, 4 + 5].map(Some));
    let r = resource(&mut system, Protocol::ImmediateCeiling);
    lock(&mut system, 1, r, 1, Mode::Exclusive);
    // Alone in its use it blocks nobody; the server may give one more, and one was owed.
    assert_eq!(bounds(&system), [20 + 3, 40 + 4, 4 + 1 + 5].map(Some));
    // A section that is not begun unless it fits always fits when it is one tick long; two ticks
    // may find one left of each budget, of no use: 3 in 20.
    system.resources[0].at_budget_end = AtBudgetEnd::CheckFirst;
    assert_eq!(bounds(&system), [20 + 2, 40 + 3, 4 + 5].map(Some));
    system.tasks[1].uses[0].length = work(2);
    assert_eq!(bounds(&system), [20 + 2, 60 + 1, 4 + 5].map(Some));
}

#[test]
fn a_ceiling_shared_between_nodes_blocks_at_their_common_one() {
    // Task 0 is on the CPU, above a server whose task shares its resource.
    let mut system = periodic(FP, &[(2, 40, 40), (3, 60, 60), (5, 80, 80)]);
    let home = server(&mut system, ServerKind::Polling, 4, 20, 2);
    system.tasks[1].scheduler = Some(home);
    system.tasks[2].priority = Priority::new(1);
    let r = resource(&mut system, Protocol::ImmediateCeiling);
    lock(&mut system, 0, r, 1, Mode::Exclusive);
    lock(&mut system, 1, r, 2, Mode::Exclusive);
    system.tasks[0].priority = Priority::new(3);
    assert_eq!(bounds(&system)[0], Some(2 + 2));
    // The other way round, the task on the CPU blocks the server as a whole.
    system.tasks[0].priority = Priority::new(1);
    let verdict = admit(&system).expect("small numbers");
    assert_eq!(verdict.schedulers[0].budget_bound, Some(span(4 + 1)));
}

#[test]
fn what_no_test_bounds_is_refused_by_name() {
    let mut system = periodic(FP, &[(2, 40, 40), (3, 60, 60)]);
    let r = resource(&mut system, Protocol::Spin);
    lock(&mut system, 0, r, 1, Mode::Exclusive);
    lock(&mut system, 1, r, 2, Mode::Exclusive);
    assert!(
        admit(&system).expect("small").admitted,
        "on one CPU it is not preempted"
    );
    system.cpus.push(system.cpus[0].clone());
    system.tasks[1].cpu = CpuId(1);
    let verdict = admit(&system).expect("small numbers");
    assert_eq!(verdict.refusals[0].subject, Subject::Task(TaskId(1)));
    assert!(!is_admitted(&system).expect("valid"));
    system.tasks[1].cpu = CpuId(0);
    system.resources[0].protocol = Protocol::Inheritance;
    let home = server(&mut system, ServerKind::Deferrable, 4, 20, 9);
    system.tasks[1].scheduler = Some(home);
    let verdict = admit(&system).expect("small numbers");
    assert!(verdict.refusals[0].reason.contains("within one scheduler"));
}

#[test]
fn locks_of_one_turn_or_one_run_block_nobody() {
    for policy in [
        PolicyKind::Fifo,
        PolicyKind::FixedPriority { preemptive: false },
    ] {
        let mut system = periodic(policy, &[(2, 40, 40), (3, 60, 60)]);
        let before = bounds(&system);
        let r = resource(&mut system, Protocol::Inheritance);
        lock(&mut system, 0, r, 1, Mode::Exclusive);
        lock(&mut system, 1, r, 2, Mode::Exclusive);
        assert_eq!(bounds(&system), before);
    }
}

/// A job that waits 3 for its predecessor is released 7 before its deadline, and may be blocked.
#[test]
fn under_edf_who_waits_for_predecessors_is_blocked_from_its_nearest_deadline_on() {
    let mut system = periodic(EDF, &[(3, 10, 10), (2, 10, 10), (6, 100, 100)]);
    let mut other = system.cpus[0].clone();
    other.name = "1".into();
    system.cpus.push(other);
    system.tasks[0].cpu = CpuId(1);
    system.tasks[1].after.push(TaskId(0));
    let shared = resource(&mut system, Protocol::StackResource);
    lock(&mut system, 1, shared, 1, Mode::Exclusive);
    lock(&mut system, 2, shared, 5, Mode::Exclusive);
    // 3 of waiting, 5 of blocking, 2 of its own.
    assert_eq!(bounds(&system)[1], Some(10));
}
