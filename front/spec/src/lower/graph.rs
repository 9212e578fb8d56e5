//! From the sections of graphs, and what is required of them, to the model.

use std::collections::BTreeMap;

use punctual_model::{
    Actor, ActorId, Copies, CpuId, Fifo, Graph, Ns, Order, OrderRule, Place, Preempted, Scheduler,
    Span, Tile, When, Work,
};

use super::parent::{Parent, find_parent};
use super::task::lower_work;
use super::{Names, find};
use crate::file::Named;
use crate::nearest::nearest;
use crate::places::{GraphPlaces, Places};
use crate::record::{Node, Record, Value};
use crate::report::{Report, quote};

/// Of each graph, by its name: its actors by theirs.
type Actors = BTreeMap<String, BTreeMap<String, ActorId>>;

/// The graphs in the order of the file. One with a mistake has no parts: they hang together.
pub(super) fn lower_graphs(
    sections: Vec<Named>,
    names: &Names,
    schedulers: &[Scheduler],
    places: &mut Places,
    report: &mut Report<'_>,
) -> Vec<Graph> {
    let actors = sections.iter().map(|section| {
        let names = section.record.list("actors").iter().map(name_of);
        let named = (0..).map(ActorId).zip(names);
        let named = named.filter_map(|(id, name)| Some((name?.to_string(), id)));
        (section.name.clone(), named.collect())
    });
    let actors: Actors = actors.collect();
    let mut graphs = Vec::new();
    for section in sections {
        let lowered = Reader {
            names,
            schedulers,
            places,
            actors: &actors,
            graph: &section.name,
        }
        .graph(&section.record, report);
        let broken = section.record.broken || lowered.is_none();
        graphs.push(match lowered {
            Some(graph) if !broken => graph,
            _ => Graph::new(section.name.clone()),
        });
        places.graphs.push(GraphPlaces {
            section,
            broken,
            throughput: None,
            latency: None,
        });
    }
    graphs
}

/// The requirements of graphs, entered into them and into their places.
pub(super) fn lower_graph_requirements(
    record: &Record,
    graphs: &mut [Graph],
    places: &mut Places,
    report: &mut Report<'_>,
) {
    let named = graphs.iter().enumerate();
    let known: BTreeMap<String, usize> = named.map(|(i, g)| (g.name.clone(), i)).collect();
    for (key, span) in [("throughput", "every"), ("latency", "within")] {
        for node in record.list(key) {
            let Value::Record(given) = &node.value else {
                continue;
            };
            let found = given
                .get("graph")
                .and_then(|node| find(node, "graph", "graph", &known, report));
            let (Some(index), Some(most)) = (found, given.span(span)) else {
                continue;
            };
            let (graph, places) = (&mut graphs[index], &mut places.graphs[index]);
            let (demand, place): (&mut Option<Span<Ns>>, _) = match key {
                "throughput" => (&mut graph.every, &mut places.throughput),
                _ => (&mut graph.within, &mut places.latency),
            };
            if demand.replace(most).is_some() {
                let message = format!("a second {key} of graph {} is required", quote(&graph.name));
                report.add(&node.range, message, || "keep the stricter one".into());
            }
            *place = Some(node.range.clone());
        }
    }
}

fn name_of(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Record(record) => record.text("name"),
        _ => None,
    }
}

/// Reads one graph.
struct Reader<'a> {
    names: &'a Names,
    schedulers: &'a [Scheduler],
    places: &'a Places,
    actors: &'a Actors,
    graph: &'a str,
}

impl Reader<'_> {
    /// The graph; `None` where a part of it has a mistake, which has been reported.
    fn graph(&self, record: &Record, report: &mut Report<'_>) -> Option<Graph> {
        let mut actors = Vec::new();
        for node in record.list("actors") {
            actors.push(self.actor(node, report));
        }
        let mut fifos = Vec::new();
        for node in record.list("fifos") {
            fifos.push(self.fifo(node, report));
        }
        let mut orders = Vec::new();
        for node in record.list("orders") {
            orders.push(self.order(node, report));
        }
        Some(Graph {
            name: self.graph.into(),
            plain: !record.flag("real-time").unwrap_or(true),
            actors: actors.into_iter().collect::<Option<_>>()?,
            fifos: fifos.into_iter().collect::<Option<_>>()?,
            orders: orders.into_iter().collect::<Option<_>>()?,
            copies: match record.record("copies") {
                Some(record) => Some(Copies {
                    latency: record.span("latency").unwrap_or(Span::ZERO),
                    bytes_per_us: record.number("bytes-per-us")?,
                }),
                None => None,
            },
            every: None,
            within: None,
        })
    }

    fn actor(&self, node: &Node, report: &mut Report<'_>) -> Option<Actor> {
        let Value::Record(record) = &node.value else {
            return None;
        };
        let tile = self.tile(record, report)?;
        let wcet = record.list("wcet").iter().map(|node| match node.value {
            Value::Duration(ns) => Some(Work::from_ns(ns)),
            _ => None,
        });
        Some(Actor {
            name: record.text("name")?.into(),
            tile,
            wcet: wcet.collect::<Option<_>>()?,
            work: record.record("work").map(lower_work),
            varies: record.flag("varies").unwrap_or(false),
            times: record.number("times"),
            reads_shm: record.number("reads-shm").unwrap_or(0),
            writes_shm: record.number("writes-shm").unwrap_or(0),
        })
    }

    fn tile(&self, record: &Record, report: &mut Report<'_>) -> Option<Tile> {
        match find_parent(record, self.names, report)? {
            Parent::Cpu(cpu) => Some(Tile::cpu(cpu)),
            Parent::Scheduler(id) => Some(Tile {
                cpu: self.cpu_of(id.index())?,
                scheduler: Some(id),
            }),
        }
    }

    /// The CPU of a scheduler; `None` where something above it has a mistake.
    fn cpu_of(&self, scheduler: usize) -> Option<CpuId> {
        let places = self.places.schedulers.get(scheduler)?;
        let sound = !places.broken && !places.unplaced;
        let scheduler = self.schedulers.get(scheduler);
        scheduler.filter(|_| sound).map(|scheduler| scheduler.cpu)
    }

    fn fifo(&self, node: &Node, report: &mut Report<'_>) -> Option<Fifo> {
        let Value::Record(record) = &node.value else {
            return None;
        };
        let (from, to) = (
            self.end(record, "from", report),
            self.end(record, "to", report),
        );
        let place = record.word("place");
        let place = Place::ALL.into_iter().find(|p| Some(p.name()) == place);
        Some(Fifo {
            name: record.text("name")?.into(),
            from: from?,
            to: to?,
            produce: rates(record, "produce")?,
            consume: rates(record, "consume")?,
            initial: record.number("initial").unwrap_or(0),
            capacity: record.number("capacity"),
            token_size: record.number("token-size").unwrap_or(0),
            place: place.unwrap_or_default(),
        })
    }

    fn end(&self, record: &Record, key: &str, report: &mut Report<'_>) -> Option<ActorId> {
        self.find_actor(record.get(key)?, key, report)
    }

    /// The actor of this graph that a value names, or its mistake.
    fn find_actor(&self, node: &Node, key: &str, report: &mut Report<'_>) -> Option<ActorId> {
        let Value::Text(name) = &node.value else {
            return None;
        };
        let own = self.actors.get(self.graph)?;
        if let Some(&id) = own.get(name) {
            return Some(id);
        }
        let elsewhere = self.actors.iter().find(|(graph, actors)| {
            let inner = name.strip_prefix(graph.as_str());
            let inner = inner
                .and_then(|rest| rest.strip_prefix('.'))
                .unwrap_or(name);
            graph.as_str() != self.graph && actors.contains_key(inner)
        });
        if let Some((graph, _)) = elsewhere {
            let message = format!("`{key}` names {}, an actor of graph `{graph}`", quote(name));
            report.add(&node.range, message, || {
                "a FIFO joins actors of one application: put both into one graph".into()
            });
            return None;
        }
        let message = format!("`{key}` names actor {}, which is not there", quote(name));
        report.add(&node.range, message, || {
            match nearest(name, own.keys().map(String::as_str)) {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => format!("add it to `actors` of [graph.{}]", self.graph),
            }
        });
        None
    }

    fn order(&self, node: &Node, report: &mut Report<'_>) -> Option<Order> {
        let Value::Record(record) = &node.value else {
            return None;
        };
        let tile = self.tile(record, report);
        let mut firings = Vec::new();
        for node in record.list("firings") {
            firings.push(self.find_actor(node, "firings", report));
        }
        let firings: Vec<ActorId> = firings.into_iter().collect::<Option<_>>()?;
        let by = match (record.word("by"), firings.is_empty()) {
            (Some("tdm"), _) => OrderRule::Tdm(firings),
            (Some("round-robin"), false) => {
                let message = "an order by \"round-robin\" that lists `firings`";
                report.add(&node.range, message, || {
                    "remove `firings`, or use \"static-order\"".into()
                });
                return None;
            }
            (Some("round-robin"), _) | (None, true) => OrderRule::RoundRobin,
            _ => OrderRule::Static(firings),
        };
        let preempted = match (record.word("preempted"), &by) {
            (Some("passed-over"), _) | (None, OrderRule::Tdm(_)) => Preempted::PassedOver,
            _ => Preempted::Continues,
        };
        let when = match record.word("when") {
            Some("between-slots") => When::BetweenSlots(preempted),
            Some("inline") if record.get("preempted").is_none() => When::Inline,
            // Its mistake has been reported.
            None if record.get("when").is_some() => return None,
            _ if record.get("preempted").is_some() => {
                let message = match record.word("when") {
                    Some("inline") => "`preempted` where the core decides",
                    _ => "`preempted` where the application decides in own time",
                };
                report.add(&node.range, message, || {
                    "remove it, or add `when = \"between-slots\"`".into()
                });
                return None;
            }
            _ => When::OwnTime,
        };
        let tile = tile?;
        Some(Order { tile, when, by })
    }
}

/// The rates of one end; 1 when absent.
fn rates(record: &Record, key: &str) -> Option<Vec<u32>> {
    if record.get(key).is_none() {
        return Some(vec![1]);
    }
    let rates = record.list(key).iter().map(|node| match node.value {
        Value::Integer(rate) => u32::try_from(rate).ok(),
        _ => None,
    });
    rates.collect()
}
