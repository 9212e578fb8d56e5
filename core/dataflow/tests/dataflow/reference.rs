//! The H.263 decoder of the SDF3 test bench, with the answers that others found.

use punctual_dataflow::{
    Firings, Fraction, Link, Rates, Timed, deadlock, firings_per_iteration, first_output, front,
    period_by_states, schedule, worst_circle,
};
use punctual_model::{CpuId, Graph, Tile, Work};

use crate::drawn::times;

/// vld, iq, idct, mc: rates 1:594, 1:1, 594:1. Every actor is alone on its tile.
fn decoder(capacities: Option<[u32; 3]>) -> Graph {
    let mut graph = Graph::new("h263");
    let wcets = [26_018, 559, 486, 10_958];
    let actors = ["vld", "iq", "idct", "mc"].iter().zip(wcets).zip(0..);
    let ids: Vec<_> = actors
        .map(|((name, wcet), cpu)| graph.actor(*name, Tile::cpu(CpuId(cpu)), Work::from_ns(wcet)))
        .collect();
    graph.fifo("blocks", ids[0], ids[1]).produce = vec![594];
    graph.fifo("coefficients", ids[1], ids[2]);
    graph.fifo("pixels", ids[2], ids[3]).consume = vec![594];
    for (fifo, capacity) in graph.fifos.iter_mut().zip(capacities.into_iter().flatten()) {
        fifo.capacity = Some(capacity);
    }
    graph
}

fn timed(graph: &Graph) -> Timed {
    let Ok(Rates::Consistent(firings)) = firings_per_iteration(graph) else {
        panic!("it is consistent");
    };
    Timed::new(graph, &firings, &times(graph)).expect("it fits")
}

#[test]
fn an_iteration_is_one_picture_of_594_blocks() {
    assert_eq!(timed(&decoder(None)).firings(), [1, 594, 594, 1]);
}

#[test]
fn the_table_of_buffers_periods_and_first_outputs() {
    for (capacities, period, output) in [
        (None, 332_046, 369_508),
        (Some([594, 1, 594]), 646_262, 657_706),
        (Some([594, 2, 594]), 358_064, 369_508),
        (Some([1_188, 2, 594]), 342_858, 369_508),
        (Some([1_188, 2, 1_188]), 332_046, 369_508),
    ] {
        let timed = timed(&decoder(capacities));
        assert_eq!(deadlock(&timed), None, "{capacities:?}");
        let firings = Firings::of(&timed);
        let circle = worst_circle(&timed, &firings).expect("an answer");
        assert_eq!(circle.period, Fraction::whole(period), "{capacities:?}");
        assert_eq!(
            period_by_states(&timed),
            Ok(Fraction::whole(period)),
            "{capacities:?}"
        );
        assert_eq!(first_output(&timed), Ok(output), "{capacities:?}");
        let schedule = schedule(&timed, &firings, circle.period).expect("a schedule");
        assert!(schedule.latency >= output, "{capacities:?}");
    }
}

#[test]
fn one_token_less_and_it_stops() {
    let timed = timed(&decoder(Some([593, 1, 594])));
    let found = deadlock(&timed).expect("it stops");
    assert_eq!((found.firings, found.full), (0, vec![0]));
    // vld lacks one place, which only iq could free, which has nothing.
    let circle: Vec<_> = found
        .circle
        .iter()
        .map(|w| (w.actor, w.link, w.missing))
        .collect();
    assert_eq!(circle, [(0, Link::Space(0), 1), (1, Link::Tokens(0), 1)]);
}

#[test]
fn the_front_begins_at_the_least_buffers_and_ends_at_the_fastest() {
    let graph = decoder(None);
    let front = front(&graph, &[1, 594, 594, 1], &times(&graph)).expect("a front");
    assert!(front.complete);
    assert_eq!(front.fastest, Fraction::whole(332_046));
    let first = front.points.first().expect("a point");
    assert_eq!(first.capacities, [Some(594), Some(1), Some(594)]);
    assert_eq!(first.period, Fraction::whole(646_262));
    let last = front.points.last().expect("a point");
    assert_eq!(last.period, front.fastest);
    assert!(last.size < 1_188 + 2 + 1_188, "{last:?}");
    let mut pairs = front.points.iter().zip(front.points.iter().skip(1));
    assert!(pairs.all(|(a, b)| a.size < b.size && a.period > b.period));
}

#[test]
fn the_sample_rate_converter_fires_612_times() {
    // CD to DAT: 147, 147, 98, 28, 32, 160.
    let mut graph = Graph::new("samplerate");
    let rates = [(1, 1), (2, 3), (2, 7), (8, 7), (5, 1)];
    let ids: Vec<_> = (0..6)
        .map(|cpu| graph.actor(format!("a{cpu}"), Tile::cpu(CpuId(cpu)), Work::from_ns(1)))
        .collect();
    for ((pair, (produce, consume)), index) in ids.windows(2).zip(rates).zip(0..) {
        let fifo = graph.fifo(format!("f{index}"), pair[0], pair[1]);
        (fifo.produce, fifo.consume) = (vec![produce], vec![consume]);
    }
    let timed = timed(&graph);
    assert_eq!(timed.firings(), [147, 147, 98, 28, 32, 160]);
    // Every actor takes 1: the last one, which fires most often, sets the pace.
    let circle = worst_circle(&timed, &Firings::of(&timed)).expect("an answer");
    assert_eq!(circle.period, Fraction::whole(160));
}

#[test]
fn an_iteration_near_the_limit_of_firings_is_analysed() {
    let mut graph = decoder(None);
    (graph.fifos[0].produce, graph.fifos[2].consume) = (vec![49_000], vec![49_000]);
    for fifo in &mut graph.fifos {
        fifo.capacity = Some(60_000);
    }
    let timed = timed(&graph);
    assert_eq!(timed.firings(), [1, 49_000, 49_000, 1]);
    let firings = Firings::of(&timed);
    let period = worst_circle(&timed, &firings).expect("an answer").period;
    assert_eq!(period_by_states(&timed), Ok(period));
    assert!(schedule(&timed, &firings, period).is_ok());
}
