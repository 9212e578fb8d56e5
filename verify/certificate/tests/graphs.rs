//! Certificates of graphs: wrong ones that the checker must refuse, beside lawful ones.

use punctual_certificate::graph::{
    Actor, Fifo, GRAPH_FORMAT, Graph, GraphCertificate, Schedule, Tile,
};
use punctual_certificate::{Wrong, verify_graphs};

/// `a` (1 ns) hands `produce` to `b` (10 ns), each on a CPU of its own.
fn certificate(produce: &[u32], schedule: Schedule) -> GraphCertificate {
    let tile = |name: &str| Tile {
        name: name.into(),
        frame: None,
        slots: Vec::new(),
        overhead: 0,
        order: None,
        decides: None,
    };
    let actor = |name: &str, tile, wcet| Actor {
        name: name.into(),
        tile,
        wcet: vec![wcet],
        shared: None,
    };
    let graph = Graph {
        name: "pair".into(),
        tiles: vec![tile("0"), tile("1")],
        actors: vec![actor("a", 0, 1), actor("b", 1, 10)],
        fifos: vec![Fifo {
            name: "x".into(),
            from: 0,
            to: 1,
            produce: produce.to_vec(),
            consume: vec![1],
            initial: 0,
            capacity: None,
            kept: None,
        }],
        every: None,
        within: None,
        copies: None,
    };
    GraphCertificate {
        format: GRAPH_FORMAT,
        graphs: vec![graph],
        schedules: vec![schedule],
        rest: None,
    }
}

fn schedule(period: u64, latency: u64, starts: [&[u64]; 2]) -> Schedule {
    Schedule {
        numerator: period,
        denominator: 1,
        responses: vec![vec![1], vec![10]],
        starts: starts.map(<[u64]>::to_vec).to_vec(),
        latency,
    }
}

/// Whether the checker has refused it for this reason.
fn is_refused(certificate: &GraphCertificate, reason: &str) -> bool {
    let found = verify_graphs(certificate);
    matches!(found, Err(wrong @ Wrong::Verdict(_)) if wrong.to_string().contains(reason))
}

#[test]
fn an_iteration_in_mid_cycle_is_refused() {
    let whole = schedule(40, 41, [&[0, 1], &[1, 11, 21, 31]]);
    assert_eq!(verify_graphs(&certificate(&[1, 3], whole)), Ok(()));
    // As if the second phase, with its 3 tokens, never came: a period of a quarter of the true one.
    let mut torn = certificate(&[1, 3], schedule(10, 11, [&[0], &[1]]));
    torn.graphs[0].every = Some(20);
    assert!(is_refused(&torn, "leaves out firings"));
    let none = certificate(&[], schedule(10, 11, [&[0], &[1]]));
    assert!(is_refused(&none, "leaves out firings"));
}

#[test]
fn times_of_nothing_are_refused() {
    let lawful = certificate(&[1], schedule(10, 11, [&[0], &[1]]));
    assert_eq!(verify_graphs(&lawful), Ok(()));
    let reason = "a wcet or a period of nothing";
    let mut changed = lawful.clone();
    changed.schedules[0].numerator = 0;
    assert!(is_refused(&changed, reason));
    let mut changed = lawful.clone();
    changed.schedules[0].denominator = 0;
    assert!(is_refused(&changed, reason));
    let mut changed = lawful;
    changed.graphs[0].actors[0].wcet = vec![0];
    changed.graphs[0].tiles[0].frame = Some(10);
    changed.graphs[0].tiles[0].slots = vec![(0, 5)];
    assert!(is_refused(&changed, reason));
}

#[test]
fn tokens_at_first_neither_hide_a_shortage_nor_cost_time() {
    // `b` starts before any `a` of its iteration ends; the tokens there at first make up for it.
    let mut early = certificate(&[1], schedule(10, 10, [&[3], &[0]]));
    assert!(is_refused(&early, "starts with"));
    early.graphs[0].fifos[0].initial = 1;
    assert_eq!(verify_graphs(&early), Ok(()));
    early.graphs[0].fifos[0].initial = u32::MAX;
    assert_eq!(verify_graphs(&early), Ok(()));
    // Three periods behind: three tokens last for three iterations, and a fourth needs the first.
    let mut behind = certificate(&[1], schedule(10, 10, [&[35], &[0]]));
    behind.graphs[0].fifos[0].initial = 3;
    assert!(is_refused(&behind, "in iteration 3"));
    behind.graphs[0].fifos[0].initial = 4;
    assert_eq!(verify_graphs(&behind), Ok(()));
}
