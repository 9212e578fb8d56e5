//! Graphs on tiles: known responses, fixes, and executions that never pass their bounds.

use punctual_analysis::{AnalysisError, Exactness, Fraction, GraphVerdict, admit, is_admitted};
use punctual_generate::Random;
use punctual_model::{
    ActorId, Cpu, CpuId, Graph, GraphId, Ns, Order, OrderRule, PolicyKind, Preempted, Reserve,
    Scheduler, SchedulerId, Slot, Span, Supply, System, Tile, Trust, When, Work,
};

pub(crate) fn span(ns: u64) -> Span<Ns> {
    Span::from_ns(ns)
}

fn cpu(name: u64, policy: PolicyKind<Ns>) -> Cpu {
    Cpu {
        name: name.to_string(),
        host: None,
        policy,
    }
}

/// A tile of its own for each list of slots (at, length): of a frame, or a whole CPU without any.
pub(crate) fn tiles(frame: u64, slots: &[&[(u64, u64)]]) -> (System, Vec<Tile>) {
    let mut system = System::default();
    let mut tiles = Vec::new();
    for (index, slots) in (0_u16..).zip(slots) {
        let id = CpuId(index);
        if slots.is_empty() {
            system.cpus.push(cpu(index.into(), PolicyKind::Fifo));
            tiles.push(Tile::cpu(id));
            continue;
        }
        let (frame, scheduling) = (span(frame), Span::ZERO);
        system
            .cpus
            .push(cpu(index.into(), PolicyKind::Tdm { frame, scheduling }));
        let slot = |&(at, length): &(u64, u64)| Slot {
            at: span(at),
            length: span(length),
        };
        let scheduler = SchedulerId(u16::try_from(system.schedulers.len()).expect("few"));
        system.schedulers.push(Scheduler {
            name: format!("s{index}"),
            cpu: id,
            parent: None,
            policy: PolicyKind::Fifo,
            priority: punctual_model::Priority::new(0),
            supply: Supply::Slots(slots.iter().map(slot).collect()),
            trust: Trust::Inline,
            quota: None,
            receiver: None,
            code: None,
            fallback: None,
        });
        tiles.push(Tile {
            cpu: id,
            scheduler: Some(scheduler),
        });
    }
    (system, tiles)
}

/// The verdict on the only graph of a valid system.
pub(crate) fn verdict(system: &System, graph: &Graph) -> GraphVerdict {
    let system = with(system, graph);
    admit(&system).expect("an answer").graphs.remove(0)
}

pub(crate) fn with(system: &System, graph: &Graph) -> System {
    let mut system = system.clone();
    system.graphs = vec![graph.clone()];
    system.validate().expect("it means something");
    system
}

/// Two actors one after the other, with a queue of one between.
pub(crate) fn pair(tiles: [Tile; 2], wcets: [u64; 2]) -> Graph {
    let mut graph = Graph::new("pair");
    let a = graph.actor("a", tiles[0], Work::from_ns(wcets[0]));
    let b = graph.actor("b", tiles[1], Work::from_ns(wcets[1]));
    graph.fifo("x", a, b).capacity = Some(1);
    graph
}

#[test]
fn a_firing_in_one_slot_responds_as_the_formula_says() {
    for (frame, slot) in [(10, 3), (10, 9), (7, 1), (100, 40)] {
        let (system, tiles) = tiles(frame, &[&[(0, slot)]]);
        for wcet in 1..60 {
            let mut graph = Graph::new("one");
            graph.actor("a", tiles[0], Work::from_ns(wcet));
            let found = verdict(&system, &graph);
            let response = wcet + wcet.div_ceil(slot) * (frame - slot);
            assert_eq!(
                found.actors[0].response,
                Some(span(response)),
                "{frame} {slot} {wcet}"
            );
            assert_eq!(found.period, Some(Fraction::whole(response)));
            assert_eq!(found.exactness, Exactness::Sufficient);
            // The latency-rate form, F - S and a rate of S/F, is never below it.
            assert!(response * slot <= (frame - slot) * slot + wcet * frame);
        }
    }
}

/// 25 ms are three turns, before each of which the other one has its firing; and 12 ms are two.
#[test]
fn threads_of_the_core_take_turns_of_ten_milliseconds() {
    let ms = |ms: u64| Some(Span::from_ms(ms));
    let (mut system, tiles) = tiles(10, &[&[]]);
    let mut graph = pair([tiles[0]; 2], [25_000_000, 12_000_000]);
    graph.orders = vec![Order {
        tile: tiles[0],
        when: When::Inline,
        by: OrderRule::RoundRobin,
    }];
    let found = verdict(&system, &graph);
    assert_eq!(found.actors[0].response, ms(25 + 3 * 10));
    assert_eq!(found.actors[1].response, ms(12 + 2 * 10));
    assert_eq!(found.exactness, Exactness::Sufficient);
    // Two switches for each turn of each thread; 20 ms are then more than two turns.
    graph.actors[0].wcet = vec![Work::from_ms(20)];
    system.machine.switch = Work::from_ms(1);
    let found = verdict(&system, &graph);
    assert_eq!(found.actors[0].response, ms(20 + 3 * (10 + 2 * 2)));
    // No turn is left for anybody.
    system.machine.switch = Work::from_ms(5);
    let none = admit(&with(&system, &graph));
    let unsupported = matches!(none, Err(AnalysisError::Unsupported { .. }));
    assert!(unsupported, "{none:?}");
}

#[test]
fn several_slots_take_the_supply_of_the_table() {
    let (system, tiles) = tiles(10, &[&[(0, 3), (5, 1)]]);
    let mut graph = Graph::new("one");
    graph.actor("a", tiles[0], Work::from_ns(4));
    // From the end of the short slot: 4 of nothing, 3, 2 of nothing, 1.
    assert_eq!(verdict(&system, &graph).actors[0].response, Some(span(10)));
}

#[test]
fn turns_count_the_others_once_and_an_order_counts_them_exactly() {
    let (system, tiles) = tiles(10, &[&[]]);
    let mut graph = pair([tiles[0]; 2], [3, 5]);
    let by_turns = verdict(&system, &graph);
    assert_eq!(by_turns.actors[0].response, Some(span(8)));
    assert_eq!(
        (by_turns.period, by_turns.exactness),
        (Some(Fraction::whole(16)), Exactness::Sufficient)
    );
    graph.orders = vec![Order::fixed(tiles[0], vec![ActorId(0), ActorId(1)])];
    let in_order = verdict(&system, &graph);
    assert_eq!(
        (in_order.period, in_order.exactness),
        (Some(Fraction::whole(8)), Exactness::Exact)
    );
    graph.orders = vec![Order::fixed(tiles[0], vec![ActorId(1), ActorId(0)])];
    let stops = verdict(&system, &graph);
    assert_eq!(stops.period, None);
    let why = "it stops for ever after 0 firings: `a` waits for the turn of `b`; `b` lacks 1 token \
               in `x`, which `a` would add";
    assert_eq!(stops.explanation, why);
    graph.orders = vec![Order::fixed(tiles[0], [0, 1, 0].map(ActorId).to_vec())];
    let twice = verdict(&system, &graph);
    let why = "the order of cpu.0 has `a` 2 times, and an iteration fires it once";
    assert_eq!(twice.explanation, why);
    let advice = |graph: &Graph| {
        let answer = admit(&with(&system, graph)).expect("an answer");
        answer.refusals[0].advice.clone()
    };
    assert_eq!(advice(&graph), "list `a` once in this order");
    graph.orders.clear();
    graph.fifo("y", ActorId(0), ActorId(1)).consume = vec![2];
    let why = "change a rate of this circle: no capacity and no slot matters";
    assert_eq!(advice(&graph), why);
}

#[test]
fn a_fix_admits_and_one_step_less_refuses() {
    let (system, tiles) = tiles(100, &[&[], &[], &[(10, 20)]]);
    let mut graph = pair([tiles[0], tiles[1]], [30, 50]);
    graph.fifos[0].consume = vec![2];
    graph.fifos[0].capacity = Some(2);
    graph.every = Some(span(60));
    let refused = verdict(&system, &graph);
    assert_eq!(refused.period, Some(Fraction::whole(110)));
    let fix = refused.fix.expect("a capacity");
    assert_eq!(
        (&*fix.parameter, &*fix.from),
        ("graph.pair.fifos[0].capacity", "2")
    );
    let capacity: u32 = fix.to.parse().expect("a number");
    let holds = |capacity| {
        let mut graph = graph.clone();
        graph.fifos[0].capacity = Some(capacity);
        is_admitted(&with(&system, &graph)).expect("an answer")
    };
    assert!(holds(capacity) && !holds(capacity - 1), "{capacity}");

    let mut graph = Graph::new("slow");
    graph.actor("a", tiles[2], Work::from_ns(40));
    graph.every = Some(span(150));
    let refused = verdict(&system, &graph);
    let fix = refused.fix.expect("a slot");
    assert_eq!(
        (&*fix.parameter, &*fix.from),
        ("scheduler.s2.slots[0].length", "\"20ns\"")
    );
    let length: u64 = fix
        .to
        .trim_matches('"')
        .trim_end_matches("ns")
        .parse()
        .expect("ns");
    let holds = |length| {
        let mut system = with(&system, &graph);
        let slot = Slot {
            at: span(10),
            length: span(length),
        };
        system.schedulers[0].supply = Supply::Slots(vec![slot]);
        is_admitted(&system).expect("an answer")
    };
    assert!(holds(length) && !holds(length - 1), "{length}");
}

#[test]
fn what_has_no_test_has_no_verdict() {
    let (mut system, tiles) = tiles(10, &[&[]]);
    let mut graph = Graph::new("huge");
    let a = graph.actor("a", tiles[0], Work::from_ns(1));
    let b = graph.actor("b", tiles[0], Work::from_ns(1));
    graph.fifo("x", a, b).produce = vec![200_000];
    let answer = admit(&with(&system, &graph)).expect_err("too large");
    assert_eq!(
        answer.to_string(),
        "graph `huge`: an iteration has 200001 firings, more than the 100000 that are analysed"
    );
    system.machine.missing_time = Some(Reserve {
        name: "missing-time".into(),
        budget: Work::from_ns(1),
        period: span(100),
    });
    let graph = pair([tiles[0]; 2], [1, 1]);
    let answer = admit(&with(&system, &graph));
    assert!(
        matches!(answer, Err(AnalysisError::Unsupported { .. })),
        "{answer:?}"
    );
}

#[test]
fn numbers_at_their_limits_are_an_answer_or_an_error() {
    let (system, tiles) = tiles(u64::MAX, &[&[], &[(0, 1)]]);
    for wcet in [1, u64::MAX / 2, u64::MAX] {
        for tile in &tiles {
            for rate in [1, u32::MAX] {
                let mut graph = pair([*tile; 2], [wcet, wcet]);
                graph.fifos[0].produce = vec![rate];
                graph.fifos[0].consume = vec![rate];
                graph.fifos[0].capacity = Some(u32::MAX);
                graph.every = Some(span(u64::MAX));
                graph.within = Some(span(u64::MAX));
                let _ = admit(&with(&system, &graph));
            }
        }
    }
}

#[test]
fn the_id_of_a_refused_graph_is_its_place() {
    let (system, tiles) = tiles(10, &[&[]]);
    let mut graph = pair([tiles[0]; 2], [1, 1]);
    graph.every = Some(span(1));
    let answer = admit(&with(&system, &graph)).expect("an answer");
    assert!(!answer.admitted);
    assert_eq!(
        answer.refusals[0].subject,
        punctual_analysis::Subject::Graph(GraphId(0))
    );
    assert_eq!(
        answer.refusals[0].reason,
        "an iteration takes 4ns, 1ns is required"
    );
}

/// Whatever a program builds: numbers at random, ends that may not be there, rates that contradict.
fn wild(random: &mut Random, tiles: &[Tile]) -> Graph {
    let mut graph = Graph::new("wild");
    let number = |random: &mut Random| match random.below(4) {
        0 => 0,
        1 => random.below(4),
        2 => random.below(1_000),
        _ => random.bits(),
    };
    let small = |random: &mut Random| u32::try_from(number(random) >> 32).unwrap_or(0);
    let small = |random: &mut Random| match random.below(3) {
        0 => small(random),
        _ => u32::try_from(random.below(5)).expect("few"),
    };
    let cycle =
        |random: &mut Random| -> Vec<u32> { (0..random.below(4)).map(|_| small(random)).collect() };
    for index in 0..random.below(5) {
        let tile = tiles[random.index(tiles.len())];
        let id = graph.actor(format!("a{index}"), tile, Work::from_ns(number(random)));
        if random.happens(300) {
            let wcet = (0..random.below(4)).map(|_| Work::from_ns(1 + (number(random) >> 1)));
            graph.actors[id.index()].wcet = wcet.collect();
        }
    }
    let actor = |random: &mut Random| ActorId(u32::try_from(random.below(5)).expect("few"));
    for index in 0..random.below(6) {
        let (from, to) = (actor(random), actor(random));
        let fifo = graph.fifo(format!("f{index}"), from, to);
        if random.happens(500) {
            (fifo.produce, fifo.consume) = (cycle(random), cycle(random));
        }
        fifo.initial = small(random);
        fifo.capacity = random.happens(500).then(|| small(random));
        fifo.token_size = small(random);
    }
    if random.happens(200) {
        graph.orders.push(Order::fixed(
            tiles[random.index(tiles.len())],
            (0..random.below(4)).map(|_| actor(random)).collect(),
        ));
    }
    graph.every = random.happens(500).then(|| span(number(random)));
    graph.within = random.happens(500).then(|| span(number(random)));
    graph
}

#[test]
fn any_graph_has_an_answer_or_an_error_and_a_valid_one_no_invalid_answer() {
    let (system, tiles) = tiles(1 << 40, &[&[], &[(0, 1 << 39)], &[(5, 7), (1 << 20, 9)]]);
    let (mut valid, mut answered) = (0, 0);
    for seed in 0..30_000 {
        let mut system = system.clone();
        system.graphs = vec![wild(&mut Random::at(seed, &[6]), &tiles)];
        let is_valid = system.validate().is_ok();
        let answer = admit(&system);
        valid += u32::from(is_valid);
        answered += u32::from(answer.is_ok());
        if is_valid {
            let invalid = matches!(answer, Err(AnalysisError::Invalid { .. }));
            assert!(!invalid, "seed {seed}: {answer:?}\n{:?}", system.graphs);
        }
    }
    assert!(valid > 300 && answered > 300, "{valid} {answered}");
}

#[test]
fn a_graph_whose_rates_depend_on_data_has_no_promises_and_keeps_none() {
    let (system, tiles) = tiles(10, &[&[]]);
    let mut graph = pair([tiles[0]; 2], [1, 1]);
    graph.actors[0].varies = true;
    let found = verdict(&system, &graph);
    assert_eq!((found.period, found.latency), (None, None));
    let why = "its rates depend on the data of `a`: it executes, and nothing is promised of it";
    assert_eq!(found.explanation, why);
    assert!(is_admitted(&with(&system, &graph)).expect("an answer"));
    graph.every = Some(span(100));
    assert!(!is_admitted(&with(&system, &graph)).expect("an answer"));
    let answer = admit(&with(&system, &graph)).expect("an answer");
    assert_eq!(
        answer.refusals[0].advice,
        "remove what is required, or `varies`"
    );
}

/// Nothing is promised of tasks that run to completion, whatever their rates and tokens are.
#[test]
fn a_graph_that_is_not_real_time_is_admitted_without_promises() {
    let (system, tiles) = tiles(10, &[&[(0, 4)]]);
    let mut graph = pair([tiles[0]; 2], [1, 1]);
    // Rates that contradict, and tasks that wait for each other: a stream would be refused.
    graph.fifo("back", ActorId(1), ActorId(0)).consume = vec![3];
    let streaming = admit(&with(&system, &graph)).expect("an answer");
    assert!(!streaming.refusals.is_empty());
    graph.plain = true;
    for actor in &mut graph.actors {
        actor.times = Some(5);
    }
    let system = with(&system, &graph);
    assert_eq!(system.validate(), Ok(()));
    let verdict = admit(&system).expect("an answer");
    assert!(verdict.refusals.is_empty() && is_admitted(&system).expect("an answer"));
    let row = &verdict.graphs[0];
    assert_eq!(
        (row.period, row.latency, row.first_output),
        (None, None, None)
    );
    let why = "its tasks run to completion: it executes, and nothing is promised of it";
    assert_eq!(row.explanation, why);
    assert!(row.assumptions.is_empty() && row.fix.is_none());
    let mut required = system.clone();
    required.graphs[0].every = Some(span(100));
    assert!(required.validate().is_err());
    let verdict = admit(&required).expect("an answer");
    let advice = &verdict.refusals[0].advice;
    assert_eq!(advice, "remove what is required, or `real-time = false`");
}

/// Such a slot decides all the same: a firing has its turn, and nothing is done in it. In virtual
/// time that passed the bounds.
#[test]
fn an_order_between_slots_takes_slots_that_are_longer_than_what_the_machine_takes() {
    for (length, has_answer) in [(7, true), (6, false)] {
        let (mut system, tiles) = tiles(2_000, &[&[(0, 799), (801, length)]]);
        let scheduling = span(1);
        system.cpus[0].policy = PolicyKind::Tdm {
            frame: span(2_000),
            scheduling,
        };
        system.machine.switch = Work::from_ns(3);
        let mut graph = pair([tiles[0]; 2], [1_000, 1_000]);
        graph.orders.push(Order {
            tile: tiles[0],
            when: When::BetweenSlots(Preempted::PassedOver),
            by: OrderRule::RoundRobin,
        });
        let answer = admit(&with(&system, &graph));
        match has_answer {
            true => assert!(answer.is_ok(), "{answer:?}"),
            false => {
                let Err(AnalysisError::Unsupported { what }) = answer else {
                    panic!("{answer:?}");
                };
                assert!(what.contains("no longer than the 6ns"), "{what}");
            }
        }
    }
}
