//! How long after the instant at which it was due each firing of a graph started.
//!
//! A firing is due when its tokens and its space are there, the firing before it on its tile
//! is over, and a slot of its tile is open. With one choice per slot it is due at the start of
//! the slot in which it started. Virtual time starts it then, after the same ends of others.
//! So a delay is the part of the machine and of the runtime, and delays do not add up.

use std::fmt;

use punctual_model::{Fifo, Graph, Instant, SchedulerId, Span, Tile, When};
use punctual_tables::CpuTables;

use crate::behavior::Behavior;
use crate::graphs::{GraphInfo, State};
use crate::log::{Log, Mode};
use crate::quantiles::Quantiles;
use crate::record::Record;
use crate::short::{Count, Short};
use crate::slots;

/// From the instants at which firings were due to their starts. Durations in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct StartReport {
    /// Of starts beside which no time was missing.
    pub delay_ns: Quantiles,
    /// Of those with missing time between the entry before the firing was due and the one after
    /// its start: where it lay in there is not known.
    pub beside_missing_ns: Quantiles,
}

/// The firings of an actor, in order.
#[derive(Default)]
struct Firings {
    /// The start, and when its tile was free.
    starts: Vec<(Instant, Instant)>,
    /// Its tokens had been handed on.
    ends: Vec<Instant>,
}

/// How a tile chooses when a firing starts.
enum Opening<'a> {
    /// At any time.
    Always,
    /// Within the slots of a node.
    Slots(&'a CpuTables, u16, Span),
    /// At the start of each slot of a node.
    Between(&'a CpuTables, u16, Span),
}

/// The starts of each actor of a graph; `None` where nobody can say when its firings were due. That
/// is where rates depend on data, actors are threads that take turns, copies take virtual time, or
/// frames lie in frames. O(firings · (FIFOs + slots) + records).
pub(super) fn starts(
    log: &Log,
    behaviors: &[Behavior],
    (at, info): (usize, &GraphInfo),
) -> Vec<Option<StartReport>> {
    let graph = &info.graph;
    let copies = graph.copies.is_some() && log.header.mode == Mode::Virtual;
    if !graph.is_analysed() || copies {
        return vec![None; graph.actors.len()];
    }
    let firings = firings(log, at, graph);
    let actors = 0..graph.actors.len();
    let report = |actor: usize| {
        let tile = graph.actors[actor].tile;
        let opening = opening(log, graph, tile)?;
        let cpu = tile.cpu.index();
        let gaps = gaps(log, cpu, behaviors.get(cpu)?);
        let (mut clean, mut beside) = (Vec::new(), Vec::new());
        for (firing, ready) in ready(graph, &firings, actor).into_iter().enumerate() {
            let (start, free) = firings[actor].starts[firing];
            let due = opening.due(ready.max(free), start).min(start);
            let delay = log.ns(start.since(due).ticks());
            match is_beside(&gaps, due, start) {
                false => clean.push(delay),
                true => beside.push(delay),
            }
        }
        Some(StartReport {
            delay_ns: Quantiles::of(&mut clean),
            beside_missing_ns: Quantiles::of(&mut beside),
        })
    };
    actors.map(report).collect()
}

/// The starts and ends of all firings of graph `at`.
fn firings(log: &Log, at: usize, graph: &Graph) -> Vec<Firings> {
    let mut all: Vec<Firings> = graph.actors.iter().map(|_| Firings::default()).collect();
    for cpu in &log.cpus {
        let mut free: Vec<(Tile, Instant)> = Vec::new();
        let moves = cpu.moves.iter().filter(|moved| moved.graph.index() == at);
        for moved in moves.filter(|moved| !moved.preempted && moved.call.is_none()) {
            let actor = moved.actor.index();
            let (Some(own), Some(declared)) = (all.get_mut(actor), graph.actors.get(actor)) else {
                continue;
            };
            let since = free.iter().position(|&(tile, _)| tile == declared.tile);
            let (begun, over) = (own.starts.len() as u64, own.ends.len() as u64);
            match moved.state {
                State::Claim if moved.firing == begun && begun == over => {
                    let free = since.map_or(Instant::ZERO, |at| free[at].1);
                    own.starts.push((moved.at, free));
                }
                State::Reset if moved.firing == over && begun == over + 1 => {
                    own.ends.push(moved.at);
                }
                State::Idle if begun == over => match since {
                    Some(at) => free[at].1 = moved.at,
                    None => free.push((declared.tile, moved.at)),
                },
                _ => {}
            }
        }
    }
    all
}

/// When the firings of an actor had their tokens and their space, as long as that is known.
fn ready(graph: &Graph, firings: &[Firings], actor: usize) -> Vec<Instant> {
    let number = firings[actor].starts.len();
    let mut ready = vec![Instant::ZERO; number];
    let mut known = number;
    for (at, end) in ready.iter_mut().skip(1).zip(&firings[actor].ends) {
        *at = *end;
    }
    let fifos = graph.fifos.iter().filter(|fifo| fifo.from != fifo.to);
    for fifo in fifos {
        for needs in needs(fifo, actor) {
            let mut given = (0..).map(|firing| of_firing(needs.gives, firing));
            let (mut sum, mut wanted, mut last) = (needs.at_first, 0_u64, None);
            for (firing, at) in ready.iter_mut().enumerate().take(known) {
                wanted = wanted.saturating_add(of_firing(needs.takes, firing));
                while sum < wanted {
                    sum = sum.saturating_add(given.next().unwrap_or(0));
                    last = Some(last.map_or(0, |last: usize| last + 1));
                    if last.is_some_and(|last| last >= firings[needs.giver].ends.len()) {
                        break;
                    }
                }
                let Some(giver) = last else { continue };
                match firings[needs.giver].ends.get(giver) {
                    Some(&end) => *at = end.max(*at),
                    None => {
                        known = firing;
                        break;
                    }
                }
            }
        }
    }
    ready.truncate(known);
    ready
}

/// The needs of one end of a FIFO: tokens of the other, or space.
struct Needs<'a> {
    giver: usize,
    gives: &'a [u32],
    takes: &'a [u32],
    at_first: u64,
}

fn needs(fifo: &Fifo, actor: usize) -> impl Iterator<Item = Needs<'_>> {
    let (from, to) = (fifo.from.index(), fifo.to.index());
    let initial = u64::from(fifo.initial);
    let tokens = (to == actor).then_some(Needs {
        giver: from,
        gives: &fifo.produce,
        takes: &fifo.consume,
        at_first: initial,
    });
    let capacity = fifo.capacity.filter(|_| from == actor);
    let space = capacity.map(|capacity| Needs {
        giver: to,
        gives: &fifo.consume,
        takes: &fifo.produce,
        at_first: u64::from(capacity).saturating_sub(initial),
    });
    tokens.into_iter().chain(space)
}

fn of_firing(cycle: &[u32], firing: usize) -> u64 {
    let at = firing.checked_rem(cycle.len()).unwrap_or(0);
    cycle.get(at).copied().unwrap_or(0).into()
}

fn opening<'a>(log: &'a Log, graph: &Graph, tile: Tile) -> Option<Opening<'a>> {
    let when = graph.when_on(tile);
    let Some(scheduler) = tile.scheduler else {
        return (when == When::OwnTime).then_some(Opening::Always);
    };
    let tables = log.tables.cpus.get(tile.cpu.index())?;
    let is_it = |id: SchedulerId| id == scheduler;
    let node = tables.nodes.iter().position(|node| is_it(node.scheduler))?;
    let is_alone = tables.nodes[node].parent == 0;
    let frame = slots::frame(tables, 0).filter(|_| is_alone)?;
    let place = u16::try_from(node + 1).ok()?;
    match when {
        When::OwnTime => Some(Opening::Slots(tables, place, frame)),
        When::BetweenSlots(_) => Some(Opening::Between(tables, place, frame)),
        When::Inline => None,
    }
}

impl Opening<'_> {
    /// When a firing that is ready is due; `start`: it started then.
    fn due(&self, ready: Instant, start: Instant) -> Instant {
        match self {
            Opening::Always => ready,
            Opening::Slots(tables, node, frame) => {
                let until = ready.saturating_add(*frame).saturating_add(*frame);
                let next = slots::of_node(tables, *node, (ready, until), 1);
                next.first().map_or(ready, |&(begin, _)| begin)
            }
            Opening::Between(tables, node, frame) => {
                let from = Instant::from_ticks(start.ticks().saturating_sub(frame.ticks()));
                let until = start.saturating_add(Span::from_ticks(1));
                let before = slots::of_node(tables, *node, (from, until), usize::MAX);
                let begin = before.last().map_or(ready, |&(begin, _)| begin);
                begin.max(ready)
            }
        }
    }
}

/// The intervals between two entries in which time was missing, in order.
fn gaps(log: &Log, cpu: usize, behavior: &Behavior) -> Vec<(Instant, Instant)> {
    let mut gaps = behavior.missing.iter().peekable();
    let mut all = Vec::new();
    let mut before = Instant::ZERO;
    let records = log.cpus.get(cpu).map(|cpu| cpu.records.iter());
    for (now, record) in records.into_iter().flatten() {
        if gaps.peek().is_none() {
            break;
        }
        if matches!(record, Record::Entry(_)) {
            while let Some(gap) = gaps.next_if(|gap| gap.entry <= now) {
                all.push((before.min(gap.start), now));
            }
            before = now;
        }
    }
    all
}

/// Whether such an interval has a part of [`due`, `start`].
fn is_beside(gaps: &[(Instant, Instant)], due: Instant, start: Instant) -> bool {
    let first = gaps.partition_point(|&(_, end)| end < due);
    gaps.get(first).is_some_and(|&(begin, _)| begin <= start)
}

/// A line for each actor: name, tile, and its starts; those beside missing time stand apart.
pub(super) fn table<'a>(
    f: &mut fmt::Formatter<'_>,
    (name, on): (usize, usize),
    actors: impl Iterator<Item = (&'a str, &'a str, Option<StartReport>)> + Clone,
) -> fmt::Result {
    let starts = || {
        let rows = actors.clone();
        rows.filter_map(|(actor, place, starts)| Some((actor, place, starts?)))
    };
    if starts().next().is_none() {
        return Ok(());
    }
    let (title, head) = ("late by", ["p50", "p99", "max", "starts"].map(String::from));
    let beside = match starts().any(|(_, _, starts)| starts.beside_missing_ns.n > 0) {
        true => format!("  beside missing time: {}", columns(&head)),
        false => String::new(),
    };
    writeln!(
        f,
        "  {title:name$}  {:on$} {}{beside}",
        "on",
        columns(&head)
    )?;
    for (actor, place, starts) in starts() {
        let clean = columns(&cells(&starts.delay_ns));
        let beside = match starts.beside_missing_ns.n {
            0 => String::new(),
            _ => format!("{:23}{}", "", columns(&cells(&starts.beside_missing_ns))),
        };
        writeln!(f, "  {actor:name$}  {place:on$} {clean}{beside}")?;
    }
    Ok(())
}

fn columns([p50, p99, max, n]: &[String; 4]) -> String {
    format!("{p50:>9} {p99:>9} {max:>9} {n:>9}")
}

fn cells(q: &Quantiles) -> [String; 4] {
    let of = |ns: Option<u64>| ns.map_or("-".into(), |ns| Short(ns).to_string());
    [of(q.p50), of(q.p99), of(q.max), Count(q.n).to_string()]
}
