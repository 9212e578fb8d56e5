//! Resources: blocking that can be checked by hand

use crate::common::{EDF, FP, bounds, periodic, span, work};
use punctual_analysis::{Subject, admit, is_admitted};
use punctual_model::{
    AtBudgetEnd, CpuId, Mode, OnOverrun, PolicyKind, Priority, Protocol, Resource, ResourceId,
    Scheduler, SchedulerId, Server, ServerKind, Supply, System, TaskId, Trust, Use,
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
    // While a section waits for the next budget, the one that is left is kept: it may come just
    // before the next.
    system.tasks[1].uses[0].length = work(2);
    assert_eq!(bounds(&system), [20 + 2, 60 + 1, 4 + 4 + 5].map(Some));
}

#[test]
fn a_section_blocks_or_is_owed_and_counts_once() {
    let mut system = periodic(FP, &[(2, 40, 40), (3, 60, 60), (5, 50, 50)]);
    let home = server(&mut system, ServerKind::Polling, 4, 20, 9);
    system.tasks[0].scheduler = Some(home);
    system.tasks[1].scheduler = Some(home);
    let r = resource(&mut system, Protocol::ImmediateCeiling);
    lock(&mut system, 0, r, 1, Mode::Exclusive);
    lock(&mut system, 1, r, 1, Mode::Exclusive);
    // One of them at a time goes on at the end of a budget, and is done before the next.
    let once = [20 + 3, 40 + 4, 4 + 1 + 5].map(Some);
    assert_eq!(bounds(&system), once);
    // Readers go on together.
    let mut readers = system.clone();
    for task in &mut readers.tasks[..2] {
        task.uses[0].mode = Mode::Shared;
    }
    assert_eq!(bounds(&readers)[0], Some(20 + 4));
    // A section may begin while another task suspends itself, and block it when it resumes.
    system.tasks[1].max_suspension = span(1);
    assert_eq!(bounds(&system)[0], Some(20 + 4));
}

/// While the section of the first task waits for 6 of 10, the second one may overrun each rest by
/// 5, so that the next budget is 5. In virtual time that went on as long as there were sections.
#[test]
fn a_section_that_waits_may_find_every_budget_paying_back() {
    for kind in ServerKind::ALL {
        let mut system = periodic(FP, &[(6, 20_000, 20_000), (124, 20_000, 20_000)]);
        let home = server(&mut system, kind, 10, 20, 5);
        for task in &mut system.tasks {
            task.scheduler = Some(home);
        }
        let waits = resource(&mut system, Protocol::Inheritance);
        let goes_on = resource(&mut system, Protocol::Inheritance);
        system.resources[0].at_budget_end = AtBudgetEnd::CheckFirst;
        lock(&mut system, 0, waits, 6, Mode::Exclusive);
        lock(&mut system, 1, goes_on, 6, Mode::Exclusive);
        // A constant-bandwidth server gives the rest up. A sporadic one has no bound for `waits`.
        let gives_up = kind == ServerKind::ConstantBandwidth;
        let admitted = admit(&system).expect("small numbers").admitted;
        assert_eq!(admitted, gives_up, "{}", kind.name());
    }
}

/// In virtual time the first task took 270: a budget is overrun while it sleeps, and paid back.
#[test]
fn a_task_that_wakes_up_may_find_a_budget_that_pays_back() {
    let mut system = periodic(FP, &[(2, 20_000, 20_000), (61, 20_000, 20_000)]);
    let home = server(&mut system, ServerKind::Deferrable, 4, 20, 5);
    for task in &mut system.tasks {
        task.scheduler = Some(home);
    }
    let goes_on = resource(&mut system, Protocol::Inheritance);
    lock(&mut system, 1, goes_on, 30, Mode::Exclusive);
    lock(&mut system, 1, goes_on, 30, Mode::Exclusive);
    let plain = bounds(&system)[0].expect("admitted");
    system.tasks[0].max_suspension = span(1);
    let sleeps = bounds(&system)[0].expect("admitted");
    assert!(sleeps >= 270 && sleeps > plain, "{sleeps}, {plain}");
}

#[test]
fn what_a_bandwidth_server_gives_beyond_its_budget_may_have_no_time_at_all() {
    let mut system = periodic(EDF, &[(1, 10, 10), (3, 300, 300)]);
    let home = server(&mut system, ServerKind::ConstantBandwidth, 3, 30, 9);
    system.tasks[1].scheduler = Some(home);
    let before = bounds(&system)[0].expect("admitted");
    let r = resource(&mut system, Protocol::ImmediateCeiling);
    lock(&mut system, 1, r, 3, Mode::Exclusive);
    assert_eq!(bounds(&system)[0], Some(before + 3));
}

/// A task on the CPU shares a resource with one below a server, which locks another one inside. So
/// does a third one below that server.
fn nested_below_a_server(protocol: Protocol, rules: [AtBudgetEnd; 2]) -> System {
    let mut system = periodic(FP, &[(2, 40, 40), (4, 120, 120), (3, 240, 240)]);
    let home = server(&mut system, ServerKind::Polling, 8, 20, 2);
    system.tasks[0].priority = Priority::new(3);
    system.tasks[1].scheduler = Some(home);
    system.tasks[2].scheduler = Some(home);
    let shared = resource(&mut system, Protocol::ImmediateCeiling);
    let inner = resource(&mut system, protocol);
    lock(&mut system, 0, shared, 1, Mode::Exclusive);
    lock(&mut system, 1, shared, 3, Mode::Exclusive);
    lock(&mut system, 1, inner, 2, Mode::Exclusive);
    system.tasks[1].uses[1].inside = Some(shared);
    lock(&mut system, 2, inner, 1, Mode::Exclusive);
    for (resource, rule) in system.resources.iter_mut().zip(rules) {
        resource.at_budget_end = rule;
    }
    system
}

#[test]
fn a_holder_that_others_beside_its_server_wait_for_never_waits_itself() {
    use AtBudgetEnd::{CheckFirst, Overrun};
    let ceiling = Protocol::ImmediateCeiling;
    for rules in [[Overrun; 2], [CheckFirst; 2], [CheckFirst, Overrun]] {
        let verdict = admit(&nested_below_a_server(ceiling, rules)).expect("small numbers");
        assert!(verdict.admitted, "{rules:?}");
    }
    let waits_for_a_lock = nested_below_a_server(Protocol::Inheritance, [CheckFirst; 2]);
    let waits_for_budget = nested_below_a_server(ceiling, [Overrun, CheckFirst]);
    let mut waits_for_background = nested_below_a_server(ceiling, [Overrun; 2]);
    waits_for_background.tasks[2].on_overrun = OnOverrun::Demote;
    for system in [waits_for_a_lock, waits_for_budget, waits_for_background] {
        let verdict = admit(&system).expect("small numbers");
        let reason = &verdict.refusals[0].reason;
        assert!(reason.contains("inside, and may wait for"), "{reason}");
        assert!(!is_admitted(&system).expect("valid"));
        // Nobody waits for a lock that nobody else uses.
        let mut alone = system.clone();
        alone.tasks[2].uses.clear();
        let waits_for_a_lock = reason.contains("wait for that lock");
        assert_eq!(is_admitted(&alone), Ok(waits_for_a_lock));
    }
}

#[test]
fn a_budget_that_sections_use_up_is_refused_for_them_not_for_overheads() {
    let mut system = periodic(FP, &[(7, 400, 400), (6, 400, 400)]);
    let home = server(&mut system, ServerKind::Polling, 10, 20, 2);
    let rules = [AtBudgetEnd::CheckFirst, AtBudgetEnd::Overrun];
    for ((task, length), rule) in [(0, 6), (1, 5)].into_iter().zip(rules) {
        system.tasks[task].scheduler = Some(home);
        let r = resource(&mut system, Protocol::ImmediateCeiling);
        lock(&mut system, task, r, length, Mode::Exclusive);
        system.resources[r.index()].at_budget_end = rule;
    }
    let verdict = admit(&system).expect("small numbers");
    let reason = &verdict.refusals[0].reason;
    assert!(
        reason.contains("while a section waits for a whole one"),
        "{reason}"
    );
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
