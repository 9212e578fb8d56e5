//! Applications that are not real-time, for real: a FIFO that blocks one task lets another go on.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::cell::Cell;
use std::sync::Arc;

use punctual::graph::{
    Application, Applications, State, TaskFifos, TaskScheduler, Tasks, TileBook,
};
use punctual::{LiveOptions, Log, Span, Workloads, run};

use crate::common::examples::{is_replayed, obeys_the_rules};

/// Three tasks on one tile, and a periodic task in another slot.
const FRAME: &str = r#"
[system]
cpus = [0]

[cpu.0]
policy = "tdm"
frame = "2ms"
scheduling-time = "50us"

[scheduler.batch]
on = "cpu.0"
policy = "fifo"
slots = [{ at = "0ms", length = "700us" }]

[scheduler.other]
on = "cpu.0"
policy = "fifo"
slots = [{ at = "800us", length = "500us" }]

[task.beside]
class = "periodic"
on = "scheduler.other"
period = "20ms"
wcet = "50us"

[graph.batch]
real-time = false
actors = [
  { name = "ask", on = "scheduler.batch", wcet = "20ms", times = 1 },
  { name = "answer", on = "scheduler.batch", wcet = "20ms", times = 1 },
  { name = "index", on = "scheduler.batch", wcet = "20ms", times = 1 },
]
fifos = [
  { name = "questions", from = "ask", to = "answer", capacity = 1, token-size = 8 },
  { name = "answers", from = "answer", to = "ask", capacity = 1, token-size = 8 },
]
"#;

const ROUNDS: u64 = 500;

thread_local! {
    static MINE: Cell<u64> = const { Cell::new(0) };
}

fn ask(fifos: &mut TaskFifos) {
    let mut bytes = [0; 8];
    for number in 0..ROUNDS {
        MINE.set(number);
        assert!(fifos.write(0, &number.to_le_bytes()));
        assert!(fifos.read(0, &mut bytes));
        assert_eq!(u64::from_le_bytes(bytes), number + 1);
        assert_eq!(MINE.get(), number, "its storage is its own");
    }
}

fn answer(fifos: &mut TaskFifos) {
    let mut bytes = [0; 8];
    for _ in 0..ROUNDS {
        assert!(fifos.read(0, &mut bytes));
        let number = u64::from_le_bytes(bytes) + 1;
        MINE.set(number);
        assert!(fifos.write(0, &number.to_le_bytes()));
    }
}

/// Several slots of work.
fn index(_: &mut TaskFifos) {
    let words: Vec<String> = (0..20_000).map(|word| format!("{word}")).collect();
    assert_eq!(
        words.iter().filter(|word| word.ends_with('7')).count(),
        2_000
    );
}

/// A run until `enough`: a loaded machine takes its time.
fn flown(
    change: impl FnOnce(&mut Application),
    enough: impl Fn(&TileBook) -> bool + Sync,
) -> (Log, Arc<TileBook>) {
    flown_for(20_000, change, enough)
}

fn flown_for(
    ms: u64,
    change: impl FnOnce(&mut Application),
    enough: impl Fn(&TileBook) -> bool + Sync,
) -> (Log, Arc<TileBook>) {
    let _alone = crate::alone();
    let system = punctual_spec::parse(FRAME, "plain.toml").unwrap().system;
    let mut application = Application::new(&system.graphs[0]).unwrap();
    application.task("ask", ask).unwrap();
    application.task("answer", answer).unwrap();
    application.task("index", index).unwrap();
    change(&mut application);
    let applications = Applications::default();
    applications.bring(application);
    let options = LiveOptions {
        duration: Some(Span::from_ms(ms)),
        force: true,
        applications: applications.clone(),
        ..LiveOptions::default()
    };
    let log = run(&system, &options, &mut Workloads::new(), &mut |_| {
        let books = applications.books();
        !books.first().is_some_and(|(_, book)| enough(book))
    });
    let book = applications.books().remove(0).1;
    (log.unwrap(), book)
}

fn all_have_finished(book: &TileBook) -> bool {
    book.actors.iter().all(|task| task.has_finished())
}

fn beside_went_on(log: &Log) {
    let report = punctual::judge(log);
    assert!(report.tasks[0].jobs > 1, "{report}");
}

/// The waits without an end, as the report has them.
fn named(log: &Log) -> String {
    let report = punctual::judge(log);
    report.graphs[0].deadlock.clone().unwrap_or_default()
}

#[test]
fn two_tasks_that_wait_for_each_other_keep_no_third_from_going_on() {
    let (log, book) = flown(|_| (), all_have_finished);
    assert!(all_have_finished(&book), "{:?}", log.header.faults);
    let moves = &log.cpus[0].moves;
    let of = |state, preempted| {
        let found = moves
            .iter()
            .filter(|m| (m.state, m.preempted) == (state, preempted));
        found.count()
    };
    assert_eq!(of(State::Finished, false), 3);
    assert!(of(State::Run, true) > 0, "no slot ended in a task");
    let went = moves
        .iter()
        .filter(|m| matches!(m.call, Some((_, true))))
        .count();
    assert_eq!(went as u64, 4 * ROUNDS, "calls of FIFOs");
    obeys_the_rules("plain", &log);
    is_replayed("plain", &log);
    beside_went_on(&log);
}

#[test]
fn a_true_circle_of_waiting_is_named_and_the_third_comes_to_its_end() {
    let change = |application: &mut Application| {
        let waits_first = |fifos: &mut TaskFifos| assert!(fifos.read(0, &mut [0; 8]));
        application.task("ask", waits_first).unwrap();
    };
    let (log, book) = flown_for(1_500, change, |_| false);
    assert!(book.actors[2].has_finished());
    let named = named(&log);
    let circle = "`ask` waits for 1 token";
    assert!(named.starts_with(circle), "{named}");
    beside_went_on(&log);
}

#[test]
fn a_wait_for_a_task_that_has_ended_is_named() {
    let change = |application: &mut Application| {
        application.task("ask", |_| ()).unwrap();
    };
    let (log, _) = flown_for(1_500, change, |_| false);
    let named = named(&log);
    let waits = "`answer` waits for 1 token";
    assert!(named.starts_with(waits), "{named}");
}

/// It names tasks that may not go on, some that are not there, and now and then the next.
struct Liar(usize);

impl TaskScheduler for Liar {
    fn next(&mut self, tasks: &dyn Tasks) -> Option<usize> {
        self.0 += 1;
        match self.0 % 3 {
            0 => (0..tasks.count()).find(|&task| tasks.check_firing_rules(task)),
            1 => (0..tasks.count()).find(|&task| !tasks.check_firing_rules(task)),
            _ => Some(tasks.count() + self.0),
        }
    }
}

/// It panics after so many answers, or never returns.
struct Wrong(usize, bool);

impl TaskScheduler for Wrong {
    fn next(&mut self, tasks: &dyn Tasks) -> Option<usize> {
        self.0 = self.0.saturating_sub(1);
        while self.0 == 0 && self.1 && tasks.count() > 0 {
            std::hint::spin_loop();
        }
        assert!(self.0 > 0, "as the test wants it");
        (0..tasks.count()).find(|&task| tasks.check_firing_rules(task))
    }
}

#[test]
fn a_scheduler_of_tasks_that_lies_or_panics_or_loops_costs_its_application_alone() {
    let tile = |application: &mut Application, scheduler: Box<dyn TaskScheduler + Send>| {
        let system = punctual_spec::parse(FRAME, "plain.toml").unwrap().system;
        let tile = system.graphs[0].actors[0].tile;
        application.task_scheduler(tile, scheduler).unwrap();
    };
    let (log, book) = flown(|all| tile(all, Box::new(Liar(0))), all_have_finished);
    let (decisions, refused) = book.decisions();
    assert!(all_have_finished(&book) && refused > 0 && decisions > refused);
    beside_went_on(&log);

    let (log, book) = flown(
        |all| tile(all, Box::new(Wrong(50, false))),
        |book| book.decisions().0 >= 50,
    );
    let fault = book.fault(Default::default(), Span::from_ms(100));
    let fault = fault.unwrap();
    assert_eq!(fault, "the task scheduler panicked: as the test wants it");
    beside_went_on(&log);

    let (log, book) = flown(
        |all| tile(all, Box::new(Wrong(50, true))),
        |book| book.decisions().0 >= 50,
    );
    let fault = book.fault(punctual_model::Instant::MAX, Span::from_ms(100));
    let fault = fault.unwrap();
    assert!(
        fault.starts_with("the task scheduler has not returned"),
        "{fault}"
    );
    beside_went_on(&log);
}
