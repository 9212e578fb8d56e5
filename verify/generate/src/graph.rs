//! Random graphs: consistent by construction, small enough to be executed

use punctual_model::{ActorId, CpuId, Graph, Tile, Work};

use crate::random::Random;

/// A connected graph of 1 to 5 actors with 1 to 3 phases, whose firings per iteration are drawn
/// first, each on a CPU of its own. Some FIFOs close circles, some have capacities; it may stop.
pub fn draw_graph(random: &mut Random) -> Graph {
    draw_with_firings(random).0
}

/// The same, with the firings of each actor in its least iteration.
pub(crate) fn draw_with_firings(random: &mut Random) -> (Graph, Vec<u64>) {
    let mut graph = Graph::new("drawn");
    let actors = random.within(1, 5);
    // Circles set the pace where actors fire about equally often.
    let is_ring = random.happens(300);
    let most = if is_ring { 1 } else { 4 };
    let mut cycles = Vec::new();
    for index in 0..actors {
        let phases = random.within(1, most.min(3));
        let tile = Tile::cpu(CpuId(u16::try_from(index).unwrap_or(u16::MAX)));
        let id = graph.actor(format!("a{index}"), tile, Work::from_ns(1));
        let wcet = (0..phases)
            .map(|_| Work::from_ns(random.within(1, 20)))
            .collect();
        graph.actors[id.index()].wcet = wcet;
        cycles.push(random.within(1, most));
    }
    let ids: Vec<ActorId> = (0..).map(ActorId).take(graph.actors.len()).collect();
    for &to in &ids[1..] {
        let from = ids[random.index(to.index())];
        connect(&mut graph, (from, to), &cycles, random);
    }
    if ids.len() > 2 && is_ring {
        ring(&mut graph, &ids, &cycles, random);
    }
    for _ in 0..random.below(3) {
        let (from, to) = (ids[random.index(ids.len())], ids[random.index(ids.len())]);
        connect(&mut graph, (from, to), &cycles, random);
    }
    let common = cycles.iter().fold(0, |all, &one| gcd(all, one)).max(1);
    let phases = graph.actors.iter().map(|actor| actor.wcet.len() as u64);
    let firings = cycles.iter().zip(phases).map(|(c, p)| c / common * p);
    let firings = firings.collect();
    (graph, firings)
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A FIFO that moves as many tokens per iteration on both sides.
fn connect(graph: &mut Graph, (from, to): (ActorId, ActorId), cycles: &[u64], random: &mut Random) {
    let phases = |graph: &Graph, id: ActorId| graph.actors[id.index()].wcet.len() as u64;
    let (p, q) = (cycles[from.index()], cycles[to.index()]);
    // Tokens of one cycle of phases on each side: p · made = q · taken.
    let scale = random.within(1, 3);
    let (made, taken) = (q * scale, p * scale);
    let produce = split(made, phases(graph, from), random);
    let consume = split(taken, phases(graph, to), random);
    let initial = match random.below(3) {
        0 => random.below(4),
        1 => made.max(taken) + random.below(8),
        _ if from >= to => made * p,
        _ => 0,
    };
    let name = format!("f{}", graph.fifos.len());
    let fifo = graph.fifo(name, from, to);
    (fifo.produce, fifo.consume) = (produce, consume);
    fifo.initial = narrow(initial);
    if random.happens(600) {
        let more = random.below(2 * (made + taken));
        fifo.capacity = Some(fifo.initial + narrow(made.max(taken) + more));
    }
}

/// A circle through all actors, with tokens for several iterations: its period is a fraction.
fn ring(graph: &mut Graph, ids: &[ActorId], cycles: &[u64], random: &mut Random) {
    let under_way = random.within(1, 3);
    for (&from, &to) in ids.iter().zip(ids.iter().cycle().skip(1)) {
        connect(graph, (from, to), cycles, random);
        let Some(fifo) = graph.fifos.last_mut() else {
            continue;
        };
        let tokens: u32 = fifo.produce.iter().sum();
        let cycles = narrow(cycles[from.index()] * under_way);
        let closes = to == ids[0];
        (fifo.initial, fifo.capacity) = (if closes { tokens * cycles } else { 0 }, None);
    }
}

/// `sum` in `parts` parts, some of them 0; one number where all are equal.
fn split(sum: u64, parts: u64, random: &mut Random) -> Vec<u32> {
    let mut all = vec![0; narrow(parts) as usize];
    for _ in 0..sum {
        let place = random.index(all.len());
        all[place] += 1;
    }
    all
}

/// A number that is small by construction.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
