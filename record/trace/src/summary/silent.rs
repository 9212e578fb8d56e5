//! Graphs, and tiles of them, that never fire although they could.

use punctual_kern::Next;
use punctual_model::{Fifo, Graph, Instant, OrderRule, Tile, When};

use crate::graphs::GraphInfo;
use crate::log::{Log, Mode};
use crate::record::Record;

/// A tile that was chosen so often since it could fire, for each firing of its order, is silent.
const OFTEN: usize = 4;

/// Whether a thread of a graph was chosen on each tile. One that looks and finds nothing has no
/// stretch of execution in virtual time. O(tiles · records).
pub(super) fn was_chosen(log: &Log, info: &GraphInfo) -> bool {
    let mut tiles = info.graph.actors.iter().map(|actor| actor.tile);
    tiles.all(|tile| choices(log, info, tile).iter().any(|(_, its)| *its))
}

/// The decisions on the CPU of a tile: their instants, and whether they chose a thread of it.
fn choices(log: &Log, info: &GraphInfo, tile: Tile) -> Vec<(Instant, bool)> {
    let place = place(log, tile);
    let names: Vec<String> = match info.graph.when_on(tile) {
        When::Inline => {
            let here = info.graph.actors.iter().filter(|actor| actor.tile == tile);
            let name = |name: &str| format!("{}.{name} on {place}", info.graph.name);
            here.map(|actor| name(&actor.name)).collect()
        }
        When::OwnTime | When::BetweenSlots(_) => vec![format!("{} on {place}", info.graph.name)],
    };
    let cpu = tile.cpu.index();
    let mut now = Instant::ZERO;
    let records = log.cpus.get(cpu).into_iter().flat_map(|cpu| &cpu.records);
    let decisions = records.filter_map(|(_, record)| match record {
        Record::Entry(entry) => {
            now = entry.now;
            None
        }
        Record::Decision(decision) => Some((now, decision.next)),
        Record::Trace(_) => None,
    });
    let is_its = |next: Next| match next {
        Next::Thread(thread) => {
            let name = log.task_name(cpu, thread);
            names.iter().any(|its| name == *its)
        }
        _ => false,
    };
    decisions.map(|(at, next)| (at, is_its(next))).collect()
}

/// The name of a tile: of its scheduler or its CPU.
pub(super) fn place(log: &Log, tile: Tile) -> String {
    let scheduler = tile.scheduler.and_then(|id| log.schedulers.get(id.index()));
    let cpu = || log.cpus.get(tile.cpu.index()).map(|cpu| &cpu.name);
    scheduler.or_else(cpu).map_or("?".into(), String::clone)
}

fn first(rates: &[u32]) -> u32 {
    rates.first().copied().unwrap_or(0)
}

/// The actors of a graph that could fire when nothing had fired: tasks that run to completion begin
/// without tokens.
pub(super) fn passed_over(graph: &Graph) -> Vec<usize> {
    let could = |at: usize| {
        graph.plain
            || graph.fifos.iter().all(|fifo| {
                let has_tokens = fifo.to.index() != at || fifo.initial >= first(&fifo.consume);
                let space = fifo.capacity.unwrap_or(u32::MAX);
                let space = space.saturating_sub(fifo.initial);
                has_tokens && (fifo.from.index() != at || space >= first(&fifo.produce))
            })
    };
    (0..graph.actors.len()).filter(|&at| could(at)).collect()
}

/// The actors that could fire for long and never did, on tiles where nobody has begun. `ends` are
/// those of firings by actor. Nothing is known where rates depend on data. O(tiles · records +
/// FIFOs · actors).
pub(super) fn on_silent_tiles(
    (log, end): (&Log, Instant),
    info: &GraphInfo,
    ends: &[&[u64]],
    has_begun: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let graph = &info.graph;
    if graph.varying().is_some() {
        return Vec::new();
    }
    let mut tiles: Vec<Tile> = graph.actors.iter().map(|actor| actor.tile).collect();
    tiles.sort_unstable();
    tiles.dedup();
    // Where the core decides there is no task scheduler.
    tiles.retain(|&tile| graph.when_on(tile) != When::Inline);
    let mut found = Vec::new();
    for tile in tiles {
        let mut here = graph.actors_on(tile).map(|actor| actor.index());
        if here.any(&has_begun) {
            continue;
        }
        let (listed, firsts) = match graph.order_on(tile).map(|order| &order.by) {
            Some(OrderRule::Static(listed)) => (1, listed.iter().take(1).copied().collect()),
            Some(OrderRule::Tdm(listed)) => (listed.len(), listed.clone()),
            Some(OrderRule::RoundRobin) | None => (1, graph.actors_on(tile).collect::<Vec<_>>()),
        };
        let choices = choices(log, info, tile);
        let is_over = |actor: usize| {
            let since = could_fire(graph, actor, ends);
            since.is_some_and(|since| was_long(log, (&choices, end), since, listed))
        };
        let mut firsts: Vec<usize> = firsts.iter().map(|actor| actor.index()).collect();
        firsts.sort_unstable();
        firsts.dedup();
        found.extend(firsts.into_iter().filter(|&actor| is_over(actor)));
    }
    found.sort_unstable();
    found
}

/// The instant from which on an actor that has not fired could, in nanoseconds.
fn could_fire(graph: &Graph, actor: usize, ends: &[&[u64]]) -> Option<u64> {
    if graph.plain {
        return Some(0);
    }
    let needs = |fifo: &Fifo| {
        let space = || {
            fifo.capacity
                .map(|capacity| capacity.saturating_sub(fifo.initial))
        };
        let (other, rates, has, wants) = if fifo.to.index() == actor {
            let (other, rates) = (fifo.from.index(), &fifo.produce);
            (other, rates, Some(fifo.initial), first(&fifo.consume))
        } else if fifo.from.index() == actor {
            (
                fifo.to.index(),
                &fifo.consume,
                space(),
                first(&fifo.produce),
            )
        } else {
            return Some(0);
        };
        let Some(mut has) = has.filter(|&has| has < wants) else {
            return Some(0);
        };
        // Its own firings give nothing before it has fired.
        let others = ends.get(other).filter(|_| other != actor)?;
        let rates = rates.iter().cycle();
        others.iter().zip(rates).find_map(|(&end, &rate)| {
            has = has.saturating_add(rate);
            (has >= wants).then_some(end)
        })
    };
    let needs: Option<Vec<u64>> = graph.fifos.iter().map(needs).collect();
    Some(needs?.into_iter().max().unwrap_or(0))
}

/// Whether a tile had its processor for long enough since an instant.
fn was_long(
    log: &Log,
    (choices, end): (&[(Instant, bool)], Instant),
    since: u64,
    listed: usize,
) -> bool {
    let after = choices.iter().filter(|(at, _)| log.ns(at.ticks()) > since);
    let often = after.filter(|(_, its)| *its).count() >= OFTEN * listed.max(1);
    // In virtual time one that polls is not interrupted.
    let stays = choices.last().is_some_and(|(at, its)| {
        let from = log.ns(at.ticks()).max(since);
        *its && log.header.mode == Mode::Virtual && from < log.ns(end.ticks()) / 2
    });
    often || stays
}
