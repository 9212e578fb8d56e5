//! Gangs: skews by hand, all or nothing, and barriers that time replaces.

use punctual_analysis::{GangVerdict, Verdict, admit, without_needless_barriers};
use punctual_model::{
    Barrier, Class, Cpu, CpuId, Gang, PolicyKind, Priority, Reserve, Span, Superstep, System, Task,
    TaskId, Work,
};

const PRIORITIES: PolicyKind<punctual_model::Ns> = PolicyKind::FixedPriority { preemptive: true };

fn cpus(count: u16, policy: PolicyKind<punctual_model::Ns>) -> System {
    let cpu = |number: u16| Cpu {
        name: number.to_string(),
        host: None,
        policy,
    };
    System {
        cpus: (0..count).map(cpu).collect(),
        ..System::default()
    }
}

fn periodic(system: &mut System, cpu: u16, (period, wcet): (u64, u64), priority: u32) -> TaskId {
    let period = Span::from_us(period);
    let class = Class::Periodic {
        period,
        wcet: Work::from_us(wcet),
        relative_deadline: period,
    };
    add(system, cpu, class, priority)
}

fn reservation(
    system: &mut System,
    cpu: u16,
    (period, slice): (u64, u64),
    priority: u32,
) -> TaskId {
    let class = Class::Reservation {
        period: Span::from_us(period),
        slice: Work::from_us(slice),
    };
    add(system, cpu, class, priority)
}

fn add(system: &mut System, cpu: u16, class: Class<punctual_model::Ns>, priority: u32) -> TaskId {
    let id = TaskId(u32::try_from(system.tasks.len()).expect("few tasks"));
    let mut task = Task::new(format!("t{}", id.0), CpuId(cpu), class);
    task.priority = Priority::new(priority);
    system.tasks.push(task);
    id
}

fn judged(system: &System) -> (Verdict, GangVerdict) {
    assert_eq!(system.validate(), Ok(()));
    let verdict = admit(system).expect("an answer");
    let gang = verdict.gangs[0].clone();
    (verdict, gang)
}

fn skew(system: &System) -> Option<u64> {
    judged(system).1.supersteps[0].bound.map(Span::as_ns)
}

#[test]
fn members_with_equal_reservations_before_them_differ_by_the_clocks_alone() {
    let mut system = cpus(2, PRIORITIES);
    let members = [0, 1].map(|cpu| {
        reservation(&mut system, cpu, (700, 200), 5);
        periodic(&mut system, cpu, (1_000, 300), 1)
    });
    system.gangs.push(Gang::new("step", members));
    assert_eq!(skew(&system), Some(0));
    system.machine.clock_error = Span::from_us(3);
    assert_eq!(skew(&system), Some(3_000));
    // Another phase on one CPU, and nothing is equal any more: 200 us before it, or nothing.
    system.tasks[0].phase = Span::from_us(10);
    assert_eq!(skew(&system), Some(203_000));
    system.tasks[0].phase = Span::ZERO;
    // So with jobs that may be shorter on one CPU.
    for place in [0, 2] {
        system.tasks[place].class = Class::Periodic {
            period: Span::from_us(700),
            wcet: Work::from_us(200),
            relative_deadline: Span::from_us(700),
        };
    }
    assert_eq!(skew(&system), Some(203_000));
}

#[test]
fn what_one_cpu_loses_alone_lets_releases_in_before_its_member() {
    let mut system = cpus(2, PRIORITIES);
    let members = [0, 1].map(|cpu| {
        reservation(&mut system, cpu, (2_000, 100), 5);
        periodic(&mut system, cpu, (1_000, 300), 1)
    });
    system.gangs.push(Gang::new("step", members));
    system.machine.missing_time = Some(Reserve {
        name: "missing-time".into(),
        budget: Work::from_us(50),
        period: Span::from_us(10_000),
    });
    // Aligned: the reservation is released at arrivals only, so 50 us is all. What is lost in the
    // window of the first and in the time behind it may be two takings.
    assert_eq!(skew(&system), Some(100_000));
    // Not aligned: a reservation that is released meanwhile goes first. The other bound is smaller.
    for place in [0, 2] {
        system.tasks[place].phase = Span::from_us(30);
    }
    assert_eq!(skew(&system), Some(150_000));
}

#[test]
fn equal_decisions_under_edf_take_reservations_alone() {
    let mut system = cpus(2, PolicyKind::EarliestDeadlineFirst);
    let members = [0, 1].map(|cpu| {
        reservation(&mut system, cpu, (700, 200), 0);
        reservation(&mut system, cpu, (1_000, 300), 0)
    });
    system.gangs.push(Gang::new("step", members));
    assert_eq!(skew(&system), Some(0));
    let (verdict, _) = judged(&system);
    let response = verdict.tasks[1].response_bound.expect("a bound");
    for place in [1, 3] {
        system.tasks[place].class = Class::Periodic {
            period: Span::from_us(1_000),
            wcet: Work::from_us(300),
            relative_deadline: Span::from_us(1_000),
        };
    }
    assert_eq!(skew(&system), Some(response.as_ns() - 300_000));
}

#[test]
fn one_member_is_in_step_and_without_a_bound_the_verdict_says_so() {
    let mut system = cpus(2, PRIORITIES);
    system.machine.clock_error = Span::from_us(3);
    let alone = periodic(&mut system, 0, (1_000, 300), 1);
    system.gangs.push(Gang::new("step", [alone]));
    assert_eq!(skew(&system), Some(0));
    let other = periodic(&mut system, 1, (1_000, 300), 1);
    system.gangs[0] = Gang::new("step", [alone, other]);
    periodic(&mut system, 1, (1_000, 1_000), 2);
    let (verdict, gang) = judged(&system);
    assert!(!verdict.admitted);
    assert_eq!(gang.supersteps[0].bound, None);
    let why = &gang.supersteps[0].explanation;
    assert_eq!(why, "no bound: nothing bounds the response of `t1`");
}

fn two_supersteps(at: u64) -> System {
    let mut system = cpus(2, PRIORITIES);
    system.machine.clock_error = Span::from_us(2);
    let first = [0, 1].map(|cpu| periodic(&mut system, cpu, (10_000, 1_000), 2));
    let last = [0, 1].map(|cpu| periodic(&mut system, cpu, (10_000, 500), 1));
    for id in last {
        system.tasks[id.index()].phase = Span::from_us(at);
    }
    let named = |name: &str, members: [TaskId; 2]| Superstep {
        name: name.into(),
        members: members.to_vec(),
    };
    system.gangs.push(Gang {
        name: "bsp".into(),
        supersteps: vec![named("compute", first), named("write", last)],
    });
    for barrier in system.gangs[0].barriers() {
        system.keep_barrier(0, barrier);
    }
    system
}

#[test]
fn a_barrier_goes_only_if_the_worst_end_and_the_clock_error_leave_it_nothing_to_do() {
    let [first, last] = [(0, 1), (1, 0)].map(|(before, next)| Barrier { before, next });
    for (at, left_out) in [(1_002, true), (1_001, false)] {
        let system = two_supersteps(at);
        let (verdict, gang) = judged(&system);
        assert!(verdict.admitted);
        let barrier = &gang.barriers[0];
        assert_eq!(barrier.worst_end, Some(Span::from_us(1_000)));
        assert_eq!(barrier.left_out, left_out, "{}", barrier.reason);
        assert!(gang.barriers[1].left_out, "{}", gang.barriers[1].reason);
        let changed = without_needless_barriers(&system, &verdict.gangs);
        assert_eq!(changed.has_barrier(0, first), !left_out);
        assert!(!changed.has_barrier(0, last));
    }
    // Kept, it makes the other CPU wait for a clock that is behind.
    let row = &judged(&two_supersteps(1_001)).0.tasks[2];
    assert_eq!(row.response_bound, Some(Span::from_us(1_501)));
}

#[test]
fn declared_missing_time_is_part_of_the_worst_end() {
    let mut system = two_supersteps(1_052);
    assert!(judged(&system).1.barriers[0].left_out);
    system.machine.missing_time = Some(Reserve {
        name: "missing-time".into(),
        budget: Work::from_us(51),
        period: Span::from_us(10_000),
    });
    assert!(!judged(&system).1.barriers[0].left_out);
}

#[test]
fn slack_of_a_member_is_that_of_the_gang() {
    let mut system = cpus(2, PRIORITIES);
    let members = [0, 1].map(|cpu| periodic(&mut system, cpu, (1_000, 400), 1));
    periodic(&mut system, 1, (1_000, 200), 2);
    system.gangs.push(Gang::new("step", members));
    let (verdict, _) = judged(&system);
    let tenths = |place: usize| verdict.tasks[place].slack.map(|s| s.tenths_of_a_percent());
    assert_eq!((tenths(0), tenths(1)), (Some(1_000), Some(1_000)));
}

/// Under EDF a tie of deadlines goes to the task that stands first in the file. Where this is the
/// member on one CPU and the other reservation on the other, both CPUs do not decide alike.
#[test]
fn equal_deadlines_are_decided_alike_only_in_one_order() {
    let edf = PolicyKind::EarliestDeadlineFirst;
    for (places, expected) in [([1, 3], 0), ([1, 2], 3_000_000)] {
        let mut system = cpus(2, edf);
        for (place, cpu) in [0, 0, 1, 1].into_iter().enumerate() {
            let slice = if places.contains(&place) {
                2_000
            } else {
                3_000
            };
            reservation(&mut system, cpu, (10_000, slice), 1);
        }
        let members = places.map(|place| TaskId(u32::try_from(place).expect("few")));
        system.gangs.push(Gang::new("step", members));
        assert_eq!(skew(&system), Some(expected), "{places:?}");
    }
}
