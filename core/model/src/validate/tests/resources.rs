//! Resources: sections that nest, orders that cannot deadlock, protocols that reach their users.

use alloc::vec;
use alloc::vec::Vec;

use super::trees::{FIXED_PRIORITY, below, scheduler, server, tree};
use super::{mistake, ms, periodic};
use crate::{
    AtBudgetEnd, Class, CpuId, Fault, Mode, PolicyKind, Protocol, Resource, ResourceId, Slot,
    Supply, System, Task, TaskId, Use, Work,
};

pub(super) fn resource(name: &str, protocol: Protocol) -> Resource {
    Resource {
        name: name.into(),
        protocol,
        at_budget_end: AtBudgetEnd::Overrun,
    }
}

pub(super) fn section(resource: u16, length: u64, inside: Option<u16>) -> Use {
    Use {
        resource: ResourceId(resource),
        length: Work::from_ms(length),
        mode: Mode::Exclusive,
        inside: inside.map(ResourceId),
    }
}

/// A job of 100 ms with these sections.
fn user(name: &str, cpu: u16, uses: Vec<Use>) -> Task {
    Task {
        uses,
        ..periodic(name, cpu, 1_000, 100)
    }
}

/// Four resources of one protocol, and these tasks.
fn with_tasks(protocol: Protocol, tasks: Vec<Task>) -> System {
    System {
        resources: ["w", "x", "y", "z"]
            .map(|name| resource(name, protocol))
            .into(),
        tasks,
        ..tree(vec![])
    }
}

fn mistake_of(uses: Vec<Use>) -> (Fault, alloc::string::String) {
    mistake(&with_tasks(Protocol::Inheritance, vec![user("a", 0, uses)]))
}

#[test]
fn sections_are_parts_of_their_job_and_of_each_other() {
    let at = |index| Fault::Use(TaskId(0), index);
    let s = section;
    for (uses, index) in [
        (vec![s(0, 0, None)], 0),
        (vec![s(0, 101, None)], 0),
        (vec![s(0, 60, None), s(1, 41, None)], 1),
        (vec![s(0, 5, None), s(1, 6, Some(0))], 1),
        (vec![s(0, 5, None), s(1, 3, Some(0)), s(2, 3, Some(0))], 2),
        (vec![s(9, 5, None)], 0),
    ] {
        assert_eq!(mistake_of(uses.clone()).0, at(index), "{uses:?}");
    }
    let deep = vec![
        s(0, 5, None),
        s(1, 3, Some(0)),
        s(2, 3, Some(1)),
        s(3, 2, Some(0)),
        s(0, 95, None),
    ];
    let system = with_tasks(Protocol::Inheritance, vec![user("a", 0, deep)]);
    assert_eq!(system.validate(), Ok(()));
}

#[test]
fn an_inner_section_is_inside_one_that_is_open() {
    let s = section;
    for (uses, index) in [
        (vec![s(0, 5, Some(1))], 0),
        (vec![s(0, 5, None), s(1, 5, None), s(2, 1, Some(0))], 2),
        (
            vec![
                s(0, 5, None),
                s(1, 3, Some(0)),
                s(2, 1, Some(0)),
                s(3, 1, Some(1)),
            ],
            3,
        ),
    ] {
        let (fault, message) = mistake_of(uses);
        assert_eq!(fault, Fault::Use(TaskId(0), index));
        assert!(message.contains("not open"), "{message}");
    }
}

#[test]
fn a_job_does_not_lock_what_it_holds() {
    let s = section;
    for uses in [
        vec![s(0, 5, None), s(0, 1, Some(0))],
        vec![s(0, 5, None), s(1, 3, Some(0)), s(0, 1, Some(1))],
    ] {
        assert!(mistake_of(uses).1.contains("while it holds it"));
    }
    let again = vec![s(0, 5, None), s(0, 5, None)];
    let system = with_tasks(Protocol::Inheritance, vec![user("a", 0, again)]);
    assert_eq!(system.validate(), Ok(()), "one after the other is fine");
}

#[test]
fn only_jobs_that_come_again_lock_resources() {
    let once = Class::Once {
        size: Work::from_ms(5),
        relative_deadline: ms(10),
    };
    for class in [once, Class::Aperiodic] {
        let task = Task {
            class,
            ..user("a", 0, vec![section(0, 1, None)])
        };
        let system = with_tasks(Protocol::Inheritance, vec![task]);
        assert_eq!(mistake(&system).0, Fault::Task(TaskId(0), "uses"));
    }
}

/// Tasks that each nest one pair: the outer resource, and the inner one.
fn nesting(pairs: &[(u16, u16)]) -> Vec<Task> {
    let task = |(index, &(outer, inner)): (usize, &(u16, u16))| {
        let uses = vec![section(outer, 2, None), section(inner, 1, Some(outer))];
        user(["a", "b", "c", "d", "e", "f"][index], 0, uses)
    };
    pairs.iter().enumerate().map(task).collect()
}

#[test]
fn two_orders_of_nesting_can_deadlock_under_inheritance_but_not_under_a_ceiling() {
    let tasks = nesting(&[(0, 1), (1, 0)]);
    let (fault, message) = mistake(&with_tasks(Protocol::Inheritance, tasks.clone()));
    assert_eq!(fault, Fault::Use(TaskId(0), 1));
    assert_eq!(
        message,
        "possible deadlock: task `a` locks `x` inside `w`, task `b` locks `w` inside `x`"
    );
    for safe in [
        Protocol::ImmediateCeiling,
        Protocol::StackResource,
        Protocol::NonPreemptive,
    ] {
        assert_eq!(
            with_tasks(safe, tasks.clone()).validate(),
            Ok(()),
            "{safe:?}"
        );
    }
    let mut mixed = with_tasks(Protocol::ImmediateCeiling, tasks);
    mixed.resources[1].protocol = Protocol::Inheritance;
    assert!(mistake(&mixed).1.starts_with("possible deadlock"));
}

/// Whether a circle of nestings goes through a resource of the set `open`: by following every path.
fn twin(pairs: &[(u16, u16)], open: u16) -> bool {
    fn reaches(pairs: &[(u16, u16)], from: u16, to: u16, steps: usize) -> bool {
        steps > 0
            && pairs.iter().any(|&(outer, inner)| {
                outer == from && (inner == to || reaches(pairs, inner, to, steps - 1))
            })
    }
    (0..4).any(|id| open & (1 << id) != 0 && reaches(pairs, id, id, 4))
}

#[test]
fn deadlocks_are_found_exactly_where_the_twin_finds_them() {
    let all: Vec<(u16, u16)> = (0..4)
        .flat_map(|outer| (0..4).map(move |inner| (outer, inner)))
        .filter(|(outer, inner)| outer != inner)
        .collect();
    let mut deadlocks = 0;
    for choice in 0_u16..1 << all.len() {
        // Up to six nestings; more of them are always a circle.
        if choice.count_ones() > 6 {
            continue;
        }
        let chosen = all.iter().enumerate();
        let chosen = chosen.filter(|(index, _)| choice & (1 << index) != 0);
        let pairs: Vec<(u16, u16)> = chosen.map(|(_, pair)| *pair).collect();
        for open in [0b1111, 0b0001, 0b0110] {
            let mut system = with_tasks(Protocol::ImmediateCeiling, nesting(&pairs));
            for (index, resource) in system.resources.iter_mut().enumerate() {
                if open & (1 << index) != 0 {
                    resource.protocol = Protocol::Inheritance;
                }
            }
            let refused = system.validate().is_err();
            assert_eq!(refused, twin(&pairs, open), "{pairs:?} {open:04b}");
            deadlocks += u32::from(refused);
        }
    }
    assert!(deadlocks > 1_000, "{deadlocks}");
}

#[test]
fn a_long_order_of_nesting_needs_no_stack() {
    let count = u16::try_from(System::MAX_RESOURCES).expect("small");
    let names = (0..count).map(|n| resource(&alloc::format!("r{n}"), Protocol::Inheritance));
    let pair = |n: u16| {
        let next = (n + 1) % count;
        let uses = vec![section(n, 2, None), section(next, 1, Some(n))];
        user(&alloc::format!("t{n}"), 0, uses)
    };
    let mut system = with_tasks(Protocol::Inheritance, (0..count).map(pair).collect());
    system.resources = names.collect();
    assert!(mistake(&system).1.ends_with(", and 9996 more"));
    system.tasks.pop();
    assert_eq!(system.validate(), Ok(()));
}

#[test]
fn a_protocol_has_a_meaning_under_the_policy_of_its_users() {
    let edf = PolicyKind::EarliestDeadlineFirst;
    let turns = PolicyKind::RoundRobin { timeslice: ms(1) };
    for (protocol, policy, valid) in [
        (Protocol::ImmediateCeiling, FIXED_PRIORITY, true),
        (Protocol::ImmediateCeiling, edf, false),
        (Protocol::ImmediateCeiling, PolicyKind::Fifo, false),
        (Protocol::StackResource, FIXED_PRIORITY, true),
        (Protocol::StackResource, edf, true),
        (Protocol::StackResource, turns, false),
        (Protocol::Inheritance, edf, true),
        (Protocol::NonPreemptive, turns, true),
    ] {
        let tasks = vec![user("a", 0, vec![section(0, 1, None)])];
        let mut system = with_tasks(protocol, tasks);
        system.cpus[0].policy = policy;
        let result = system.validate();
        assert_eq!(result.is_ok(), valid, "{protocol:?} {policy:?}");
        if !valid {
            let errors = result.expect_err("refused");
            assert_eq!(errors[0].fault, Fault::Resource(ResourceId(0), "protocol"));
        }
    }
}

#[test]
fn users_on_two_cpus_spin() {
    let uses = || vec![section(0, 1, None)];
    let tasks = || vec![user("a", 0, uses()), user("b", 1, uses())];
    for protocol in Protocol::ALL {
        let result = with_tasks(protocol, tasks()).validate();
        assert_eq!(result.is_ok(), protocol == Protocol::Spin, "{protocol:?}");
    }
    let mut apart = with_tasks(Protocol::Spin, tasks());
    apart.schedulers = vec![scheduler("s", 1, None)];
    apart.tasks.push(Task {
        cpu: CpuId(1),
        ..Task {
            uses: uses(),
            ..below("c", 0)
        }
    });
    assert!(
        mistake(&apart)
            .1
            .contains("`b` is on CPU `1` and task `c` on scheduler `s`")
    );
}

#[test]
fn only_a_ceiling_reaches_across_schedulers_and_only_through_fixed_priorities() {
    let uses = || vec![section(0, 1, None)];
    let task = |name, node| Task {
        uses: uses(),
        ..below(name, node)
    };
    let mut apart = with_tasks(Protocol::ImmediateCeiling, vec![task("a", 1), task("b", 2)]);
    apart.schedulers = vec![
        scheduler("top", 0, None),
        scheduler("left", 0, Some(0)),
        scheduler("right", 0, Some(0)),
    ];
    for node in &mut apart.schedulers {
        node.supply = server(5, 10);
    }
    assert_eq!(apart.validate(), Ok(()));
    // Above the closest common scheduler the policy does not matter.
    apart.cpus[0].policy = PolicyKind::EarliestDeadlineFirst;
    assert_eq!(apart.validate(), Ok(()));
    apart.schedulers[0].policy = PolicyKind::EarliestDeadlineFirst;
    let (fault, message) = mistake(&apart);
    assert_eq!(fault, Fault::Resource(ResourceId(0), "protocol"));
    assert!(
        message.contains("meet through scheduler `top`"),
        "{message}"
    );
    apart.schedulers[0].policy = FIXED_PRIORITY;
    for protocol in [
        Protocol::Inheritance,
        Protocol::StackResource,
        Protocol::NonPreemptive,
        Protocol::Spin,
    ] {
        apart.resources[0].protocol = protocol;
        let (_, message) = mistake(&apart);
        assert!(message.contains("within one scheduler"), "{message}");
    }
}

#[test]
fn slots_are_not_shared_across() {
    let slots = |at| {
        Supply::Slots(vec![Slot {
            at: ms(at),
            length: ms(4),
        }])
    };
    let task = |name, node| Task {
        uses: vec![section(0, 1, None)],
        ..below(name, node)
    };
    let mut apart = with_tasks(Protocol::ImmediateCeiling, vec![task("a", 0), task("b", 1)]);
    apart.cpus[0].policy = PolicyKind::Tdm {
        frame: ms(10),
        scheduling: ms(1),
    };
    apart.schedulers = vec![scheduler("left", 0, None), scheduler("right", 0, None)];
    apart.schedulers[0].supply = slots(0);
    apart.schedulers[1].supply = slots(5);
    let locks = |protocol: &Protocol| *protocol != Protocol::Planned;
    for protocol in Protocol::ALL.into_iter().filter(locks) {
        apart.resources[0].protocol = protocol;
        assert!(mistake(&apart).1.contains("across slots of CPU `0`"));
    }
    apart.tasks = vec![task("a", 0), task("b", 0)];
    assert_eq!(apart.validate(), Ok(()));
}

#[test]
fn a_section_that_is_checked_first_fits_a_full_budget_of_every_server_above() {
    let mut served = with_tasks(Protocol::Inheritance, vec![]);
    served.schedulers = vec![scheduler("outer", 0, None), scheduler("inner", 0, Some(0))];
    served.schedulers[0].supply = server(2, 10);
    served.schedulers[1].supply = server(3, 10);
    served.tasks = vec![Task {
        uses: vec![section(0, 3, None)],
        ..Task {
            class: user("a", 0, vec![]).class,
            ..below("a", 1)
        }
    }];
    assert_eq!(served.validate(), Ok(()), "an overrun is paid back");
    served.resources[0].at_budget_end = AtBudgetEnd::CheckFirst;
    let (fault, message) = mistake(&served);
    assert_eq!(fault, Fault::Use(TaskId(0), 0));
    assert!(message.contains("budget of 2ms of scheduler `outer`"));
    served.tasks[0].uses[0].length = Work::from_ms(2);
    assert_eq!(served.validate(), Ok(()));
}

#[test]
fn a_resource_has_a_name_of_its_own() {
    let mut twice = with_tasks(Protocol::Inheritance, vec![]);
    twice.resources[3].name = "w".into();
    assert_eq!(mistake(&twice).0, Fault::Resource(ResourceId(3), "name"));
    twice.resources[3].name = "a b".into();
    assert_eq!(mistake(&twice).0, Fault::Resource(ResourceId(3), "name"));
}
