//! Graphs of SDF3: the same again after a way out and in, and every mistake with its place.

use std::fs;
use std::path::Path;

use punctual_generate::Random;
use punctual_model::{ActorId, CpuId, Graph, Tile, Work};
use punctual_spec::{parse, read_sdf3, write, write_sdf3};

/// A connected graph with every actor on a CPU of its own, of one phase each or of several.
fn draw(random: &mut Random) -> Graph {
    let mut graph = Graph::new("drawn");
    let phases = random.within(1, 3);
    for cpu in 0..u16::try_from(random.within(1, 6)).expect("few") {
        let id = graph.actor(format!("a{cpu}"), Tile::cpu(CpuId(cpu)), Work::from_ns(1));
        let wcet = (0..phases).map(|_| Work::from_ns(random.within(1, u64::MAX)));
        graph.actors[id.index()].wcet = wcet.collect();
    }
    let count = graph.actors.len();
    for index in 0..count + random.index(3) {
        let to = ActorId(u32::try_from(index % count).expect("few"));
        let from = ActorId(u32::try_from(random.index(to.index().max(1))).expect("few"));
        let narrow = |wide: u64| u32::try_from(wide).expect("32 bits");
        let rates: Vec<u32> = (0..phases)
            .map(|_| narrow(random.within(1, 4_000_000_000)))
            .collect();
        let fifo = graph.fifo(format!("f{index}"), from, to);
        fifo.produce = rates;
        fifo.consume = vec![narrow(random.within(1, 9))];
        fifo.initial = narrow(random.below(1 << 31));
        fifo.capacity = random.happens(500).then_some(u32::MAX);
        fifo.token_size = narrow(random.below(1 << 32));
    }
    graph
}

#[test]
fn an_exported_graph_is_imported_as_the_same() {
    for seed in 0..500 {
        let graph = draw(&mut Random::at(seed, &[1]));
        let text = write_sdf3(&graph);
        let system = read_sdf3(&text, "drawn.xml").unwrap_or_else(|m| panic!("{}", m[0]));
        assert_eq!(system.graphs, [graph], "seed {seed}\n{text}");
        // And on through a system file.
        let file = parse(&write(&system), "drawn.toml").unwrap_or_else(|m| panic!("{}", m[0]));
        assert_eq!(file.system.graphs, system.graphs, "seed {seed}");
    }
}

#[test]
fn the_shipped_decoder_survives_the_way() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/graph-h263.toml");
    let mut graph = punctual_spec::load(path)
        .expect("it is valid")
        .system
        .graphs
        .remove(0);
    let system = read_sdf3(&write_sdf3(&graph), "h263.xml").expect("it is XML");
    (graph.every, graph.within) = (None, None);
    assert_eq!(system.graphs, [graph]);
}

#[test]
fn actors_that_would_overlap_elsewhere_get_a_channel_to_themselves_and_lose_it_again() {
    let mut graph = Graph::new("three");
    let [a, b, c] = [0, 1, 2]
        .map(|cpu| graph.actor(format!("a{cpu}"), Tile::cpu(CpuId(cpu)), Work::from_ns(5)));
    graph.fifo("ab", a, b);
    graph.fifo("bc", b, c);
    // State of its own keeps the firings of `b` apart; two tokens do not keep those of `c`.
    graph.fifo("state", b, b).initial = 1;
    graph.fifo("once-a2", c, c).initial = 2;
    let text = write_sdf3(&graph);
    let names = text.split("<channel name=\"").skip(1);
    let names: Vec<&str> = names.filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(
        names,
        ["ab", "bc", "state", "once-a2", "once-a0", "once-a2-"]
    );
    for one in [
        "rate=\"1\"",
        "initialTokens=\"1\"",
        "srcPort=\"out4\" dstActor=\"a0\"",
    ] {
        assert!(text.contains(one), "{text}");
    }
    let read = read_sdf3(&text, "three.xml").unwrap_or_else(|m| panic!("{}", m[0]));
    assert_eq!(read.graphs, [graph]);
    // Of others it is a FIFO like any.
    let other = text.replace("once-a0", "self");
    let read = read_sdf3(&other, "three.xml").unwrap_or_else(|m| panic!("{}", m[0]));
    assert_eq!(read.graphs[0].fifos.len(), 5);
}

/// As the tools of others write it: processors, unused elements, ports in any order.
const FOREIGN: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<sdf3 type="csdf" version="1.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
  <applicationGraph name="app">
    <csdf name="G" type="G">
      <actor name="A" type="a"><port name="o" type="out" rate="1,2"/></actor>
      <actor name="B" type="b"><port name="i" type="in" rate="3"/></actor>
      <channel name="ch" srcActor="A" srcPort="o" dstActor="B" dstPort="i" initialTokens="2"/>
    </csdf>
    <csdfProperties>
      <actorProperties actor="A">
        <processor type="dsp"><executionTime time="9,9"/></processor>
        <processor type="arm" default="true"><executionTime time="3, 4"/></processor>
      </actorProperties>
      <actorProperties actor="B">
        <processor type="arm"><executionTime time="5"/><memory><stateSize max="1"/></memory></processor>
      </actorProperties>
      <channelProperties channel="ch"><bufferSize sz="6" src="1"/><tokenSize sz="12"/></channelProperties>
    </csdfProperties>
  </applicationGraph>
</sdf3>
"#;

#[test]
fn a_file_of_others_is_read() {
    let graph = read_sdf3(FOREIGN, "g.xml")
        .expect("it is valid")
        .graphs
        .remove(0);
    assert_eq!(graph.name, "G");
    assert_eq!(graph.actors[0].wcet, [Work::from_ns(3), Work::from_ns(4)]);
    assert_eq!(graph.actors[1].wcet, [Work::from_ns(5)]);
    let fifo = &graph.fifos[0];
    assert_eq!(
        (&fifo.produce[..], &fifo.consume[..]),
        (&[1, 2][..], &[3][..])
    );
    assert_eq!(
        (fifo.initial, fifo.capacity, fifo.token_size),
        (2, Some(6), 2)
    );
}

#[test]
fn every_mistake_has_its_line() {
    for (old, new, line, message) in [
        (
            "rate=\"3\"",
            "rate=\"x\"",
            6,
            "`rate` is `x`, not whole numbers with commas between",
        ),
        (
            "dstPort=\"i\"",
            "dstPort=\"o\"",
            7,
            "channel `ch` ends at `B`, port `o`, which is not there",
        ),
        (
            "type=\"in\"",
            "type=\"out\"",
            7,
            "channel `ch` uses port `i` of `B` the wrong way",
        ),
        (
            "actor=\"B\"",
            "actor=\"C\"",
            14,
            "properties of actor `C`, which is not there",
        ),
        (
            "<executionTime time=\"5\"/>",
            "",
            6,
            "actor `B` has no execution time",
        ),
        (
            "time=\"3, 4\"",
            "time=\"3,0\"",
            5,
            "a firing of actor `A` takes 0s",
        ),
        ("</csdf>", "</sdf>", 8, "this is not XML"),
        (
            "initialTokens=\"2\"",
            "initialTokens=\"-2\"",
            7,
            "`initialTokens` is `-2`",
        ),
    ] {
        assert!(FOREIGN.contains(old), "{old}");
        let found = read_sdf3(&FOREIGN.replace(old, new), "g.xml").expect_err(message);
        assert!(found[0].message.starts_with(message), "{}", found[0]);
        assert_eq!(found[0].line, line, "{}", found[0]);
        assert!(!found[0].help.is_empty());
    }
    let none = read_sdf3("<a/>", "g.xml").expect_err("no graph");
    assert_eq!(none[0].message, "there is no graph in this file");
}

#[test]
fn no_mutation_makes_the_reader_panic() {
    let example = write_sdf3(&draw(&mut Random::at(3, &[1])));
    let mut valid = 0;
    for seed in 0..4_000 {
        let random = &mut Random::at(seed, &[2]);
        let mut bytes = if random.happens(500) {
            FOREIGN
        } else {
            &example
        }
        .as_bytes()
        .to_vec();
        for _ in 0..random.within(1, 4) {
            let at = random.index(bytes.len());
            match random.below(3) {
                0 => bytes[at] = u8::try_from(random.within(32, 126)).expect("ASCII"),
                1 => drop(bytes.drain(at..(at + random.index(40)).min(bytes.len()))),
                _ => {
                    let part = bytes[at..(at + random.index(60)).min(bytes.len())].to_vec();
                    let to = random.index(bytes.len());
                    bytes.splice(to..to, part);
                }
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        valid += u32::from(read_sdf3(&text, "g.xml").is_ok());
    }
    assert!(valid > 200, "{valid}");
}

#[test]
fn the_text_of_a_file_is_no_xml() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/two-tasks.toml");
    let text = fs::read_to_string(file).expect("the file");
    assert!(read_sdf3(&text, "two-tasks.toml").is_err());
}
