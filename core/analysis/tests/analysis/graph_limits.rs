//! Graphs beside other things, and at the limits of searches: never a wrong answer.

use punctual_analysis::{
    Aim, AnalysisError, NoSuggestion, admit, admit_changes, is_admitted, suggest,
};
use punctual_model::{
    Change, CpuId, Instant, PolicyKind, Scheduler, SchedulerId, Slot, Span, Step, Supply, System,
    Tile, Work,
};

use crate::common::{FP, empty, periodic, span};
use crate::graphs::{pair, tiles, with};

/// Adds a CPU with these tasks (C, T, D).
fn add_tasks(system: &mut System, tasks: &[(u64, u64, u64)]) {
    let other = periodic(FP, tasks);
    let cpu = CpuId(u16::try_from(system.cpus.len()).expect("few"));
    for mut task in other.tasks {
        task.cpu = cpu;
        system.tasks.push(task);
    }
    system.cpus.extend(other.cpus);
    system.cpus.last_mut().expect("one").name = format!("tasks{}", cpu.0);
}

/// The reason why there is no suggestion.
fn reason(system: &System, aim: Aim) -> String {
    match suggest(system, aim) {
        Err(NoSuggestion::Reason(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_graph_keeps_its_slots_through_changes() {
    let (mut system, tiles) = tiles(10, &[&[(0, 4)]]);
    // The first scheduler of the list leaves: the graph's has another number from then on.
    let own = system.schedulers.remove(0);
    system.cpus.extend(empty(FP, 1).cpus);
    system.cpus[1].name = "other".into();
    system.schedulers = vec![
        Scheduler {
            name: "passing".into(),
            cpu: CpuId(1),
            supply: Supply::Shared,
            ..own.clone()
        },
        own,
    ];
    system.changes = vec![Change {
        name: "leaves".into(),
        at: Instant::from_ns(100),
        steps: vec![Step::Leave(SchedulerId(0))],
    }];
    let tile = Tile {
        scheduler: Some(SchedulerId(1)),
        ..tiles[0]
    };
    let mut graph = pair([tile; 2], [1, 1]);
    graph.every = Some(span(100));
    let system = with(&system, &graph);
    let response = admit(&system).expect("an answer").graphs[0].actors[0].response;
    assert_eq!(response, Some(span(8)));
    let transitions = admit_changes(&system).expect("an answer");
    assert_eq!(transitions.len(), 1);
    for transition in transitions {
        let graph = &transition.verdict.graphs[0];
        assert_eq!(graph.actors[0].response, response);
    }
}

#[test]
fn no_task_is_placed_on_the_cpu_of_a_graph() {
    let (system, tiles) = tiles(10, &[&[]]);
    let mut system = with(&system, &pair([tiles[0]; 2], [1, 1]));
    add_tasks(&mut system, &[(6, 10, 10), (7, 10, 10)]);
    let alone = reason(&system, Aim::Partition);
    assert!(alone.contains("find no place"), "{alone}");
    add_tasks(&mut system, &[]);
    let found = suggest(&system, Aim::Partition).expect("there is one");
    found.system.validate().expect("it means something");
    assert_eq!(is_admitted(&found.system), Ok(true));
    let mut cpus: Vec<CpuId> = found.system.tasks.iter().map(|task| task.cpu).collect();
    cpus.sort_unstable();
    assert_eq!(cpus, [CpuId(1), CpuId(2)]);
}

#[test]
fn capacities_of_a_system_that_is_refused_for_its_tasks_are_no_suggestion() {
    let (system, tiles) = tiles(10, &[&[]]);
    let mut system = with(&system, &pair([tiles[0]; 2], [1, 1]));
    assert!(suggest(&system, Aim::Capacities).is_ok());
    add_tasks(&mut system, &[(6, 10, 10), (7, 10, 10)]);
    let why = reason(&system, Aim::Capacities);
    assert!(
        why.contains("but tasks1: CPU tasks1 is overloaded"),
        "{why}"
    );
}

#[test]
fn a_search_that_ended_at_its_limit_does_not_say_that_there_is_nothing() {
    let (system, tiles) = tiles(10, &[&[], &[]]);
    let mut graph = pair([tiles[0], tiles[1]], [3, 4]);
    let (a, b) = (graph.fifos[0].from, graph.fifos[0].to);
    // All 15 need room for a second token: more distributions are smaller than are tried.
    for index in 0..14 {
        graph.fifo(format!("y{index}"), a, b).capacity = Some(1);
    }
    graph.every = Some(span(4));
    let why = reason(&with(&system, &graph), Aim::Capacities);
    let begin = "none of the capacities that were tried of graph `pair` keep";
    assert!(why.starts_with(begin), "{why}");
    assert!(why.contains("the search ended at its limit"), "{why}");
    graph.fifos.truncate(3);
    let system = with(&system, &graph);
    assert!(suggest(&system, Aim::Capacities).is_ok());
    // Nothing makes a firing of 4 ns shorter, and the search came to its end.
    graph.every = Some(span(3));
    let why = reason(&with(&system, &graph), Aim::Capacities);
    assert!(why.starts_with("no capacities of graph `pair`"), "{why}");
}

#[test]
fn frames_that_repeat_together_too_late_are_named() {
    let (mut system, mut tiles) = tiles(1_000_003, &[&[(0, 999_983)]]);
    let (frame, scheduling) = (span(999_983), Span::ZERO);
    system.schedulers[0].policy = PolicyKind::Tdm { frame, scheduling };
    let slot = Slot {
        at: Span::ZERO,
        length: span(500_000),
    };
    let inner = Scheduler {
        name: "inner".into(),
        parent: Some(SchedulerId(0)),
        policy: PolicyKind::Fifo,
        supply: Supply::Slots(vec![slot]),
        ..system.schedulers[0].clone()
    };
    system.schedulers.push(inner);
    tiles[0].scheduler = Some(SchedulerId(1));
    let system = with(&system, &pair([tiles[0]; 2], [1, 1]));
    let error = admit(&system).expect_err("too late").to_string();
    let words = "no test for scheduler.inner, whose frame and those above it repeat together too \
                 late to be followed";
    assert_eq!(error, words);
}

#[test]
fn a_fifo_of_nothing_that_a_program_builds_is_an_error() {
    let (mut system, tiles) = tiles(10, &[&[]]);
    for (produce, consume) in [(1, 0), (0, 1), (0, 0)] {
        let mut graph = pair([tiles[0]; 2], [1, 1]);
        graph.fifos[0].produce = vec![produce];
        graph.fifos[0].consume = vec![consume];
        system.graphs = vec![graph];
        let answer = admit(&system);
        assert!(
            matches!(answer, Err(AnalysisError::Invalid { .. })),
            "{answer:?}"
        );
    }
    let mut graph = pair([tiles[0]; 2], [1, 1]);
    graph.actors[0].wcet = vec![Work::ZERO];
    system.graphs = vec![graph];
    assert!(admit(&system).is_err());
}
