//! Names that other parts hold still stand for the same after some parts have gone

use super::*;
use crate::graph::{Graph, Order, Tile};
use crate::id::ActorId;
use crate::priority::Priority;
use crate::scheduler::{Server, ServerKind, Slot, Supply};
use crate::time::{Instant, Span, Work};
use alloc::vec;

/// A scheduler right below a CPU.
fn scheduler(name: &str, cpu: u16, supply: Supply) -> Scheduler {
    Scheduler {
        name: name.into(),
        cpu: CpuId(cpu),
        parent: None,
        policy: PolicyKind::Fifo,
        priority: Priority::new(0),
        supply,
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        code: None,
        fallback: None,
    }
}

#[test]
fn the_tiles_of_graphs_follow_their_schedulers() {
    let frame = Span::from_ms(10);
    let cpu = |name: &str, policy| Cpu {
        name: name.into(),
        host: None,
        policy,
    };
    let (at, length) = (Span::ZERO, Span::from_ms(4));
    let scheduling = Span::ZERO;
    let tile = Tile {
        cpu: CpuId(1),
        scheduler: Some(SchedulerId(1)),
    };
    let mut graph = Graph::new("g");
    graph.actor("a", tile, Work::from_ms(1));
    let firings = vec![ActorId(0)];
    graph.orders = vec![Order::fixed(tile, firings)];
    let system = System {
        cpus: vec![
            cpu("0", PolicyKind::Fifo),
            cpu("1", PolicyKind::Tdm { frame, scheduling }),
        ],
        schedulers: vec![
            scheduler("later", 0, Supply::Shared),
            scheduler("slots", 1, Supply::Slots(vec![Slot { at, length }])),
        ],
        graphs: vec![graph],
        changes: vec![Change {
            name: "comes".into(),
            at: Instant::ZERO,
            steps: vec![Step::Join(SchedulerId(0))],
        }],
        ..System::default()
    };
    let now = Stage::at_start(&system).system();
    assert_eq!(now.schedulers.len(), 1);
    let moved = Tile {
        scheduler: Some(SchedulerId(0)),
        ..tile
    };
    assert_eq!(now.graphs[0].actors[0].tile, moved);
    assert_eq!(now.graphs[0].orders[0].tile, moved);
}

/// Two siblings, one of another CPU, one without a server, two under deadlines, and a polling one.
fn lenders() -> System {
    let fixed = PolicyKind::FixedPriority { preemptive: true };
    let cpu = |name: &str, policy| Cpu {
        name: name.into(),
        host: None,
        policy,
    };
    let served = |name: &str, cpu, kind| {
        let server = Server {
            kind,
            budget: Work::from_ms(2),
            period: Span::from_ms(10),
        };
        scheduler(name, cpu, Supply::Server(server))
    };
    let deferrable = ServerKind::Deferrable;
    System {
        cpus: vec![cpu("0", fixed), cpu("1", PolicyKind::EarliestDeadlineFirst)],
        schedulers: vec![
            served("a", 0, deferrable),
            served("b", 0, ServerKind::Polling),
            served("c", 1, deferrable),
            scheduler("d", 0, Supply::Shared),
            served("e", 1, deferrable),
            served("later", 0, deferrable),
        ],
        changes: vec![Change {
            name: "comes".into(),
            at: Instant::from_ms(9),
            steps: vec![Step::Join(SchedulerId(5))],
        }],
        ..System::default()
    }
}

#[test]
fn a_transfer_that_cannot_be_says_why() {
    let system = lenders();
    let transfer = |from, to, ms| Step::Transfer {
        from: SchedulerId(from),
        to: SchedulerId(to),
        budget: Work::from_ms(ms),
    };
    let comes = Step::Join(SchedulerId(5));
    let said = |steps| {
        let (name, at) = ("lends".into(), Instant::ZERO);
        let change = Change { name, at, steps };
        match Stage::at_start(&system).apply(&change) {
            Ok(()) => String::new(),
            Err(mistakes) => mistakes[0].message.clone(),
        }
    };
    for (steps, words) in [
        (vec![transfer(0, 1, 2)], ""),
        (vec![transfer(0, 1, 1), comes], "does nothing else"),
        (vec![transfer(0, 1, 3)], "its budget is 2ms"),
        (vec![transfer(0, 1, 0)], "its budget is 2ms"),
        (vec![transfer(0, 0, 1)], "which is no sibling"),
        (vec![transfer(0, 2, 1)], "which is no sibling"),
        (vec![transfer(1, 0, 1)], "keeps no budget to the end"),
        (
            vec![transfer(0, 3, 1)],
            "has no server that could take budget",
        ),
        (vec![transfer(2, 4, 1)], "preemptive fixed priority"),
        (vec![transfer(0, 5, 1)], "which is not there at that time"),
        (vec![transfer(5, 0, 1)], "is not there at that time"),
        (vec![transfer(0, 9, 1)], "to no scheduler"),
    ] {
        let said = said(steps.clone());
        let as_meant = said.contains(words) && said.is_empty() == words.is_empty();
        assert!(as_meant, "{steps:?}: {said}");
    }
}
