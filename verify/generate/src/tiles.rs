//! Graphs on tiles: whole CPUs and slots, with an order for each

use punctual_model::{
    Actor, ActorId, Copies, Cpu, CpuId, Fifo, Graph, Ns, Order, OrderRule, Place, PolicyKind,
    Preempted, Scheduler, SchedulerId, Slot, Span, Supply, System, Tile, Trust, When,
};

use crate::graph::draw_with_firings;
use crate::random::Random;

/// A system of one drawn graph on one to four tiles: whole CPUs, or slots of frames that are as
/// long on all of them. Some tiles have an order of their own. Copies take time in some graphs.
/// Every wcet is `scale` times that of [`crate::draw_graph`]; frames and slots grow with it.
/// O(firings of an iteration · actors).
pub fn draw_graph_system(random: &mut Random, scale: u64) -> System {
    let (mut graph, firings) = draw_with_firings(random);
    for wcet in graph.actors.iter_mut().flat_map(|actor| &mut actor.wcet) {
        *wcet = wcet.saturating_mul(scale);
    }
    let mut system = System::default();
    let frame = random.within(20, 80) * scale;
    let tiles: Vec<Tile> = (0..random.within(1, 4))
        .map(|_| draw_tile(&mut system, frame, scale, random))
        .collect();
    for actor in &mut graph.actors {
        actor.tile = tiles[random.index(tiles.len())];
    }
    let static_order = an_iteration(&graph, firings);
    for &tile in &tiles {
        let order = draw_order(&graph, tile, static_order.as_deref(), random);
        graph.orders.extend(order);
    }
    draw_copies(&mut graph, scale, random);
    system.graphs.push(graph);
    system
}

/// Places and sizes of tokens, bytes of shared memory, and the time of their copies, for every
/// third graph that copies anything.
fn draw_copies(graph: &mut Graph, scale: u64, random: &mut Random) {
    if !random.happens(400) {
        return;
    }
    for fifo in &mut graph.fifos {
        fifo.place = *random.pick(&Place::ALL).unwrap_or(&Place::Consumer);
        fifo.token_size = u32::try_from(random.below(12)).unwrap_or(0);
    }
    for actor in &mut graph.actors {
        let mut bytes = || match random.happens(250) {
            true => u32::try_from(random.below(12)).unwrap_or(0),
            false => 0,
        };
        (actor.reads_shm, actor.writes_shm) = (bytes(), bytes());
    }
    let copies = Copies {
        latency: Span::from_ns(random.below(4) * scale),
        // One to four bytes in the unit of the wcets.
        bytes_per_us: u32::try_from((random.within(1, 4) * 1_000 / scale).max(1)).unwrap_or(1),
    };
    let is_copied = |fifo: &Fifo| {
        fifo.token_size > 0 && (graph.claim_copies(fifo) || graph.release_copies(fifo))
    };
    let shares = |actor: &Actor| actor.reads_shm > 0 || actor.writes_shm > 0;
    if graph.fifos.iter().any(is_copied) || graph.actors.iter().any(shares) {
        graph.copies = Some(copies);
    }
}

/// One more CPU, whole or with a scheduler that has one or two slots on it.
fn draw_tile(system: &mut System, frame: u64, scale: u64, random: &mut Random) -> Tile {
    let index = system.cpus.len();
    let cpu = CpuId(u16::try_from(index).unwrap_or(u16::MAX));
    let whole = random.happens(300);
    let scheduling = random.within(1, 3) * scale;
    system.cpus.push(Cpu {
        name: index.to_string(),
        host: None,
        policy: match whole {
            true => PolicyKind::Fifo,
            false => PolicyKind::Tdm {
                frame: Span::from_ns(frame),
                scheduling: Span::from_ns(scheduling),
            },
        },
    });
    if whole {
        return Tile::cpu(cpu);
    }
    let id = SchedulerId(u16::try_from(system.schedulers.len()).unwrap_or(u16::MAX));
    let slots = draw_slots(frame, scheduling, random);
    system.schedulers.push(Scheduler {
        name: format!("s{index}"),
        cpu,
        parent: None,
        policy: PolicyKind::Fifo,
        priority: punctual_model::Priority::new(0),
        supply: Supply::Slots(slots),
        trust: Trust::Inline,
        quota: None,
        receiver: None,
        code: None,
        fallback: None,
    });
    let scheduler = Some(id);
    Tile { cpu, scheduler }
}

/// One or two slots, each at least one nanosecond long and `scheduling` behind the one before.
fn draw_slots(frame: u64, scheduling: u64, random: &mut Random) -> Vec<Slot<Ns>> {
    let slot = |at, length| Slot {
        at: Span::from_ns(at),
        length: Span::from_ns(length),
    };
    if random.happens(500) {
        let length = random.within(frame / 8, frame - scheduling);
        return vec![slot(random.within(0, frame - scheduling - length), length)];
    }
    let half = frame / 2;
    let one = random.within(frame / 16, half - scheduling);
    let two = random.within(frame / 16, half - scheduling);
    let first = random.within(0, half - scheduling - one);
    vec![
        slot(first, one),
        slot(half + random.within(0, half - scheduling - two), two),
    ]
}

/// An order for a tile that has actors: by turns or in the order of an iteration in own time, by
/// the core, or between slots; `None`: as without one.
fn draw_order(
    graph: &Graph,
    tile: Tile,
    iteration: Option<&[ActorId]>,
    random: &mut Random,
) -> Option<Order> {
    let here = |id: &ActorId| graph.actors[id.index()].tile == tile;
    let ids = (0..).map(ActorId).take(graph.actors.len());
    let mut owners: Vec<ActorId> = ids.filter(here).collect();
    let again = *random.pick(&owners)?;
    let kinds = if tile.scheduler.is_some() { 6 } else { 3 };
    let (when, by) = match random.below(kinds) {
        0 => return None,
        1 => {
            let firings = iteration?.iter().copied().filter(here).collect();
            (When::OwnTime, OrderRule::Static(firings))
        }
        2 => (When::Inline, OrderRule::RoundRobin),
        3 => (
            When::BetweenSlots(Preempted::Continues),
            OrderRule::RoundRobin,
        ),
        4 => (
            When::BetweenSlots(Preempted::PassedOver),
            OrderRule::RoundRobin,
        ),
        _ => {
            owners.push(again);
            random.shuffle(&mut owners);
            (
                When::BetweenSlots(Preempted::PassedOver),
                OrderRule::Tdm(owners),
            )
        }
    };
    Some(Order { tile, when, by })
}

/// The firings of one iteration in an order in which they can begin; `None`: it stops before, or is
/// longer than a thousand firings.
fn an_iteration(graph: &Graph, mut left: Vec<u64>) -> Option<Vec<ActorId>> {
    let mut held: Vec<u32> = graph.fifos.iter().map(|fifo| fifo.initial).collect();
    let mut fired = vec![0_usize; graph.actors.len()];
    let mut order = Vec::new();
    let rate = |cycle: &[u32], firing: usize| cycle[firing % cycle.len()];
    while left.iter().any(|&left| left > 0) {
        let next = (0..left.len()).find(|&actor| {
            let able = graph.fifos.iter().zip(&held).all(|(fifo, &held)| {
                let takes = match fifo.to.index() == actor {
                    true => rate(&fifo.consume, fired[actor]),
                    false => 0,
                };
                let gives = match fifo.from.index() == actor {
                    true => rate(&fifo.produce, fired[actor]),
                    false => 0,
                };
                let room = fifo.capacity.is_none_or(|most| held + gives <= most);
                held >= takes && room
            });
            left[actor] > 0 && able
        })?;
        for (fifo, held) in graph.fifos.iter().zip(&mut held) {
            if fifo.to.index() == next {
                *held -= rate(&fifo.consume, fired[next]);
            }
            if fifo.from.index() == next {
                *held += rate(&fifo.produce, fired[next]);
            }
        }
        fired[next] += 1;
        left[next] -= 1;
        order.push(ActorId(u32::try_from(next).unwrap_or(u32::MAX)));
        if order.len() > 1_000 {
            return None;
        }
    }
    Some(order)
}
