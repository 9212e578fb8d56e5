//! `punctual check --certificate` of a file with graphs: schedules that others can verify.

use punctual_analysis::{Verdict, graph_schedule};
use punctual_certificate::graph as plain;
use punctual_certificate::{Certificate, certify_admitted};
use punctual_model::{
    Fifo, Graph, GraphId, Ns, Order, Place, PolicyKind, Preempted, Span, Supply, System, Tile,
    When, Work,
};

use crate::certify;

/// The certificate of the graphs of a system, with that of all tasks beside them.
pub(crate) fn issue(system: &System, verdict: &Verdict) -> Result<plain::GraphCertificate, String> {
    let mut certificate = schedules(system)?;
    if !system.tasks.is_empty() {
        let rest = certify_admitted(&certify::plain(system)).map_err(|why| why.to_string())?;
        certify::remark_on_bounds(verdict, &rest);
        certificate.rest = Some(rest);
    }
    Ok(certificate)
}

/// How the tasks that a certificate has beside its graphs differ from those of a file.
pub(crate) fn other_tasks(system: &System, rest: Option<&Certificate>) -> Option<String> {
    let found = match rest {
        None if system.tasks.is_empty() => return None,
        None => return Some("it says nothing of the tasks beside the graphs".into()),
        Some(rest) => punctual_certificate::first_difference(rest, &certify::plain(system)),
    };
    found.map(|wrong| wrong.to_string())
}

/// The certificate of the graphs alone.
fn schedules(system: &System) -> Result<plain::GraphCertificate, String> {
    let graphs = plain(system)?;
    let mut schedules = Vec::new();
    for (id, graph) in (0..).map(GraphId).zip(&system.graphs) {
        let found =
            graph_schedule(system, id).map_err(|error| format!("not certified: {error}"))?;
        let refused = || format!("not certified: graph `{}` is refused", graph.name);
        let found = found.ok_or_else(refused)?;
        let narrow = |starts: &Vec<u128>| {
            let starts = starts.iter().map(|&start| u64::try_from(start).ok());
            starts.collect::<Option<Vec<u64>>>()
        };
        let starts: Option<Vec<Vec<u64>>> = found.starts.iter().map(narrow).collect();
        schedules.push(plain::Schedule {
            numerator: found.period.numerator(),
            denominator: found.period.denominator(),
            responses: found.responses,
            starts: starts.ok_or("not certified: its starts need more than 64 bits")?,
            latency: found.latency.as_ns(),
        });
    }
    Ok(plain::GraphCertificate {
        format: plain::GRAPH_FORMAT,
        graphs,
        schedules,
        rest: None,
    })
}

/// The graphs of a system in the words of certificates, where these say all that matters.
pub(crate) fn plain(system: &System) -> Result<Vec<plain::Graph>, String> {
    let machine = &system.machine;
    if machine.missing_time.is_some() || !machine.reserves.is_empty() {
        let why = "missing time or reserves beside graphs, which no schedule accounts for";
        return Err(format!("not certified: {why}"));
    }
    system
        .graphs
        .iter()
        .map(|graph| plain_graph(system, graph))
        .collect()
}

fn plain_graph(system: &System, graph: &Graph) -> Result<plain::Graph, String> {
    if !graph.is_analysed() {
        let name = &graph.name;
        return Err(format!(
            "not certified: nothing is promised of graph `{name}`"
        ));
    }
    let mut tiles: Vec<Tile> = graph.actors.iter().map(|actor| actor.tile).collect();
    tiles.sort_unstable();
    tiles.dedup();
    let actors = graph.actors.iter().map(|actor| plain::Actor {
        name: actor.name.clone(),
        tile: tiles.binary_search(&actor.tile).unwrap_or(0),
        wcet: actor.wcet.iter().map(|wcet| wcet.as_ns()).collect(),
        shared: match (actor.reads_shm, actor.writes_shm) {
            (0, 0) => None,
            (reads, writes) => Some([reads, writes]),
        },
    });
    let fifos = graph.fifos.iter().map(|fifo| plain::Fifo {
        name: fifo.name.clone(),
        from: fifo.from.index(),
        to: fifo.to.index(),
        produce: fifo.produce.clone(),
        consume: fifo.consume.clone(),
        initial: fifo.initial,
        capacity: fifo.capacity,
        kept: graph.copies.map(|_| kept(fifo)),
    });
    let tiles = tiles.iter().map(|&tile| plain_tile(system, graph, tile));
    Ok(plain::Graph {
        name: graph.name.clone(),
        actors: actors.collect(),
        fifos: fifos.collect(),
        tiles: tiles.collect::<Result<_, String>>()?,
        every: graph.every.map(Span::as_ns),
        within: graph.within.map(Span::as_ns),
        copies: graph.copies.map(|copies| plain::Copies {
            latency: copies.latency.as_ns(),
            bytes_per_us: copies.bytes_per_us.into(),
        }),
    })
}

fn kept(fifo: &Fifo) -> plain::Kept {
    plain::Kept {
        memory: match fifo.place {
            Place::Producer => plain::Memory::Writer,
            Place::Consumer => plain::Memory::Reader,
            Place::Memory => plain::Memory::Tile,
        },
        bytes: fifo.token_size,
    }
}

fn plain_tile(system: &System, graph: &Graph, tile: Tile) -> Result<plain::Tile, String> {
    let order = graph.order_on(tile);
    let decides = decides(system, order)?;
    let mut fixed = graph.static_orders();
    let order = fixed.find(|&(at, _)| at == tile);
    let order = order.map(|(_, firings)| firings.iter().map(|id| id.index()).collect());
    let cpu = system.cpus.get(tile.cpu.index());
    let scheduler = tile
        .scheduler
        .and_then(|id| system.schedulers.get(id.index()));
    let Some(scheduler) = scheduler else {
        return Ok(plain::Tile {
            name: cpu.map_or(String::new(), |cpu| cpu.name.clone()),
            frame: None,
            slots: Vec::new(),
            overhead: 0,
            order,
            decides,
        });
    };
    let frame = match (cpu.map(|cpu| cpu.policy), scheduler.parent) {
        (Some(PolicyKind::Tdm { frame, .. }), None) => frame.as_ns(),
        _ => {
            let name = &scheduler.name;
            return Err(format!(
                "not certified: the frame of `{name}` is inside another one"
            ));
        }
    };
    let slots = match &scheduler.supply {
        Supply::Slots(slots) => slots
            .iter()
            .map(|s| (s.at.as_ns(), s.length.as_ns()))
            .collect(),
        _ => Vec::new(),
    };
    Ok(plain::Tile {
        name: scheduler.name.clone(),
        frame: Some(frame),
        slots,
        overhead: overheads(system, Work::ZERO)?,
        order,
        decides,
    })
}

/// The switches and the refill of a slot or a turn, and `first`.
fn overheads(system: &System, first: Work<Ns>) -> Result<u64, String> {
    let machine = &system.machine;
    let terms = [
        machine.switch,
        machine.switch,
        machine.preemption,
        machine.cache_delay,
    ];
    let mut terms = terms.iter();
    let sum = terms.try_fold(first, |sum, &term| sum.checked_add(term));
    let sum = sum.map(Work::as_ns);
    sum.ok_or("not certified: overheads beyond 64 bits".into())
}

fn decides(system: &System, order: Option<&Order>) -> Result<Option<plain::Decides>, String> {
    let Some(order) = order else {
        return Ok(None);
    };
    Ok(match (order.when, order.by.listed()) {
        (When::OwnTime, _) => None,
        (When::BetweenSlots(Preempted::Continues), _) => Some(plain::Decides::Continues),
        (When::BetweenSlots(Preempted::PassedOver), []) => Some(plain::Decides::PassesOver),
        (When::BetweenSlots(Preempted::PassedOver), owners) => {
            let owners = owners.iter().map(|id| id.index());
            Some(plain::Decides::Owners(owners.collect()))
        }
        (When::Inline, _) => Some(plain::Decides::Threads {
            turn: When::TURN.as_ns(),
            cost: overheads(system, system.machine.timer)?,
        }),
    })
}

#[cfg(test)]
mod tests;
