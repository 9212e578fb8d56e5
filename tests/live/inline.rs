//! A graph whose actors are threads of the core, for real
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use punctual::graph::{Application, Applications, Firing, GraphError, RoundRobin, State, TileBook};
use punctual::{LiveOptions, Log, Span, Workloads, job, run};
use punctual_model::Instant;

use crate::common::examples::{is_replayed, obeys_the_rules};

/// Two actors of one tile with slots, and a reader in the slots of another.
const FILE: &str = r#"
[system]
cpus = [0]

[cpu.0]
policy = "tdm"
frame = "2ms"
scheduling-time = "50us"

[scheduler.own]
on = "cpu.0"
policy = "fifo"
slots = [{ at = "0ms", length = "800us" }]

[scheduler.other]
on = "cpu.0"
policy = "fifo"
slots = [{ at = "900us", length = "500us" }]

[graph.numbers]
actors = [
  { name = "quick", on = "scheduler.own", wcet = "150us" },
  { name = "long", on = "scheduler.own", wcet = "1300us" },
  { name = "sink", on = "scheduler.other", wcet = "50us" },
]
fifos = [
  { name = "numbers", from = "quick", to = "long", consume = 2, capacity = 12, token-size = 24 },
  { name = "sums", from = "long", to = "sink", capacity = 4, token-size = 8 },
]
orders = [{ on = "scheduler.own", when = "inline" }]
"#;

/// A run until the reader has fired so often, and the books of its three threads.
fn flown(enough: u64, change: impl FnOnce(&mut Application)) -> (Log, Vec<Arc<TileBook>>) {
    let _alone = crate::alone();
    let system = punctual_spec::parse(FILE, "inline.toml").unwrap().system;
    let mut application = Application::new(&system.graphs[0]).unwrap();
    let tile = system.graphs[0].actors[0].tile;
    let asked = application.task_scheduler(tile, RoundRobin).map(|_| ());
    assert_eq!(asked, Err(GraphError::Inline(tile)));
    change(&mut application);
    let applications = Applications::default();
    applications.bring(application);
    let options = LiveOptions {
        // A loaded machine takes its time.
        duration: Some(Span::from_ms(20_000)),
        force: true,
        applications: applications.clone(),
        ..LiveOptions::default()
    };
    let log = run(&system, &options, &mut Workloads::new(), &mut |_| {
        let books = applications.books();
        let fired = books.last().map_or(0, |(_, book)| book.firings("sink"));
        fired < enough
    });
    let books = applications.books().into_iter().map(|(_, book)| book);
    (log.unwrap(), books.collect())
}

/// Firings of the quick actor that began while the long one was computing.
fn begun_inside(log: &Log) -> u64 {
    let (mut inside, mut computes) = (0, false);
    for moved in &log.cpus[0].moves {
        match (moved.actor.index(), moved.state) {
            (0, State::Claim) if !moved.preempted => inside += u64::from(computes),
            (1, state) => computes = state == State::Compute,
            _ => {}
        }
    }
    inside
}

#[test]
fn actors_that_are_threads_take_turns_between_firings() {
    let (log, books) = flown(6, |_| ());
    for book in &books {
        assert_eq!(book.fault(Instant::ZERO, Span::from_ms(100)), None);
    }
    let (quick, long) = (books[0].firings("quick"), books[1].firings("long"));
    assert!(long >= 6 && quick >= 2 * long, "{quick} and {long}");
    assert_eq!(begun_inside(&log), 0, "no firing is longer than a turn");
    is_replayed("inline", &log);
    obeys_the_rules("inline", &log);
}

/// It waits in a call, as any thread may.
fn wait(firing: &mut Firing<'_>) {
    job::sleep_ns(5_000_000);
    firing.outputs.tokens(0).fill(1);
}

#[test]
fn while_a_firing_waits_in_a_call_the_other_actors_fire() {
    let (log, books) = flown(8, |application| {
        application.actor("quick", |_| ()).unwrap();
        application.actor("long", wait).unwrap();
    });
    assert!(books[1].firings("long") >= 8);
    // Space for ten more while two are held, in each of its waits.
    let inside = begun_inside(&log);
    assert!(inside >= 8, "{inside} firings began meanwhile");
    is_replayed("inline", &log);
    obeys_the_rules("inline", &log);
}
