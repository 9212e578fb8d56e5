//! Suggestions: admitted, never beaten by trying everything, and honest about failures

use crate::common::random::{Deadlines, Random, set};
use crate::common::{EDF, FP, NP_FP, empty, periodic, span, work};
use punctual_analysis::{Aim, NoSuggestion, is_admitted, suggest};
use punctual_model::{Class, CpuId, Machine, Ns, PolicyKind, Priority, System, Task, TaskId, Work};

/// Every order of `0..n`.
fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let shorter = permutations(n - 1);
    let insert = |p: &Vec<usize>, at| {
        let mut p = p.clone();
        p.insert(at, n - 1);
        p
    };
    shorter
        .iter()
        .flat_map(|p| (0..n).map(move |at| insert(p, at)))
        .collect()
}

fn some_order_is_admitted(system: &System) -> bool {
    permutations(system.tasks.len()).iter().any(|order| {
        let mut changed = system.clone();
        for (task, &level) in changed.tasks.iter_mut().zip(order) {
            task.priority = Priority::new(u32::try_from(level).expect("few") + 1);
        }
        is_admitted(&changed).expect("valid")
    })
}

/// Nobody has a priority yet; some have sections, jitter, or wait for others.
fn without_priorities(random: &mut Random) -> System {
    let policy = [FP, NP_FP][usize::from(random.within(0, 3) == 0)];
    let n = usize::try_from(random.within(2, 4)).expect("few");
    let load = 0.95 - 0.3 * random.unit();
    let rows = set(random, n, load, (4.0, 40.0), Deadlines::Constrained);
    let mut system = periodic(policy, &rows);
    for index in 0..n {
        let others = random.within(0, 5);
        let task = &mut system.tasks[index];
        task.priority = Priority::LOWEST;
        match others {
            0 => task.jitter = span(random.within(1, 3)),
            1 => task.non_preemptive = work(random.within(1, 3)),
            2 if index > 0 => task.after.push(TaskId(0)),
            _ => {}
        }
    }
    system
}

#[test]
fn audsley_finds_an_order_exactly_when_there_is_one() {
    let mut random = Random::new(11);
    let (mut found, mut none) = (0, 0);
    for seed in 0..1_500 {
        let system = without_priorities(&mut random);
        match suggest(&system, Aim::Priorities) {
            Ok(suggestion) => {
                assert_eq!(is_admitted(&suggestion.system), Ok(true), "seed {seed}");
                found += usize::from(!suggestion.changes.is_empty());
            }
            Err(NoSuggestion::Reason(reason)) => {
                assert!(
                    !some_order_is_admitted(&system),
                    "seed {seed}: {reason} {system:#?}"
                );
                none += 1;
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(found > 200, "{found}");
    assert!(none > 100, "{none}");
}

#[test]
fn deadline_monotonic_is_the_first_guess() {
    let mut system = periodic(FP, &[(2, 20, 18), (3, 10, 4), (2, 12, 7)]);
    for task in &mut system.tasks {
        task.priority = Priority::LOWEST;
    }
    let suggestion = suggest(&system, Aim::Priorities).expect("there is one");
    let changes: Vec<String> = suggestion.changes.iter().map(|c| c.to_string()).collect();
    let expected = [
        "task.t0.priority = 1 instead of 0",
        "task.t1.priority = 3 instead of 0",
        "task.t2.priority = 2 instead of 0",
    ];
    assert_eq!(changes, expected);
}

#[test]
fn priorities_that_depend_on_another_cpu_are_refused_with_the_reason() {
    let mut system = periodic(FP, &[(3, 10, 4), (3, 10, 10), (4, 10, 4)]);
    system.cpus = empty(FP, 2).cpus;
    system.tasks[2].cpu = CpuId(1);
    system.tasks[2].after.push(TaskId(0));
    let Err(NoSuggestion::Reason(reason)) = suggest(&system, Aim::Priorities) else {
        panic!("it does not apply");
    };
    assert!(reason.contains("t2 waits for t0"), "{reason}");
}

/// The avionics mission computer: 15 tasks (T, C in milliseconds), U = 1.361.
const AVIONICS: [(u64, u64); 15] = [
    (10, 5),
    (40, 2),
    (40, 4),
    (40, 2),
    (40, 1),
    (55, 8),
    (52, 6),
    (50, 8),
    (80, 6),
    (100, 7),
    (100, 3),
    (200, 1),
    (200, 3),
    (400, 6),
    (1000, 5),
];

fn avionics(policy: PolicyKind<Ns>, cpus: usize) -> System {
    let rows: Vec<_> = AVIONICS
        .iter()
        .map(|&(t, c)| (c * 1_000, t * 1_000, t * 1_000))
        .collect();
    let mut system = periodic(policy, &rows);
    system.cpus = empty(policy, cpus).cpus;
    system
}

#[test]
fn the_mission_computer_needs_two_cpus_and_is_given_them() {
    for policy in [FP, EDF] {
        let suggestion = suggest(&avionics(policy, 2), Aim::Partition).expect("there is one");
        assert_eq!(is_admitted(&suggestion.system), Ok(true));
        assert!(suggestion.ground.contains("heuristic"));
        assert!(suggestion.changes.iter().all(|c| c.to == "cpu.1"));
        let one = suggest(&avionics(policy, 1), Aim::Partition);
        assert_eq!(
            one,
            Err(NoSuggestion::Reason("there is one CPU only".into()))
        );
    }
}

#[test]
fn what_must_stay_together_stays_together() {
    use punctual_model::{AtBudgetEnd, Mode, Protocol, Resource, ResourceId, Use};
    let mut system = avionics(EDF, 2);
    system.resources.push(Resource {
        name: "bus".into(),
        protocol: Protocol::StackResource,
        at_budget_end: AtBudgetEnd::Overrun,
    });
    for task in [0, 9, 14] {
        system.tasks[task].uses.push(Use {
            resource: ResourceId(0),
            length: Work::from_ns(100),
            mode: Mode::Exclusive,
            inside: None,
        });
    }
    // Whether resources are analysed already or not, nothing is suggested that parts them.
    if let Ok(suggestion) = suggest(&system, Aim::Partition) {
        let cpus: Vec<CpuId> = [0, 9, 14]
            .iter()
            .map(|&t| suggestion.system.tasks[t].cpu)
            .collect();
        assert!(cpus.windows(2).all(|pair| pair[0] == pair[1]), "{cpus:?}");
    }
}

#[test]
fn partitions_are_admitted_and_most_that_exist_are_found() {
    let mut random = Random::new(5);
    let (mut found, mut overlooked) = (0, 0);
    for seed in 0..300 {
        let policy = [FP, EDF][usize::from(random.within(0, 1) == 0)];
        let load = 1.9 - 0.5 * random.unit();
        let rows = set(&mut random, 6, load, (10.0, 100.0), Deadlines::Constrained);
        let mut system = periodic(policy, &rows);
        system.cpus = empty(policy, 2).cpus;
        match suggest(&system, Aim::Partition) {
            Ok(suggestion) => {
                assert_eq!(is_admitted(&suggestion.system), Ok(true), "seed {seed}");
                found += 1;
            }
            Err(NoSuggestion::Reason(_)) => overlooked += usize::from(some_placement(&system)),
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(found > 100, "{found}");
    assert!(
        overlooked * 5 < found,
        "{overlooked} were overlooked, {found} found"
    );
}

fn some_placement(system: &System) -> bool {
    (0_u32..1 << system.tasks.len()).any(|mask| {
        let mut changed = system.clone();
        for (index, task) in changed.tasks.iter_mut().enumerate() {
            task.cpu = CpuId(u16::from(mask >> index & 1 == 1));
        }
        is_admitted(&changed).expect("valid")
    })
}

#[test]
fn background_work_stays_where_it_is() {
    let mut system = avionics(EDF, 2);
    system
        .tasks
        .push(Task::new("logger", CpuId(1), Class::Aperiodic));
    system.machine = Machine::default();
    let suggestion = suggest(&system, Aim::Partition).expect("there is one");
    assert_eq!(suggestion.system.tasks[15].cpu, CpuId(1));
}
