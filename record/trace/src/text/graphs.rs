//! The lines of graphs, of their promises, and of the transitions of their actors.

use std::fmt::{Display, Write as _};

use punctual_dataflow::Fraction;
use punctual_model::{
    Actor, ActorId, Copies, CpuId, Fifo, Graph, GraphId, Order, OrderRule, Place, Preempted,
    SchedulerId, Span, Tile, When, Work,
};

use super::words::{clip, escape, instant, number, unescape};
use crate::graphs::{Call, GraphBound, GraphInfo, Moved, State};

/// Writes the lines of a graph in the head of a log.
pub(super) fn write(text: &mut String, info: &GraphInfo) {
    let graph = &info.graph;
    let [every, within] = [graph.every, graph.within].map(|span| maybe(span.map(Span::as_ns)));
    // Writing to a string cannot fail.
    let _ = writeln!(text, "graph {every} {within} {}", escape(&graph.name));
    if graph.plain {
        text.push_str("not-real-time\n");
    }
    if let Some(copies) = graph.copies {
        let (latency, bytes) = (copies.latency.as_ns(), copies.bytes_per_us);
        let _ = writeln!(text, "copies {latency} {bytes}");
    }
    if let Some(bound) = &info.bound {
        let (a, b) = (bound.period.numerator(), bound.period.denominator());
        let [first, latency] =
            [bound.first_output, bound.latency].map(|span| maybe(span.map(Span::as_ns)));
        let exactness = escape(&bound.exactness);
        let _ = writeln!(text, "graph-bound {a} {b} {first} {latency} {exactness}");
    }
    for actor in &graph.actors {
        let wcets = list(actor.wcet.iter().map(|work| work.as_ns()));
        let (tile, name) = (tile(actor.tile), escape(&actor.name));
        let _ = writeln!(text, "actor {tile} {wcets} {name}");
        if actor.varies {
            text.push_str("varies\n");
        }
        if let Some(times) = actor.times {
            let _ = writeln!(text, "times {times}");
        }
        if actor.reads_shm > 0 || actor.writes_shm > 0 {
            let _ = writeln!(text, "shm {} {}", actor.reads_shm, actor.writes_shm);
        }
    }
    for fifo in &graph.fifos {
        let [produce, consume] = [&fifo.produce, &fifo.consume].map(|rates| list(rates.iter()));
        let _ = writeln!(
            text,
            "fifo {} {} {produce} {consume} {} {} {} {} {}",
            fifo.from.0,
            fifo.to.0,
            fifo.initial,
            maybe(fifo.capacity),
            fifo.token_size,
            fifo.place.name(),
            escape(&fifo.name)
        );
    }
    for order in &graph.orders {
        let tile = tile(order.tile);
        let (when, by) = (word(&WHENS, order.when), rule(&order.by));
        let _ = write!(text, "order {tile} {when} {by}");
        if !order.by.listed().is_empty() {
            let listed = list(order.by.listed().iter().map(|actor| actor.0));
            let _ = write!(text, " {listed}");
        }
        text.push('\n');
    }
}

/// Writes a transition.
pub(super) fn write_move(text: &mut String, moved: &Moved) {
    let _ = write!(
        text,
        "moved {} {} {} {} {}",
        moved.at.ticks(),
        moved.graph.0,
        moved.actor.0,
        moved.firing,
        moved.state.name(moved.preempted)
    );
    if let Some((call, goes_on)) = moved.call {
        let (Call::Read(fifo, count) | Call::Write(fifo, count)) = call;
        let _ = write!(text, " {} {fifo} {count}", call.name(goes_on));
    }
    text.push('\n');
}

/// The words of the instants at which an application decides.
const WHENS: [(&str, When); 4] = [
    ("own-time", When::OwnTime),
    ("between-slots", When::BetweenSlots(Preempted::Continues)),
    ("passing-over", When::BetweenSlots(Preempted::PassedOver)),
    ("inline", When::Inline),
];

fn word<T: PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    let mut words = words.iter();
    words
        .find(|(_, of)| *of == value)
        .map_or("?", |(word, _)| word)
}

const fn rule(by: &OrderRule) -> &'static str {
    match by {
        OrderRule::RoundRobin => "round-robin",
        OrderRule::Static(_) => "static",
        OrderRule::Tdm(_) => "tdm",
    }
}

fn maybe<T: Display>(value: Option<T>) -> String {
    value.map_or("-".into(), |value| value.to_string())
}

fn list<T: Display>(values: impl Iterator<Item = T>) -> String {
    let all: Vec<String> = values.map(|value| value.to_string()).collect();
    all.join(",")
}

fn tile(tile: Tile) -> String {
    let scheduler = maybe(tile.scheduler.map(|id| id.0));
    format!("{} {scheduler}", tile.cpu.0)
}

/// Reads a line of the head about graphs; `false`: it is about something else.
pub(super) fn read(graphs: &mut Vec<GraphInfo>, key: &str, rest: &str) -> Result<bool, String> {
    let mut fields = Fields(rest);
    if key == "graph" {
        let (every, within) = (fields.maybe()?, fields.maybe()?);
        let mut graph = Graph::new(unescape(fields.0)?);
        (graph.every, graph.within) = (every.map(Span::from_ns), within.map(Span::from_ns));
        graphs.push(GraphInfo {
            graph,
            bound: None,
            lost_from: None,
        });
        return Ok(true);
    }
    const KEYS: [&str; 9] = [
        "not-real-time",
        "copies",
        "graph-bound",
        "actor",
        "varies",
        "times",
        "shm",
        "fifo",
        "order",
    ];
    if !KEYS.contains(&key) {
        return Ok(false);
    }
    let info = graphs.last_mut().ok_or("it belongs to no graph")?;
    match key {
        "not-real-time" => info.graph.plain = true,
        "graph-bound" => {
            let period = Fraction::new(fields.number()?, fields.number()?);
            info.bound = Some(GraphBound {
                period: period.ok_or("a fraction over zero")?,
                first_output: fields.maybe()?.map(Span::from_ns),
                latency: fields.maybe()?.map(Span::from_ns),
                exactness: unescape(fields.0)?,
            });
        }
        "copies" => info.graph.copies = Some(fields.copies()?),
        "actor" => info.graph.actors.push(Actor {
            tile: fields.tile()?,
            wcet: fields.list()?.into_iter().map(Work::from_ns).collect(),
            name: unescape(fields.0)?,
            work: None,
            varies: false,
            times: None,
            reads_shm: 0,
            writes_shm: 0,
        }),
        "varies" | "times" | "shm" => {
            let actor = info.graph.actors.last_mut();
            let actor = actor.ok_or("it belongs to no actor")?;
            match key {
                "varies" => actor.varies = true,
                "times" => actor.times = Some(fields.small()?),
                _ => (actor.reads_shm, actor.writes_shm) = (fields.small()?, fields.small()?),
            }
        }
        "fifo" => {
            let fifo = fields.fifo(&info.graph)?;
            info.graph.fifos.push(fifo);
        }
        _ => {
            let order = fields.order(&info.graph)?;
            info.graph.orders.push(order);
        }
    }
    Ok(true)
}

/// Reads a transition of an actor of `graphs`.
pub(super) fn read_move(graphs: &[GraphInfo], rest: &str) -> Result<Moved, String> {
    let mut fields = Fields(rest);
    let at = instant(fields.number()?)?;
    let graph = GraphId(fields.small()?);
    let info = graphs.get(graph.index()).ok_or("there is no such graph")?;
    let actor = fields.actor(&info.graph)?;
    // It takes a tick at least.
    let firing = instant(fields.number()?)?.ticks();
    let word = fields.next();
    let named = State::named(word);
    let named = named.ok_or_else(|| format!("`{}` is no state", clip(word)))?;
    let (state, preempted) = named;
    let call = match fields.0 {
        "" => None,
        _ => Some(fields.call(&info.graph)?),
    };
    Ok(Moved {
        at,
        firing,
        actor,
        graph,
        state,
        preempted,
        call,
    })
}

/// The fields of a line that are left.
struct Fields<'a>(&'a str);

impl<'a> Fields<'a> {
    fn next(&mut self) -> &'a str {
        let (field, rest) = self.0.split_once(' ').unwrap_or((self.0, ""));
        self.0 = rest;
        field
    }

    fn number(&mut self) -> Result<u64, String> {
        number(self.next())
    }

    /// A call of a FIFO, and whether it goes on.
    fn call(&mut self, graph: &Graph) -> Result<(Call, bool), String> {
        let word = self.next();
        let (fifo, count): (u32, u32) = (self.small()?, self.small()?);
        if fifo as usize >= graph.fifos.len() {
            return Err("there is no such FIFO".into());
        }
        let calls = [Call::Read(fifo, count), Call::Write(fifo, count)];
        let all = calls
            .into_iter()
            .flat_map(|call| [(call, true), (call, false)]);
        let named = all.into_iter().find(|(call, on)| call.name(*on) == word);
        named.ok_or_else(|| format!("`{}` is no call of a FIFO", clip(word)))
    }

    fn small<T: TryFrom<u64>>(&mut self) -> Result<T, String> {
        T::try_from(self.number()?).map_err(|_| "a number that is too large".to_string())
    }

    fn maybe(&mut self) -> Result<Option<u64>, String> {
        match self.next() {
            "-" => Ok(None),
            text => number(text).map(Some),
        }
    }

    fn list(&mut self) -> Result<Vec<u64>, String> {
        self.next().split(',').map(number).collect()
    }

    fn rates(&mut self) -> Result<Vec<u32>, String> {
        let rate = |rate: u64| u32::try_from(rate).map_err(|_| "too many tokens".to_string());
        self.list()?.into_iter().map(rate).collect()
    }

    fn copies(&mut self) -> Result<Copies, String> {
        Ok(Copies {
            latency: Span::from_ns(self.number()?),
            bytes_per_us: self.small()?,
        })
    }

    fn tile(&mut self) -> Result<Tile, String> {
        let cpu = CpuId(self.small()?);
        let too_large = |_| "no scheduler has such a number".to_string();
        let scheduler = self.maybe()?.map(u16::try_from).transpose();
        let scheduler = scheduler.map_err(too_large)?.map(SchedulerId);
        Ok(Tile { cpu, scheduler })
    }

    fn actor(&mut self, graph: &Graph) -> Result<ActorId, String> {
        there(graph, self.number()?)
    }

    fn actors(&mut self, graph: &Graph) -> Result<Vec<ActorId>, String> {
        self.list()?
            .into_iter()
            .map(|id| there(graph, id))
            .collect()
    }

    fn order(&mut self, graph: &Graph) -> Result<Order, String> {
        let tile = self.tile()?;
        let when = self.next();
        let found = WHENS.iter().find(|(word, _)| *word == when);
        let (_, when) = *found.ok_or_else(|| format!("`{}` is no time to decide", clip(when)))?;
        let by = match self.next() {
            "round-robin" => OrderRule::RoundRobin,
            "static" => OrderRule::Static(self.actors(graph)?),
            "tdm" => OrderRule::Tdm(self.actors(graph)?),
            other => return Err(format!("`{}` is no rule of an order", clip(other))),
        };
        Ok(Order { tile, when, by })
    }

    fn fifo(&mut self, graph: &Graph) -> Result<Fifo, String> {
        let (from, to) = (self.actor(graph)?, self.actor(graph)?);
        let (produce, consume) = (self.rates()?, self.rates()?);
        let initial = self.small()?;
        let too_large = |_| "a capacity that is too large".to_string();
        let capacity = self.maybe()?.map(u32::try_from).transpose();
        let capacity = capacity.map_err(too_large)?;
        let token_size = self.small()?;
        let word = self.next();
        let place = Place::ALL.into_iter().find(|place| place.name() == word);
        let place = place.ok_or_else(|| format!("`{}` is no place", clip(word)))?;
        Ok(Fifo {
            name: unescape(self.0)?,
            from,
            to,
            produce,
            consume,
            initial,
            capacity,
            token_size,
            place,
        })
    }
}

fn there(graph: &Graph, id: u64) -> Result<ActorId, String> {
    let id = u32::try_from(id).ok().map(ActorId);
    let there = id.filter(|id| id.index() < graph.actors.len());
    there.ok_or_else(|| "there is no such actor".to_string())
}
