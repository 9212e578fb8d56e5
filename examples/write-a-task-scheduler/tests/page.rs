//! The page and the program say the same.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use punctual::graph::{Applications, TaskScheduler, TileBook};
use punctual::{LiveOptions, RunReport, Span, Workloads, judge, run};
use punctual_model::{Instant, Ns};
use write_a_task_scheduler::{Downstream, Endless, Moody, Stubborn, stream};

const PAGE: &str = "../../doc/guide/write-a-task-scheduler.md";

fn read(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_piece_of_code_on_the_page_stands_in_the_program() {
    let files = [
        "src/application.rs",
        "src/scheduler.rs",
        "stream.toml",
        "tests/page.rs",
        "../c/graph.c",
    ];
    let sources: Vec<String> = files.map(read).into();
    let page = read(PAGE);
    let mut blocks = 0;
    let mut parts = page.split("\n```");
    let _ = parts.next();
    for block in parts.step_by(2) {
        let (language, text) = block.split_once('\n').expect("a block");
        if ["rust", "toml", "c"].contains(&language) {
            let stands = sources.iter().any(|source| source.contains(text));
            assert!(stands, "nowhere in the program:\n{text}");
            blocks += 1;
        }
    }
    assert!(blocks >= 9, "{blocks} blocks");
}

/// Steps the only tile so often, without a run: the firings of each actor, and the answers that
/// were refused.
fn stepped(scheduler: impl TaskScheduler + Send + 'static, steps: u32) -> ([u64; 3], u64) {
    let (system, mut application) = stream().expect("valid");
    let tile = system.graphs[0].actors[0].tile;
    application
        .task_scheduler(tile, scheduler)
        .expect("its tile");
    let mut tiles = application.tiles().expect("small");
    for _ in 0..steps {
        tiles[0].step();
    }
    let book = tiles[0].book();
    let firings = ["count", "double", "check"].map(|actor| book.firings(actor));
    (firings, book.decisions().1)
}

#[test]
fn the_last_actor_that_may_fire_keeps_the_fifos_short() {
    // Four steps a firing, five firings an iteration; then the next one begins.
    assert_eq!(stepped(Downstream, 201), ([10, 20, 20], 0));
    let (firings, refused) = stepped(Stubborn, 200);
    assert_eq!((firings, refused), ([0, 0, 0], 200));
}

/// A bounded run of the stream; its report, and the fault of its tile.
fn flown(scheduler: impl TaskScheduler + Send + 'static) -> (RunReport, Arc<TileBook>) {
    let (system, mut application) = stream().expect("valid");
    let tile = system.graphs[0].actors[0].tile;
    application
        .task_scheduler(tile, scheduler)
        .expect("its tile");
    let applications = Applications::default();
    applications.bring(application);
    let options = LiveOptions {
        duration: Some(Span::from_ms(100)),
        // A loaded machine may measure overheads with which nothing fits.
        force: true,
        applications: applications.clone(),
        ..LiveOptions::default()
    };
    let log = run(&system, &options, &mut Workloads::new(), &mut |_| true).expect("a run");
    let (_, book) = applications.books().remove(0);
    (judge(&log), book)
}

const END: Instant = Instant::from_ticks(u64::MAX);
const PATIENCE: Span<Ns> = Span::from_ms(30);

#[test]
fn a_wrong_scheduler_is_named_on_the_page_as_in_a_run() {
    let page = read(PAGE);
    let (report, book) = flown(Downstream);
    assert_eq!(book.fault(Instant::ZERO, PATIENCE), None);
    assert!(report.graphs[0].actors[2].firings > 10, "{report}");
    let (report, book) = flown(Stubborn);
    let (decisions, refused) = book.decisions();
    // The end of the run may come in the middle of a decision.
    assert!(refused > 10 && decisions - refused <= 1, "{report}");
    for (book, words) in [
        (flown(Endless).1, "the task scheduler has not returned"),
        (
            flown(Moody::default()).1,
            "the task scheduler panicked: out of patience",
        ),
    ] {
        let fault = book.fault(END, PATIENCE).expect("a fault");
        assert!(fault.contains(words), "{fault}");
        assert!(page.contains(words), "not on the page: {words}");
    }
}
