//! Graphs: their FIFOs beside the queues of others, and what a firing costs.

use std::hint::{black_box, spin_loop};

use punctual_fifo::{CopyEngine, Reader, Shape, Writer, fifo};
use punctual_firing::{Activity, Engine, Fifos, RoundRobin, When};
use punctual_graph::{ActorBook, Application, State, TaskFifos, Tile as GraphTile};
use punctual_linux::Body;
use punctual_model::{CpuId, Graph, Span, Tile, Work};
use punctual_rivals::queues::{self, BATCH, CAPACITY, TOKEN};
use punctual_rivals::{Place, on};

use super::counting::{Counted, LATENESS, TWO_CPUS, units};
use super::figure::{Bench, Measured, time};
use super::live::{Live, Notebook, place};
use super::switching::rival;

/// Batches of one figure.
const BATCHES: usize = if cfg!(debug_assertions) { 20 } else { 1_000 };

pub(super) fn benches() -> Vec<Bench> {
    vec![
        Bench::in_cycles("dataflow.fifo", || on(place()?, copied).map(Into::into))
            .against("rtrb", rival(queues::rtrb))
            .against("crossbeam-channel", rival(queues::crossbeam)),
        Bench::in_cycles("dataflow.fifo.slices", || {
            on(place()?, slices).map(Into::into)
        })
        .against("rtrb chunks", rival(queues::rtrb_chunks)),
        Bench::in_cycles("dataflow.fifo.across", || across(place()?).map(Into::into))
            .counted(Counted::Not(TWO_CPUS))
            .against("rtrb", rival(queues::rtrb_across)),
        Bench::in_cycles("dataflow.firing", || firings(0))
            .against("a plain call", rival(queues::plain_call))
            .against("a thread per actor", rival(queues::thread_per_actor)),
        Bench::in_cycles("dataflow.firing.traced", || firings(1 << 22))
            .against("a thread per actor", rival(queues::thread_per_actor)),
        Bench::in_cycles("dataflow.decision", || on(place()?, engine).map(Into::into)),
        Bench::in_cycles("dataflow.pass.1", || decisions(1)),
        Bench::in_cycles("dataflow.pass.8", || decisions(8)),
        Bench::in_cycles("dataflow.between", || between("continues"))
            .counted(Counted::Not(LATENESS)),
        Bench::in_cycles("dataflow.between.passed-over", || between("passed-over"))
            .counted(Counted::Not(LATENESS)),
        Bench::in_cycles("dataflow.blocked", blocked)
            .against("a thread per actor", rival(queues::thread_per_actor)),
    ]
}

/// Means of batches of `units` each, in nanoseconds, after one that warms up.
fn batches(units: u32, mut batch: impl FnMut()) -> Vec<f64> {
    batch();
    (0..BATCHES).map(|_| time(units, &mut batch)).collect()
}

/// The first tile of a graph without work, on a thread that measures: `sample` gives
/// nanoseconds.
fn on_tile(
    graph: Graph,
    transitions: usize,
    mut sample: impl FnMut(&mut GraphTile) -> Result<f64, String> + Send + 'static,
) -> Result<Measured, String> {
    let words = |error: punctual_graph::GraphError| error.to_string();
    let mut application = Application::new(&graph).map_err(words)?;
    for actor in &graph.actors {
        application.actor(&actor.name, |_| ()).map_err(words)?;
    }
    application.keep_transitions(transitions);
    let mut tiles = application.tiles().map_err(words)?;
    let notebook = Notebook::default();
    let kept = notebook.clone();
    let body: Body = Box::new(move |_| kept.take_all(BATCHES, || sample(&mut tiles[0])));
    Live::measuring(1, body).run(&notebook)
}

/// Two actors that hand a token to and fro.
fn to_and_fro(tile: Tile) -> Graph {
    let mut graph = Graph::new("to and fro");
    let ends = ["to", "fro"].map(|name| graph.actor(name, tile, Work::from_ms(1)));
    for (initial, from, to) in [(0, 0, 1), (1, 1, 0)] {
        let fifo = graph.fifo(format!("from {from}"), ends[from], ends[to]);
        (fifo.initial, fifo.capacity, fifo.token_size) = (initial, Some(1), 64);
    }
    graph
}

/// A firing of such: its decision by turns, its claims, a call, its releases, and the books that
/// are kept of it with a reading of the clock.
fn firings(transitions: usize) -> Result<Measured, String> {
    let graph = to_and_fro(Tile::cpu(CpuId(0)));
    on_tile(graph, transitions, |tile| {
        let firings = |tile: &GraphTile| tile.book().actors.iter().map(ActorBook::firings).sum();
        let before: u64 = firings(tile);
        let rounds = units(BATCH);
        let ns = time(rounds, || {
            // Claim, compute, release, reset; the next decision is in the next claim.
            for _ in 0..4 * rounds {
                tile.step();
            }
        });
        match firings(tile) - before {
            done if done + 1 >= u64::from(rounds) => Ok(ns),
            done => Err(format!("{done} of {rounds} firings")),
        }
    })
}

/// Both ends of all FIFOs.
struct Local(Vec<(Writer, Reader)>, CopyEngine);

impl Fifos for Local {
    fn tokens(&self, fifo: usize) -> u32 {
        self.0[fifo].1.tokens()
    }

    fn space(&self, fifo: usize) -> u32 {
        self.0[fifo].0.space()
    }

    fn consume(&mut self, fifo: usize, count: u32) {
        self.0[fifo].1.release(count);
    }

    fn produce(&mut self, fifo: usize, count: u32) {
        self.0[fifo].0.release(count, &mut self.1);
    }
}

/// The engine and local FIFOs alone: a decision, the claims and the releases of a firing, without
/// clock and books.
fn engine() -> Result<Vec<f64>, String> {
    let tile = Tile::cpu(CpuId(0));
    let graph = to_and_fro(tile);
    let mut engine = Engine::new(&graph, tile, When::OwnTime, RoundRobin);
    let ends = || fifo(Shape::new(1, 64)).map_err(|error| error.to_string());
    let mut local = Local(vec![ends()?, ends()?], CopyEngine::default());
    local.0[1].0.write(&[0; 64], &mut local.1);
    let mut firings = 0_u64;
    let rounds = units(BATCH);
    let samples = batches(rounds, || {
        for _ in 0..4 * rounds {
            match engine.next(&mut local, &mut ()) {
                Activity::Claim(place) => {
                    local.0[1 - place].1.claim(1, &mut local.1);
                    local.0[place].0.claim(1);
                }
                Activity::Compute(place) => {
                    black_box(local.0[1 - place].1.claimed());
                    black_box(local.0[place].0.claimed());
                    firings += 1;
                }
                _ => {}
            }
        }
    });
    match firings >= u64::from(BATCH) * samples.len() as u64 {
        true => Ok(samples),
        false => Err(format!("{firings} firings")),
    }
}

/// A question to which nobody answers: so many actors wait for tokens of another tile.
fn decisions(actors: u32) -> Result<Measured, String> {
    let [here, there] = [CpuId(0), CpuId(1)].map(Tile::cpu);
    let mut graph = Graph::new("waiting");
    let all: Vec<_> = (0..actors)
        .map(|actor| graph.actor(format!("waits {actor}"), here, Work::from_ms(1)))
        .collect();
    let source = graph.actor("source", there, Work::from_ms(1));
    for (number, actor) in all.into_iter().enumerate() {
        let fifo = graph.fifo(format!("to {number}"), source, actor);
        (fifo.capacity, fifo.token_size) = (Some(1), 64);
    }
    on_tile(graph, 0, |tile| {
        let mut fired = 0_u32;
        let rounds = units(BATCH);
        let ns = time(rounds, || {
            for _ in 0..rounds {
                fired += u32::from(tile.step());
            }
        });
        match fired {
            0 => Ok(ns),
            fired => Err(format!("{fired} decisions fired")),
        }
    })
}

/// A call of a FIFO that blocks its task: the question to the task scheduler, and the switch to the
/// other task, which has storage of its own.
fn blocked() -> Result<Measured, String> {
    let tile = Tile::cpu(CpuId(0));
    let graph = Graph {
        plain: true,
        ..to_and_fro(tile)
    };
    let words = |error: punctual_graph::GraphError| error.to_string();
    let mut application = Application::new(&graph).map_err(words)?;
    let notebook = Notebook::default();
    let kept = notebook.clone();
    let measures = move |fifos: &mut TaskFifos| {
        let mut token = [0; 64];
        // Each round blocks both.
        kept.take_all(BATCHES, || {
            let rounds = units(BATCH);
            Ok(time(2 * rounds, || {
                for _ in 0..rounds {
                    black_box(fifos.read(0, &mut token) && fifos.write(0, &token));
                }
            }))
        });
    };
    let answers = |fifos: &mut TaskFifos| {
        let mut token = [0; 64];
        while fifos.read(0, &mut token) && fifos.write(0, &token) {}
    };
    application.task("to", measures).map_err(words)?;
    application.task("fro", answers).map_err(words)?;
    application.keep_transitions(0);
    let tile = application.tiles().map_err(words)?.remove(0);
    Live::measuring(1, tile.body()).run(&notebook)
}

/// From the start of a slot to the first instruction of the actor that its decision names: how late
/// the slot began, the decision, the claim, and two readings of the clock.
fn between(preempted: &str) -> Result<Measured, String> {
    let host = place()?.cpu;
    let file = format!(
        "[system]\ncpus = [{host}]\n[cpu.{host}]\npolicy = \"tdm\"\nframe = \"1ms\"\n\
         scheduling-time = \"100us\"\n[scheduler.own]\non = \"cpu.{host}\"\npolicy = \"fifo\"\n\
         slots = [{{ at = \"0us\", length = \"500us\" }}]\n[graph.g]\nactors = [\n\
         {{ name = \"to\", on = \"scheduler.own\", wcet = \"20us\" }},\n\
         {{ name = \"fro\", on = \"scheduler.own\", wcet = \"20us\" }}]\n\
         fifos = [{{ name = \"tokens\", from = \"to\", to = \"fro\", capacity = 4, token-size = 64 }}]\n\
         orders = [{{ on = \"scheduler.own\", when = \"between-slots\", preempted = \"{preempted}\" }}]\n"
    );
    let system = punctual_spec::parse(&file, "between.toml");
    let system = system.map_err(|_| "the file is wrong")?.system;
    let options = punctual::LiveOptions {
        duration: Some(Span::from_ms(BATCHES as u64 * 2)),
        force: true,
        ..punctual::LiveOptions::default()
    };
    let log = punctual::run(
        &system,
        &options,
        &mut punctual::Workloads::new(),
        &mut |_| true,
    );
    let log = log.map_err(|error| error.to_string())?;
    let frequency = log.tables.frequency;
    let frame = frequency.ticks_nearest(1_000_000);
    let moves = log.cpus.iter().flat_map(|cpu| &cpu.moves);
    let begun = moves.filter(|moved| moved.state == State::Compute && !moved.preempted);
    let late = begun.map(|moved| frequency.ns_up(moved.at.ticks() % frame) as f64);
    let late: Vec<f64> = late.collect();
    match late.len() {
        0 => Err("nothing fired".into()),
        _ => Ok(late.into()),
    }
}

fn ends() -> Result<(Writer, Reader), String> {
    let sizes = u32::try_from(CAPACITY).and_then(|c| Ok((c, u32::try_from(TOKEN)?)));
    let (capacity, size) = sizes.map_err(|error| error.to_string())?;
    fifo(Shape::new(capacity, size)).map_err(|error| error.to_string())
}

/// A token in and out again, copied on both sides, as the calls of others do.
fn copied() -> Result<Vec<f64>, String> {
    let (mut writer, mut reader) = ends()?;
    let mut engine = CopyEngine::default();
    let mut token = [0_u8; TOKEN];
    let rounds = units(BATCH);
    Ok(batches(rounds, || {
        for number in 0..rounds {
            token[0] = number.to_le_bytes()[0];
            writer.write(&token, &mut engine);
            reader.read(&mut token, &mut engine);
            black_box(&token);
        }
    }))
}

/// Half of the FIFO as one slice, on both sides.
fn slices() -> Result<Vec<f64>, String> {
    let (mut writer, mut reader) = ends()?;
    let mut engine = CopyEngine::default();
    let half = u32::try_from(CAPACITY / 2).map_err(|error| error.to_string())?;
    let rounds = units(BATCH);
    Ok(batches(rounds, || {
        for number in 0..rounds {
            writer.claim(half);
            for token in writer.claimed().chunks_exact_mut(TOKEN) {
                token[0] = number.to_le_bytes()[0];
            }
            writer.release(half, &mut engine);
            reader.claim(half, &mut engine);
            for token in reader.claimed().chunks_exact(TOKEN) {
                black_box(token[0]);
            }
            reader.release(half);
        }
    }))
}

/// From one CPU to another, both of which look again and again, and so not in real time.
fn across(place: Place) -> Result<Vec<f64>, String> {
    let other = place.other.ok_or("there is one CPU only")?;
    let place = Place {
        real_time: false,
        ..place
    };
    let there = Place {
        cpu: other,
        ..place
    };
    let (mut writer, mut reader) = ends()?;
    let tokens = BATCH as usize * (BATCHES + 1);
    let reading = std::thread::spawn(move || {
        on(there, move || {
            let (mut engine, mut token) = (CopyEngine::default(), [0_u8; TOKEN]);
            for _ in 0..tokens {
                while !reader.read(&mut token, &mut engine) {
                    spin_loop();
                }
                black_box(&token);
            }
            Ok(())
        })
    });
    let samples = on(place, move || {
        let (mut engine, mut token) = (CopyEngine::default(), [0_u8; TOKEN]);
        Ok(batches(BATCH, || {
            for number in 0..BATCH {
                token[0] = number.to_le_bytes()[0];
                while !writer.write(&token, &mut engine) {
                    spin_loop();
                }
            }
        }))
    });
    reading.join().map_err(|_| "the reader panicked")??;
    samples
}
