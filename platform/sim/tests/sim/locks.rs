//! Jobs that lock: schedules known by hand, from the literature, and one system per protocol.

use crate::common::{Tape, in_order_of_urgency, periodic, simulate, system};
use punctual_kern::TraceEvent;
use punctual_model::{
    AtBudgetEnd, CpuId, Frequency, Mode, Ns, PolicyKind, Priority, Protocol, Resource, ResourceId,
    Span, System, Task, TaskId, Use, Work,
};
use punctual_policy::AnyPolicy;
use punctual_sim::{CpuInput, Crash, Faults, Options, SimError, run};
use punctual_tables::Tables;

const FIXED: PolicyKind<Ns> = PolicyKind::FixedPriority { preemptive: true };
const EDF: PolicyKind<Ns> = PolicyKind::EarliestDeadlineFirst;

fn resources(system: &mut System, protocols: &[Protocol]) {
    let resource = |protocol: &Protocol| Resource {
        name: "r".into(),
        protocol: *protocol,
        at_budget_end: AtBudgetEnd::Overrun,
    };
    system.resources = protocols.iter().map(resource).collect();
}

fn section(resource: u16, length: u64) -> Use {
    Use {
        resource: ResourceId(resource),
        length: Work::from_ns(length),
        mode: Mode::Exclusive,
        inside: None,
    }
}

fn at(phase: u64, mut task: Task) -> Task {
    task.phase = Span::from_ns(phase);
    task
}

fn using(uses: Vec<Use>, mut task: Task) -> Task {
    task.uses = uses;
    task
}

/// High and low share a resource, middle comes in between: Mars Pathfinder in small.
fn pathfinder(policy: PolicyKind<Ns>, protocol: Protocol) -> Tape {
    let mut s = system(1, policy);
    resources(&mut s, &[protocol]);
    s.tasks = in_order_of_urgency(vec![
        at(2, using(vec![section(0, 1)], periodic("high", 1, 100, 20))),
        at(2, periodic("middle", 30, 100, 60)),
        using(vec![section(0, 4)], periodic("low", 4, 100, 100)),
    ]);
    simulate(&s, 100, Faults::default(), 0).cpus.remove(0).sink
}

#[test]
fn work_in_between_does_not_delay_who_waits_for_a_lock() {
    for policy in [FIXED, EDF] {
        // High comes at 2, waits for the section until 4, and runs for 1.
        for protocol in [
            Protocol::Inheritance,
            Protocol::ImmediateCeiling,
            Protocol::StackResource,
            Protocol::NonPreemptive,
        ] {
            let tape = pathfinder(policy, protocol);
            let responses = [0, 1, 2].map(|thread| tape.responses(thread));
            let expected = [vec![3], vec![33], vec![4]];
            if protocol == Protocol::Inheritance {
                // Low is preempted at once by high, which waits only then.
                let lane = tape.lane();
                assert_eq!(lane[..3], [(0, Some(2)), (2, Some(0)), (2, Some(2))]);
            }
            assert_eq!(responses, expected, "{policy:?} {protocol:?}");
        }
    }
}

#[test]
fn a_ceiling_keeps_out_whoever_might_lock_and_lets_in_whoever_is_above() {
    let mut s = system(1, FIXED);
    resources(&mut s, &[Protocol::ImmediateCeiling]);
    s.tasks = in_order_of_urgency(vec![
        at(1, periodic("above", 2, 100, 100)),
        at(1, using(vec![section(0, 1)], periodic("user", 3, 100, 100))),
        at(1, periodic("between", 2, 100, 100)),
        using(vec![section(0, 4)], periodic("low", 4, 100, 100)),
    ]);
    let tape = simulate(&s, 100, Faults::default(), 0).cpus.remove(0).sink;
    // low 0-1, above 1-3, low 3-6, user 6-9, between 9-11.
    let lane = [
        (0, Some(3)),
        (1, Some(0)),
        (3, Some(3)),
        (6, Some(1)),
        (9, Some(2)),
        (11, None),
    ];
    assert_eq!(tape.lane(), lane);
    assert_eq!(tape.count(|e| matches!(e, TraceEvent::Waits { .. })), 0);
}

#[test]
fn under_edf_a_job_is_blocked_once_and_before_it_starts() {
    let mut s = system(1, EDF);
    resources(&mut s, &[Protocol::StackResource, Protocol::StackResource]);
    // Both sections of urgent would be blocked under inheritance: by one and by two.
    s.tasks = vec![
        at(
            3,
            using(
                vec![section(0, 1), section(1, 1)],
                periodic("urgent", 5, 100, 30),
            ),
        ),
        at(1, using(vec![section(0, 4)], periodic("one", 4, 100, 60))),
        using(vec![section(1, 4)], periodic("two", 4, 100, 90)),
    ];
    let tape = simulate(&s, 100, Faults::default(), 0).cpus.remove(0).sink;
    // two locks at 0 with the floor 0 + 30: one (deadline 61) does not preempt, nor urgent at 3
    // (deadline 33).
    assert_eq!(
        tape.lane(),
        [(0, Some(2)), (4, Some(0)), (9, Some(1)), (13, None)]
    );
    assert_eq!(tape.count(|e| matches!(e, TraceEvent::Waits { .. })), 0);
}

#[test]
fn an_inheritance_chain_runs_at_the_urgency_of_its_end() {
    let mut s = system(1, FIXED);
    resources(&mut s, &[Protocol::Inheritance, Protocol::Inheritance]);
    let nested = Use {
        inside: Some(ResourceId(0)),
        ..section(1, 1)
    };
    s.tasks = in_order_of_urgency(vec![
        at(3, using(vec![section(0, 1)], periodic("high", 1, 100, 100))),
        at(3, periodic("bystander", 20, 100, 100)),
        at(
            1,
            using(vec![section(0, 3), nested], periodic("middle", 3, 100, 100)),
        ),
        using(vec![section(1, 4)], periodic("low", 4, 100, 100)),
    ]);
    let tape = simulate(&s, 100, Faults::default(), 0).cpus.remove(0).sink;
    // low 0-1 in r1; middle locks r0 and waits for r1; high waits for r0 at 3; low to 4; middle
    // 4-7; high 7-8; the bystander only then.
    let done = [0, 1, 2, 3].map(|thread| tape.responses(thread)[0]);
    assert_eq!(done, [5, 25, 6, 4]);
}

#[test]
fn readers_share_and_a_writer_waits_for_all_of_them() {
    let mut s = system(1, FIXED);
    resources(&mut s, &[Protocol::Inheritance]);
    let reads = |length| Use {
        mode: Mode::Shared,
        ..section(0, length)
    };
    s.tasks = in_order_of_urgency(vec![
        at(
            2,
            using(vec![section(0, 1)], periodic("writer", 1, 100, 100)),
        ),
        at(1, using(vec![reads(4)], periodic("reader", 4, 100, 100))),
        using(vec![reads(4)], periodic("slow reader", 4, 100, 100)),
    ]);
    let tape = simulate(&s, 100, Faults::default(), 0).cpus.remove(0).sink;
    let done = [0, 1, 2].map(|thread| tape.responses(thread)[0]);
    assert_eq!(done, [7, 4, 8], "both readers hold it until 5 and 8");
}

#[test]
fn a_job_that_crashes_in_its_section_lets_others_go_on() {
    let mut s = system(1, FIXED);
    resources(&mut s, &[Protocol::Inheritance]);
    s.tasks = in_order_of_urgency(vec![
        at(1, using(vec![section(0, 2)], periodic("high", 2, 50, 50))),
        using(vec![section(0, 8)], periodic("low", 8, 50, 50)),
    ]);
    let crashes = vec![Crash {
        task: TaskId(1),
        job: 0,
    }];
    let faults = Faults {
        crashes,
        ..Faults::default()
    };
    let tape = simulate(&s, 100, faults, 0).cpus.remove(0).sink;
    assert_eq!(tape.responses(0), [5, 2]);
    assert_eq!(tape.responses(1), []);
}

#[test]
fn without_preemption_a_lock_is_no_point_to_be_preempted_at() {
    let policies = [
        PolicyKind::FixedPriority { preemptive: false },
        PolicyKind::Fifo,
    ];
    for policy in policies {
        for protocol in [Protocol::Inheritance, Protocol::StackResource] {
            let mut s = system(1, policy);
            resources(&mut s, &[protocol]);
            s.tasks = in_order_of_urgency(vec![
                at(7, periodic("high", 2, 100, 100)),
                using(vec![section(0, 2)], periodic("low", 6, 100, 100)),
                using(vec![section(0, 2)], periodic("lower", 6, 100, 100)),
            ]);
            let tape = simulate(&s, 100, Faults::default(), 0).cpus.remove(0).sink;
            let preempted = |e: &TraceEvent| {
                matches!(
                    e,
                    TraceEvent::Switched {
                        preempted: true,
                        ..
                    }
                )
            };
            assert_eq!(tape.count(preempted), 0, "{policy:?} {protocol:?}");
        }
    }
}

#[test]
fn a_resource_across_cpus_is_refused_by_its_name() {
    let mut s = system(2, FIXED);
    resources(&mut s, &[Protocol::Spin]);
    s.tasks = vec![
        using(vec![section(0, 1)], periodic("a", 2, 100, 100)),
        using(vec![section(0, 1)], periodic("b", 2, 100, 100)),
    ];
    s.tasks[1].cpu = CpuId(1);
    let tables = Tables::new(&s, Frequency::NANOSECONDS);
    let input = |cpu: &punctual_tables::CpuTables| CpuInput {
        shard: cpu.build(AnyPolicy::new).expect("valid tables"),
        sink: Tape::default(),
    };
    let inputs = tables.cpus.iter().map(input).collect();
    let options = Options {
        duration: Span::from_ns(100),
        seed: 0,
        faults: Faults::default(),
        plans: Vec::new(),
    };
    let refused = run(&s, &tables, inputs, &options, &mut ()).map(|_| ());
    assert_eq!(refused, Err(SimError::AcrossCpus("r".into())));
}

#[test]
fn equal_priorities_and_the_ceiling_leave_a_holder_alone() {
    let mut s = system(1, FIXED);
    resources(&mut s, &[Protocol::ImmediateCeiling]);
    s.tasks = vec![
        at(1, using(vec![section(0, 1)], periodic("a", 2, 100, 100))),
        using(vec![section(0, 4)], periodic("b", 4, 100, 100)),
    ];
    s.tasks[0].priority = Priority::new(3);
    s.tasks[1].priority = Priority::new(3);
    let tape = simulate(&s, 100, Faults::default(), 0).cpus.remove(0).sink;
    assert_eq!(tape.lane(), [(0, Some(1)), (4, Some(0)), (6, None)]);
}
