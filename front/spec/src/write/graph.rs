//! The section of a graph.

use punctual_model::{
    Actor, ActorId, Fifo, Graph, Order, OrderRule, Place, Preempted, System, Tile, When,
};

use super::parent_of;
use super::task::work;
use super::value::{List, Out, Table, Toml};

pub(super) fn write_graph(system: &System, graph: &Graph, out: &mut Out) {
    out.header("graph", &graph.name);
    if graph.plain {
        out.line("real-time = false");
    }
    let actors = graph.actors.iter().map(|actor| actor_table(system, actor));
    lines("actors", actors, out);
    let fifos = graph.fifos.iter().map(|fifo| fifo_table(graph, fifo));
    lines("fifos", fifos, out);
    let orders = graph.orders.iter();
    let orders = orders.map(|order| order_table(system, graph, order));
    lines("orders", orders, out);
    if let Some(copies) = graph.copies {
        let table = Table::new("latency", copies.latency).and("bytes-per-us", copies.bytes_per_us);
        out.key("copies", table);
    }
}

/// A list with a line for each element; nothing for an empty one.
fn lines(key: &str, tables: impl Iterator<Item = Table>, out: &mut Out) {
    let mut tables = tables.peekable();
    if tables.peek().is_none() {
        return;
    }
    out.line(format_args!("{key} = ["));
    for table in tables {
        out.line(format_args!("  {},", table.toml()));
    }
    out.line("]");
}

fn home(system: &System, tile: Tile) -> String {
    parent_of(system, tile.cpu, tile.scheduler).0
}

fn name(graph: &Graph, id: ActorId) -> &str {
    graph.actors.get(id.index()).map_or("", |actor| &actor.name)
}

/// One value for all phases, or a list.
fn cycle<T: Toml>(values: &[T]) -> String {
    match values {
        [one] => one.toml(),
        all => List(all.iter().map(Toml::toml).collect()).toml(),
    }
}

fn actor_table(system: &System, actor: &Actor) -> Table {
    let table = Table::new("name", actor.name.as_str()).and("on", home(system, actor.tile));
    let table = table.raw("wcet", &cycle(&actor.wcet));
    let table = match &actor.work {
        Some(source) => table.and("work", work(source)),
        None => table,
    };
    let table = match actor.varies {
        true => table.raw("varies", "true"),
        false => table,
    };
    let table = match actor.times {
        Some(times) => table.and("times", times),
        None => table,
    };
    let keys = [
        ("reads-shm", actor.reads_shm),
        ("writes-shm", actor.writes_shm),
    ];
    let keys = keys.into_iter().filter(|(_, bytes)| *bytes > 0);
    keys.fold(table, |table, (key, bytes)| table.and(key, bytes))
}

fn fifo_table(graph: &Graph, fifo: &Fifo) -> Table {
    let mut table = Table::new("name", fifo.name.as_str())
        .and("from", name(graph, fifo.from))
        .and("to", name(graph, fifo.to));
    for (key, rates) in [("produce", &fifo.produce), ("consume", &fifo.consume)] {
        if rates[..] != [1] {
            table = table.raw(key, &cycle(rates));
        }
    }
    for (key, number) in [
        (
            "initial",
            Some(fifo.initial).filter(|&initial| initial != 0),
        ),
        ("capacity", fifo.capacity),
        (
            "token-size",
            Some(fifo.token_size).filter(|&size| size != 0),
        ),
    ] {
        if let Some(number) = number {
            table = table.and(key, number);
        }
    }
    match fifo.place {
        Place::Consumer => table,
        place => table.and("place", place.name()),
    }
}

fn order_table(system: &System, graph: &Graph, order: &Order) -> Table {
    let mut table = Table::new("on", home(system, order.tile));
    match order.when {
        When::OwnTime => {}
        When::BetweenSlots(_) => table = table.and("when", "between-slots"),
        When::Inline => table = table.and("when", "inline"),
    }
    table = match order.by {
        OrderRule::RoundRobin if order.when == When::Inline => table,
        OrderRule::RoundRobin => table.and("by", "round-robin"),
        OrderRule::Static(_) => table,
        OrderRule::Tdm(_) => table.and("by", "tdm"),
    };
    let listed = order.by.listed().iter();
    let listed: Vec<String> = listed.map(|&id| name(graph, id).to_string()).collect();
    if !listed.is_empty() {
        table = table.and("firings", listed);
    }
    match (order.when, &order.by) {
        (When::BetweenSlots(Preempted::PassedOver), OrderRule::RoundRobin) => {
            table.and("preempted", "passed-over")
        }
        _ => table,
    }
}
