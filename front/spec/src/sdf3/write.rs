//! From a graph to the XML of SDF3.

use std::fmt::{Display, Write};

use punctual_model::{ActorId, Graph};
use quick_xml::escape::escape;

use super::{ONCE, keeps_apart};

/// Writes a graph in the XML of SDF3, as `sdf` where every actor has one phase and as `csdf`
/// otherwise. [`crate::read_sdf3`] gives the same actors and FIFOs again; tiles, orders, work,
/// places, copies and requirements are lost. Each actor without a channel to itself that keeps its
/// firings apart gets one (`once-ACTOR`), because actors of SDF3 overlap. O(actors · FIFOs).
pub fn write_sdf3(graph: &Graph) -> String {
    let graph = &firing_once(graph);
    let fifos = graph.fifos.iter();
    let cycles = fifos.flat_map(|fifo| [fifo.produce.len(), fifo.consume.len()]);
    let mut cycles = cycles.chain(graph.actors.iter().map(|actor| actor.wcet.len()));
    let kind = if cycles.all(|length| length == 1) {
        "sdf"
    } else {
        "csdf"
    };
    let name = escape(graph.name.as_str());
    let mut out = Out(String::new());
    out.line(0, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    out.line(0, format_args!("<sdf3 type=\"{kind}\" version=\"1.0\">"));
    out.line(1, format_args!("<applicationGraph name=\"{name}\">"));
    out.line(2, format_args!("<{kind} name=\"{name}\" type=\"{name}\">"));
    write_parts(graph, &mut out);
    out.line(2, format_args!("</{kind}>"));
    out.line(2, format_args!("<{kind}Properties>"));
    write_properties(graph, &mut out);
    out.line(2, format_args!("</{kind}Properties>"));
    out.line(1, "</applicationGraph>");
    out.line(0, "</sdf3>");
    out.0
}

/// The graph with what our actors imply: each fires once at a time.
fn firing_once(graph: &Graph) -> Graph {
    let mut all = graph.clone();
    for (actor, id) in graph.actors.iter().zip((0..).map(ActorId)) {
        let mut own = graph.fifos.iter().filter(|fifo| fifo.from == id);
        if own.any(keeps_apart) {
            continue;
        }
        let mut name = format!("{ONCE}{}", actor.name);
        while all.fifos.iter().any(|fifo| fifo.name == name) {
            name.push('-');
        }
        all.fifo(name, id, id).initial = 1;
    }
    all
}

fn actor_name(graph: &Graph, index: usize) -> String {
    let actor = graph.actors.get(index);
    actor.map_or(String::new(), |actor| {
        escape(actor.name.as_str()).into_owned()
    })
}

/// Actors with their ports, and channels between those.
fn write_parts(graph: &Graph, out: &mut Out) {
    for index in 0..graph.actors.len() {
        let name = actor_name(graph, index);
        out.line(3, format_args!("<actor name=\"{name}\" type=\"{name}\">"));
        for (place, fifo) in graph.fifos.iter().enumerate() {
            let ends = [
                (fifo.from, "out", &fifo.produce),
                (fifo.to, "in", &fifo.consume),
            ];
            for (_, way, rates) in ends.iter().filter(|(end, ..)| end.index() == index) {
                let rates = list(rates);
                let port = format!("type=\"{way}\" name=\"{way}{place}\" rate=\"{rates}\"");
                out.line(4, format_args!("<port {port}/>"));
            }
        }
        out.line(3, "</actor>");
    }
    for (place, fifo) in graph.fifos.iter().enumerate() {
        let name = escape(fifo.name.as_str());
        let from = actor_name(graph, fifo.from.index());
        let to = actor_name(graph, fifo.to.index());
        let from = format!("srcActor=\"{from}\" srcPort=\"out{place}\"");
        let to = format!("dstActor=\"{to}\" dstPort=\"in{place}\"");
        let initial = fifo.initial;
        out.line(
            3,
            format_args!("<channel name=\"{name}\" {from} {to} initialTokens=\"{initial}\"/>"),
        );
    }
}

/// Execution times, capacities and sizes of tokens.
fn write_properties(graph: &Graph, out: &mut Out) {
    for (index, actor) in graph.actors.iter().enumerate() {
        let times: Vec<u64> = actor.wcet.iter().map(|wcet| wcet.as_ns()).collect();
        let name = actor_name(graph, index);
        out.line(3, format_args!("<actorProperties actor=\"{name}\">"));
        out.line(4, "<processor type=\"cpu\" default=\"true\">");
        out.line(
            5,
            format_args!("<executionTime time=\"{}\"/>", list(&times)),
        );
        out.line(4, "</processor>");
        out.line(3, "</actorProperties>");
    }
    for fifo in &graph.fifos {
        let name = escape(fifo.name.as_str());
        out.line(3, format_args!("<channelProperties channel=\"{name}\">"));
        if let Some(capacity) = fifo.capacity {
            out.line(4, format_args!("<bufferSize sz=\"{capacity}\"/>"));
        }
        if fifo.token_size > 0 {
            let bits = u64::from(fifo.token_size) * 8;
            out.line(4, format_args!("<tokenSize sz=\"{bits}\"/>"));
        }
        out.line(3, "</channelProperties>");
    }
}

/// Numbers with commas between.
fn list<T: Display>(numbers: &[T]) -> String {
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    numbers.join(",")
}

/// The text so far.
struct Out(String);

impl Out {
    fn line(&mut self, depth: usize, line: impl Display) {
        // Writing into a text cannot fail.
        let _ = writeln!(self.0, "{:1$}{line}", "", depth * 2);
    }
}
