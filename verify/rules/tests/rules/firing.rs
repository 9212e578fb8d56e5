//! Actors keep to their states, rates and orders, and a log in which one does not is rejected.

use punctual_model::{
    Copies, CpuId, Frequency, Graph, Instant, Order, OrderRule, Place, PolicyKind, Scheduler,
    SchedulerId, Slot, Span, Supply, System, Tile, Trust, Work,
};
use punctual_policy::AnyPolicy;
use punctual_rules::{Rule, check};
use punctual_sim::{CpuInput, Faults, Guests, Moves, Options, graph_bodies, run_with};
use punctual_tables::{CpuTables, Tables};
use punctual_trace::{Header, Log, Mode, Moved, Recorder, State};

use crate::common::cpu;

const FIFO: PolicyKind<punctual_model::Ns> = PolicyKind::Fifo;

/// `parse` in slots of CPU 0, `filter` and `show` on CPU 1 in a static order: 2, 2, 1.
pub(crate) fn system() -> System {
    let frame = PolicyKind::Tdm {
        frame: Span::from_us(100),
        scheduling: Span::from_us(1),
    };
    let slot = Slot {
        at: Span::from_us(10),
        length: Span::from_us(40),
    };
    let slots = Scheduler {
        name: "own".into(),
        cpu: CpuId(0),
        parent: None,
        policy: FIFO,
        priority: punctual_model::Priority::LOWEST,
        supply: Supply::Slots(vec![slot]),
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        fallback: None,
        code: None,
    };
    let (own, whole) = (
        Tile {
            cpu: CpuId(0),
            scheduler: Some(SchedulerId(0)),
        },
        Tile::cpu(CpuId(1)),
    );
    let mut graph = Graph::new("g");
    let parse = graph.actor("parse", own, Work::from_us(1));
    graph.actors[0].wcet = vec![Work::from_us(17), Work::from_us(9)];
    let filter = graph.actor("filter", whole, Work::from_us(11));
    let show = graph.actor("show", whole, Work::from_us(5));
    let blocks = graph.fifo("blocks", parse, filter);
    (blocks.produce, blocks.capacity) = (vec![3, 1], Some(5));
    blocks.consume = vec![2];
    let lines = graph.fifo("lines", filter, show);
    (lines.consume, lines.capacity) = (vec![2], Some(3));
    graph.fifo("state", filter, filter).initial = 1;
    graph.orders = vec![Order::fixed(whole, vec![filter, filter, show])];
    System {
        cpus: vec![cpu("a", frame), cpu("b", FIFO)],
        schedulers: vec![slots],
        graphs: vec![graph],
        ..System::default()
    }
}

fn log() -> Log {
    log_of(&system())
}

/// The same graph, where `filter` copies what it claims, and `parse` and `filter` their outputs.
fn with_copies() -> System {
    let mut system = system();
    let graph = &mut system.graphs[0];
    graph.copies = Some(Copies {
        latency: Span::from_us(1),
        bytes_per_us: 4,
    });
    for (fifo, size) in graph.fifos.iter_mut().zip([10, 6]) {
        (fifo.place, fifo.token_size) = (Place::Memory, size);
    }
    system
}

pub(crate) fn log_of(file: &System) -> Log {
    file.validate().expect("a meaningful system");
    let (system, threads) = (file.with_graph_threads(), file.graph_threads());
    let tables = Tables::new(&system, Frequency::NANOSECONDS);
    let input = |cpu: &CpuTables| CpuInput {
        shard: cpu.build(AnyPolicy::new).expect("valid tables"),
        sink: Recorder::with_capacity(1 << 20).expect("memory"),
    };
    let options = Options {
        duration: Span::from_ms(2),
        seed: 0,
        faults: Faults::default(),
        plans: Vec::new(),
    };
    let moves = Moves::default();
    let guests = Guests {
        bodies: graph_bodies(&system, &threads, (&options.faults, 0), &moves),
        ..Guests::default()
    };
    let inputs = tables.cpus.iter().map(input).collect();
    let outcome = run_with(&system, &tables, inputs, guests, &options, &mut ());
    let outcome = outcome.expect("it runs");
    let header = Header {
        platform: "sim".into(),
        mode: Mode::Virtual,
        duration: options.duration,
        end: outcome.end,
        ..Header::default()
    };
    let mut log = Log::new(header, &system, tables);
    for (at, cpu) in outcome.cpus.into_iter().enumerate() {
        let one = log.add_cpu(&system.cpus[at].name, None, cpu.sink);
        one.moves = moves.take(at).0;
    }
    log
}

#[test]
fn a_graph_in_slots_and_in_a_static_order_obeys_the_rules() {
    let log = log();
    assert_eq!(check(&log), []);
    let moves = |cpu: usize| log.cpus[cpu].moves.len();
    assert!(
        moves(0) > 100 && moves(1) > 300,
        "{} {}",
        moves(0),
        moves(1)
    );
    let preempted = log.cpus[0].moves.iter().filter(|moved| moved.preempted);
    assert!(preempted.count() > 15);
}

/// What `change` makes of the log breaks this rule.
fn rejected(rule: Rule, change: impl FnOnce(&mut Log)) {
    let mut log = log();
    change(&mut log);
    let found = check(&log);
    let broken = found.iter().any(|violation| violation.rule == rule);
    assert!(broken, "{rule:?} is kept: {found:?}");
}

fn graph(log: &mut Log) -> &mut Graph {
    &mut log.graphs[0].graph
}

fn place(moves: &[Moved], from: usize, state: State) -> usize {
    let found = moves[from..].iter().position(|moved| moved.state == state);
    from + found.expect("such a transition")
}

#[test]
fn a_state_that_is_left_out_breaks_the_states() {
    for state in &State::ALL[..5] {
        rejected(Rule::ActorStates, |log| {
            let moves = &mut log.cpus[1].moves;
            let at = place(moves, 40, *state);
            let _ = moves.remove(at);
        });
    }
    rejected(Rule::ActorStates, |log| log.cpus[1].moves[7].firing += 1);
    rejected(Rule::ActorStates, |log| {
        let moves = &mut log.cpus[0].moves;
        let at = moves.iter().position(|m| m.preempted).expect("a slot ends");
        moves[at].preempted = false;
    });
    rejected(Rule::ActorStates, |log| {
        let moved = log.cpus[1].moves[0];
        log.cpus[0].moves.insert(0, moved);
    });
}

#[test]
fn a_firing_while_another_fires_breaks_the_states() {
    rejected(Rule::ActorStates, |log| {
        let moves = &mut log.cpus[1].moves;
        let at = place(moves, 40, State::Claim);
        let end = place(moves, at, State::Idle);
        let claim = (end + 1..moves.len()).find(|&i| moves[i].state == State::Claim);
        let claim = claim.expect("another firing");
        let early = moves.remove(claim);
        moves.insert(
            end,
            Moved {
                at: moves[end].at,
                ..early
            },
        );
    });
}

#[test]
fn a_firing_without_its_tokens_or_its_space_breaks_its_rule() {
    // Its tokens come from another CPU, and it begins before they do.
    rejected(Rule::FiringRules, |log| {
        for moved in &mut log.cpus[1].moves {
            let early = moved.at.ticks().saturating_sub(1);
            moved.at = Instant::from_ticks(early);
        }
    });
    rejected(Rule::FiringRules, |log| {
        graph(log).fifos[1].consume = vec![3]
    });
    rejected(Rule::FiringRules, |log| {
        graph(log).fifos[0].capacity = Some(3)
    });
    rejected(Rule::FiringRules, |log| graph(log).fifos[2].initial = 0);
}

#[test]
fn copies_take_their_time_and_their_tokens_come_behind_them() {
    let log = log_of(&with_copies());
    assert_eq!(check(&log), []);
    let lasts = |state| {
        let of_filter = log.cpus[1].moves.windows(2).filter(|m| m[0].state == state);
        of_filter.map(|m| m[1].at.since(m[0].at).ticks()).max()
    };
    // Two tokens of 10 bytes and the latency, behind the copy of a line; a line's wait for a line.
    assert!(
        lasts(State::Claim) >= Some(6_000),
        "{:?}",
        lasts(State::Claim)
    );
    // As if the engine were a quarter as fast as it was.
    let mut log = log.clone();
    let copies = graph(&mut log).copies.as_mut().expect("there");
    copies.bytes_per_us = 1;
    let found = check(&log);
    let broken = found.iter().filter(|v| v.rule == Rule::FiringRules);
    let words: Vec<&str> = broken.map(|v| &*v.detail).collect();
    for word in ["after its claim", "lacks"] {
        assert!(words.iter().any(|w| w.contains(word)), "{found:?}");
    }
}

#[test]
fn tokens_out_of_nothing_are_found() {
    rejected(Rule::TokensConserved, |log| {
        graph(log).fifos[0].produce = vec![2, 1];
    });
    rejected(Rule::TokensConserved, |log| graph(log).fifos[0].initial = 3);
}

#[test]
fn a_firing_out_of_its_turn_breaks_the_order() {
    rejected(Rule::StaticOrder, |log| {
        let order = &mut graph(log).orders[0];
        if let OrderRule::Static(firings) = &mut order.by {
            firings.swap(1, 2);
        }
    });
}

#[test]
fn no_transition_can_be_left_out_or_doubled_unnoticed() {
    let whole = log();
    for cpu in 0..2 {
        for at in 0..60 {
            let mut log = whole.clone();
            let _ = log.cpus[cpu].moves.remove(at);
            assert!(!check(&log).is_empty(), "CPU {cpu}: {at} left out");
            let mut log = whole.clone();
            let moved = log.cpus[cpu].moves[at];
            log.cpus[cpu].moves.insert(at, moved);
            assert!(!check(&log).is_empty(), "CPU {cpu}: {at} doubled");
        }
    }
}
