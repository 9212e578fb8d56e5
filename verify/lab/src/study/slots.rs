//! `slots`: finishing times of decoders over the length of their slots (CompOSe, Fig. 9 and 10).
//!
//! A decoder has a slot on each of two tiles, and a neighbour has the next one of the same length.
//! No neighbour can be noticed, so there is none here. A cycle of the paper is a nanosecond.

use punctual::{SimOptions, Span, System, Workloads, simulate};
use punctual_lab::svg::{Axis, Chart, Mark, Series};
use punctual_model::{ActorId, Graph, Instant, Order, OrderRule, Preempted, Tile, When};
use punctual_terminal::table::Table;
use punctual_trace::State;

use crate::answers::{Row, real};

/// Lengths of a slot in cycles: those of the paper for H.264, and for JPEG the part up to 100,000.
pub(crate) const LENGTHS: [u64; 14] = [
    10_000, 15_000, 20_000, 25_000, 30_000, 40_000, 50_000, 60_000, 80_000, 100_000, 150_000,
    200_000, 250_000, 300_000,
];
/// The decoders, with actors and times of their shape.
pub(crate) const DECODERS: [(&str, &str); 2] = [
    (
        "H.264",
        r#"actors = [
  { name = "parse", on = "scheduler.left", wcet = "35us" },
  { name = "inverse", on = "scheduler.left", wcet = "8us" },
  { name = "predict", on = "scheduler.right", wcet = "30us" },
  { name = "deblock", on = "scheduler.right", wcet = "26us" },
]
fifos = [
  { name = "blocks", from = "parse", to = "inverse", produce = 4, capacity = 8 },
  { name = "residuals", from = "inverse", to = "predict", consume = 4, capacity = 8 },
  { name = "pixels", from = "predict", to = "deblock", capacity = 2 },
  { name = "reference", from = "deblock", to = "predict", initial = 2 },
]"#,
    ),
    (
        "JPEG",
        r#"actors = [
  { name = "vld", on = "scheduler.left", wcet = "21us" },
  { name = "iqzz", on = "scheduler.left", wcet = "3us" },
  { name = "idct", on = "scheduler.right", wcet = "5us" },
  { name = "colours", on = "scheduler.right", wcet = "17us" },
]
fifos = [
  { name = "coded", from = "vld", to = "iqzz", produce = 6, capacity = 12 },
  { name = "coefficients", from = "iqzz", to = "idct", capacity = 6 },
  { name = "samples", from = "idct", to = "colours", consume = 6, capacity = 12 },
]"#,
    ),
];
/// The task schedulers of the paper, which are the rows.
const NAMES: [&str; 3] = [
    "between slots, TDM",
    "between slots, round robin",
    "own time, round robin",
];
/// Finishing times of so many iterations.
const ITERATIONS: usize = 40;
/// The longest time of the operating system between two slots, in cycles (CompOSe §5).
const SCHEDULING: u64 = 800;

/// A row for each task scheduler: the instants at which the first iterations were done.
pub(crate) fn unit(length: u64, decoder: u64) -> Result<Vec<Row>, String> {
    let place = usize::try_from(decoder).unwrap_or(usize::MAX);
    let (_, graph) = DECODERS.get(place).ok_or("no such decoder")?;
    let origin = "the decoder of a study";
    let system = punctual_spec::parse(&text(length, graph), origin)
        .map_err(|mistakes| format!("{mistakes:?}"))?
        .system;
    let row = |name: &str| {
        let values = finished(&ordered(&system, name), length)?;
        Ok(Row::new(name, &[length, decoder], values))
    };
    NAMES.into_iter().map(row).collect()
}

fn text(length: u64, graph: &str) -> String {
    let frame = 2 * (length + SCHEDULING);
    let tile = |name: &str| {
        format!(
            "[cpu.{name}]\npolicy = \"tdm\"\nframe = \"{frame}ns\"\n\
             scheduling-time = \"{SCHEDULING}ns\"\n\
             [scheduler.{name}]\non = \"cpu.{name}\"\npolicy = \"fifo\"\n\
             slots = [{{ at = \"0ns\", length = \"{length}ns\" }}]\n"
        )
    };
    let tiles = tile("left") + &tile("right");
    format!("[system]\ncpus = [\"left\", \"right\"]\n{tiles}[graph.decoder]\n{graph}\n")
}

/// The system under one of the task schedulers.
fn ordered(system: &System, name: &str) -> System {
    let mut system = system.clone();
    let graph = &mut system.graphs[0];
    let mut tiles: Vec<Tile> = graph.actors.iter().map(|actor| actor.tile).collect();
    tiles.dedup();
    let order = |tile: Tile| Order {
        tile,
        when: match name == NAMES[2] {
            true => When::OwnTime,
            false if name == NAMES[0] => When::BetweenSlots(Preempted::PassedOver),
            false => When::BetweenSlots(Preempted::Continues),
        },
        by: match name == NAMES[0] {
            true => OrderRule::Tdm(owners(graph, tile)),
            false => OrderRule::RoundRobin,
        },
    };
    let orders = tiles.into_iter().map(order).collect();
    graph.orders = orders;
    system
}

/// The actors of a tile, one after the other.
fn owners(graph: &Graph, tile: Tile) -> Vec<ActorId> {
    let here = graph.actors.iter().enumerate();
    let here = here.filter(|(_, actor)| actor.tile == tile);
    here.filter_map(|(at, _)| Some(ActorId(u32::try_from(at).ok()?)))
        .collect()
}

fn finished(system: &System, length: u64) -> Result<Vec<u64>, String> {
    // Each firing has its slot, and the longest of them goes on in several.
    let frames = 16 * (1 + 100_000 / length) * ITERATIONS as u64;
    let options = SimOptions {
        duration: Some(Span::from_ns(frames * 2 * (length + SCHEDULING))),
        ..SimOptions::default()
    };
    let log = simulate(system, &options, &mut Workloads::new(), &mut |_| true)
        .map_err(|error| error.to_string())?;
    let last = system.graphs[0].actors.len() - 1;
    let moves = log.cpus.iter().flat_map(|cpu| &cpu.moves);
    let done = moves.filter(|moved| {
        moved.actor.index() == last && moved.state == State::Reset && !moved.preempted
    });
    let done = done.map(|moved| log.ns(moved.at.since(Instant::ZERO).ticks()));
    let done: Vec<u64> = done.take(ITERATIONS).collect();
    match done.len() == ITERATIONS {
        true => Ok(done),
        false => Err(format!("only {} iterations were done", done.len())),
    }
}

/// Cycles of an iteration: until the last one of a row was done, over all.
fn of_iteration(row: &Row) -> f64 {
    real(row.values.last().copied().unwrap_or(0)) / real(row.values.len().max(1) as u64)
}

fn found<'a>(rows: &'a [Row], name: &str, at: &[u64]) -> Option<&'a Row> {
    rows.iter().find(|row| row.name == name && row.at == at)
}

/// Cycles of an iteration under each task scheduler, and the part that own time spares.
pub(crate) fn table(rows: &[Row]) -> Table {
    let heads = NAMES.map(|name| format!(">{name}"));
    let [first, second, third] = &heads;
    let mut table = Table::new(&["decoder", ">slot", first, second, third, ">own time spares"]);
    for row in rows.iter().filter(|row| row.name == NAMES[2]) {
        let of = |name| found(rows, name, &row.at).map_or(0.0, of_iteration);
        let all = NAMES.map(of);
        let decoder = usize::try_from(row.at(1))
            .ok()
            .and_then(|at| DECODERS.get(at));
        let mut cells = vec![
            decoder.map_or("-", |(name, _)| *name).to_owned(),
            row.at(0).to_string(),
        ];
        cells.extend(all.map(|cycles| format!("{cycles:.0}")));
        cells.push(format!("{:.0} %", 100.0 * (1.0 - all[2] / all[1].max(1.0))));
        table.row(cells);
    }
    table
}

/// A drawing for each decoder.
pub(crate) fn charts(rows: &[Row]) -> Vec<Chart> {
    let of = |(figure, (decoder, (name, _))): (u32, (u64, &(&str, &str)))| {
        let line = |(style, name): (usize, &&str)| {
            let of = rows
                .iter()
                .filter(|row| row.name == **name && row.at(1) == decoder);
            Series {
                name: (**name).to_owned(),
                mark: Mark::Line,
                style,
                points: of
                    .map(|row| (real(row.at(0)) / 1e3, of_iteration(row) / 1e3))
                    .collect(),
            }
        };
        Chart {
            title: format!("{name}: cycles of an iteration (as CompOSe, Fig. {figure})"),
            notes: vec![
                "Virtual time, a cycle is a nanosecond; actors and times have the shape of the decoder."
                    .into(),
            ],
            x: Axis::linear("length of a slot, in 1,000 cycles"),
            y: Axis::linear("1,000 cycles"),
            series: NAMES.iter().enumerate().map(line).collect(),
        }
    };
    (9..).zip((0..).zip(&DECODERS)).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_time_is_never_slower_than_between_slots_and_gains_with_longer_slots() {
        for decoder in [0, 1] {
            let mut last = 1.0;
            for length in [10_000, 40_000, 100_000, 300_000] {
                let rows = unit(length, decoder).expect("simulated");
                let [tdm, between, own] = [0, 1, 2].map(|at: usize| of_iteration(&rows[at]));
                assert!(
                    own <= between && between <= tdm,
                    "{length}: {own} {between} {tdm}"
                );
                last = own / between;
            }
            // A rest of the slot stays empty behind each firing.
            assert!(last < 0.67, "{decoder}: {last}");
        }
    }
}
