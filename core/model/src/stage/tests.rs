//! Names that other parts hold still stand for the same after some parts have gone

use super::*;
use crate::graph::{Graph, Order, Tile};
use crate::id::ActorId;
use crate::priority::Priority;
use crate::scheduler::{Slot, Supply};
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
