//! Graphs on slots: an application on two tiles cannot tell what its neighbours do.
//!
//! Source: CompOSe §5.1: the task scheduler of one application changes, and the start and response
//! times of the other stay the same (Fig. 7-8). Here also everything else about the neighbour does.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write as _;

use punctual::{
    Cpu, CpuId, Faults, Misconduct, PolicyKind, RunReport, SimOptions, Span, System, Work,
    Workloads, simulate_unjudged,
};
use punctual_generate::{Dice, Random, draw_graph};
use punctual_model::{
    ActorId, Copies, Graph, Instant, Ns, Order, OrderRule, Place, Preempted, Scheduler,
    SchedulerId, Supply, Tile, When,
};
use punctual_trace::{Log, RunVerdict, State};

use crate::composability::{NEIGHBOURS, policy, scheduler, with_neighbour};

const RUN: Span<Ns> = Span::from_ms(60);
/// Graphs drawn; without optimization a tenth of the time must do.
pub(crate) const SEEDS: u64 = if cfg!(debug_assertions) { 10 } else { 100 };

/// The slots of the two applications on the two CPUs, whose frames begin together only at first.
const SLOTS: [[&[(u64, u64)]; 2]; 2] = [
    [&[(0, 180), (500, 200)], &[(100, 210)]],
    [&[(200, 280), (720, 260)], &[(330, 300)]],
];

/// Two CPUs with frames of 1,000 and of 730 us, and the slots of both applications there.
pub(crate) fn two_cpus(dice: &mut Dice) -> System {
    let cpu = |name: &str, frame, scheduling| Cpu {
        name: name.into(),
        host: None,
        policy: PolicyKind::Tdm {
            frame: Span::from_us(frame),
            scheduling: Span::from_us(scheduling),
        },
    };
    let mut system = System {
        cpus: vec![cpu("a", 1_000, 20), cpu("b", 730, 15)],
        ..System::default()
    };
    for (at, slots) in (0..).zip(SLOTS[0]) {
        slots_on(&mut system, (at, slots), policy(dice));
    }
    system
}

/// A scheduler with slots on a CPU; it is a tile.
pub(crate) fn slots_on(
    system: &mut System,
    (cpu, slots): (u16, &[(u64, u64)]),
    policy: PolicyKind<Ns>,
) -> Tile {
    let (cpu, id) = (CpuId(cpu), system.schedulers.len());
    let name = format!("s{id}");
    system.schedulers.push(Scheduler {
        cpu,
        ..scheduler(&name, policy, slots)
    });
    let scheduler = Some(SchedulerId(u16::try_from(id).unwrap()));
    Tile { cpu, scheduler }
}

/// A drawn graph on these tiles, which decides in this way on both.
fn graph(name: &str, tiles: [Tile; 2], mode: Mode, random: &mut Random) -> Graph {
    let mut graph = draw_graph(random);
    graph.name = name.into();
    let ids: Vec<ActorId> = (0..).map(ActorId).take(graph.actors.len()).collect();
    for actor in &mut graph.actors {
        actor.tile = tiles[random.index(2)];
        for wcet in &mut actor.wcet {
            *wcet = Work::from_us(wcet.as_ns() * 7);
        }
    }
    if mode == Mode::Plain {
        complete(&mut graph);
        return graph;
    }
    for tile in tiles {
        let here = ids
            .iter()
            .filter(|id| graph.actors[id.index()].tile == tile);
        let mut here: Vec<_> = here.copied().collect();
        random.shuffle(&mut here);
        let (when, by) = match mode {
            Mode::OwnTime => (When::OwnTime, OrderRule::RoundRobin),
            Mode::Between => (
                When::BetweenSlots(Preempted::Continues),
                OrderRule::RoundRobin,
            ),
            Mode::PassedOver => (
                When::BetweenSlots(Preempted::PassedOver),
                OrderRule::RoundRobin,
            ),
            Mode::Inline => (When::Inline, OrderRule::RoundRobin),
            Mode::Plain => continue,
            Mode::Tdm => (
                When::BetweenSlots(Preempted::PassedOver),
                OrderRule::Tdm(here.clone()),
            ),
        };
        if !here.is_empty() {
            graph.orders.push(Order { tile, when, by });
        }
    }
    graph
}

/// When an application decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    OwnTime,
    Between,
    PassedOver,
    Tdm,
    /// Its actors are threads of the core.
    Inline,
    /// It is not real-time: its tasks run to completion.
    Plain,
}

const MODES: [Mode; 6] = [
    Mode::OwnTime,
    Mode::Between,
    Mode::PassedOver,
    Mode::Tdm,
    Mode::Inline,
    Mode::Plain,
];

/// The same actors as tasks that run to completion, and that do not end before the run does.
fn complete(graph: &mut Graph) {
    graph.plain = true;
    for actor in &mut graph.actors {
        actor.times = Some(100_000);
    }
}

/// The application under observation, on the first two schedulers.
pub(crate) fn application(seed: u64, mode: Mode) -> System {
    let mut system = two_cpus(&mut Dice::new(seed));
    let tile = |cpu: u16| Tile {
        cpu: CpuId(cpu),
        scheduler: Some(SchedulerId(cpu)),
    };
    let random = &mut Random::at(seed, &[0]);
    let graph = graph("observed", [tile(0), tile(1)], mode, random);
    system.graphs.push(graph);
    system
}

/// The same beside another graph, whose slots are between its own.
pub(crate) fn beside_graph(mut system: System, mode: Mode, seed: u64) -> System {
    let dice = &mut Dice::new(seed ^ 0xBEEF);
    let tiles = [0, 1].map(|cpu| {
        let slots = (cpu, SLOTS[1][usize::from(cpu)]);
        slots_on(&mut system, slots, policy(dice))
    });
    let random = &mut Random::at(seed, &[1]);
    system.graphs.push(graph("beside", tiles, mode, random));
    system
}

pub(crate) fn log(system: &System, faults: Faults) -> Log {
    let options = SimOptions {
        duration: Some(RUN),
        faults,
        ..SimOptions::default()
    };
    simulate_unjudged(system, &options, &mut Workloads::new(), &mut |_| true).unwrap()
}

/// The trace of the observed application: every transition, as the log has it.
pub(crate) fn trace(system: &System, faults: Faults) -> String {
    let log = log(system, faults);
    let mut text = String::new();
    for (cpu, of_cpu) in log.cpus.iter().enumerate() {
        assert_eq!(of_cpu.lost_from, None);
        let moves = of_cpu.moves.iter();
        // How long a simulation goes on depends on whose jobs are unfinished.
        for moved in moves.filter(|m| m.graph.0 == 0 && m.at.ticks() < RUN.as_ns()) {
            let _ = writeln!(text, "{cpu} {moved:?}");
        }
    }
    text
}

fn graphs_see_nobody(mode: Mode, faults: &Faults) {
    let mut busy = 0;
    for seed in 0..SEEDS {
        let system = application(seed, mode);
        let alone = trace(&system, faults.clone());
        busy += u64::from(alone.lines().count() > 400);
        let same = |kind: &dyn std::fmt::Debug, system: &System, faults: Faults| {
            let seen = trace(system, faults);
            let difference = alone.lines().zip(seen.lines()).find(|(a, b)| a != b);
            assert!(
                alone == seen,
                "seed {seed}: {kind:?} is seen: {difference:?}"
            );
        };
        for kind in NEIGHBOURS {
            let (system, with) = with_neighbour(system.clone(), kind, seed ^ 0x5EED);
            let faults = Faults {
                cache_delay: faults.cache_delay,
                short_firings: faults.short_firings,
                // A liar that is refused all the time fills the recorder.
                decision_cost: Work::from_us(25),
                ..with
            };
            same(&kind, &system, faults);
        }
        for other in MODES {
            let system = beside_graph(system.clone(), other, seed);
            same(&other, &system, faults.clone());
        }
    }
    assert!(
        busy * 2 > SEEDS,
        "{mode:?}: only {busy} of {SEEDS} did much"
    );
}

#[test]
fn a_graph_in_own_time_sees_neither_tasks_nor_graphs_beside_it() {
    graphs_see_nobody(Mode::OwnTime, &Faults::default());
}

#[test]
fn a_graph_that_decides_between_slots_sees_nobody() {
    graphs_see_nobody(Mode::Between, &Faults::default());
    graphs_see_nobody(Mode::PassedOver, &Faults::default());
    graphs_see_nobody(Mode::Tdm, &Faults::default());
}

#[test]
fn a_graph_whose_actors_are_threads_of_the_core_sees_nobody() {
    graphs_see_nobody(Mode::Inline, &Faults::default());
}

/// The long firing has turns of 10 ms, and the short ones fire between them, once each.
#[test]
fn a_firing_that_is_longer_than_a_turn_lets_the_other_threads_fire() {
    let mut graph = Graph::new("g");
    let tile = Tile::cpu(CpuId(0));
    let long = graph.actor("long", tile, Work::from_ms(25));
    let short = graph.actor("short", tile, Work::from_ms(1));
    graph.fifo("tokens", short, long).initial = 5;
    let when = When::Inline;
    let by = OrderRule::RoundRobin;
    graph.orders.push(Order { tile, when, by });
    let system = System {
        cpus: vec![Cpu {
            name: "a".into(),
            host: None,
            policy: PolicyKind::Fifo,
        }],
        graphs: vec![graph],
        ..System::default()
    };
    let log = log(&system, Faults::default());
    let moves = log.cpus[0].moves.iter();
    let computes = moves.filter(|moved| moved.state == State::Compute);
    let seen: Vec<(u32, u64, bool)> = computes
        .map(|m| (m.actor.0, m.at.ticks() / 1_000_000, m.preempted))
        .take(9)
        .collect();
    let expected = [
        (0, 0, false),
        (0, 10, true),
        (1, 10, false),
        (0, 11, false),
        (0, 21, true),
        (1, 21, false),
        (0, 22, false),
        (1, 27, false),
        (0, 28, false),
    ];
    assert_eq!(seen, expected);
    assert_eq!(punctual::rules::check(&log), []);
}

/// An engine of its own for each application: nobody sees what another one copies.
#[test]
fn nor_does_a_graph_whose_copies_take_time() {
    let mut waits = 0;
    for mode in MODES {
        for seed in 0..SEEDS {
            let system = copying(application(seed, mode), seed);
            let alone = trace(&system, Faults::default());
            waits += alone.matches("Claim, preempted: true").count();
            for other in MODES {
                let mut system = beside_graph(system.clone(), other, seed);
                system.graphs[1] = with_copies(&system.graphs[1], seed + 1);
                let seen = trace(&system, Faults::default());
                assert!(alone == seen, "seed {seed}: {mode:?} sees {other:?}");
            }
            for kind in NEIGHBOURS {
                let (system, with) = with_neighbour(system.clone(), kind, seed ^ 0x5EED);
                let faults = Faults {
                    decision_cost: Work::from_us(25),
                    ..with
                };
                assert!(alone == trace(&system, faults), "seed {seed}: {kind:?}");
            }
        }
    }
    assert!(waits > 20, "only {waits} claims were preempted");
}

/// A copy takes 5 us. The engine is busy for longer than `w` computes, so each release waits for
/// the one before, and tokens come every 5 us from the first end and one copy on.
#[test]
fn a_release_waits_for_the_engine_and_a_claim_for_its_copies() {
    let cpu = |name: &str| Cpu {
        name: name.into(),
        host: None,
        policy: PolicyKind::Fifo,
    };
    let tile = |cpu: u16| Tile::cpu(CpuId(cpu));
    let mut graph = Graph::new("g");
    let w = graph.actor("w", tile(0), Work::from_us(3));
    let r = graph.actor("r", tile(1), Work::from_us(4));
    let fifo = graph.fifo("f", w, r);
    (fifo.place, fifo.token_size) = (Place::Memory, 8);
    graph.copies = Some(Copies {
        latency: Span::from_us(1),
        bytes_per_us: 2,
    });
    let system = System {
        cpus: vec![cpu("a"), cpu("b")],
        graphs: vec![graph],
        ..System::default()
    };
    let log = log(&system, Faults::default());
    let of = |cpu: usize, count: usize| -> Vec<(&str, u64)> {
        let moves = log.cpus[cpu].moves.iter();
        let named = moves.map(|m| (m.state.name(m.preempted), m.at.ticks() / 1_000));
        named
            .filter(|(name, _)| *name != "IDLE")
            .take(count)
            .collect()
    };
    let writes = [
        [("CLAIM", 0), ("COMPUTE", 0), ("RELEASE", 3), ("RESET", 3)],
        [("CLAIM", 3), ("COMPUTE", 3), ("RELEASE", 6), ("RESET", 8)],
        [("CLAIM", 8), ("COMPUTE", 8), ("RELEASE", 11), ("RESET", 13)],
    ];
    assert_eq!(of(0, 12), writes.concat());
    // It claims for 5 us and computes for 4, so the second token waits from 13 on.
    let reads = [
        [
            ("CLAIM", 8),
            ("COMPUTE", 13),
            ("RELEASE", 17),
            ("RESET", 17),
        ],
        [
            ("CLAIM", 17),
            ("COMPUTE", 22),
            ("RELEASE", 26),
            ("RESET", 26),
        ],
    ];
    assert_eq!(of(1, 8), reads.concat());
    assert_eq!(punctual::rules::check(&log), []);
}

fn copying(mut system: System, seed: u64) -> System {
    system.graphs[0] = with_copies(&system.graphs[0], seed);
    system
}

fn with_copies(graph: &Graph, seed: u64) -> Graph {
    let random = &mut Random::at(seed, &[2]);
    let mut graph = graph.clone();
    for fifo in &mut graph.fifos {
        fifo.place = *random.pick(&Place::ALL).unwrap();
        fifo.token_size = u32::try_from(random.below(40)).unwrap();
    }
    if let Some(first) = graph.fifos.first_mut() {
        (first.place, first.token_size) = (Place::Memory, 20);
    }
    graph.copies = (!graph.plain && !graph.fifos.is_empty()).then_some(Copies {
        latency: Span::from_us(random.below(30)),
        bytes_per_us: 1,
    });
    graph
}

#[test]
fn tasks_that_run_to_completion_see_nobody() {
    graphs_see_nobody(Mode::Plain, &Faults::default());
    let faults = Faults {
        short_firings: true,
        cache_delay: Work::from_us(3),
        ..Faults::default()
    };
    graphs_see_nobody(Mode::Plain, &faults);
}

#[test]
fn nor_does_a_graph_with_shorter_firings_and_cold_caches() {
    let faults = Faults {
        short_firings: true,
        cache_delay: Work::from_us(3),
        ..Faults::default()
    };
    graphs_see_nobody(Mode::OwnTime, &faults);
}

/// The trace can tell: a slot that begins a microsecond later is seen at once.
#[test]
fn a_slot_that_is_moved_is_seen() {
    let mut differences = 0;
    for seed in 0..10 {
        let system = application(seed, Mode::OwnTime);
        let mut moved = system.clone();
        for scheduler in &mut moved.schedulers {
            if let Supply::Slots(slots) = &mut scheduler.supply {
                slots[0].at = slots[0].at.saturating_add(Span::from_us(1));
            }
        }
        let seen = [system, moved].map(|system| trace(&system, Faults::default()));
        differences += u32::from(seen[0] != seen[1]);
    }
    assert!(differences > 8, "only {differences} of 10 were seen");
}

/// Fig. 7 and 8: the differences of start and response times per iteration, where the other
/// application goes from deciding between slots to its own time.
#[test]
fn start_and_response_times_do_not_change_when_the_other_decides_otherwise() {
    for mode in [Mode::Between, Mode::OwnTime] {
        let system = application(7, mode);
        let [between, own] = [Mode::Between, Mode::OwnTime].map(|other| {
            let log = log(&beside_graph(system.clone(), other, 7), Faults::default());
            RunReport::new(&log).graphs.swap_remove(0)
        });
        assert!(own.iterations > 3, "{own}");
        assert_eq!(between, own);
    }
}

#[test]
fn a_wrong_task_scheduler_is_named_and_seen_by_no_other_application() {
    for seed in 0..SEEDS {
        let system = application(seed, Mode::OwnTime);
        let alone = trace(&system, Faults::default());
        let system = beside_graph(system, Mode::OwnTime, seed);
        let others = system.graphs[1].actors[0].tile.scheduler.unwrap();
        for wrong in [Misconduct::Loops, Misconduct::Lies, Misconduct::Silent] {
            let faults = Faults {
                children: vec![(others, wrong)],
                ..Faults::default()
            };
            assert!(
                trace(&system, faults.clone()) == alone,
                "seed {seed}: {wrong:?}"
            );
            let named = log(&system, faults).header.faults;
            let word = match wrong {
                Misconduct::Loops => "has not returned",
                Misconduct::Lies => "were refused",
                // Nobody fires; that is no wrong answer.
                Misconduct::Silent => {
                    assert_eq!(named, [""; 0]);
                    continue;
                }
            };
            assert!(
                named[0].starts_with("graph beside on ") && named[0].ends_with(word),
                "{named:?}"
            );
        }
    }
}

#[test]
fn an_output_that_depends_on_data_loses_no_token() {
    for seed in 0..SEEDS {
        let mut system = application(seed, Mode::OwnTime);
        let graph = &mut system.graphs[0];
        let of_one_phase = graph.fifos.iter().find(|fifo| graph.phases(fifo.from) == 1);
        let Some(actor) = of_one_phase.map(|fifo| fifo.from) else {
            continue;
        };
        graph.actors[actor.index()].varies = true;
        let log = log(&system, Faults::default());
        let broken = punctual::rules::check(&log);
        assert!(broken.is_empty(), "seed {seed}: {broken:?}");
    }
}

/// A tile may have no room for all its transitions: the figures end there, and nothing is late.
#[test]
fn a_graph_without_room_for_its_transitions_is_judged_up_to_there() {
    let mut system = application(7, Mode::OwnTime);
    let period = punctual::admit(&system).unwrap().graphs[0].period.unwrap();
    system.graphs[0].every = Some(Span::from_ns(period.rounded_up()));
    let options = SimOptions {
        duration: Some(RUN),
        ..SimOptions::default()
    };
    let whole = punctual::simulate(&system, &options, &mut Workloads::new(), &mut |_| true);
    let whole = whole.unwrap();
    let verdict = |log: &Log| RunReport::new(log).graphs[0].verdict;
    assert_eq!(verdict(&whole), RunVerdict::Met);
    let from = Instant::from_ticks(RUN.as_ns() / 4);
    let mut cut = whole.clone();
    for cpu in &mut cut.cpus {
        cpu.moves.retain(|moved| moved.at < from);
    }
    assert_eq!(verdict(&cut), RunVerdict::Missed, "as if it had stopped");
    cut.graphs[0].lost_from = Some(from);
    assert_eq!(verdict(&cut), RunVerdict::Met);
    let mut text = Vec::new();
    punctual_trace::text::write(&cut, &mut text).unwrap();
    let again = punctual_trace::text::read(&mut text.as_slice()).unwrap();
    assert_eq!(again.graphs, cut.graphs);
}
