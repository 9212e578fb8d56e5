//! What other tools read: CSV lines that add up, Perfetto packets that hang together.
#![allow(clippy::unwrap_used)] // A test may stop at the first surprise.

use std::collections::HashMap;

use crate::common::{FIXED, composed, missing, rich, simulate, two_tasks};
use punctual_model::{ActorId, CpuId, Graph, GraphId, Instant, Tile, Work};
use punctual_sim::Faults;
use punctual_trace::{Behavior, Call, GraphInfo, Log, Moved, RunReport, State, export};

#[test]
fn the_csv_has_a_line_per_job_whose_columns_agree_with_the_summary() {
    let log = simulate(&two_tasks(), 2_000, 1, missing(9_000, 30));
    let mut bytes = Vec::new();
    export::csv::write(&log, &mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(export::csv::HEADER));
    let rows: Vec<Vec<&str>> = lines.map(|l| l.split(',').collect()).collect();
    assert!(rows.iter().all(|row| row.len() == 9));
    let report = RunReport::new(&log);
    for task in &report.tasks {
        let of_task = rows.iter().filter(|row| row[0] == task.name);
        let (mut jobs, mut late, mut worst) = (0, 0, 0);
        for row in of_task {
            jobs += 1;
            late += row[4].parse::<u64>().unwrap();
            worst = worst.max(row[3].parse::<u64>().unwrap());
            let (lateness, tardiness): (i64, u64) =
                (row[5].parse().unwrap(), row[6].parse().unwrap());
            assert_eq!(u64::try_from(lateness.max(0)).unwrap(), tardiness);
            assert_eq!(row[4] == "1", lateness > 0);
            assert_eq!(row[7], "0");
        }
        assert_eq!(
            (jobs, late, Some(worst)),
            (task.jobs, task.misses, task.response_ns.max)
        );
    }
    assert_eq!(rows[0][2], "10000000");
    assert_eq!(rows[0][8], "2000000");
}

/// Fields of a message: number and varint, or number and bytes.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut all = Vec::new();
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            2 => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(value)
            }
            other => panic!("wire type {other}"),
        };
        all.push((key >> 3, value));
    }
    all
}

fn number(message: &[u8], field: u64) -> Option<u64> {
    fields(message).into_iter().find_map(|(f, v)| match v {
        Value::Number(n) if f == field => Some(n),
        _ => None,
    })
}

fn bytes(message: &[u8], field: u64) -> Vec<&[u8]> {
    let all = fields(message).into_iter();
    all.filter_map(|(f, v)| match v {
        Value::Bytes(b) if f == field => Some(b),
        _ => None,
    })
    .collect()
}

#[test]
fn perfetto_lanes_are_unbroken_and_slices_nest() {
    let log = simulate(&rich(FIXED), 400, 1, missing(900, 23));
    let mut trace = Vec::new();
    export::perfetto::write(&log, &mut trace).unwrap();
    let packets = bytes(&trace, 1);
    let mut running: HashMap<u64, (u64, u64)> = HashMap::new();
    let (mut switches, mut open, mut slices) = (0, HashMap::new(), 0);
    let mut tracks = Vec::new();
    for packet in packets {
        assert_eq!(number(packet, 10), Some(1), "every packet has its sequence");
        for descriptor in bytes(packet, 60) {
            tracks.push(number(descriptor, 1).unwrap());
        }
        for bundle in bytes(packet, 1) {
            let cpu = number(bundle, 1).unwrap();
            for event in bytes(bundle, 2) {
                let at = number(event, 1).unwrap();
                for switch in bytes(event, 4) {
                    switches += 1;
                    let (prev, next) = (number(switch, 2).unwrap(), number(switch, 6).unwrap());
                    let (last, since) = running.insert(cpu, (next, at)).unwrap_or((0, 0));
                    assert_eq!(prev, last, "who is switched away ran before");
                    assert!(at >= since);
                }
            }
        }
        for event in bytes(packet, 11) {
            let track = number(event, 11).unwrap();
            assert!(
                tracks.contains(&track),
                "a track is described before it is used"
            );
            let depth = open.entry(track).or_insert(0);
            match number(event, 9).unwrap() {
                1 => {
                    *depth += 1;
                    slices += 1;
                    assert_eq!(*depth, 1, "slices of a track do not overlap");
                }
                2 => *depth -= 1,
                3 => assert!(!bytes(event, 23).is_empty(), "an instant has a name"),
                kind => panic!("kind {kind}"),
            }
        }
    }
    assert!(open.values().all(|depth| *depth == 0), "every slice ends");
    let behaviors = [Behavior::new(&log, 0), Behavior::new(&log, 1)];
    let sum = |f: fn(&Behavior) -> usize| behaviors.iter().map(f).sum::<usize>();
    assert_eq!(switches, sum(|b| usize::try_from(b.switches).unwrap()));
    assert_eq!(slices, sum(|b| b.jobs.len() + b.missing.len()));
}

#[test]
fn a_queued_job_begins_its_slice_at_its_turn() {
    let mut system = two_tasks();
    system.tasks[1] = crate::common::periodic("slow", 0, 10, 9_000, 1);
    let log = simulate(&system, 200, 1, Faults::default());
    let mut trace = Vec::new();
    export::perfetto::write(&log, &mut trace).unwrap();
    let mut begins: Vec<(u64, u64)> = Vec::new();
    for packet in bytes(&trace, 1) {
        for event in bytes(packet, 11) {
            if number(event, 9) == Some(1) {
                begins.push((number(event, 11).unwrap(), number(packet, 8).unwrap()));
            }
        }
    }
    let slow = begins.iter().map(|(track, _)| *track).max().unwrap();
    let at: Vec<u64> = begins.iter().filter(|b| b.0 == slow).map(|b| b.1).collect();
    assert_eq!(at[..3], [0, 13_000_000, 24_000_000]);
}

#[test]
fn schedulers_and_resources_have_tracks_whose_slices_open_and_close() {
    let log = simulate(&composed(), 200, 1, missing(100, 37));
    let mut bytes = Vec::new();
    export::perfetto::write(&log, &mut bytes).unwrap();
    let mut names: HashMap<u64, String> = HashMap::new();
    let mut open: HashMap<u64, (i64, u64)> = HashMap::new();
    for (_, packet) in fields(&bytes) {
        let Value::Bytes(packet) = packet else {
            continue;
        };
        for (number, value) in fields(packet) {
            let Value::Bytes(value) = value else { continue };
            let number_of = |wanted: u64| {
                fields(value).into_iter().find_map(|(n, v)| match v {
                    Value::Number(v) if n == wanted => Some(v),
                    _ => None,
                })
            };
            if number == 60 {
                let name = fields(value).into_iter().find_map(|(n, v)| match v {
                    Value::Bytes(v) if n == 2 => Some(String::from_utf8(v.to_vec()).unwrap()),
                    _ => None,
                });
                if let (Some(uuid), Some(name)) = (number_of(1), name) {
                    names.insert(uuid, name);
                }
            } else if number == 11 {
                let entry = open.entry(number_of(11).unwrap()).or_default();
                match number_of(9).unwrap() {
                    1 => *entry = (entry.0 + 1, entry.1 + 1),
                    2 => entry.0 -= 1,
                    _ => {}
                }
                assert!((0..=1).contains(&entry.0), "slices of one track overlap");
            }
        }
    }
    let slices = |wanted: &str| {
        let track = names.iter().find(|(_, name)| name.as_str() == wanted);
        let track = track.unwrap_or_else(|| panic!("no track `{wanted}`")).0;
        open.get(track).map_or(0, |entry| entry.1)
    };
    assert!(slices("scheduler still (CPU 0): slots") >= 19);
    assert!(slices("scheduler rationed (CPU 0): no budget") >= 10);
    assert!(slices("resource bus (CPU 0)") >= 18);
    assert!(open.values().all(|(open, _)| *open == 0));
}

/// The events of a track in order: how many slices are open behind each, and its name.
fn of_track(trace: &[u8], named: &str) -> Vec<(i32, String, u64)> {
    let text = |message: &[u8], field| {
        let found = bytes(message, field).first().map(|name| name.to_vec());
        String::from_utf8(found.unwrap_or_default()).unwrap()
    };
    let (mut track, mut depth, mut all) = (None, 0, Vec::new());
    for packet in bytes(trace, 1) {
        for descriptor in bytes(packet, 60) {
            if text(descriptor, 2) == named {
                track = number(descriptor, 1);
            }
        }
        for event in bytes(packet, 11) {
            if track.is_some() && number(event, 11) == track {
                depth += if number(event, 9) == Some(1) { 1 } else { -1 };
                all.push((depth, text(event, 23), number(packet, 8).unwrap()));
            }
        }
    }
    all
}

/// The track of the one actor of a graph that made these transitions.
fn track_of_actor(moves: Vec<Moved>) -> (Log, Vec<(i32, String, u64)>) {
    let mut log = simulate(&two_tasks(), 100, 1, Faults::default());
    let mut graph = Graph::new("film");
    let actor = graph.actor("show", Tile::cpu(CpuId(0)), Work::from_ns(9));
    graph.fifo("reel", actor, actor);
    log.graphs = vec![GraphInfo::new(&graph)];
    log.cpus[0].moves = moves;
    let mut trace = Vec::new();
    export::perfetto::write(&log, &mut trace).unwrap();
    let events = of_track(&trace, &format!("actor film.show on {}", log.cpus[0].name));
    (log, events)
}

fn moved((at, firing, name): (u64, u64, &str)) -> Moved {
    let (state, preempted) = State::named(name).unwrap();
    Moved {
        at: Instant::from_ticks(at),
        firing,
        actor: ActorId(0),
        graph: GraphId(0),
        state,
        preempted,
        call: None,
    }
}

#[test]
fn actors_have_tracks_with_a_slice_per_firing_and_one_per_state_in_it() {
    let states = [
        (10, 0, "CLAIM"),
        (10, 0, "COMPUTE"),
        (20, 0, "PREEMPT_COMPUTE"),
        (30, 0, "COMPUTE"),
        (35, 0, "RELEASE"),
        (36, 0, "RESET"),
        (36, 1, "IDLE"),
        (40, 1, "CLAIM"),
    ];
    let (log, events) = track_of_actor(states.into_iter().map(moved).collect());
    let of_firing = [
        "CLAIM",
        "COMPUTE",
        "PREEMPT_COMPUTE",
        "COMPUTE",
        "RELEASE",
        "RESET",
    ];
    let begun = |name: &str| (2, name.to_string());
    let mut expected = vec![(1, "firing 0".to_string()), begun("CLAIM")];
    for state in &of_firing[1..] {
        expected.extend([(1, String::new()), begun(state)]);
    }
    let over = [(1, String::new()), (0, String::new())];
    expected.extend(over.clone());
    expected.extend([(1, "firing 1".to_string()), begun("CLAIM")]);
    expected.extend(over);
    let seen: Vec<(i32, String)> = events.iter().map(|e| (e.0, e.1.clone())).collect();
    assert_eq!(seen, expected);
    let preempted = events
        .iter()
        .position(|e| e.1 == "PREEMPT_COMPUTE")
        .unwrap();
    let lasts = events[preempted + 1].2 - events[preempted].2;
    assert_eq!(lasts, log.ns(10), "until it computes again");
}

#[test]
fn a_firing_that_is_interrupted_while_it_resets_has_ended_once() {
    let states = [
        (10, 0, "CLAIM"),
        (10, 0, "COMPUTE"),
        (20, 0, "RELEASE"),
        (21, 0, "RESET"),
        (22, 0, "PREEMPT_RESET"),
        (30, 0, "RESET"),
        (31, 1, "IDLE"),
    ];
    let (log, _) = track_of_actor(states.into_iter().map(moved).collect());
    let report = RunReport::new(&log);
    let actor = &report.graphs[0].actors[0];
    assert_eq!((actor.firings, actor.preemptions), (1, 1));
    assert_eq!(
        actor.longest_ns,
        Some(log.ns(11)),
        "until its tokens are handed on"
    );
}

#[test]
fn a_task_that_runs_to_completion_waits_in_its_call_until_that_goes_on() {
    let calls = [(10, None), (20, Some(false)), (50, Some(true)), (60, None)];
    let moves = calls.map(|(at, goes_on)| Moved {
        state: if at == 60 {
            State::Finished
        } else {
            State::Run
        },
        call: goes_on.map(|goes_on| (Call::Read(0, 1), goes_on)),
        ..moved((at, 0, "RUN"))
    });
    let (_, events) = track_of_actor(moves.to_vec());
    let names: Vec<&str> = events
        .iter()
        .map(|e| e.1.as_str())
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!(
        names,
        ["firing 0", "RUN", "waits for tokens in reel", "RUN"]
    );
}
