//! Fig. 7 and 8 of CompOSe: the times of a decoder, while the other one decides otherwise.
//!
//! `cargo run --example two_decoders -p punctual`
//!
//! Each scenario executes `examples/graph-two-decoders.toml` twice in virtual time. Only the order
//! of one decoder changes from between slots to its own time; the times of the other one are
//! compared, iteration by iteration. The program fails if any of them differs.

use std::error::Error;
use std::path::Path;

use punctual::{SimOptions, Span, System, Workloads, simulate};
use punctual_model::{Instant, Order, OrderRule, Preempted, When};
use punctual_trace::{Log, State};

/// Iterations shown; all are compared.
const SHOWN: usize = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/graph-two-decoders.toml");
    let system = punctual_spec::load(&file)?.system;
    let mut all_different = 0;
    for (kept, changed) in [(0, 1), (1, 0)] {
        let [kept_name, changed_name] = [kept, changed].map(|at| &system.graphs[at].name);
        println!("{kept_name}, while {changed_name} decides between slots, then in its own time");
        let between = times(&with_orders(&system, changed, BETWEEN), kept)?;
        let own = times(&with_orders(&system, changed, When::OwnTime), kept)?;
        let changed_times = times(&with_orders(&system, changed, BETWEEN), changed)?;
        let faster = times(&with_orders(&system, changed, When::OwnTime), changed)?;
        let mut different = between.len().abs_diff(own.len());
        println!("  iteration    start ns  response ns   differences");
        for (at, (before, after)) in between.iter().zip(&own).enumerate() {
            let response = before[1] - before[0];
            let start = after[0].abs_diff(before[0]);
            let later = response.abs_diff(after[1] - after[0]);
            if at < SHOWN {
                println!("  {at:9} {:11} {response:12}   {start} {later}", before[0]);
            }
            different += usize::from(start != 0 || later != 0);
        }
        all_different += different;
        println!("  ... {} iterations, {different} differ", between.len());
        println!(
            "  {changed_name} itself: {} iterations between slots, {} in its own time",
            changed_times.len(),
            faster.len()
        );
    }
    match all_different {
        0 => Ok(()),
        n => Err(format!("{n} iterations differ: not composable").into()),
    }
}

const BETWEEN: When = When::BetweenSlots(Preempted::Continues);

/// The same system, where a graph decides by round robin at these instants.
fn with_orders(system: &System, graph: usize, when: When) -> System {
    let mut system = system.clone();
    let graph = &mut system.graphs[graph];
    let mut tiles: Vec<_> = graph.actors.iter().map(|actor| actor.tile).collect();
    tiles.dedup();
    let by = OrderRule::RoundRobin;
    let order = |tile| Order {
        tile,
        when,
        by: by.clone(),
    };
    graph.orders = tiles.into_iter().map(order).collect();
    system
}

/// When each iteration began and when it was done: the first actor claims, the last one releases.
fn times(system: &System, graph: usize) -> Result<Vec<[u64; 2]>, Box<dyn Error>> {
    let options = SimOptions {
        duration: Some(Span::from_ms(200)),
        ..SimOptions::default()
    };
    let log = simulate(system, &options, &mut Workloads::new(), &mut |_| true)?;
    let last = system.graphs[graph].actors.len() - 1;
    let starts = instants(&log, (graph, 0), State::Claim);
    let ends = instants(&log, (graph, last), State::Reset);
    Ok(starts.into_iter().zip(ends).map(<[u64; 2]>::from).collect())
}

fn instants(log: &Log, (graph, actor): (usize, usize), state: State) -> Vec<u64> {
    let moves = log.cpus.iter().flat_map(|cpu| &cpu.moves);
    let own = moves.filter(|moved| (moved.graph.index(), moved.actor.index()) == (graph, actor));
    let entered = own.filter(|moved| moved.state == state && !moved.preempted);
    entered
        .map(|moved| moved.at.since(Instant::ZERO).ticks())
        .collect()
}
