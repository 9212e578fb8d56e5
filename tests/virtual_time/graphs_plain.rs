//! Applications that are not real-time: tasks run to completion, and nobody waits for ever unseen.
//!
//! Source: CompOSe §4.2.3, Fig. 6. Beside whom they run is in `graphs`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use punctual::{CpuId, Faults, Misconduct, RunReport, SimOptions, Span, System, Work, Workloads};
use punctual_generate::Dice;
use punctual_model::{Graph, Ns, PolicyKind, SchedulerId, Tile};

use crate::graphs::{Mode, SEEDS, application, beside_graph, log, slots_on, trace, two_cpus};

/// `ask` and `answer` wait for each other, `third` goes on, `store` on the other CPU reads it.
fn system() -> System {
    let mut system = two_cpus(&mut Dice::new(3));
    let [here, there] = [0, 1].map(|cpu| Tile {
        cpu: CpuId(cpu),
        scheduler: Some(SchedulerId(cpu)),
    });
    let mut graph = Graph::new("batch");
    graph.plain = true;
    let ask = graph.actor("ask", here, Work::from_us(30));
    let answer = graph.actor("answer", here, Work::from_us(50));
    let third = graph.actor("third", here, Work::from_us(40));
    let store = graph.actor("store", there, Work::from_us(90));
    for (actor, times) in graph.actors.iter_mut().zip([20, 20, 60, 30]) {
        actor.times = Some(times);
    }
    graph.fifo("questions", ask, answer).capacity = Some(1);
    graph.fifo("answers", answer, ask).initial = 1;
    let words = graph.fifo("words", third, store);
    (words.consume, words.capacity) = (vec![2], Some(4));
    system.graphs.push(graph);
    system
}

fn report(system: &System, duration: Span<Ns>) -> RunReport {
    let options = SimOptions {
        duration: Some(duration),
        ..SimOptions::default()
    };
    let log = punctual::simulate(system, &options, &mut Workloads::new(), &mut |_| true);
    let log = log.unwrap();
    assert_eq!(punctual::rules::check(&log), []);
    RunReport::new(&log)
}

fn rounds(report: &RunReport) -> Vec<u64> {
    let tasks = report.graphs[0].actors.iter();
    tasks.map(|task| task.firings).collect()
}

#[test]
fn all_tasks_finish_and_the_report_says_so() {
    let system = system();
    system.validate().unwrap();
    let report = report(&system, Span::from_ms(40));
    assert_eq!(rounds(&report), [20, 20, 60, 30]);
    let graph = &report.graphs[0];
    assert!(
        graph
            .actors
            .iter()
            .all(|task| task.state == Some("FINISHED"))
    );
    assert_eq!((report.exit_code(), &report.faults[..]), (0, &[][..]));
    let longest: Vec<_> = graph.actors.iter().map(|task| task.longest_ns).collect();
    assert_eq!(longest, [30_000, 50_000, 40_000, 90_000].map(Some));
}

/// Without the first answer the two wait for ever. The third and the other tile finish all the
/// same, and the report names the circle.
#[test]
fn a_circle_of_waiting_keeps_nobody_else_and_is_named() {
    let mut system = system();
    system.graphs[0].fifos[1].initial = 0;
    let report = report(&system, Span::from_ms(40));
    assert_eq!(rounds(&report), [0, 0, 60, 30]);
    let circle = "`ask` waits for 1 token in `answers`, which `answer` adds; \
                  `answer` waits for 1 token in `questions`, which `ask` adds";
    assert_eq!(report.graphs[0].deadlock.as_deref(), Some(circle));
    assert_eq!(
        report.faults,
        [format!("graph batch stops for ever: {circle}")]
    );
    assert_eq!(report.exit_code(), 3);
    let states: Vec<_> = report.graphs[0]
        .actors
        .iter()
        .map(|task| task.state)
        .collect();
    let run = Some("RUN");
    assert_eq!(states, [run, run, Some("FINISHED"), Some("FINISHED")]);
}

#[test]
fn a_task_that_waits_for_one_that_has_finished_is_named() {
    let mut system = system();
    system.graphs[0].actors[2].times = Some(59);
    let report = report(&system, Span::from_ms(40));
    assert_eq!(rounds(&report), [20, 20, 59, 29]);
    let wait = "`store` waits for 2 tokens in `words`, which `third` adds, and has finished";
    assert_eq!(report.graphs[0].deadlock.as_deref(), Some(wait));
}

/// Full on both sides: space is waited for as well as tokens, over two tiles.
#[test]
fn a_circle_through_two_tiles_is_named() {
    let mut system = system();
    let graph = &mut system.graphs[0];
    graph.fifos[2].capacity = Some(1);
    let report = report(&system, Span::from_ms(40));
    let circle = "`third` waits for space for 1 token in `words`, which `store` frees; \
                  `store` waits for 2 tokens in `words`, which `third` adds";
    assert_eq!(report.graphs[0].deadlock.as_deref(), Some(circle));
}

/// Nobody waits for ever in the middle of a run: there is still time.
#[test]
fn who_can_go_on_in_the_next_slot_is_in_no_deadlock() {
    for end in 1..40 {
        let report = report(&system(), Span::from_us(end * 170));
        assert_eq!(report.graphs[0].deadlock, None, "{end}");
        assert_eq!(report.exit_code(), 0, "{end}");
    }
}

#[test]
fn drawn_applications_obey_the_rules() {
    let mut waits = 0;
    for seed in 0..SEEDS {
        let log = log(&application(seed, Mode::Plain), Faults::default());
        let broken = punctual::rules::check(&log);
        assert!(broken.is_empty(), "seed {seed}: {broken:?}");
        let moves = log.cpus.iter().flat_map(|cpu| &cpu.moves);
        waits += moves.filter(|m| matches!(m.call, Some((_, false)))).count();
    }
    assert!(waits > 100, "{waits}");
}

/// A task that never calls a FIFO, and a task scheduler that never returns or lies: each costs its
/// application alone.
#[test]
fn a_task_that_never_yields_costs_its_application_alone() {
    for seed in 0..SEEDS {
        for mode in [Mode::OwnTime, Mode::Plain] {
            let system = application(seed, mode);
            let alone = trace(&system, Faults::default());
            let system = beside_graph(system, Mode::Plain, seed);
            let tile = system.graphs[1].actors[0].tile;
            let mut hog = system.clone();
            let first = &mut hog.graphs[1].actors[0];
            first.wcet = vec![Work::from_ms(100_000); first.wcet.len()];
            assert!(
                trace(&hog, Faults::default()) == alone,
                "seed {seed}, {mode:?}"
            );
            for wrong in [Misconduct::Loops, Misconduct::Lies, Misconduct::Silent] {
                let faults = Faults {
                    children: vec![(tile.scheduler.unwrap(), wrong)],
                    ..Faults::default()
                };
                let seen = trace(&system, faults.clone());
                assert!(seen == alone, "seed {seed}, {mode:?}: {wrong:?}");
            }
        }
    }
}

#[test]
fn a_graph_whose_task_scheduler_is_silent_is_said_never_to_have_fired() {
    for mode in [Mode::OwnTime, Mode::Plain] {
        let system = application(1, mode);
        let tiles = system.graphs[0].actors.iter().map(|actor| actor.tile);
        let faults = Faults {
            children: tiles
                .map(|tile| (tile.scheduler.unwrap(), Misconduct::Silent))
                .collect(),
            ..Faults::default()
        };
        let report = RunReport::new(&log(&system, faults));
        assert!(report.graphs[0].silent);
        let said = "graph observed: none of its actors has ever fired";
        let [fault] = &report.faults[..] else {
            panic!("{:?}", report.faults);
        };
        let passed_over = report.graphs[0].passed_over.join(", ");
        assert!(passed_over.contains(" on "), "{passed_over}");
        let why = format!("{said}; the task scheduler never chose {passed_over}");
        assert_eq!(*fault, why);
        assert_eq!(report.exit_code(), 3);
        assert!(report.to_string().contains(said));
        let report = RunReport::new(&log(&system, Faults::default()));
        assert_eq!((report.exit_code(), report.graphs[0].silent), (0, false));
    }
}

#[test]
fn a_run_that_ends_before_a_graph_has_a_slot_says_nothing_against_it() {
    let mut system = system();
    let late = slots_on(&mut system, (0, &[(200, 280)]), PolicyKind::Fifo);
    for actor in &mut system.graphs[0].actors {
        actor.tile = late;
    }
    for us in (4..600).step_by(7) {
        let report = report(&system, Span::from_us(us));
        assert_eq!((us, &report.faults[..]), (us, &[][..]));
        assert_eq!(report.exit_code(), 0);
    }
}
