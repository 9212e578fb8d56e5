//! Trees of schedulers: where they stand, what they are granted, whom they may have.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use super::resources::{resource, section};
use super::{mistake, ms, periodic, system};
use crate::{
    Cpu, CpuId, Fallback, Fault, MAX_DEPTH, Ns, PolicyCode, PolicyKind, Priority, Protocol,
    Scheduler, SchedulerId, Server, ServerKind, Span, Supply, System, Task, TaskId, Trust, Work,
};

pub(super) const FIXED_PRIORITY: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };

/// A scheduler with fixed priorities, below another or the CPU.
pub(super) fn scheduler(name: &str, cpu: u16, parent: Option<u16>) -> Scheduler {
    Scheduler {
        name: name.into(),
        cpu: CpuId(cpu),
        parent: parent.map(SchedulerId),
        policy: FIXED_PRIORITY,
        priority: Priority::new(1),
        supply: Supply::Shared,
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    }
}

/// Two CPUs with fixed priorities, and these schedulers below them.
pub(super) fn tree(schedulers: Vec<Scheduler>) -> System {
    let mut system = system(vec![]);
    for cpu in &mut system.cpus {
        cpu.policy = FIXED_PRIORITY;
    }
    System {
        schedulers,
        ..system
    }
}

pub(super) fn server(budget: u64, period: u64) -> Supply {
    Supply::Server(Server {
        kind: ServerKind::Deferrable,
        budget: Work::from_ms(budget),
        period: ms(period),
    })
}

/// A task on a scheduler of the first CPU.
pub(super) fn below(name: &str, scheduler: u16) -> Task {
    Task {
        scheduler: Some(SchedulerId(scheduler)),
        ..periodic(name, 0, 10, 2)
    }
}

#[test]
fn a_sensible_tree_passes_whatever_the_order_of_its_nodes() {
    let mut sensible = tree(vec![
        scheduler("leaf", 0, Some(2)),
        scheduler("other", 1, None),
        scheduler("inner", 0, None),
    ]);
    sensible.tasks = vec![below("a", 0), below("b", 2)];
    assert_eq!(sensible.validate(), Ok(()));
}

#[test]
fn a_scheduler_leads_to_a_cpu_that_is_its_own() {
    let on = |id| Fault::Scheduler(SchedulerId(id), "on");
    let gone = tree(vec![scheduler("a", 0, Some(7))]);
    assert_eq!(mistake(&gone).0, on(0));
    let nowhere = tree(vec![scheduler("a", 9, None)]);
    assert_eq!(mistake(&nowhere).0, on(0));
    let crossing = tree(vec![scheduler("a", 0, None), scheduler("b", 1, Some(0))]);
    let (fault, message) = mistake(&crossing);
    assert_eq!(fault, on(1));
    assert_eq!(message, "scheduler `b`: its parent `a` is on another CPU");
}

#[test]
fn a_circle_is_reported_once_and_what_hangs_on_it_is_not() {
    let circle = tree(vec![
        scheduler("a", 0, Some(1)),
        scheduler("b", 0, Some(0)),
        scheduler("c", 0, Some(1)),
    ]);
    let (fault, message) = mistake(&circle);
    assert_eq!(fault, Fault::Scheduler(SchedulerId(0), "on"));
    assert_eq!(
        message,
        "scheduler `a`: it is on `b`, which is on `a`: none of them leads to a CPU"
    );
    let own = tree(vec![scheduler("a", 0, Some(0))]);
    assert_eq!(
        mistake(&own).1,
        "scheduler `a`: it is on `a`: none of them leads to a CPU"
    );
}

#[test]
fn a_long_circle_is_shown_shortened() {
    let count = u16::try_from(System::MAX_SCHEDULERS).expect("small");
    let circle = (0..count)
        .map(|n| scheduler(&format!("s{n}"), 0, Some((n + 1) % count)))
        .collect();
    let (_, message) = mistake(&tree(circle));
    assert!(message.len() < 400, "{message}");
    assert!(message.ends_with("9991 more, the last on `s0`: none of them leads to a CPU"));
}

#[test]
fn the_depth_is_bounded_and_the_first_too_deep_is_reported() {
    let depth = u16::try_from(MAX_DEPTH).expect("small");
    let chain = |count: u16| {
        let nodes = (0..count).map(|n| scheduler(&format!("s{n}"), 0, n.checked_sub(1)));
        tree(nodes.collect())
    };
    assert_eq!(chain(depth).validate(), Ok(()));
    for deeper in [depth + 1, depth + 3, 9_000] {
        assert_eq!(
            mistake(&chain(deeper)).0,
            Fault::Scheduler(SchedulerId(depth), "on")
        );
    }
}

#[test]
fn a_scheduler_has_a_name_of_its_own() {
    let twice = tree(vec![scheduler("a", 0, None), scheduler("a", 1, None)]);
    assert_eq!(mistake(&twice).0, Fault::Scheduler(SchedulerId(1), "name"));
    let unprintable = tree(vec![scheduler("a b", 0, None)]);
    assert_eq!(
        mistake(&unprintable).0,
        Fault::Scheduler(SchedulerId(0), "name")
    );
}

#[test]
fn too_many_schedulers_are_refused_and_do_not_wrap_their_numbers() {
    let nodes = (0..70_000).map(|n| scheduler(&format!("s{n}"), 0, None));
    assert_eq!(mistake(&tree(nodes.collect())).0, Fault::System);
}

#[test]
fn a_server_grants_something_and_at_most_everything() {
    for (bad, part) in [
        (server(0, 10), "a budget of 0s"),
        (server(1, 0), "a period of 0s"),
        (server(11, 10), "11ms in every 10ms"),
    ] {
        let node = Scheduler {
            supply: bad,
            ..scheduler("a", 0, None)
        };
        let (fault, message) = mistake(&tree(vec![node]));
        assert_eq!(fault, Fault::Scheduler(SchedulerId(0), "server"));
        assert!(message.contains(part), "{message}");
    }
    let whole = Scheduler {
        supply: server(10, 10),
        ..scheduler("a", 0, None)
    };
    assert_eq!(tree(vec![whole]).validate(), Ok(()));
}

#[test]
fn below_edf_a_child_needs_the_deadlines_of_a_server() {
    let mut without = tree(vec![scheduler("a", 0, None)]);
    without.cpus[0].policy = PolicyKind::EarliestDeadlineFirst;
    assert_eq!(
        mistake(&without).0,
        Fault::Scheduler(SchedulerId(0), "server")
    );
    without.schedulers[0].supply = server(1, 10);
    assert_eq!(without.validate(), Ok(()));
}

#[test]
fn a_scheduler_on_its_own_supply_has_tasks_only() {
    let mut nested = tree(vec![scheduler("a", 0, None), scheduler("b", 0, Some(0))]);
    nested.schedulers[0].trust = Trust::OwnTime;
    nested.schedulers[0].supply = server(1, 10);
    assert_eq!(mistake(&nested).0, Fault::Scheduler(SchedulerId(1), "on"));
    nested.schedulers[0].trust = Trust::Inline;
    nested.schedulers[1].trust = Trust::OwnTime;
    nested.schedulers[1].supply = server(1, 10);
    assert_eq!(nested.validate(), Ok(()));
}

#[test]
fn a_scheduler_on_its_own_supply_has_one() {
    let mut shared = tree(vec![scheduler("a", 0, None)]);
    assert_eq!(shared.validate(), Ok(()));
    shared.schedulers[0].trust = Trust::OwnTime;
    let (fault, message) = mistake(&shared);
    assert_eq!(fault, Fault::Scheduler(SchedulerId(0), "trust"));
    assert!(message.contains("no server and no slots"), "{message}");
    shared.schedulers[0].supply = server(1, 10);
    assert_eq!(shared.validate(), Ok(()));
}

#[test]
fn a_quota_counts_the_whole_subtree() {
    let mut counted = tree(vec![scheduler("a", 0, None), scheduler("b", 0, Some(0))]);
    counted.tasks = vec![below("x", 0), below("y", 1), periodic("z", 0, 10, 1)];
    counted.schedulers[0].quota = Some(1);
    let (fault, message) = mistake(&counted);
    assert_eq!(fault, Fault::Scheduler(SchedulerId(0), "quota"));
    assert_eq!(
        message,
        "scheduler `a`: a quota of 1 for the 2 tasks below it"
    );
    counted.schedulers[0].quota = Some(2);
    counted.schedulers[1].quota = Some(1);
    assert_eq!(counted.validate(), Ok(()));
}

#[test]
fn a_task_is_on_a_scheduler_of_its_cpu() {
    let mut placed = tree(vec![scheduler("a", 1, None)]);
    placed.tasks = vec![below("x", 0)];
    assert_eq!(
        mistake(&placed).1,
        "task `x`: scheduler `a` is on another CPU than it"
    );
    placed.tasks = vec![below("x", 3)];
    assert_eq!(mistake(&placed).0, Fault::Task(TaskId(0), "on"));
}

#[test]
fn the_policies_of_schedulers_have_lengths_as_those_of_cpus() {
    let turn = PolicyKind::RoundRobin {
        timeslice: Span::ZERO,
    };
    let frame = PolicyKind::Tdm {
        frame: Span::ZERO,
        scheduling: Span::ZERO,
    };
    for (policy, key) in [(turn, "timeslice"), (frame, "frame")] {
        let node = Scheduler {
            policy,
            ..scheduler("a", 0, None)
        };
        assert_eq!(
            mistake(&tree(vec![node])).0,
            Fault::Scheduler(SchedulerId(0), key)
        );
        let mut of_cpu = tree(vec![]);
        of_cpu.cpus[1] = Cpu {
            policy,
            ..of_cpu.cpus[1].clone()
        };
        assert_eq!(mistake(&of_cpu).0, Fault::Cpu(CpuId(1), key));
    }
}

#[test]
fn a_fallback_is_for_a_scheduler_that_decides_on_its_own_supply() {
    let mut system = tree(vec![scheduler("a", 0, None)]);
    system.schedulers[0].fallback = Some(Fallback {
        policy: PolicyKind::EarliestDeadlineFirst,
        after: 3,
    });
    let (fault, message) = mistake(&system);
    assert_eq!(fault, Fault::Scheduler(SchedulerId(0), "fallback"));
    assert!(
        message.contains("the core decides for it anyway"),
        "{message}"
    );
}

#[test]
fn a_fallback_does_not_change_the_order_in_which_shared_resources_are_handed_on() {
    let own = Scheduler {
        policy: PolicyKind::EarliestDeadlineFirst,
        trust: Trust::OwnTime,
        supply: server(5, 10),
        ..scheduler("a", 0, None)
    };
    let mut system = tree(vec![own]);
    system.resources = vec![resource("line", Protocol::Inheritance)];
    let user = |name| Task {
        uses: vec![section(0, 1, None)],
        ..below(name, 0)
    };
    let fallback = |policy| Some(Fallback { policy, after: 3 });
    system.tasks = vec![user("one"), below("two", 0)];
    system.schedulers[0].fallback = fallback(FIXED_PRIORITY);
    assert_eq!(system.validate(), Ok(()), "nobody waits for anybody");
    system.tasks[1] = user("two");
    let (fault, message) = mistake(&system);
    assert_eq!(fault, Fault::Scheduler(SchedulerId(0), "fallback"));
    for part in ["`line`", "by deadline", "by priority"] {
        assert!(message.contains(part), "{message}");
    }
    system.schedulers[0].fallback = fallback(PolicyKind::EarliestDeadlineFirst);
    assert_eq!(system.validate(), Ok(()));
}

#[test]
fn code_of_its_own_is_refused_inside_the_core_with_the_reason() {
    let mut system = tree(vec![scheduler("a", 0, None)]);
    system.schedulers[0].code = Some(PolicyCode {
        library: "libx.so".into(),
        symbol: "mine".into(),
    });
    let (fault, message) = mistake(&system);
    assert_eq!(fault, Fault::Scheduler(SchedulerId(0), "code"));
    assert!(message.contains("stands everything still"), "{message}");
}
