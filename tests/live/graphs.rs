//! Graphs for real: functions fire on the slots of their tiles, and a wrong one harms itself alone.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use punctual::graph::{
    Application, Applications, Firing, Moved, NextRule, State, TaskScheduler, Tasks, TileBook,
};
use punctual::{LiveOptions, Log, Span, System, Workloads, run};
use punctual_model::{Instant, Ns};

use crate::common::examples::{is_replayed, obeys_the_rules};

/// Two graphs and a periodic task, each in slots of its own on one CPU.
const FRAME: &str = r#"
[system]
cpus = [0]

[cpu.0]
policy = "tdm"
frame = "2ms"
scheduling-time = "50us"

[scheduler.first]
on = "cpu.0"
policy = "fifo"
slots = [{ at = "0ms", length = "500us" }]

[scheduler.second]
on = "cpu.0"
policy = "fifo"
slots = [{ at = "550us", length = "500us" }]

[scheduler.third]
on = "cpu.0"
policy = "fifo"
slots = [{ at = "1100us", length = "300us" }]

[task.beside]
class = "periodic"
on = "scheduler.third"
period = "20ms"
wcet = "50us"

[graph.numbers]
actors = [
  { name = "count", on = "scheduler.first", wcet = "20ms" },
  { name = "check", on = "scheduler.second", wcet = "20ms" },
]
fifos = [
  { name = "state", from = "count", to = "count", initial = 1, token-size = 8 },
  { name = "numbers", from = "count", to = "check", produce = 3, consume = [2, 4], capacity = 7, token-size = 8 },
]
"#;

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

fn count(firing: &mut Firing<'_>) {
    let state = number(firing.inputs.tokens(0));
    firing
        .outputs
        .tokens(0)
        .copy_from_slice(&(state + 3).to_le_bytes());
    let places = firing.outputs.tokens(1).chunks_exact_mut(8);
    for (place, value) in places.zip(state..) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}

/// A token out of its order ends the application, which the test sees.
fn check(firing: &mut Firing<'_>, next: &mut u64) {
    for token in firing.inputs.tokens(0).chunks_exact(8) {
        assert_eq!(number(token), *next, "a token is lost or comes twice");
        *next += 1;
    }
}

fn panic_in_time(firing: &mut Firing<'_>, last: &mut u64) {
    assert!(firing.number < *last, "as the test wants it");
}

/// It never returns.
struct Endless;

impl TaskScheduler for Endless {
    fn next(&mut self, tasks: &dyn Tasks) -> Option<usize> {
        while tasks.count() > 0 {
            std::hint::spin_loop();
        }
        None
    }
}

/// A run of it until `seen`, and what became of its two tiles. A CPU that is away for a second is
/// away for all of a short run: the next one is longer.
fn flown_until(
    change: impl Fn(&mut Application, &System),
    seen: impl Fn(&[Arc<TileBook>; 2]) -> bool,
) -> (Log, [Arc<TileBook>; 2]) {
    for ms in [300, 1_200, 4_800] {
        let (log, books) = flown(ms, &change);
        if seen(&books) {
            return (log, books);
        }
    }
    flown(19_200, &change)
}

/// A run of so many milliseconds.
fn flown(ms: u64, change: impl Fn(&mut Application, &System)) -> (Log, [Arc<TileBook>; 2]) {
    let _alone = crate::alone();
    let system = punctual_spec::parse(FRAME, "numbers.toml").unwrap().system;
    let mut application = Application::new(&system.graphs[0]).unwrap();
    application.actor("count", count).unwrap();
    application
        .actor_with("check", check, |_, _| (), 0)
        .unwrap();
    change(&mut application, &system);
    let applications = Applications::default();
    applications.bring(application);
    let options = LiveOptions {
        duration: Some(Span::from_ms(ms)),
        // A loaded machine may measure overheads with which nothing fits.
        force: true,
        applications: applications.clone(),
        ..LiveOptions::default()
    };
    let log = run(&system, &options, &mut Workloads::new(), &mut |_| true).unwrap();
    let books = applications.books().into_iter().map(|(_, book)| book);
    (log, books.collect::<Vec<_>>().try_into().unwrap())
}

/// The task beside the graph had all jobs of the run.
fn beside_is_done(log: &Log) {
    let report = punctual::judge(log);
    let releases = report.duration_ns / 20_000_000;
    assert_eq!(report.tasks[0].jobs, releases, "{report}");
}

const END: Instant = Instant::from_ticks(u64::MAX);
const PATIENCE: Span<Ns> = Span::from_ms(100);

#[test]
fn actors_of_two_tiles_move_every_token_in_order_on_their_slots() {
    let often = |[_, second]: &[Arc<TileBook>; 2]| second.firings("check") > 50;
    let (log, [first, second]) = flown_until(|_, _| (), often);
    for book in [&first, &second] {
        assert_eq!(book.fault(Instant::ZERO, PATIENCE), None);
    }
    let (sent, taken) = (first.firings("count"), second.firings("check"));
    assert!(taken > 50, "{taken} firings");
    assert!(
        sent >= taken && 3 * (sent - taken) <= 7,
        "{sent} and {taken}"
    );
    beside_is_done(&log);
    is_replayed("numbers", &log);
    obeys_the_rules("numbers", &log);
}

#[test]
fn an_actor_that_panics_ends_its_application_on_its_tile_and_nobody_else() {
    let change = |application: &mut Application, _: &System| {
        application
            .actor_with("check", panic_in_time, |_, _| (), 10)
            .unwrap();
    };
    let has_ended = |[_, second]: &[Arc<TileBook>; 2]| {
        let fault = second.fault(Instant::ZERO, PATIENCE);
        fault.is_some()
    };
    let (log, [first, second]) = flown_until(change, has_ended);
    assert_eq!(second.firings("check"), 10);
    let fault = second.fault(Instant::ZERO, PATIENCE).unwrap();
    assert_eq!(fault, "the actor `check` panicked: as the test wants it");
    // Its writer fills the FIFO and waits.
    let sent = first.firings("count");
    assert!((10..=12).contains(&sent), "{sent}");
    beside_is_done(&log);
}

#[test]
fn a_task_scheduler_that_never_returns_is_named_and_costs_its_own_slots_alone() {
    let change = |application: &mut Application, system: &System| {
        let tile = system.graphs[0].actors[1].tile;
        application.task_scheduler(tile, Endless).unwrap();
    };
    let hangs = |[first, second]: &[Arc<TileBook>; 2]| {
        first.firings("count") >= 2 && second.fault(END, PATIENCE).is_some()
    };
    let (log, [first, second]) = flown_until(change, hangs);
    assert_eq!(second.firings("check"), 0);
    let fault = second.fault(END, PATIENCE).unwrap();
    assert!(
        fault.starts_with("the task scheduler has not returned"),
        "{fault}"
    );
    assert_eq!(first.firings("count"), 2);
    beside_is_done(&log);
    is_replayed("numbers", &log);
}

#[test]
fn a_graph_that_its_file_refuses_is_not_run() {
    let _alone = crate::alone();
    let refused =
        format!("{FRAME}\n[require]\nthroughput = [{{ graph = \"numbers\", every = \"1us\" }}]");
    let system = punctual_spec::parse(&refused, "numbers.toml")
        .unwrap()
        .system;
    let options = LiveOptions {
        duration: Some(Span::from_ms(10)),
        ..LiveOptions::default()
    };
    let answer = run(&system, &options, &mut Workloads::new(), &mut |_| true);
    assert!(
        matches!(answer, Err(punctual::Error::Refused(_))),
        "{answer:?}"
    );
}

/// Its own function does not look at the clock of the run, so the records tell its preemptions.
fn spin(_: &mut Firing<'_>) {
    let begun = std::time::Instant::now();
    while begun.elapsed() < std::time::Duration::from_micros(400) {
        std::hint::spin_loop();
    }
}

#[test]
fn preemptions_are_told_when_the_records_go_to_a_file() {
    let _alone = crate::alone();
    let system = punctual_spec::parse(FRAME, "numbers.toml").unwrap().system;
    let mut application = Application::new(&system.graphs[0]).unwrap();
    application.actor("count", spin).unwrap();
    application.actor("check", spin).unwrap();
    let applications = Applications::default();
    applications.bring(application);
    let options = LiveOptions {
        duration: Some(Span::from_ms(1_500)),
        force: true,
        applications,
        record: Some(Arc::new(tempfile::tempfile().unwrap())),
        ..LiveOptions::default()
    };
    let log = run(&system, &options, &mut Workloads::new(), &mut |_| true).unwrap();
    let moves = log.cpus.iter().flat_map(|cpu| &cpu.moves);
    let preempted = moves.filter(|moved| moved.preempted).count();
    assert!(preempted > 10, "{preempted}");
    is_replayed("numbers", &log);
}

/// Two actors of one tile in one slot of each frame, in which the long one does not end its firing.
fn between(preempted: &str) -> String {
    format!(
        r#"
[system]
cpus = [0]

[cpu.0]
policy = "tdm"
frame = "2ms"
scheduling-time = "50us"

[scheduler.own]
on = "cpu.0"
policy = "fifo"
slots = [{{ at = "0ms", length = "600us" }}]

[scheduler.other]
on = "cpu.0"
policy = "fifo"
slots = [{{ at = "700us", length = "500us" }}]

[task.beside]
class = "periodic"
on = "scheduler.other"
period = "20ms"
wcet = "50us"

[graph.numbers]
actors = [
  {{ name = "quick", on = "scheduler.own", wcet = "150us" }},
  {{ name = "long", on = "scheduler.own", wcet = "1300us" }},
]
fifos = [
  {{ name = "numbers", from = "quick", to = "long", consume = 2, capacity = 8, token-size = 24 }},
]
orders = [{{ on = "scheduler.own", when = "between-slots", {preempted} }}]
"#
    )
}

/// A run of it until the long actor has fired so often, with the functions of a program.
fn flown_between(
    preempted: &str,
    enough: u64,
    change: impl FnOnce(&mut Application, &System),
) -> (Log, Arc<TileBook>) {
    let _alone = crate::alone();
    let file = between(preempted);
    let system = punctual_spec::parse(&file, "between.toml").unwrap().system;
    let mut application = Application::new(&system.graphs[0]).unwrap();
    change(&mut application, &system);
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
        let fired = books.first().map_or(0, |(_, book)| book.firings("long"));
        fired < enough
    });
    let book = applications.books().remove(0).1;
    (log.unwrap(), book)
}

/// The transitions of its tile, with the number of the frame that each was in.
fn by_frame(log: &Log) -> Vec<(u64, Moved)> {
    let frame = log.tables.frequency.ticks_nearest(2_000_000);
    let moves = log.cpus[0].moves.iter();
    moves
        .map(|moved| (moved.at.ticks() / frame, *moved))
        .collect()
}

/// Of both rules: one firing begins in a slot, and an order is kept by slots, not by time.
fn one_firing_begins_in_a_slot(log: &Log) {
    let begun = by_frame(log)
        .into_iter()
        .filter(|(_, moved)| moved.state == State::Claim && !moved.preempted);
    let mut frames: Vec<u64> = begun.map(|(frame, _)| frame).collect();
    let all = frames.len();
    frames.dedup();
    assert!(
        all > 20 && frames.len() == all,
        "{all} in {} slots",
        frames.len()
    );
}

#[test]
fn between_slots_a_firing_goes_on_into_the_next_slot_whose_rest_stays_empty() {
    // With their two each these are more than twenty firings.
    let (log, book) = flown_between(r#"preempted = "continues""#, 8, |_, _| ());
    assert_eq!(book.fault(Instant::ZERO, PATIENCE), None);
    one_firing_begins_in_a_slot(&log);
    // Nobody comes between the parts of a firing.
    let mut fires = None;
    for (_, moved) in by_frame(&log) {
        assert!(fires.is_none_or(|actor| actor == moved.actor), "{moved:?}");
        fires = (moved.state != State::Idle).then_some(moved.actor);
    }
    let (quick, long) = (book.firings("quick"), book.firings("long"));
    // Two of the quick one and three slots of the long one are an iteration.
    assert!(long >= 6 && quick >= 2 * long, "{quick} and {long}");
    is_replayed("between", &log);
    obeys_the_rules("between", &log);
}

#[test]
fn between_slots_a_preempted_firing_is_passed_over_and_goes_on_in_its_turn() {
    let (log, book) = flown_between(r#"preempted = "passed-over""#, 12, |_, _| ());
    assert_eq!(book.fault(Instant::ZERO, PATIENCE), None);
    one_firing_begins_in_a_slot(&log);
    let (mut between, mut long_fires) = (0, false);
    for (_, moved) in by_frame(&log) {
        match moved.actor.index() {
            0 => between += u64::from(long_fires && moved.state == State::Compute),
            _ => long_fires = moved.state != State::Idle,
        }
    }
    assert!(
        between >= 2,
        "{between} firings came between the parts of another"
    );
    let (quick, long) = (book.firings("quick"), book.firings("long"));
    assert!(long >= 6 && quick >= 2 * long, "{quick} and {long}");
    is_replayed("between", &log);
    obeys_the_rules("between", &log);
}

/// A megabyte, eight times as long as a slot.
static PICTURE: [u8; 1 << 20] = [7; 1 << 20];

/// The update of its rule never returns, behind its eighth firing.
fn looks_for_ever(updates: &mut u32, _: &mut NextRule<'_>) {
    *updates += 1;
    if *updates >= 8 {
        loop {
            core::hint::spin_loop();
        }
    }
}

#[test]
fn an_update_of_a_rule_that_never_returns_is_passed_over_as_its_firing_is() {
    let (_, book) = flown_between(r#"preempted = "passed-over""#, 4, |application, _| {
        let made = application.actor_with("quick", |_, _| (), looks_for_ever, 0_u32);
        let _ = made.expect("an actor");
    });
    // Its tokens are there, and the other goes on.
    assert_eq!(book.firings("long"), 4);
    let said = book.fault(Instant::from_ticks(u64::MAX), PATIENCE);
    assert!(!said.is_some_and(|said| said.contains("scheduler")));
}

/// Copies it to memory that tiles share.
fn draw(firing: &mut Firing<'_>) {
    for _ in 0..8 {
        assert!(firing.shared.write(0, 0, &PICTURE));
    }
}

/// Copies it by the C library, in one call each time.
fn copy_by_library(_: &mut Firing<'_>) {
    let mut copy = Vec::with_capacity(PICTURE.len());
    for _ in 0..80 {
        copy.clear();
        copy.extend_from_slice(std::hint::black_box(&PICTURE));
        std::hint::black_box(&mut copy);
    }
}

/// Preemptions of such a tile, and those that had to wait for the end of a call.
fn preempted(function: fn(&mut Firing<'_>)) -> (u64, u64) {
    let (log, [first, _]) = flown(300, |application, _| {
        application.shared_memory(PICTURE.len()).unwrap();
        application.actor("count", function).unwrap();
        application.actor("check", |_| ()).unwrap();
    });
    assert_eq!(first.fault(Instant::ZERO, Span::from_ms(10_000)), None);
    let of_first = |moved: &&Moved| moved.preempted && moved.actor.index() == 0;
    let moves = log.cpus[0].moves.iter().filter(of_first);
    let preemptions = u64::try_from(moves.count()).unwrap();
    (preemptions, log.cpus[0].counters.deferrals)
}

/// As many flights as it takes: a busy machine has less time for each.
fn preempted_often(function: fn(&mut Firing<'_>)) -> (u64, u64) {
    let (mut preemptions, mut deferrals) = (0, 0);
    for _ in 0..20 {
        let (more, waited) = preempted(function);
        (preemptions, deferrals) = (preemptions + more, deferrals + waited);
        if preemptions > 50 {
            break;
        }
    }
    (preemptions, deferrals)
}

#[test]
fn no_preemption_waits_for_a_copy_to_shared_memory() {
    let (preemptions, deferrals) = preempted_often(draw);
    assert!(
        preemptions > 50 && deferrals <= preemptions / 20,
        "{deferrals} of {preemptions}"
    );
    // Else this shows nothing.
    let (preemptions, deferrals) = preempted_often(copy_by_library);
    assert!(deferrals > preemptions / 5, "{deferrals} of {preemptions}");
}
