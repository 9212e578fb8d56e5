//! Analyses of graphs that are wrong on purpose, as `mutants` has others.

use punctual_analysis::GraphVerdict;
use punctual_model::{
    Order, OrderRule, Place, PolicyKind, Preempted, SchedulerId, Supply, System, Tile, When, Work,
};

use crate::graphs::{GraphAnalysis, graph_analysis};

/// A wrong analysis of graphs.
#[derive(Clone, Debug)]
pub struct WrongGraphs {
    /// The mistake.
    pub mistake: &'static str,
    /// The wrong analysis.
    pub analysis: GraphAnalysis,
}

/// All of them.
pub const ALL: [WrongGraphs; 13] = [
    WrongGraphs {
        mistake: "forgets the turns of the other actors on a tile",
        analysis: without_turns,
    },
    WrongGraphs {
        mistake: "takes slots for a slower processor",
        analysis: as_a_share,
    },
    WrongGraphs {
        mistake: "gives space back when a firing begins",
        analysis: with_more_space,
    },
    WrongGraphs {
        mistake: "hands tokens on when a firing begins",
        analysis: with_more_tokens,
    },
    WrongGraphs {
        mistake: "takes every phase for as long as the first",
        analysis: without_phases,
    },
    WrongGraphs {
        mistake: "takes decisions between slots for decisions in own time",
        analysis: without_orders,
    },
    WrongGraphs {
        mistake: "lets a firing continue that is passed over",
        analysis: with_continuing,
    },
    WrongGraphs {
        mistake: "gives a slot to somebody else when its owner cannot fire",
        analysis: without_owners,
    },
    WrongGraphs {
        mistake: "forgets the copies between memories",
        analysis: without_copies,
    },
    WrongGraphs {
        mistake: "forgets the copies of claims",
        analysis: without_claims,
    },
    WrongGraphs {
        mistake: "forgets the copies of releases",
        analysis: without_releases,
    },
    WrongGraphs {
        mistake: "forgets the copies from and to shared memory",
        analysis: without_shared_memory,
    },
    WrongGraphs {
        mistake: "takes the turns of threads for decisions in own time",
        analysis: without_threads,
    },
];

/// The system after a change of its graph.
fn changed(system: &System, change: impl FnOnce(&mut System)) -> Option<GraphVerdict> {
    let mut system = system.clone();
    change(&mut system);
    graph_analysis(&system)
}

fn without_turns(system: &System) -> Option<GraphVerdict> {
    changed(system, |system| {
        for at in 0..system.graphs[0].actors.len() {
            let tile = system.graphs[0].actors[at].tile;
            let others = system.graphs[0].actors[..at].iter();
            let is_shared = others.clone().any(|actor| actor.tile == tile);
            if is_shared && system.graphs[0].order_on(tile).is_none() {
                let alone = copy(system, tile);
                system.graphs[0].actors[at].tile = alone;
            }
        }
    })
}

/// Another tile with the same supply.
fn copy(system: &mut System, tile: Tile) -> Tile {
    let cpu = punctual_model::CpuId(u16::try_from(system.cpus.len()).unwrap_or(u16::MAX));
    let mut copied = system.cpus[tile.cpu.index()].clone();
    copied.name = format!("copy{}", cpu.0);
    system.cpus.push(copied);
    let scheduler = tile.scheduler.map(|id| {
        let place = SchedulerId(u16::try_from(system.schedulers.len()).unwrap_or(u16::MAX));
        let mut copied = system.schedulers[id.index()].clone();
        (copied.name, copied.cpu) = (format!("copy{}", place.0), cpu);
        system.schedulers.push(copied);
        place
    });
    Tile { cpu, scheduler }
}

fn as_a_share(system: &System) -> Option<GraphVerdict> {
    changed(system, |system| {
        let System {
            graphs,
            cpus,
            schedulers,
            ..
        } = system;
        for actor in &mut graphs[0].actors {
            let Some(scheduler) = actor.tile.scheduler.map(|id| &schedulers[id.index()]) else {
                continue;
            };
            let (PolicyKind::Tdm { frame, .. }, Supply::Slots(slots)) =
                (cpus[actor.tile.cpu.index()].policy, &scheduler.supply)
            else {
                continue;
            };
            let supplied: u64 = slots.iter().map(|slot| slot.length.as_ns()).sum();
            for wcet in &mut actor.wcet {
                *wcet = Work::from_ns((wcet.as_ns() * frame.as_ns()).div_ceil(supplied));
            }
            actor.tile.scheduler = None;
        }
        // A share of each CPU, as long as its slots were.
        let outside = |order: &Order| !order.when.is_between_slots();
        graphs[0].orders.retain(outside);
        for order in &mut graphs[0].orders {
            order.tile.scheduler = None;
        }
        for cpu in cpus {
            cpu.policy = PolicyKind::Fifo;
        }
        schedulers.clear();
    })
}

fn with_more_space(system: &System) -> Option<GraphVerdict> {
    changed(system, |system| {
        for fifo in &mut system.graphs[0].fifos {
            let longest = fifo.consume.iter().copied().max().unwrap_or(0);
            fifo.capacity = fifo.capacity.map(|capacity| capacity + longest);
        }
    })
}

fn with_more_tokens(system: &System) -> Option<GraphVerdict> {
    changed(system, |system| {
        for fifo in &mut system.graphs[0].fifos {
            let first = fifo.produce.first().copied().unwrap_or(0);
            fifo.initial += first;
            fifo.capacity = fifo.capacity.map(|capacity| capacity + first);
        }
    })
}

fn without_phases(system: &System) -> Option<GraphVerdict> {
    changed(system, |system| {
        for actor in &mut system.graphs[0].actors {
            let first = actor.wcet[0];
            actor.wcet.fill(first);
        }
    })
}

fn orders(system: &System, change: impl Fn(&Order) -> Option<Order>) -> Option<GraphVerdict> {
    changed(system, |system| {
        let orders = &mut system.graphs[0].orders;
        *orders = orders.iter().filter_map(change).collect();
    })
}

fn without_orders(system: &System) -> Option<GraphVerdict> {
    orders(system, |order| {
        (!order.when.is_between_slots()).then(|| order.clone())
    })
}

fn without_threads(system: &System) -> Option<GraphVerdict> {
    orders(system, |order| {
        (order.when != When::Inline).then(|| order.clone())
    })
}

fn with_continuing(system: &System) -> Option<GraphVerdict> {
    orders(system, |order| {
        let mut order = order.clone();
        if order.by == OrderRule::RoundRobin && order.when.is_between_slots() {
            order.when = When::BetweenSlots(Preempted::Continues);
        }
        Some(order)
    })
}

fn without_owners(system: &System) -> Option<GraphVerdict> {
    orders(system, |order| {
        let mut order = order.clone();
        if matches!(order.by, OrderRule::Tdm(_)) {
            order.by = OrderRule::RoundRobin;
        }
        Some(order)
    })
}

fn without_copies(system: &System) -> Option<GraphVerdict> {
    changed(system, |system| system.graphs[0].copies = None)
}

/// The buffers are where their readers are: then nothing is left to copy but outputs.
fn without_claims(system: &System) -> Option<GraphVerdict> {
    changed(system, |system| {
        for fifo in &mut system.graphs[0].fifos {
            fifo.place = Place::Consumer;
        }
        for actor in &mut system.graphs[0].actors {
            actor.reads_shm = 0;
        }
    })
}

fn without_releases(system: &System) -> Option<GraphVerdict> {
    changed(system, |system| {
        for fifo in &mut system.graphs[0].fifos {
            fifo.place = Place::Producer;
        }
        for actor in &mut system.graphs[0].actors {
            actor.writes_shm = 0;
        }
    })
}

fn without_shared_memory(system: &System) -> Option<GraphVerdict> {
    changed(system, |system| {
        for actor in &mut system.graphs[0].actors {
            (actor.reads_shm, actor.writes_shm) = (0, 0);
        }
    })
}
