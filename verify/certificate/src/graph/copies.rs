//! Copies between memories: how long a firing keeps its tile, and how much later its tokens arrive
//!
//! Each tile has one engine, which makes one copy at a time, in the order of requests. A firing
//! asks for its inputs and computes when they are there. Then it asks for its output; the next one
//! may begin as soon as the engine has begun with that, and the tokens arrive when it is copied.
//!
//! So where firings follow each other whole, a firing finds at most one output under way, which may
//! have just begun. Inputs come behind it; without inputs, it is copied while the firing computes.
//! Where others may come in between, each of them may have an input and an output ahead of every
//! request, and the actor itself its output before.

use super::{Copies, Decides, Fifo, Graph, Kept, Memory, at};

/// The firings of an actor, by phase.
pub(super) struct Firing {
    /// The longest work, with all waiting for copies, that the tile has to give to it.
    pub(super) busy: Vec<u128>,
    /// From the end of that until its tokens have arrived.
    pub(super) arrives: Vec<u128>,
}

/// The copies that an actor asks its engine for, by phase.
struct Asked {
    inputs: Vec<u128>,
    outputs: Vec<u128>,
}

impl Asked {
    fn longest(list: &[u128]) -> u128 {
        list.iter().copied().max().unwrap_or(0)
    }
}

/// All firings. `None`: an actor has cycles of different lengths, a FIFO says nothing of its tokens
/// or says it for nothing, or a time is beyond 64 bits. O(phases · FIFOs + actors²).
pub(super) fn firings(graph: &Graph) -> Option<Vec<Firing>> {
    let speaks = |fifo: &Fifo| fifo.kept.is_some() == graph.copies.is_some();
    let shares = graph.actors.iter().any(|actor| actor.shared.is_some());
    if !graph.fifos.iter().all(speaks) || (shares && graph.copies.is_none()) {
        return None;
    }
    let Some(copies) = &graph.copies else {
        let without = graph.actors.iter().map(|actor| Firing {
            busy: actor.wcet.iter().map(|&wcet| wcet.into()).collect(),
            arrives: vec![0; actor.wcet.len()],
        });
        return Some(without.collect());
    };
    let asked = (0..graph.actors.len()).map(|actor| asked(graph, copies, actor));
    let asked: Vec<Asked> = asked.collect::<Option<_>>()?;
    let firings = (0..graph.actors.len()).map(|actor| firing(graph, &asked, actor));
    firings.collect()
}

/// The copies of an actor: inputs and outputs are added up FIFO by FIFO, and to shared memory.
fn asked(graph: &Graph, copies: &Copies, actor: usize) -> Option<Asked> {
    let reads = graph.fifos.iter().filter(|fifo| fifo.to == actor);
    let reads = reads.map(|fifo| (fifo, &fifo.consume, Memory::Writer));
    let writes = graph.fifos.iter().filter(|fifo| fifo.from == actor);
    let writes = writes.map(|fifo| (fifo, &fifo.produce, Memory::Reader));
    let (reads, writes): (Vec<_>, Vec<_>) = (reads.collect(), writes.collect());
    let wcets = graph.actors[actor].wcet.len();
    let cycles = || reads.iter().chain(&writes).map(|(_, cycle, _)| cycle.len());
    let phases = cycles().chain([wcets]).max()?;
    if cycles()
        .chain([wcets])
        .any(|cycle| cycle != 1 && cycle != phases)
    {
        return None;
    }
    let [from_shared, to_shared] = graph.actors[actor].shared.unwrap_or_default();
    let sums = |list: &[(&Fifo, &Vec<u32>, Memory)], shared: u32| -> Option<Vec<u128>> {
        let mut sums = vec![time(copies, shared.into())?; phases];
        for (fifo, cycle, other_end) in list {
            let kept = fifo.kept.as_ref()?;
            if is_copied(graph, fifo, kept, *other_end) {
                for (phase, sum) in sums.iter_mut().enumerate() {
                    *sum += time(
                        copies,
                        u128::from(kept.bytes) * u128::from(at(cycle, phase)),
                    )?;
                }
            }
        }
        Some(sums)
    };
    Some(Asked {
        inputs: sums(&reads, from_shared)?,
        outputs: sums(&writes, to_shared)?,
    })
}

/// Whether the end that is not `other_end` finds the tokens of a FIFO elsewhere than on its tile.
fn is_copied(graph: &Graph, fifo: &Fifo, kept: &Kept, other_end: Memory) -> bool {
    let apart = graph.actors[fifo.from].tile != graph.actors[fifo.to].tile;
    kept.memory == Memory::Tile || (kept.memory == other_end && apart)
}

/// The time of one copy.
fn time(copies: &Copies, bytes: u128) -> Option<u128> {
    if bytes == 0 {
        return Some(0);
    }
    let moved = (bytes * 1_000).checked_div(copies.bytes_per_us.into())?;
    let rest = u128::from(moved * u128::from(copies.bytes_per_us) < bytes * 1_000);
    Some(u128::from(copies.latency) + moved + rest)
}

fn firing(graph: &Graph, asked: &[Asked], actor: usize) -> Option<Firing> {
    let (own, tile) = (&asked[actor], graph.actors[actor].tile);
    let here = || {
        graph
            .actors
            .iter()
            .zip(asked)
            .filter(|(other, _)| other.tile == tile)
    };
    let outputs = here().map(|(_, other)| Asked::longest(&other.outputs));
    let under_way = outputs.max().unwrap_or(0);
    let both = |asked: &Asked| Asked::longest(&asked.inputs) + Asked::longest(&asked.outputs);
    let others = here().map(|(_, other)| both(other)).sum::<u128>() - both(own);
    let between = match graph.tiles[tile].decides {
        Some(Decides::PassesOver | Decides::Owners(_) | Decides::Threads { .. }) => Some(others),
        Some(Decides::Continues) | None => None,
    };
    let wcet = &graph.actors[actor].wcet;
    let phases = own.inputs.iter().zip(&own.outputs).enumerate();
    let busy = phases.map(|(phase, (&input, &output))| {
        let computes = u128::from(at(wcet, phase));
        let requests = [input, output].iter().filter(|&&copy| copy > 0).count() as u128;
        let time = match (requests, between) {
            (0, _) => computes,
            (_, Some(others)) => {
                computes + input + Asked::longest(&own.outputs) + others.checked_mul(requests)?
            }
            (_, None) if input == 0 => computes.max(under_way),
            (_, None) => under_way + input + computes,
        };
        u64::try_from(time).ok().map(u128::from)
    });
    Some(Firing {
        busy: busy.collect::<Option<_>>()?,
        arrives: own.outputs.clone(),
    })
}
